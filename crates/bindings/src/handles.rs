//! Handles: numbers that other languages hold in place of our things.
//!
//! A handle is not an address. It names a place in a table, the generation of that place, and the
//! kind of the thing, so that a handle that is used after it was closed is an error and not a
//! crash, also if the place has been taken since. Zero is never a handle.
//!
//! A thing that is closed while other threads use it goes when the last of them is done.
//!
//! Threads that use one thing wait neither for each other nor for the one that closes it.

mod place;

use parking_lot::Mutex;
pub use place::Pinned;
use place::Place;
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

/// The largest generation.
const GENERATION_MAX: usize = usize::MAX >> (KIND_BITS + PLACE_BITS);

/// Places that never move, so that one is found without a lock.
type Block<T> = OnceLock<Box<[Place<T>]>>;

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
            let numbers = 1 << block..2 << block;
            let places = self.blocks[block].get_or_init(|| numbers.map(Place::new).collect());
            let generation = places[at].fill(Arc::new(thing))?;
            let named = generation << PLACE_BITS | place;
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
    pub fn get(&self, handle: usize) -> Result<Pinned<'_, T>> {
        let pinned =
            self.place(handle).and_then(|place| place.pin(generation_of(handle), &self.free));
        pinned.ok_or_else(|| self.refused(handle))
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
        self.get(handle)?.leave().ok_or_else(|| self.refused(handle))
    }

    /// The place that a handle of this kind names, if it was ever taken.
    #[inline(always)]
    fn place(&self, handle: usize) -> Option<&Place<T>> {
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

    #[test]
    fn of_two_threads_that_take_a_handle_back_one_gets_the_thing() {
        let things = Handles::new(APPLE);
        for _ in 0..1000 {
            let handle = things.insert("thing").unwrap().get();
            let taken = std::thread::scope(|s| {
                let other = s.spawn(|| things.take(handle).is_ok());
                [things.take(handle).is_ok(), other.join().unwrap()]
            });
            assert_ne!(taken[0], taken[1]);
        }
    }

    /// A thing that belongs to one of several owners.
    struct Owned {
        owner: usize,
        _counted: Counted,
    }

    #[test]
    fn threads_that_use_fill_and_leave_few_places_see_what_their_handles_name() {
        const OWNERS: usize = 3;
        let (things, drops) = (Handles::new(APPLE), Arc::new(AtomicUsize::new(0)));
        let insert =
            |owner| things.insert(Owned { owner, _counted: Counted(drops.clone()) }).unwrap().get();
        let handles: [AtomicUsize; OWNERS] =
            std::array::from_fn(|owner| AtomicUsize::new(insert(owner)));
        let (uses, inserted) = (AtomicUsize::new(0), AtomicUsize::new(OWNERS));
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (things, handles, uses, inserted) = (&things, &handles, &uses, &inserted);
                let insert = &insert;
                s.spawn(move || {
                    for n in 0..30_000 {
                        let owner = (n + thread) % OWNERS;
                        let handle = handles[owner].load(SeqCst);
                        if let Ok(thing) = things.get(handle) {
                            assert_eq!(thing.owner, owner);
                            uses.fetch_add(1, SeqCst);
                        }
                        if n % 7 == thread && things.remove(handle).is_ok() {
                            inserted.fetch_add(1, SeqCst);
                            handles[owner].store(insert(owner), SeqCst);
                        }
                    }
                });
            }
        });
        for handle in handles {
            things.remove(handle.into_inner()).unwrap();
        }
        assert!(uses.into_inner() > 30_000);
        assert_eq!(drops.load(SeqCst), inserted.into_inner());
    }
}
