//! A place for things, one after the other, that threads use without a lock.
//!
//! One word says which thing is there, by its generation, and how many threads use it. A use is
//! counted in the same operation that reads the generation. The thread that takes the handle back
//! marks the place as left, and the last user empties it.
//!
//! Invariants:
//! - The thing changes only by the thread that marked a place as moving: an empty one, or one that
//!   was left and has no users.
//! - A thread touches the thing only while it is counted, and only if the place was held in its
//!   generation when it was counted. Other threads are counted for a moment and touch nothing.
//! - No operation waits. In a process that was forked, threads of the parent stay counted; a thing
//!   that they used stays in memory.

#![allow(unsafe_code)] // The thing lies in a cell: the word says who may touch it.

use super::{Free, GENERATION_MAX};
use parking_lot::Mutex;
use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The users, in the lowest bits of the word.
const USERS: u64 = (1 << USERS_BITS) - 1;
const USERS_BITS: u32 = 24;
/// The handle is out.
const HELD: u64 = 1 << USERS_BITS;
/// The handle was taken back, and threads still use the thing.
const LEFT: u64 = 2 << USERS_BITS;
/// A thread puts the thing in or takes it out.
const MOVING: u64 = 4 << USERS_BITS;
/// Above the marks.
const GENERATION_BITS: u32 = 32;

/// A place in a table.
pub(super) struct Place<T> {
    /// Generation, marks, users.
    word: AtomicU64,
    thing: UnsafeCell<Option<Arc<T>>>,
    /// Which of the table's places it is.
    number: usize,
}

// SAFETY: threads share the thing, and any of them may be the one that drops it.
unsafe impl<T: Send + Sync> Sync for Place<T> {}

/// The word of a place that is held in `generation`, without its users.
#[inline(always)]
fn held_in(generation: usize) -> u64 {
    (generation as u64) << GENERATION_BITS | HELD
}

impl<T> Place<T> {
    /// A place that is empty, in the first generation.
    pub(super) fn new(number: usize) -> Place<T> {
        Place { word: AtomicU64::new(0), thing: UnsafeCell::new(None), number }
    }

    /// Puts a thing there, and gives its generation. `None`: it is not empty.
    pub(super) fn fill(&self, thing: Arc<T>) -> Option<usize> {
        let moving = |word| (word & (MOVING | HELD | LEFT) == 0).then_some(word | MOVING);
        let word = self.word.fetch_update(Acquire, Relaxed, moving).ok()?;
        // SAFETY: this thread alone has marked the empty place.
        unsafe { *self.thing.get() = Some(thing) };
        self.word.fetch_xor(MOVING | HELD, Release);
        Some((word >> GENERATION_BITS) as usize)
    }

    /// The thing, if it is that of `generation` and its handle is out. When the last user of a
    /// place that was left is done, the place goes to `empty`.
    #[inline(always)]
    pub(super) fn pin<'a>(
        &'a self,
        generation: usize,
        empty: &'a Mutex<Free>,
    ) -> Option<Pinned<'a, T>> {
        let word = self.word.fetch_add(1, Acquire);
        if word & !USERS == held_in(generation) {
            // SAFETY: the place was held when this thread was counted, so that it stays filled.
            if let Some(thing) = unsafe { (*self.thing.get()).as_ref() } {
                return Some(Pinned { thing, place: self, empty });
            }
        }
        self.unpin(empty);
        None
    }

    #[inline(always)]
    fn unpin(&self, empty: &Mutex<Free>) {
        if self.word.fetch_sub(1, Release) & (LEFT | USERS) == LEFT | 1 {
            self.clear(empty);
        }
    }

    /// Empties a place that was left, unless a thread uses it again or another empties it.
    #[cold]
    fn clear(&self, empty: &Mutex<Free>) {
        let word = self.word.load(Relaxed);
        if word & (LEFT | USERS) != LEFT {
            return;
        }
        let generation = ((word >> GENERATION_BITS) + 1) & GENERATION_MAX as u64;
        let next = generation << GENERATION_BITS | MOVING;
        // Acquire: what the users did to the thing comes before.
        if self.word.compare_exchange(word, next, AcqRel, Relaxed).is_err() {
            return;
        }
        // SAFETY: this thread alone went on to the next generation, and its mark keeps others out.
        let thing = unsafe { (*self.thing.get()).take() };
        self.word.fetch_xor(MOVING, Release);
        empty.lock().left.push(self.number);
        drop(thing);
    }
}

/// A thing that a thread uses.
pub struct Pinned<'a, T> {
    thing: &'a Arc<T>,
    place: &'a Place<T>,
    empty: &'a Mutex<Free>,
}

impl<T> Pinned<'_, T> {
    /// Takes the handle back, and gives the thing. `None`: another thread did.
    pub(super) fn leave(self) -> Option<Arc<T>> {
        // The generation stays while a thread is counted.
        let left = |word| (word & HELD != 0).then_some(word ^ (HELD | LEFT));
        self.place.word.fetch_update(AcqRel, Relaxed, left).ok()?;
        Some(self.thing.clone())
    }
}

impl<T> Deref for Pinned<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.thing
    }
}

impl<T> Drop for Pinned<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.unpin(self.empty);
    }
}
