//! The worker's end of the pipe to Kai, and the memory through which states pass.
//!
//! The engine saves and loads states only by path, and only in plaintext. The path here is that of memory that no disk
//! ever sees; Kai encrypts what it gets.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Stdin, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::frame::{Frame, PIECE};
use crate::order::{Event, Order};

/// How many frames may wait for the engine.
const WAITING: usize = 8;

/// The worker's end of the pipe.
pub(crate) struct Line {
    output: BufWriter<Box<dyn Write>>,
    frames: Receiver<Frame>,
    stop: Arc<AtomicBool>,
    /// Where states pass through; `None` if the system has no such memory.
    memory: Option<File>,
}

impl Line {
    /// Opens the line. When Kai closes its end or dies, the process ends at once, whatever it is doing.
    pub(crate) fn open(input: Stdin, output: impl Write + 'static, memory: Option<File>) -> Self {
        let (to, frames) = mpsc::sync_channel(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        thread::spawn(move || {
            listen(&input, &to, &seen);
            std::process::exit(0);
        });
        Self { output: BufWriter::new(Box::new(output)), frames, stop, memory }
    }

    /// A line on which nobody says anything, for tests of what the worker says.
    #[cfg(test)]
    pub(crate) fn one_way(output: impl Write + 'static) -> Self {
        let (_, frames) = mpsc::sync_channel(WAITING);
        Self { output: BufWriter::new(Box::new(output)), frames, stop: Arc::default(), memory: None }
    }

    /// Tells Kai. If Kai is gone, so is this process in a moment.
    pub(crate) fn tell(&mut self, event: &Event) {
        if let Ok(frame) = Frame::json(event) {
            let _ = frame.write(&mut self.output);
        }
    }

    /// The next order; `None` if it makes no sense.
    pub(crate) fn next(&mut self) -> Option<Order> {
        self.frames.recv().ok()?.parse().ok()
    }

    /// Whether Kai wants what is under way to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The path under which a state can be loaded.
    pub(crate) fn memory_as_is(&self) -> Option<PathBuf> {
        self.memory.as_ref().map(|memory| PathBuf::from(format!("/proc/self/fd/{}", memory.as_raw_fd())))
    }

    /// The path under which a state can be saved.
    pub(crate) fn memory(&mut self) -> Option<PathBuf> {
        self.memory.as_mut()?.set_len(0).ok()?;
        self.memory_as_is()
    }

    /// Sends the state that was just saved to Kai, to be kept under this key.
    pub(crate) fn keep(&mut self, key: &str) {
        let _ = self.send_memory(key);
        self.empty_memory();
    }

    fn send_memory(&mut self, key: &str) -> io::Result<()> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let bytes = memory.metadata()?.len();
        memory.rewind()?;
        Frame::json(&Event::Keep { key: key.to_owned(), bytes })?.write(&mut self.output)?;
        let mut left = bytes;
        while left > 0 {
            let mut piece = vec![0; usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))];
            memory.read_exact(&mut piece)?;
            left -= u64::try_from(piece.len()).unwrap_or(left);
            Frame::Raw(piece).write(&mut self.output)?;
        }
        Ok(())
    }

    /// Asks Kai for a state and puts it where it can be loaded. Returns whether there was one.
    pub(crate) fn fetch(&mut self, key: &str) -> bool {
        if self.memory.is_none() {
            return false;
        }
        self.tell(&Event::Wants { key: key.to_owned() });
        self.receive_memory().is_some()
    }

    fn receive_memory(&mut self) -> Option<()> {
        let Some(Order::State { bytes }) = self.next() else { return None };
        let memory = self.memory.as_mut()?;
        memory.set_len(0).ok()?;
        memory.rewind().ok()?;
        let mut left = bytes;
        while left > 0 {
            let Ok(Frame::Raw(piece)) = self.frames.recv() else { return None };
            // An empty piece means that the rest cannot be read.
            left = left.checked_sub(u64::try_from(piece.len()).ok().filter(|length| *length > 0)?)?;
            memory.write_all(&piece).ok()?;
        }
        (bytes > 0).then_some(())
    }

    /// Gives the memory of a state back.
    pub(crate) fn empty_memory(&mut self) {
        if let Some(memory) = &mut self.memory {
            let _ = memory.set_len(0);
        }
    }
}

/// Memory that has a path and lies on no disk.
pub(crate) fn memory() -> Option<File> {
    memfd_create("state", MemfdFlags::CLOEXEC).ok().map(File::from)
}

/// Passes on what Kai writes, until it closes its end. A question that follows a stop is not stopped by it.
fn listen(input: &Stdin, to: &SyncSender<Frame>, stop: &AtomicBool) {
    let mut input = input.lock();
    while let Ok(frame) = Frame::read(&mut input) {
        match frame.parse::<Order>() {
            Ok(Order::Stop) => stop.store(true, Ordering::Relaxed),
            Ok(Order::Ask { .. } | Order::Prefer { .. }) => {
                stop.store(false, Ordering::Relaxed);
                let _ = to.send(frame);
            }
            _ => drop(to.send(frame)),
        }
    }
}
