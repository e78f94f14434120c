//! Handles: numbers that other languages hold in place of our things.
//!
//! A handle is not an address. It names a place in a table, the generation of that place, and the
//! kind of the thing, so that a handle that is used after it was closed is an error and not a
//! crash, also if the place has been taken since. Zero is never a handle.
//!
//! A thing that is closed while other threads use it goes when the last of them is done.

use sharded_slab::{Config, Slab};
use shingle::{Error, ErrorKind, Result};
use std::num::NonZeroUsize;
use std::ops::Deref;

/// Bits of a handle for the kind of its thing.
const KIND_BITS: u32 = usize::BITS / 16;

/// What things a table has. Each kind of a binding has a number of its own, from 1 to 15.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The number.
    pub number: u8,
    /// For messages: "database".
    pub name: &'static str,
}

struct Places;

impl Config for Places {
    const RESERVED_BITS: usize = KIND_BITS as usize;
    /// Threads that live at once and have made a thing. One more is a panic.
    #[cfg(target_pointer_width = "64")]
    const MAX_THREADS: usize = 16_384;
    /// For half a million things of a thread. With both, 25 bits are left for the generation of a
    /// place: a closed handle is an error until its place was taken 33 million times more.
    #[cfg(target_pointer_width = "64")]
    const MAX_PAGES: usize = 14;
}

/// The things of one kind that another language holds.
pub struct Handles<T> {
    kind: Kind,
    slab: Slab<T, Places>,
}

/// A thing in use. It lives at least as long as this.
pub struct Handle<'a, T>(sharded_slab::Entry<'a, T, Places>);

impl<T> Deref for Handle<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Handles<T> {
    /// No things yet.
    pub fn new(kind: Kind) -> Handles<T> {
        Handles { kind, slab: Slab::new_with_config() }
    }

    /// A handle for `thing`.
    ///
    /// # Errors
    ///
    /// `Unsupported`: there are too many things of this kind.
    pub fn insert(&self, thing: T) -> Result<NonZeroUsize> {
        let key = self.slab.insert(thing);
        let tagged = key.and_then(|key| NonZeroUsize::new(key << KIND_BITS | self.tag()));
        tagged.ok_or_else(|| {
            let message = format!("there is no handle left for another {}", self.kind.name);
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    /// The thing of a handle.
    ///
    /// # Errors
    ///
    /// `Closed`: it was closed. `InvalidArgument`: no handle, or that of another kind.
    #[inline]
    pub fn get(&self, handle: usize) -> Result<Handle<'_, T>> {
        let is_ours = handle & ((1 << KIND_BITS) - 1) == self.tag();
        match self.slab.get(handle >> KIND_BITS) {
            Some(entry) if is_ours => Ok(Handle(entry)),
            _ => Err(self.refused(handle)),
        }
    }

    /// Takes the handle back; its thing goes when no other thread uses it. Zero is no handle, and
    /// no error.
    ///
    /// # Errors
    ///
    /// As [`Handles::get`].
    pub fn remove(&self, handle: usize) -> Result<()> {
        let is_ours = handle & ((1 << KIND_BITS) - 1) == self.tag();
        match handle == 0 || is_ours && self.slab.remove(handle >> KIND_BITS) {
            true => Ok(()),
            false => Err(self.refused(handle)),
        }
    }

    /// Takes the thing out, and with it the handle, once no other thread uses it.
    ///
    /// # Errors
    ///
    /// As [`Handles::get`].
    pub fn take(&self, handle: usize) -> Result<T> {
        let is_ours = handle & ((1 << KIND_BITS) - 1) == self.tag();
        let taken = if is_ours { self.slab.take(handle >> KIND_BITS) } else { None };
        taken.ok_or_else(|| self.refused(handle))
    }

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
