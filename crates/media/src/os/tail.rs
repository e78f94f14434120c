//! The tail of a file: bytes that were appended but not yet passed to the system, of a background
//! file, and the end of a foreground file of which the system knows a greater length.
//!
//! Writer and readers of one file share its [`Tail`], so that a read sees every appended byte the
//! moment `append` returned, although most of them are still in the buffer. Invariants:
//! - The file holds the bytes below [`Tail::start`], the buffer those from there on.
//! - A byte in the buffer lies at an address equal to its file offset modulo [`ALIGN`], so that any
//!   aligned part of the file can be written from it without the page cache.

use crate::FileName;
use base::Cause;
use base::page_memory::PageBuffer;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Alignment of direct writes in file and memory; no device in use asks for more than a page.
pub(super) const ALIGN: usize = 4096;

/// No bytes are buffered for the file: it has no background writer.
const NO_BUFFER: u64 = u64::MAX;

/// The system knows the length of the file.
const NO_LEN: u64 = u64::MAX;

/// The shared state of one file's writer and readers.
#[derive(Debug)]
pub(super) struct Tail {
    start: AtomicU64,
    buffer: Mutex<Option<Buffer>>,
    /// Bytes appended by a foreground writer.
    exact_len: AtomicU64,
}

impl Default for Tail {
    fn default() -> Tail {
        Tail {
            start: AtomicU64::new(NO_BUFFER),
            buffer: Mutex::new(None),
            exact_len: AtomicU64::new(NO_LEN),
        }
    }
}

impl Tail {
    /// A writer begins at byte `start` with a buffer of `capacity` bytes. False if one is at work.
    pub(super) fn begin(&self, start: u64, capacity: usize) -> bool {
        let mut buffer = self.buffer.lock();
        if buffer.is_some() {
            return false;
        }
        *buffer = Some(Buffer::new(start, capacity));
        self.start.store(start, Ordering::Release);
        true
    }

    /// The writer is gone; what is still in the buffer is lost.
    pub(super) fn end(&self) {
        let mut buffer = self.buffer.lock();
        *buffer = None;
        self.start.store(NO_BUFFER, Ordering::Release);
    }

    /// Lets `action` use the buffer, and tells readers afterwards where it starts now.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Buffer) -> T) -> Option<T> {
        let mut guard = self.buffer.lock();
        let buffer = guard.as_mut()?;
        let result = action(buffer);
        self.start.store(buffer.start, Ordering::Release);
        Some(result)
    }

    /// Whether bytes below `end` may still be in the buffer.
    pub(super) fn may_hold(&self, end: u64) -> bool {
        end > self.start.load(Ordering::Acquire)
    }

    /// Bytes of the file, those in the buffer included; `None` when the system knows.
    pub(super) fn file_len(&self) -> Option<u64> {
        match self.exact_len() {
            NO_LEN => self.buffer.lock().as_ref().map(Buffer::end),
            len => Some(len),
        }
    }

    /// Bytes of a foreground file; [`u64::MAX`] when the system knows.
    pub(super) fn exact_len(&self) -> u64 {
        self.exact_len.load(Ordering::Acquire)
    }

    /// The file has `len` bytes, whatever length the system knows.
    pub(super) fn set_exact_len(&self, len: u64) {
        self.exact_len.store(len, Ordering::Release);
    }

    /// The system knows the length.
    pub(super) fn forget_exact_len(&self) {
        self.set_exact_len(NO_LEN);
    }
}

/// Appended bytes that are not yet in the file.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Empty before the first byte, and after a release.
    memory: PageBuffer,
    /// Where the first [`ALIGN`]-aligned address of `memory` is.
    origin: usize,
    capacity: usize,
    start: u64,
    len: usize,
    /// The causes of the buffered bytes, in order.
    charges: VecDeque<(Cause, usize)>,
}

impl Buffer {
    fn new(start: u64, capacity: usize) -> Buffer {
        let capacity = capacity.next_multiple_of(ALIGN).max(2 * ALIGN);
        let memory = PageBuffer::default();
        Buffer { memory, origin: 0, capacity, start, len: 0, charges: VecDeque::new() }
    }

    /// Gives the memory back if nothing is buffered. The next byte takes memory again.
    pub(super) fn release(&mut self) {
        if self.len == 0 {
            self.memory = PageBuffer::default();
        }
    }

    fn take_memory(&mut self) {
        self.memory = PageBuffer::zeroed(self.capacity + ALIGN);
        let address = self.memory.as_ptr().addr();
        self.origin = address.next_multiple_of(ALIGN) - address;
    }

    /// Where the buffered bytes lie in `memory`.
    fn position(&self) -> usize {
        self.origin + (self.start % ALIGN as u64) as usize
    }

    /// File offset of the first buffered byte.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// File offset behind the last buffered byte.
    pub(super) fn end(&self) -> u64 {
        self.start + self.len as u64
    }

    /// The buffered bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match self.len {
            0 => &[],
            len => &self.memory[self.position()..][..len],
        }
    }

    /// No more bytes fit.
    pub(super) fn is_full(&self) -> bool {
        self.room() == 0
    }

    fn room(&self) -> usize {
        self.origin + self.capacity - self.position() - self.len
    }

    /// Takes what fits of `bytes`; returns how many.
    pub(super) fn push(&mut self, bytes: &[u8], cause: Cause) -> usize {
        if self.memory.is_empty() {
            self.take_memory();
        }
        let count = bytes.len().min(self.room());
        let at = self.position() + self.len;
        self.memory[at..at + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        match self.charges.back_mut() {
            Some((last, sum)) if *last == cause => *sum += count,
            _ => self.charges.push_back((cause, count)),
        }
        count
    }

    /// The first `count` bytes are in the file now; `pay` hears for each cause how many of them.
    pub(super) fn written(&mut self, count: usize, mut pay: impl FnMut(Cause, usize)) {
        let mut owed = count;
        while owed > 0 {
            let (cause, sum) = self.charges.front_mut().expect("every buffered byte has a cause");
            let part = owed.min(*sum);
            pay(*cause, part);
            *sum -= part;
            owed -= part;
            if *sum == 0 {
                self.charges.pop_front();
            }
        }
        let from = self.position() + count;
        self.start += count as u64;
        self.len -= count;
        let to = self.position();
        self.memory.copy_within(from..from + self.len, to);
    }
}

/// The tails of all files that are open.
#[derive(Debug, Default)]
pub(super) struct Tails {
    open: Mutex<HashMap<FileName, Weak<Tail>>>,
}

impl Tails {
    /// The tail that all open handles of `name` share.
    pub(super) fn of(&self, name: FileName) -> Arc<Tail> {
        let mut open = self.open.lock();
        if let Some(tail) = open.get(&name).and_then(Weak::upgrade) {
            return tail;
        }
        if open.len() >= 64 && open.len() == open.capacity() {
            open.retain(|_, tail| tail.strong_count() > 0);
        }
        let tail = Arc::new(Tail::default());
        open.insert(name, Arc::downgrade(&tail));
        tail
    }

    /// The tail of `name` if a handle is open.
    pub(super) fn find(&self, name: FileName) -> Option<Arc<Tail>> {
        self.open.lock().get(&name).and_then(Weak::upgrade)
    }

    /// The name is gone: a later file of that name shares nothing with this one.
    pub(super) fn forget(&self, name: FileName) {
        self.open.lock().remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_at_their_offset_modulo_the_alignment_whatever_is_written() {
        let mut buffer = Buffer::new(5000, 8192);
        let content: Vec<u8> = (0..8000u32).map(|i| (i % 251) as u8).collect();
        let mut pushed = buffer.push(&content, Cause::Flush);
        let mut written = 0;
        for count in [1, 3191, 40, 2000] {
            buffer.written(count, |_, _| {});
            written += count;
            assert_eq!(buffer.start(), 5000 + written as u64);
            let address = buffer.bytes().as_ptr().addr() as u64;
            assert_eq!(address % ALIGN as u64, buffer.start() % ALIGN as u64);
            assert_eq!(buffer.bytes(), &content[written..pushed]);
            pushed += buffer.push(&content[pushed..], Cause::Flush);
        }
    }

    #[test]
    fn memory_that_was_released_is_taken_again_by_the_next_byte() {
        let mut buffer = Buffer::new(5000, 8192);
        assert!(buffer.memory.is_empty() && buffer.bytes().is_empty());
        buffer.push(&[1; 100], Cause::Flush);
        buffer.release();
        assert_eq!(buffer.bytes(), [1; 100], "what is buffered stays");
        buffer.written(100, |_, _| {});
        buffer.release();
        assert!(buffer.memory.is_empty() && buffer.bytes().is_empty());
        assert_eq!(buffer.push(&[2; 50], Cause::Flush), 50);
        assert_eq!((buffer.start(), buffer.bytes()), (5100, &[2; 50][..]));
        let address = buffer.bytes().as_ptr().addr() as u64;
        assert_eq!(address % ALIGN as u64, 5100 % ALIGN as u64);
    }

    #[test]
    fn each_cause_pays_for_its_own_bytes() {
        let mut buffer = Buffer::new(0, 8192);
        buffer.push(&[1; 100], Cause::Flush);
        buffer.push(&[2; 50], Cause::Compaction(2));
        let mut paid = Vec::new();
        buffer.written(120, |cause, count| paid.push((cause, count)));
        buffer.written(30, |cause, count| paid.push((cause, count)));
        let expected =
            [(Cause::Flush, 100), (Cause::Compaction(2), 20), (Cause::Compaction(2), 30)];
        assert_eq!(paid, expected);
    }
}
