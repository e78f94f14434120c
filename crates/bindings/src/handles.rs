//! Handles: numbers that other languages hold in place of our things.
//!
//! A handle is not an address. It names a place in a table, the generation of that place, and the
//! kind of the thing, so that a handle that is used after it was closed is an error and not a
//! crash, also if the place has been taken since. Zero is never a handle.
//!
//! A thing that is closed while other threads use it goes when the last of them is done.
//!
//! Threads that use one thing do not wait for each other.

use parking_lot::{Mutex, RwLock};
use shingle::{Error, ErrorKind, Result};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

/// Bits of a handle for the kind of its thing, at its low end.
const KIND_BITS: u32 = 4;
/// Bits of a handle for the place, above the kind. What is left above is the generation: with 64
/// bits a closed handle is an error until its place was taken 4 thousand million times more.
const PLACE_BITS: u32 = usize::BITS / 2 - KIND_BITS;
/// The first place, and how many the first block has. The highest bit of a place names its block,
/// so that each later block has twice as many as the one before.
const FIRST_PLACE: usize = 32;

/// What things a table has. Each kind of a binding has a number of its own, from 1 to 15.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The number.
    pub number: u8,
    /// For messages: "database".
    pub name: &'static str,
}

/// A place for things, one after the other.
struct Place<T> {
    /// How often the place was left.
    generation: usize,
    thing: Option<Arc<T>>,
}

/// Places that never move, so that one is found without a lock.
type Block<T> = OnceLock<Box<[RwLock<Place<T>>]>>;

/// The things of one kind that another language holds.
pub struct Handles<T> {
    kind: Kind,
    /// By the highest bit of their places.
    blocks: [Block<T>; PLACE_BITS as usize],
    free: Mutex<Free>,
}

/// Which places can be taken.
struct Free {
    left: Vec<usize>,
    /// Every place from this one on was never taken.
    fresh: usize,
}

impl Free {
    fn take(&mut self) -> Option<usize> {
        self.left.pop().or_else(|| {
            let place = self.fresh;
            self.fresh += 1;
            (place < 1 << PLACE_BITS).then_some(place)
        })
    }
}

/// The block of a place, and where in it the place is. The blocks of places before [`FIRST_PLACE`]
/// have none.
#[inline]
fn block_of(place: usize) -> (usize, usize) {
    let block = (place | 1).ilog2();
    (block as usize, place ^ (1 << block))
}

/// The place that a handle names.
#[inline]
fn place_of(handle: usize) -> usize {
    handle >> KIND_BITS & ((1 << PLACE_BITS) - 1)
}

/// The generation that a handle names.
#[inline]
fn generation_of(handle: usize) -> usize {
    handle >> (KIND_BITS + PLACE_BITS)
}

impl<T> Handles<T> {
    /// No things yet.
    pub const fn new(kind: Kind) -> Handles<T> {
        let free = Mutex::new(Free { left: Vec::new(), fresh: FIRST_PLACE });
        Handles { kind, blocks: [const { OnceLock::new() }; PLACE_BITS as usize], free }
    }

    /// A handle for `thing`.
    ///
    /// # Errors
    ///
    /// `Unsupported`: there are too many things of this kind.
    pub fn insert(&self, thing: T) -> Result<NonZeroUsize> {
        let taken = self.free.lock().take();
        let handle = taken.and_then(|place| {
            let (block, at) = block_of(place);
            let empty = || RwLock::new(Place { generation: 0, thing: None });
            let places = self.blocks[block]
                .get_or_init(|| std::iter::repeat_with(empty).take(1 << block).collect());
            let mut found = places[at].write();
            found.thing = Some(Arc::new(thing));
            let named = found.generation << PLACE_BITS | place;
            NonZeroUsize::new(named << KIND_BITS | self.tag())
        });
        handle.ok_or_else(|| {
            let message = format!("there is no handle left for another {}", self.kind.name);
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    /// The thing of a handle. It lives for as long as a thread holds it.
    ///
    /// # Errors
    ///
    /// `Closed`: it was closed. `InvalidArgument`: no handle, or that of another kind.
    #[inline(always)]
    pub fn get(&self, handle: usize) -> Result<Arc<T>> {
        if let Some(place) = self.place(handle) {
            let place = place.read();
            if let (Some(thing), true) = (&place.thing, place.generation == generation_of(handle)) {
                return Ok(thing.clone());
            }
        }
        Err(self.refused(handle))
    }

    /// Takes the handle back; its thing goes when no other thread uses it. Zero is no handle, and
    /// no error.
    ///
    /// # Errors
    ///
    /// As [`Handles::get`].
    pub fn remove(&self, handle: usize) -> Result<()> {
        if handle == 0 {
            return Ok(());
        }
        self.take(handle).map(drop)
    }

    /// Takes the handle back, and gives the thing, which other threads may still use.
    ///
    /// # Errors
    ///
    /// As [`Handles::get`].
    pub fn take(&self, handle: usize) -> Result<Arc<T>> {
        let place = self.place(handle).ok_or_else(|| self.refused(handle))?;
        let mut left = place.write();
        if left.generation != generation_of(handle) {
            return Err(self.refused(handle));
        }
        let thing = left.thing.take().ok_or_else(|| self.refused(handle))?;
        left.generation = generation_of(usize::MAX) & (left.generation + 1);
        drop(left);
        self.free.lock().left.push(place_of(handle));
        Ok(thing)
    }

    /// The place that a handle of this kind names, if it was ever taken.
    #[inline(always)]
    fn place(&self, handle: usize) -> Option<&RwLock<Place<T>>> {
        let is_ours = handle & ((1 << KIND_BITS) - 1) == self.tag();
        let (block, at) = block_of(place_of(handle));
        if is_ours { self.blocks[block].get()?.get(at) } else { None }
    }

    #[inline(always)]
    fn tag(&self) -> usize {
        usize::from(self.kind.number)
    }

    #[cold]
    fn refused(&self, handle: usize) -> Error {
        let name = self.kind.name;
        if handle == 0 {
            return Error::invalid(format!("there is no {name}: the handle is zero"));
        }
        if handle & ((1 << KIND_BITS) - 1) != self.tag() {
            return Error::invalid(format!("the handle is not that of a {name}"));
        }
        Error::new(ErrorKind::Closed, format!("the {name} was closed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    const APPLE: Kind = Kind { number: 1, name: "apple" };
    const PEAR: Kind = Kind { number: 2, name: "pear" };

    #[test]
    fn a_closed_handle_is_an_error_also_after_its_place_was_taken() {
        let apples = Handles::new(APPLE);
        let first = apples.insert("first").unwrap().get();
        assert_eq!(*apples.get(first).unwrap(), "first");
        apples.remove(first).unwrap();
        let later: Vec<usize> = (0..100).map(|_| apples.insert("later").unwrap().get()).collect();
        assert!(!later.contains(&first));
        for result in [apples.get(first).map(|_| ()), apples.remove(first)] {
            let error = result.unwrap_err();
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::Closed, "the apple was closed")
            );
        }
        assert_eq!(*apples.get(later[99]).unwrap(), "later");
    }

    #[test]
    fn a_handle_does_not_come_again() {
        let apples = Handles::new(APPLE);
        let first = apples.insert("first").unwrap().get();
        apples.remove(first).unwrap();
        // The place that was left last is taken first.
        for lives in 0..1_000_000 {
            let later = apples.insert("later").unwrap().get();
            assert!(later != first && apples.get(first).is_err(), "after {lives} lives");
            apples.remove(later).unwrap();
        }
    }

    #[test]
    fn zero_and_handles_of_other_kinds_are_refused() {
        let (apples, pears) = (Handles::new(APPLE), Handles::new(PEAR));
        let apple = apples.insert(1).unwrap().get();
        assert_eq!(pears.insert(2).unwrap().get() >> KIND_BITS, apple >> KIND_BITS);
        for handle in [0, apple, usize::MAX, 7] {
            let error = pears.get(handle).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{handle}");
        }
        assert_eq!(pears.remove(apple).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(apples.remove(0).is_ok() && apples.get(apple).is_ok());
    }

    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_thing_in_use_outlives_its_handle() {
        let (things, drops) = (Handles::new(APPLE), Arc::new(AtomicUsize::new(0)));
        let handle = things.insert(Counted(drops.clone())).unwrap().get();
        let used = things.get(handle).unwrap();
        std::thread::scope(|s| s.spawn(|| things.remove(handle).unwrap()).join().unwrap());
        assert!(things.get(handle).is_err());
        assert_eq!(drops.load(SeqCst), 0);
        drop(used);
        assert_eq!(drops.load(SeqCst), 1);
    }
}
