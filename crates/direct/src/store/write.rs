//! Files being written.
//!
//! A plain file gathers its bytes and writes whole sectors; what a sync or the end leaves in the
//! last one is padding. A log writes each append at once, in frames, unless it gathers bytes; where
//! the medium takes writes anywhere it writes its last sector again with more in it, and elsewhere
//! pads it. It also pads a synced sector that power loss could leave half written.

use super::inner::Inner;
use crate::extent::Extent;
use crate::frame;
use crate::node::{HOLE, Held, Node, NodeState};
use crate::placement::Request;
use crate::port::Port;
use base::{Cause, Error, Result};
use media::{AppendFile, FileHint, SyncFile};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bounds of what a log asks for at a time.
const LOG_EXTENT_BYTES_MIN: u64 = 32 << 10;
const LOG_EXTENT_BYTES_MAX: u64 = 4 << 20;

/// The extent that a writer fills.
#[derive(Clone, Copy)]
struct Open {
    extent: Extent,
    /// Where the next sector goes.
    next: u64,
}

pub(super) struct Writer {
    inner: Arc<Inner>,
    node: Arc<Node>,
    hint: FileHint,
    open: Option<Open>,
    /// Bytes of the tail that are on the device already.
    sent: usize,
    /// The cause of the last append.
    cause: Cause,
    /// Everything is on the device and its record is queued: how many flushes of metadata there had
    /// been. The next one makes it durable.
    begun: Option<u64>,
}

impl Writer {
    /// Becomes the writer of `node`. `InvalidArgument` if it has one.
    pub(super) fn begin(inner: Arc<Inner>, node: Arc<Node>, hint: &FileHint) -> Result<Writer> {
        if node.is_writing.swap(true, Ordering::AcqRel) {
            let message = "the file is being written: drop the first writer before the second";
            return Err(Error::invalid(message).in_file(node.name.to_string()));
        }
        Ok(Writer {
            inner,
            node,
            hint: *hint,
            open: None,
            sent: 0,
            cause: Cause::Housekeeping,
            begun: None,
        })
    }

    /// The handle for appends.
    pub(super) fn into_file(self) -> Box<dyn AppendFile> {
        let gathers = self.inner.options.log_buffer_bytes > 0;
        if self.node.is_log && (gathers || self.inner.tears_sectors) {
            return Box::new(Gathering(Arc::new(Mutex::new(self))));
        }
        Box::new(self)
    }

    /// Lets the bytes from `at` on go. What stays in a sector that is cut stays where it is: new
    /// bytes go elsewhere.
    pub(super) fn cut(&self, at: u64) -> Result<()> {
        let node = &self.node;
        let mut state = self.inner.state();
        let mut file = node.exclusive();
        let tail_start = file.tail_start();
        if at >= tail_start {
            // Bytes that never arrived, after a writer that failed.
            file.tail.truncate((at - tail_start) as usize);
        } else {
            file.tail.clear();
            cut_pieces(&mut file, at);
            let loose = cut_held(&mut file, node.payload(), self.inner.port.sector_bytes());
            self.inner.freed.lock().extend(loose);
        }
        if node.is_log {
            // It bounds the frames before it, which may hold more.
            let generation = state.catalogue.take_number();
            let extent = Extent::default();
            let logical = file.tail_start();
            file.held.push(Held { extent, logical, generation });
        }
        drop(file);
        state.queue_file(node);
        if node.is_log { self.inner.commit(&mut state, None) } else { Ok(()) }
    }

    /// Whether the last sector stays in the tail to be written again.
    fn keeps_sector(&self) -> bool {
        self.node.is_log && self.inner.rewrites_sectors
    }

    /// Writes the tail; without `all`, whole sectors of it.
    fn send(&mut self, all: bool, cause: Cause) -> Result<()> {
        let payload = self.node.payload();
        let sector_bytes = self.inner.port.sector_bytes();
        loop {
            let len = self.node.shared().tail.len();
            let due = if all { len as u64 } else { len as u64 - len as u64 % payload };
            if due == 0 || len == self.sent {
                return Ok(());
            }
            let Some(open) = self.open.filter(|open| open.next < open.extent.end()) else {
                self.begin_extent(due.div_ceil(payload) * sector_bytes)?;
                continue;
            };
            let room = (open.extent.end() - open.next) / sector_bytes;
            let now = due.min(room * payload) as usize;
            self.write_tail(now, open, cause)?;
            let done = if self.keeps_sector() { now - now % payload as usize } else { now };
            let mut file = self.node.exclusive();
            file.tail.drain(..done);
            file.push_piece(open.next, done as u64, sector_bytes, payload);
            drop(file);
            self.sent = now - done;
            let next = open.next + (done as u64).div_ceil(payload) * sector_bytes;
            self.open = Some(Open { next, ..open });
        }
    }

    /// Writes the first `count` bytes of the tail. Readers of the file read them from there
    /// meanwhile.
    fn write_tail(&self, count: usize, open: Open, cause: Cause) -> Result<()> {
        let file = self.node.shared();
        let logical = file.tail_start();
        let bytes = self.sectors(&file, &file.tail[..count], open)?;
        let written = self.inner.port.write(open.next, &bytes, cause);
        written.map_err(|error| error.in_file(self.node.name.to_string()).at(logical))
    }

    /// `content`, which begins where the tail does, as it lies on the device.
    fn sectors<'a>(
        &self,
        file: &NodeState,
        content: &'a [u8],
        open: Open,
    ) -> Result<Cow<'a, [u8]>> {
        let sector_bytes = self.inner.port.sector_bytes() as usize;
        if !self.node.is_log {
            if content.len().is_multiple_of(sector_bytes) {
                return Ok(Cow::Borrowed(content));
            }
            let mut bytes = content.to_vec();
            bytes.resize(content.len().next_multiple_of(sector_bytes), 0);
            return Ok(Cow::Owned(bytes));
        }
        let generation = file.held.last().map(|held| (held.extent, held.generation));
        let Some((_, generation)) = generation.filter(|(extent, _)| *extent == open.extent) else {
            return Err(Error::invalid("a log has lost its extent"));
        };
        let payload = self.node.payload() as usize;
        let mut bytes = vec![0; content.len().div_ceil(payload) * sector_bytes];
        let places = (file.tail_start()..).step_by(payload);
        let frames = bytes.chunks_mut(sector_bytes).zip(content.chunks(payload));
        for ((sector, content), at) in frames.zip(places) {
            frame::encode(sector, content, at, generation, self.inner.superblock.store);
        }
        Ok(Cow::Owned(bytes))
    }

    fn request(&self, now_bytes: u64) -> Request {
        let sector_bytes = self.inner.port.sector_bytes();
        let file = self.node.shared();
        let expected = if self.node.is_log {
            let part = self.inner.places.data.bytes / 256;
            match self.inner.options.log_extent_bytes {
                0 => part.clamp(LOG_EXTENT_BYTES_MIN, LOG_EXTENT_BYTES_MAX),
                bytes => bytes,
            }
        } else {
            self.hint.bytes_max.map_or(0, |most| most.saturating_sub(file.tail_start()))
        };
        Request {
            wanted_bytes: expected
                .min(self.inner.places.data.bytes)
                .next_multiple_of(sector_bytes)
                .max(now_bytes),
            now_bytes,
            least_bytes: sector_bytes,
            before_bytes: file.tail_start().next_multiple_of(sector_bytes),
            goal: file.held.iter().rev().find(|held| held.extent.bytes > 0).map(|h| h.extent.end()),
            group: self.hint.group.or(self.hint.lifetime.map(|level| u64::MAX - u64::from(level))),
            is_log: self.node.is_log,
            ..Request::default()
        }
    }

    /// Goes on in a new extent. That of a log is in the metadata before a byte is in it, so that
    /// the bytes are found again.
    fn begin_extent(&mut self, now_bytes: u64) -> Result<()> {
        self.end_extent()?;
        let request = self.request(now_bytes);
        let mut state = self.inner.state();
        let in_file = |error: Error| error.in_file(self.node.name.to_string());
        let extent = self.inner.allocate(&mut state, &request).map_err(in_file)?;
        let generation = if self.node.is_log { state.catalogue.take_number() } else { 0 };
        // The extents of a log stay apart: each has its generation.
        let joins = |whole| !self.node.is_log && state.placement.joins(whole);
        self.node.exclusive().push_held(extent, generation, joins);
        if self.node.is_log {
            state.queue_file(&self.node);
            if let Err(error) = self.inner.commit(&mut state, None) {
                self.node.exclusive().held.pop();
                state.queue_file(&self.node);
                self.inner.close_extent(&mut state, extent, 0)?;
                return Err(in_file(error));
            }
        }
        self.open = Some(Open { extent, next: extent.start });
        Ok(())
    }

    /// Gives the rest of the open extent back.
    fn end_extent(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let used_bytes = open.next - open.extent.start;
        let unused_bytes = open.extent.bytes - used_bytes;
        let mut state = self.inner.state();
        let mut file = self.node.exclusive();
        let held = file.held.last_mut();
        if let Some(held) = held.filter(|held| held.extent.end() == open.extent.end()) {
            held.extent.bytes -= unused_bytes;
        }
        drop(file);
        self.inner.close_extent(&mut state, open.extent, used_bytes)
    }

    /// The last sector of a log is not written again.
    fn end_sector(&mut self) {
        if let Some(open) = self.open.filter(|_| self.sent > 0) {
            let mut file = self.node.exclusive();
            file.tail.drain(..self.sent);
            let (bytes, sector_bytes) = (self.sent as u64, self.inner.port.sector_bytes());
            file.push_piece(open.next, bytes, sector_bytes, self.node.payload());
            self.open = Some(Open { next: open.next + sector_bytes, ..open });
            self.sent = 0;
        }
    }

    /// What a flush makes durable is on the device, and no later write can tear it.
    fn before_flush(&mut self) -> Result<Arc<Port>> {
        self.send(true, self.cause)?;
        if self.inner.tears_sectors {
            self.end_sector();
        }
        Ok(self.inner.port.clone())
    }

    /// Ends the writing: the last sector of a log becomes a piece like any other.
    fn finish(&mut self) -> Result<()> {
        let sent = self.send(true, self.cause);
        self.end_sector();
        // The file stays for long, and its buffer would stay with it.
        self.node.exclusive().tail.shrink_to_fit();
        self.end_extent()?;
        self.inner.state().queue_file(&self.node);
        sent
    }
}

/// Keeps the pieces below `at`.
pub(super) fn cut_pieces(file: &mut NodeState, at: u64) {
    file.pieces.retain(|piece| piece.logical < at);
    if let Some(last) = file.pieces.last_mut() {
        last.bytes = last.bytes.min(at - last.logical);
    }
}

/// Keeps the held sectors in which pieces lie; returns the others.
fn cut_held(file: &mut NodeState, payload: u64, sector_bytes: u64) -> Vec<Extent> {
    let used_end = |extent: Extent| {
        let in_extent = file.pieces.iter().filter(|piece| {
            piece.device != HOLE && extent.start <= piece.device && piece.device < extent.end()
        });
        let ends = in_extent.map(|p| p.device + p.bytes.div_ceil(payload) * sector_bytes);
        ends.max().unwrap_or(extent.start).min(extent.end())
    };
    let ends: Vec<u64> = file.held.iter().map(|held| used_end(held.extent)).collect();
    let mut loose = Vec::new();
    for (held, end) in file.held.iter_mut().zip(ends) {
        let rest = Extent::between(end, held.extent.end());
        if rest.bytes > 0 {
            loose.push(rest);
            held.extent.bytes -= rest.bytes;
        }
    }
    let end = file.tail_start();
    file.held.retain(|held| held.extent.bytes > 0 && held.logical <= end);
    loose
}

impl Writer {
    /// After an append that failed: what of it is not on the device is never written, or a record
    /// that was refused would be there after all. Bytes of earlier appends stay.
    fn forget_after(&mut self, end: u64) {
        let mut file = self.node.exclusive();
        let earlier = end.saturating_sub(file.tail_start()) as usize;
        let kept = earlier.max(self.sent);
        file.tail.truncate(kept);
    }

    fn append_bytes(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let options = self.inner.options;
        let (is_log, gathers) = (self.node.is_log, options.log_buffer_bytes > 0);
        let limit =
            if is_log { options.log_buffer_bytes } else { options.background_buffer_bytes }.max(1);
        if !is_log && cause != self.cause {
            self.send(true, self.cause)?;
        }
        self.cause = cause;
        self.begun = None;
        let step = if is_log { bytes.len().max(1) } else { limit };
        for piece in bytes.chunks(step) {
            let unsent = {
                let mut file = self.node.exclusive();
                if file.tail.capacity() == 0 && !is_log {
                    let most =
                        self.hint.bytes_max.map_or(limit as u64, |max| max.min(limit as u64));
                    file.tail.reserve_exact(most as usize + piece.len());
                }
                file.tail.extend_from_slice(piece);
                file.tail.len() - self.sent
            };
            if unsent >= limit {
                // A log that gathers keeps the last sector until it is full, as a page cache does.
                self.send(is_log && !gathers, cause)?;
            }
        }
        Ok(())
    }
}

impl AppendFile for Writer {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let end = self.len();
        self.append_bytes(bytes, cause).inspect_err(|_| self.forget_after(end))
    }

    /// The records of files whose syncs have begun are written and flushed by the first of them.
    fn begin_sync(&mut self) -> Result<()> {
        if self.node.is_log || self.begun.is_some() {
            return Ok(());
        }
        self.send(true, self.cause)?;
        let mut state = self.inner.state();
        state.queue_file(&self.node);
        self.begun = Some(state.flushes);
        Ok(())
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        if self.node.is_log {
            return self.before_flush()?.flush(cause);
        }
        self.begin_sync()?;
        let mut state = self.inner.state();
        match self.begun {
            Some(flushes) if flushes < state.flushes => Ok(()),
            _ => self.inner.commit(&mut state, Some(cause)),
        }
    }

    fn len(&self) -> u64 {
        self.node.shared().len()
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        self.node.is_log.then(|| Box::new(Syncer(self.inner.clone())) as Box<dyn SyncFile>)
    }
}

/// A log that gathers bytes, or whose sectors tear: its second handle has to send them, or to end
/// the last sector, before it flushes. So both have the writer, which ends with the last of them.
struct Gathering(Arc<Mutex<Writer>>);

impl AppendFile for Gathering {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        self.0.lock().append(bytes, cause)
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        SyncFile::sync(self, cause)
    }

    fn len(&self) -> u64 {
        self.0.lock().len()
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        Some(Box::new(Gathering(self.0.clone())))
    }
}

impl SyncFile for Gathering {
    fn sync(&self, cause: Cause) -> Result<()> {
        // Appends go on during the flush.
        let port = self.0.lock().before_flush()?;
        port.flush(cause)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A caller that must know whether the bytes arrived has called `sync`.
        let _ = self.finish();
        self.node.is_writing.store(false, Ordering::Release);
    }
}

/// Without a buffer every append of a log is on the device when it returns: a flush makes it
/// durable.
struct Syncer(Arc<Inner>);

impl SyncFile for Syncer {
    fn sync(&self, cause: Cause) -> Result<()> {
        self.0.port.flush(cause)
    }
}
