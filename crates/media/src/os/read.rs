//! Files being read.

use super::calls;
use super::descriptors::Descriptor;
use super::map::{Budget, FileMapping};
use super::system;
use super::tail::Tail;
use crate::{FileName, Mapping, ReadFile, past_end};
use base::{Cause, Error, Ledger, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// A file, and the tail that its writer may still hold.
pub(super) struct OsReadFile {
    name: FileName,
    opened: Opened,
    ledger: Arc<Ledger>,
    tail: Arc<Tail>,
    uncached: AtomicBool,
    mapping: OnceLock<Option<Arc<dyn Mapping>>>,
}

/// How a file is open.
enum Opened {
    /// For one pass in large pieces: it is never mapped.
    Background(Arc<Descriptor>),
    /// Open for as long as a reader may use it.
    Foreground(Arc<Descriptor>, Arc<Budget>),
}

impl OsReadFile {
    /// Reads leave no pages in the cache that were not there before.
    pub(super) fn background(
        descriptor: Arc<Descriptor>,
        tail: Arc<Tail>,
        ledger: Arc<Ledger>,
    ) -> OsReadFile {
        let (name, uncached) = (descriptor.name(), AtomicBool::new(true));
        let opened = Opened::Background(descriptor);
        OsReadFile { name, opened, ledger, tail, uncached, mapping: OnceLock::new() }
    }

    pub(super) fn foreground(
        descriptor: Arc<Descriptor>,
        maps: Arc<Budget>,
        tail: Arc<Tail>,
        ledger: Arc<Ledger>,
    ) -> OsReadFile {
        let (name, uncached) = (descriptor.name(), AtomicBool::new(false));
        let opened = Opened::Foreground(descriptor, maps);
        OsReadFile { name, opened, ledger, tail, uncached, mapping: OnceLock::new() }
    }

    fn file(&self) -> Result<Arc<OwnedFd>> {
        match &self.opened {
            Opened::Background(descriptor) | Opened::Foreground(descriptor, _) => descriptor.get(),
        }
    }

    fn error(&self, doing: &str, errno: Errno) -> Error {
        calls::error(doing, self.name.to_string(), errno)
    }

    /// Fills `into` as far as the file goes; returns the bytes filled.
    fn read_file(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<usize> {
        let given = |count| self.ledger.read(cause, count as u64);
        calls::read_at(self.file()?.as_fd(), into, offset, &self.uncached, given)
            .map_err(|errno| self.error("read", errno).at(offset))
    }

    /// Reads a range whose end may be in the writer's buffer; `None` if there is no buffer any
    /// more.
    fn read_tail(&self, offset: u64, into: &mut [u8], cause: Cause) -> Option<Result<()>> {
        self.tail.with(|buffer| {
            let wanted = into.len();
            if offset.saturating_add(wanted as u64) > buffer.end() {
                return Err(past_end(self.name, offset, wanted, buffer.end()));
            }
            let in_file = buffer.start().saturating_sub(offset).min(wanted as u64) as usize;
            let (from_file, from_buffer) = into.split_at_mut(in_file);
            if !from_buffer.is_empty() {
                let at = (offset + in_file as u64 - buffer.start()) as usize;
                from_buffer.copy_from_slice(&buffer.bytes()[at..at + from_buffer.len()]);
            }
            let filled = self.read_file(offset, from_file, cause)?;
            if filled < from_file.len() {
                return Err(past_end(self.name, offset, wanted, offset + filled as u64));
            }
            Ok(())
        })
    }
}

impl ReadFile for OsReadFile {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let end = offset.saturating_add(into.len() as u64);
        if end > self.tail.exact_len().min(i64::MAX as u64) {
            return Err(past_end(self.name, offset, into.len(), self.len()?));
        }
        if self.tail.may_hold(end)
            && let Some(result) = self.read_tail(offset, into, cause)
        {
            return result;
        }
        if self.read_file(offset, into, cause)? < into.len() {
            return Err(past_end(self.name, offset, into.len(), self.len()?));
        }
        Ok(())
    }

    fn read_from_memory(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<bool> {
        let end = offset.saturating_add(into.len() as u64);
        if end > i64::MAX as u64 || self.tail.may_hold(end) {
            return Ok(false);
        }
        // Whatever goes wrong, an ordinary read goes wrong too, and tells.
        let read = system::read_from_memory(self.file()?.as_fd(), into, offset);
        let is_whole = read == Ok(into.len());
        if is_whole {
            self.ledger.read(cause, into.len() as u64);
        }
        Ok(is_whole)
    }

    fn len(&self) -> Result<u64> {
        if let Some(len) = self.tail.file_len() {
            return Ok(len);
        }
        let stat = rustix::fs::fstat(self.file()?).map_err(|errno| self.error("look at", errno))?;
        Ok(stat.st_size as u64)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        // Advice only: nothing depends on it.
        if let (Some(len), Ok(file)) = (NonZeroU64::new(bytes), self.file()) {
            system::read_ahead(file, offset, len);
        }
    }

    fn map(&self) -> Option<Arc<dyn Mapping>> {
        let Opened::Foreground(descriptor, budget) = &self.opened else { return None };
        // A file that is being written has bytes that no mapping shows.
        if self.mapping.get().is_none() && self.tail.file_len().is_some() {
            return None;
        }
        let map = || {
            let bytes = self.len().ok()?;
            let mapping = FileMapping::new(descriptor, &self.ledger, bytes, budget)?;
            Some(Arc::new(mapping) as Arc<dyn Mapping>)
        };
        self.mapping.get_or_init(map).clone()
    }

    fn name(&self) -> FileName {
        self.name
    }
}
