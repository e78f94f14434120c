//! The look-ups of GC: a window is filled, its records are looked up, and live records are moved,
//! each in bounded steps.

use super::GcJob;
use super::pointers::{Moved, Replacement};
use super::record::{Held, RecordAt};
use super::window::Window;
use crate::engine::core::Core;
use crate::read::get::Found;
use crate::read::multi_get::{Seen, find_many};
use base::{FileId, Result};
use std::sync::Arc;
use tree::Tier;

/// Keys that one step looks up.
const LOOKUPS: usize = 1024;

/// Bytes of records that one step moves.
const MOVE_BYTES: u64 = 1 << 20;

/// Minimum bytes of a window.
const WINDOW_BYTES_MIN: u64 = 1 << 20;

impl GcJob {
    /// Fills a window, looks its records up, or moves them. `false`: all are moved.
    pub(super) fn step_window(&mut self, core: &Arc<Core>) -> Result<bool> {
        let Some(window) = &mut self.window else {
            let is_more = self.at.0 < self.collection.files.len();
            if is_more {
                self.window = Some(Window::new(self.window_bytes(core)));
            }
            return Ok(is_more);
        };
        if !window.is_sorted {
            if !self.scan(core, GcJob::add_to_window)?
                && let Some(window) = &mut self.window
            {
                window.sort();
            }
        } else if window.looked_up < window.records().len() {
            self.look_up_some(core)?;
        } else if window.moved < window.records().len() {
            self.move_some()?;
        } else {
            self.window = None;
            self.account(core);
        }
        Ok(true)
    }

    /// Bytes of the next window: all records that are left, as far as memory allows.
    fn window_bytes(&self, core: &Core) -> usize {
        let left_bytes = |(at, &file): (usize, &FileId)| {
            let bytes = self.version.segments.get(file).map_or(0, |segment| segment.bytes);
            if at == self.at.0 { bytes - self.at.1.min(bytes) } else { bytes }
        };
        let left = self.collection.files.iter().enumerate().skip(self.at.0).map(left_bytes);
        let kept_max = core.settings.collection_bytes_kept_max;
        let bytes_max = kept_max.saturating_sub(self.buffered_bytes()).max(kept_max / 4);
        let bytes_max = bytes_max.max(WINDOW_BYTES_MIN);
        left.sum::<u64>().min(bytes_max) as usize
    }

    /// `false`: the window is full.
    fn add_to_window(&mut self, record: &RecordAt<'_>) -> Result<bool> {
        let Some(count) = self.note_read(record) else { return Ok(true) };
        let is_cold = self.collection.tags_cold && count == 1;
        let Some(value) = record.value else {
            // A tag without a newer version stays: the key's value is still cold.
            if is_cold {
                self.writers.add(Tier::Main, record.sequence, record.key, None)?;
            }
            return Ok(true);
        };
        let Some(window) = &mut self.window else { return Ok(false) };
        if window.push(record, value, is_cold) {
            return Ok(true);
        }
        if window.records().is_empty() {
            // The record alone takes more than a window has.
            *window = Window::new(record.key.len() + value.len());
            return Ok(window.push(record, value, is_cold));
        }
        window.sort();
        Ok(false)
    }

    /// Asks the tree for the next keys of the window.
    fn look_up_some(&mut self, core: &Arc<Core>) -> Result<()> {
        let Some(window) = &mut self.window else { return Ok(()) };
        let records = &window.records()[window.looked_up..];
        let records = &records[..records.len().min(LOOKUPS)];
        let mut keys: Vec<&[u8]> = records.iter().map(|record| window.key(record)).collect();
        keys.dedup();
        let begin_ns = core.runtime.now_ns();
        let moment = core.moment(&self.keyspace);
        let found = find_many(&moment, &keys)?;
        self.lookup_ns += core.runtime.now_ns() - begin_ns;
        self.lookups += keys.len() as u64;
        let mut found = keys.iter().zip(&found).peekable();
        let mut all = Vec::with_capacity(records.len());
        for record in records {
            let key = window.key(record);
            while found.next_if(|(found_key, _)| **found_key < key).is_some() {}
            let (found, run) =
                found.peek().map_or((None, None), |(_, (found, run))| (found.as_ref(), *run));
            // A value that expires changes by itself.
            let run = run.filter(|_| matches!(found, Some(Found::Pointer(_))));
            let seen = run.map(|run| Seen { sequence: moment.sequence(), run });
            all.push((Held::of(found, &record.pointer, core)?, seen));
        }
        window.note_held(all);
        Ok(())
    }

    /// Writes the next live records of the window.
    fn move_some(&mut self) -> Result<()> {
        let Some(mut window) = self.window.take() else { return Ok(()) };
        let mut bytes = 0;
        while bytes < MOVE_BYTES
            && let Some(record) = window.records().get(window.moved)
        {
            let (key, value) = (window.key(record), window.value(record));
            bytes += u64::from(record.pointer.record_bytes);
            let to = match record.held {
                Held::ThisRecord => {
                    let group = self.collection.group;
                    let tier = if record.is_cold { Tier::Cold } else { group.tier };
                    let to = self.writers.add(tier, record.sequence, key, Some(value))?;
                    if record.is_cold {
                        self.writers.add(Tier::Main, record.sequence, key, None)?;
                    }
                    Some(Replacement::Record(to))
                }
                Held::Expired => Some(Replacement::Expired),
                Held::Operands => Some(Replacement::Combined),
                Held::Otherwise => None,
            };
            if let Some(to) = to {
                let (from, seen) = (record.pointer, record.seen);
                self.note_moved(Moved { key: key.to_vec(), from, to, seen });
            }
            window.moved += 1;
        }
        self.window = Some(window);
        Ok(())
    }
}
