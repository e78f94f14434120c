//! The options that may change while a database is open. Each is read where it is used, by one
//! relaxed load; a change counts from the next use on.

use crate::options::{Durability, Options, TABLE};
use base::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The options of an open database.
pub(crate) struct Live {
    options: Mutex<Options>,
    is_synced: AtomicBool,
    background_bytes_per_second: AtomicU64,
    idle_compaction: AtomicBool,
}

impl Live {
    pub(crate) fn new(options: &Options) -> Live {
        let live = Live {
            options: Mutex::new(options.clone()),
            is_synced: AtomicBool::default(),
            background_bytes_per_second: AtomicU64::default(),
            idle_compaction: AtomicBool::default(),
        };
        live.store(options);
        live
    }

    fn store(&self, options: &Options) {
        self.is_synced.store(options.durability == Durability::Synced, Relaxed);
        self.background_bytes_per_second.store(options.background_bytes_per_second, Relaxed);
        self.idle_compaction.store(options.idle_compaction, Relaxed);
    }

    /// Changes an option, and gives all of them.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<Options> {
        let mut options = self.options.lock();
        let changed = options.clone().set(name, value)?;
        if !TABLE.iter().any(|entry| entry.name == name && entry.at_run_time) {
            let names = TABLE.iter().filter(|entry| entry.at_run_time).map(|entry| entry.name);
            let message = format!(
                "{name} cannot change while the database is open: set it at the next opening; \
                 these can: {}",
                names.collect::<Vec<_>>().join(", ")
            );
            return Err(Error::invalid(message));
        }
        self.store(&changed);
        *options = changed.clone();
        Ok(changed)
    }

    /// The durability of writes that name none.
    pub(crate) fn durability(&self) -> Durability {
        if self.is_synced.load(Relaxed) { Durability::Synced } else { Durability::Buffered }
    }

    /// Maximum bytes that background work writes per second; 0: no limit.
    pub(crate) fn background_bytes_per_second(&self) -> u64 {
        self.background_bytes_per_second.load(Relaxed)
    }

    /// Idle time may rewrite garbage.
    pub(crate) fn idle_compaction(&self) -> bool {
        self.idle_compaction.load(Relaxed)
    }
}
