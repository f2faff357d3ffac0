//! `kai __model`: the process that a model runs in. It can read the model's file and nothing else.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use llama_cpp_2::llama_backend::LlamaBackend;
use rustix::process::nice;

use crate::engine::{Engine, Unanswered, load};
use crate::frame::Frame;
use crate::line::{Line, memory};
use crate::order::{Event, Failed, Load, Order};

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__model";

/// The worker gives way to whatever the user does.
const NICENESS: i32 = 5;

/// Runs a model until Kai lets go. `confine` takes away every right but that to read the given file.
pub fn work(confine: impl FnOnce(&Path) -> Result<(), String>) -> ExitCode {
    let first = Frame::read(&mut io::stdin().lock()).and_then(|frame| frame.parse());
    let Ok(Order::Load(order)) = first else { return ExitCode::FAILURE };
    let _ = nice(NICENESS);
    // When the machine runs out of memory, the kernel ends this process first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let memory = memory();
    // Before there is a second thread, which would keep its rights.
    let confined = confine(&order.file);
    let mut line = Line::open(io::stdin(), io::stdout(), memory);
    let Err(failed) = confined.map_err(Failed::Broken).and_then(|()| serve(&order, &mut line));
    line.tell(&Event::Failed(failed));
    ExitCode::FAILURE
}

fn serve(order: &Load, line: &mut Line) -> Result<std::convert::Infallible, Failed> {
    if let Some(lacks) = lacking() {
        return Err(Failed::OldProcessor(lacks.to_owned()));
    }
    let mut backend = LlamaBackend::init().map_err(|error| Failed::Broken(error.to_string()))?;
    backend.void_logs();
    let model = load(&backend, &order.file)?;
    let mut engine = Engine::new(&model, &backend, order)?;
    line.tell(&Event::Ready);
    loop {
        let said = match line.next() {
            Some(Order::Ask { request }) => engine.ask(&request, line).map(Event::Done),
            Some(Order::Prefer { request, answers }) => {
                engine.prefer(&request, &answers, line).map(|margin| Event::Preferred { margin })
            }
            // A state that came too late, or something from a newer Kai.
            _ => continue,
        };
        line.empty_memory();
        match said {
            Ok(event) => line.tell(&event),
            Err(Unanswered::Stopped) => line.tell(&Event::Stopped),
            Err(Unanswered::TooLong) => line.tell(&Event::TooLong { window: order.window }),
            Err(Unanswered::Failed(failed)) => return Err(failed),
        }
    }
}

/// What the engine was built for and this processor does not have.
#[cfg(target_arch = "x86_64")]
fn lacking() -> Option<&'static str> {
    [
        ("AVX2", std::is_x86_feature_detected!("avx2")),
        ("FMA", std::is_x86_feature_detected!("fma")),
        ("F16C", std::is_x86_feature_detected!("f16c")),
        ("BMI2", std::is_x86_feature_detected!("bmi2")),
    ]
    .into_iter()
    .find_map(|(name, has)| (!has).then_some(name))
}

#[cfg(not(target_arch = "x86_64"))]
fn lacking() -> Option<&'static str> {
    None
}
