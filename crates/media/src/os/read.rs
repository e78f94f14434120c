//! Files being read.

use super::append::Handle;
use super::calls;
use super::map::{Budget, FileMapping};
use super::tail::Tail;
use crate::{FileName, Mapping, ReadFile, past_end};
use base::{Cause, Result};
use rustix::fd::AsFd;
use rustix::fs::Advice;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// One descriptor, and the tail that the file's writer may still hold.
pub(super) struct OsReadFile {
    handle: Handle,
    tail: Arc<Tail>,
    uncached: AtomicBool,
    /// `None`: never mapped.
    maps: Option<Arc<Budget>>,
    mapping: OnceLock<Option<Arc<dyn Mapping>>>,
}

impl OsReadFile {
    /// Without a budget for mappings it is read in the background: reads leave no pages in the
    /// cache that were not there before.
    pub(super) fn new(handle: Handle, tail: Arc<Tail>, maps: Option<Arc<Budget>>) -> OsReadFile {
        let background = maps.is_none();
        if background {
            // Advice only: nothing depends on it.
            let _ = rustix::fs::fadvise(&handle.file, 0, None, Advice::Sequential);
        }
        let (uncached, mapping) = (AtomicBool::new(background), OnceLock::new());
        OsReadFile { handle, tail, uncached, maps, mapping }
    }

    /// Fills `into` as far as the file goes; returns the bytes filled.
    fn read_file(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<usize> {
        let ledger = &self.handle.ledger;
        let given = |count| ledger.read(cause, count as u64);
        calls::read_at(self.handle.file.as_fd(), into, offset, &self.uncached, given)
            .map_err(|errno| self.handle.error("read", errno).at(offset))
    }

    /// Reads a range whose end may be in the writer's buffer; `None` if there is no buffer any
    /// more.
    fn read_tail(&self, offset: u64, into: &mut [u8], cause: Cause) -> Option<Result<()>> {
        self.tail.with(|buffer| {
            let wanted = into.len();
            if offset.saturating_add(wanted as u64) > buffer.end() {
                return Err(past_end(self.handle.name, offset, wanted, buffer.end()));
            }
            let in_file = buffer.start().saturating_sub(offset).min(wanted as u64) as usize;
            let (from_file, from_buffer) = into.split_at_mut(in_file);
            if !from_buffer.is_empty() {
                let at = (offset + in_file as u64 - buffer.start()) as usize;
                from_buffer.copy_from_slice(&buffer.bytes()[at..at + from_buffer.len()]);
            }
            let filled = self.read_file(offset, from_file, cause)?;
            if filled < from_file.len() {
                return Err(past_end(self.handle.name, offset, wanted, offset + filled as u64));
            }
            Ok(())
        })
    }
}

impl ReadFile for OsReadFile {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let end = offset.saturating_add(into.len() as u64);
        if end > i64::MAX as u64 {
            return Err(past_end(self.handle.name, offset, into.len(), self.len()?));
        }
        if self.tail.may_hold(end)
            && let Some(result) = self.read_tail(offset, into, cause)
        {
            return result;
        }
        if self.read_file(offset, into, cause)? < into.len() {
            return Err(past_end(self.handle.name, offset, into.len(), self.len()?));
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        if let Some(len) = self.tail.file_len() {
            return Ok(len);
        }
        let stat = rustix::fs::fstat(&self.handle.file)
            .map_err(|errno| self.handle.error("look at", errno))?;
        Ok(stat.st_size as u64)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        if let Some(len) = NonZeroU64::new(bytes) {
            // Advice only: nothing depends on it.
            let _ = rustix::fs::fadvise(&self.handle.file, offset, Some(len), Advice::WillNeed);
        }
    }

    fn map(&self) -> Option<Arc<dyn Mapping>> {
        let budget = self.maps.as_ref()?;
        // A file that is being written has bytes that no mapping shows.
        if self.mapping.get().is_none() && self.tail.file_len().is_some() {
            return None;
        }
        let map = || {
            let bytes = self.len().ok()?;
            let mapping = FileMapping::new(self.handle.clone(), bytes, budget)?;
            Some(Arc::new(mapping) as Arc<dyn Mapping>)
        };
        self.mapping.get_or_init(map).clone()
    }

    fn name(&self) -> FileName {
        self.handle.name
    }
}
