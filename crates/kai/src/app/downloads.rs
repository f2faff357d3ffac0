//! The download of a model: one at a time, watched by any number of commands and pages.

use std::sync::{Arc, Mutex};

use kai_assistant::lock::lock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalogue::Source;
use crate::call::local::{Download, Phase, Progress};

/// The one download, and where models come from.
pub(crate) struct Downloads {
    /// The public hub and its models, except in tests.
    pub(crate) source: Source,
    state: watch::Sender<Option<Download>>,
    /// Stops the download that runs.
    stop: Mutex<Option<CancellationToken>>,
}

impl Downloads {
    pub(crate) fn new() -> Arc<Self> {
        Self::of(Source::public())
    }

    pub(crate) fn of(source: Source) -> Arc<Self> {
        Arc::new(Self { source, state: watch::Sender::default(), stop: Mutex::default() })
    }

    /// The newest download, running or ended.
    pub(crate) fn newest(&self) -> Option<Download> {
        self.state.borrow().clone()
    }

    /// The name of the model that is being downloaded.
    pub(crate) fn running(&self) -> Option<String> {
        self.newest().filter(|download| matches!(download.phase, Phase::Running(_))).map(|it| it.name)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Option<Download>> {
        self.state.subscribe()
    }

    /// Stops the download that runs, if any. What was received is kept.
    pub(crate) fn stop(&self) {
        if let Some(stop) = lock(&self.stop).take() {
            stop.cancel();
        }
    }

    /// Begins a download that `stop` ends. `Err` names the one that runs already.
    #[cfg_attr(not(feature = "local"), expect(dead_code, reason = "nothing is downloaded"))]
    pub(crate) fn begin(&self, name: &str, total: u64, stop: CancellationToken) -> Result<(), String> {
        let mut current = lock(&self.stop);
        if let Some(running) = self.running() {
            return Err(running);
        }
        *current = Some(stop);
        self.tell(name, Phase::Running(Progress { total, ..Progress::default() }));
        Ok(())
    }

    /// Does something with the files of models while no download runs and none can begin. `Err` names the one that runs.
    pub(crate) fn between<T>(&self, act: impl FnOnce() -> T) -> Result<T, String> {
        let _none_begins = lock(&self.stop);
        match self.running() {
            Some(running) => Err(running),
            None => Ok(act()),
        }
    }

    pub(crate) fn tell(&self, name: &str, phase: Phase) {
        self.state.send_replace(Some(Download { name: name.to_owned(), phase }));
    }
}
