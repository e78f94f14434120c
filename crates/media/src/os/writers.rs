//! The files that have a writer. A file is written or shared, never both: a link that begins during
//! an append, or an append that begins behind a link, would change what the other directory shares.
//! What the system counts of a file's names tells the rest: it is right in every process, after
//! every crash, and for links that a backup made.

use crate::FileName;
use base::Result;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// How many writers each file has that has any.
#[derive(Default)]
pub(super) struct Writers(Mutex<HashMap<FileName, usize>>);

/// A file is being written for as long as it lives.
pub(super) struct Writing {
    writers: Arc<Writers>,
    name: FileName,
}

impl Writers {
    /// A writer of `name` begins, if `check` finds that it may. No link begins meanwhile.
    pub(super) fn begin(
        self: &Arc<Writers>,
        name: FileName,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<Writing> {
        let mut counts = self.0.lock();
        check()?;
        *counts.entry(name).or_default() += 1;
        Ok(Writing { writers: self.clone(), name })
    }

    /// Does `action`, while no writer of `name` begins. `None`: there is one.
    pub(super) fn unless_written<T>(
        &self,
        name: FileName,
        action: impl FnOnce() -> T,
    ) -> Option<T> {
        let counts = self.0.lock();
        (!counts.contains_key(&name)).then(action)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut counts = self.writers.0.lock();
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}
