//! The progress of long calls: checks and salvages. The receiver of a report may cancel the call.

use base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is being done, for progress bars. The receiver may cancel the work, at once or later and
/// from any thread: [`Progress::cancel`].
#[derive(Clone, Debug)]
pub struct Progress {
    /// Bytes done.
    pub done_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// The file or step.
    pub what: String,
    is_cancelled: Arc<AtomicBool>,
}

impl Progress {
    /// Ends the work that reports, at its next step.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
    }
}

/// Reports the progress of a long call, and hears whether it is cancelled.
pub(crate) struct Reporter<'a> {
    each: &'a mut dyn FnMut(Progress),
    is_cancelled: Arc<AtomicBool>,
}

impl<'a> Reporter<'a> {
    pub fn new(each: &'a mut dyn FnMut(Progress)) -> Reporter<'a> {
        Reporter { each, is_cancelled: Arc::default() }
    }

    /// Reports one step. False: the receiver cancelled the call.
    pub fn goes_on(&mut self, done_bytes: u64, total_bytes: u64, what: String) -> bool {
        let is_cancelled = self.is_cancelled.clone();
        (self.each)(Progress { done_bytes, total_bytes, what, is_cancelled });
        !self.is_cancelled.load(Relaxed)
    }

    /// [`Reporter::goes_on`] for calls that fail when they are cancelled.
    pub fn step(&mut self, done_bytes: u64, total_bytes: u64, what: String) -> Result<()> {
        if self.goes_on(done_bytes, total_bytes, what) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "the receiver of the progress cancelled the call"))
    }
}
