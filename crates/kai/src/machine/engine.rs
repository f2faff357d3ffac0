//! The engine of the models that run inside Kai.

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use kai_assistant::home::Home;
use kai_assistant::models::Candidate;
use kai_llm::{EngineTrouble, Model, ModelError, Scale};
use kai_local::{Launch, Local, States};
use url::Url;

/// Models in larger files are asked like those on servers.
const SMALL: u64 = 3_500_000_000;

/// The engine, which is set up when the first model needs it.
#[derive(Default)]
pub(crate) struct Engine(OnceLock<kai_local::Engine>);

impl Engine {
    /// The model of this candidate. It is loaded by the first question.
    pub(crate) fn model(
        &self,
        home: &Home,
        states_key: &[u8; 32],
        candidate: &Candidate,
        idle: Duration,
    ) -> Result<Box<dyn Model>, ModelError> {
        let config = &candidate.config;
        let file = Url::parse(&config.base_url).ok().and_then(|url| url.to_file_path().ok());
        let file = file.ok_or(ModelError::Engine(EngineTrouble::NoFile))?;
        let states = || States::new(home.models().join("states"), states_key);
        let engine = self.0.get_or_init(|| kai_local::Engine::new(Launch::ourselves(), Some(states())));
        Ok(engine.model(Local {
            scale: scale(&file),
            file,
            model: config.model.clone(),
            window: config.window,
            threads: kai_local::machine::cores(),
            idle,
        }))
    }

    /// Ends the engine's process if it has loaded this file, for example before the file is deleted.
    pub(crate) async fn end_of(&self, file: &Path) {
        if let Some(engine) = self.0.get() {
            engine.end_of(file).await;
        }
    }
}

fn scale(file: &Path) -> Scale {
    let small = std::fs::metadata(file).is_ok_and(|about| about.len() <= SMALL);
    if small { Scale::Small } else { Scale::Full }
}

/// Plays the engine's process.
pub(crate) fn work() -> ExitCode {
    kai_local::work(confine)
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn confine(file: &Path) -> Result<(), String> {
    // Android may end a process that asks the kernel for this. Its own walls around each app have to do.
    if super::android::is_here() { Ok(()) } else { kai_bridges::sandbox::only_reads(file) }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn confine(_: &Path) -> Result<(), String> {
    Ok(())
}
