//! A progress line on stderr that shows how many seconds Kai has been working. It appears after a second and is removed
//! before anything else is printed. Without a terminal there is none.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kai_assistant::lock::lock;

use super::out;

const TICK: Duration = Duration::from_secs(1);

/// The progress line, shown until this is dropped.
pub(crate) struct Waiting {
    shared: Arc<Shared>,
    ticking: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    seconds: u32,
    /// The progress line is on the terminal.
    shown: bool,
    /// Other text is on the current line, so the progress line must not be written.
    held: bool,
    /// How much of the request the model has read, if it tells.
    read: Option<u8>,
    over: bool,
}

impl Waiting {
    /// Starts the timer. `what` is the text to show, such as "Waiting for an answer".
    pub(crate) fn start(what: &'static str) -> Self {
        let shared = Arc::new(Shared::default());
        let ticking = io::stderr().is_terminal().then(|| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.tick(what))
        });
        Self { shared, ticking }
    }

    /// Removes the progress line and restarts the count, because something else is about to be printed. `midway` means
    /// that its line will not be finished yet, so the progress line stays away until the next call.
    pub(crate) fn make_way(&self, midway: bool) {
        let mut state = self.shared.state();
        state.clear();
        (state.seconds, state.held, state.read) = (0, midway, None);
    }

    /// Shows from now on how much of the request the model has read.
    pub(crate) fn has_read(&self, percent: u8) {
        self.shared.state().read = Some(percent);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn tick(&self, what: &str) {
        let mut state = self.state();
        while !state.over {
            let (now, waited) = self.over.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner);
            state = now;
            if waited.timed_out() && !state.over && !state.held {
                state.seconds += 1;
                state.shown = true;
                let read = state.read.map(|percent| format!(", {percent} % read")).unwrap_or_default();
                out::sign(&format!("{what} … {} s{read}", state.seconds));
            }
        }
    }
}

impl State {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            out::sign("");
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.over = true;
        state.clear();
        drop(state);
        self.shared.over.notify_all();
        if let Some(ticking) = self.ticking.take() {
            drop(ticking.join());
        }
    }
}
