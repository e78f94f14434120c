//! What comes from C and goes to it: memory, texts, places for results.
//!
//! This is the only file that trusts a caller: that a pointer with a size is that much memory for
//! the time of the call, and that a text ends with a zero byte. Null is checked.

use bindings::Handles;
use shingle::{Bytes, Error, Result};
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::slice;

/// Bytes that belong to the caller: a key, a value. Null with the size 0 is empty.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    /// Where they begin.
    pub data: *const c_void,
    /// How many they are.
    pub size: usize,
}

impl Slice {
    pub(crate) fn of(bytes: &[u8]) -> Slice {
        Slice { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    /// The bytes, for the time of the call.
    #[inline(always)]
    pub(crate) fn bytes<'a>(self) -> Result<&'a [u8]> {
        if self.data.is_null() {
            return if self.size == 0 { Ok(&[]) } else { Err(no_slice()) };
        }
        if self.size > isize::MAX as usize {
            return Err(no_slice());
        }
        // SAFETY: the caller gives memory of this size that nothing changes during the call.
        Ok(unsafe { slice::from_raw_parts(self.data.cast(), self.size) })
    }
}

/// A value that the caller holds, where it lies, until `shingle_value_free`. It may be moved, but
/// of its copies only one may be freed.
#[repr(C)]
pub struct Value {
    /// The bytes. Where there is no value, they begin at null.
    pub bytes: Slice,
    /// What keeps the bytes where they are.
    held: [MaybeUninit<u64>; 4],
}

const _: () = assert!(size_of::<Bytes>() <= 32 && align_of::<Bytes>() <= align_of::<u64>());

impl Value {
    /// Puts what was found where the caller wants it.
    #[inline(always)]
    pub(crate) fn put(place: &mut MaybeUninit<Value>, found: Option<Bytes>) {
        let nothing = Slice { data: ptr::null(), size: 0 };
        let Some(found) = found else {
            place.write(Value { bytes: nothing, held: [MaybeUninit::uninit(); 4] });
            return;
        };
        let value = place.as_mut_ptr();
        // SAFETY: the place is that of a value, whose words are large enough and aligned for what
        // is found, see above.
        unsafe {
            let words = (&raw mut (*value).held).cast::<Bytes>();
            words.write(found);
            let held = &mut *words;
            if !held.is_shared() {
                anchor(held);
            }
            (&raw mut (*value).bytes).write(Slice::of(held));
        }
    }

    /// Gives back what is held, once.
    pub(crate) fn free(&mut self) {
        if self.bytes.data.is_null() {
            return;
        }
        self.bytes = Slice { data: ptr::null(), size: 0 };
        // SAFETY: bytes that did not begin at null were held; they are freed only here.
        unsafe { self.held.as_mut_ptr().cast::<Bytes>().drop_in_place() };
    }
}

/// Few bytes lie in [`Bytes`] themselves, and would move with them.
#[inline(never)]
fn anchor(held: &mut Bytes) {
    *held = Bytes::from(mem::take(held).into_vec());
}

#[cold]
fn no_slice() -> Error {
    Error::invalid("a slice that is not empty begins at null, or is too large")
}

/// `count` slices.
pub(crate) fn slices(first: Option<&Slice>, count: usize) -> Result<&[Slice]> {
    match first {
        _ if count == 0 => Ok(&[]),
        None => Err(Error::invalid("an array is null, and its count is not 0")),
        // SAFETY: the caller gives an array of this many, for the time of the call.
        Some(first) => Ok(unsafe { slice::from_raw_parts(first, count) }),
    }
}

/// Places for `count` results.
pub(crate) fn places<T>(
    first: Option<&mut MaybeUninit<T>>,
    count: usize,
) -> Result<&mut [MaybeUninit<T>]> {
    match first {
        // SAFETY: the caller gives an array of this many, which nothing else uses during the call.
        Some(first) => Ok(unsafe { slice::from_raw_parts_mut(first, count) }),
        None if count == 0 => Ok(&mut []),
        None => Err(Error::invalid("an array for results is null, and its count is not 0")),
    }
}

/// Copies `bytes` as far as `to` reaches, and tells how many they are.
pub(crate) fn copy(bytes: &[u8], to: &mut [MaybeUninit<u8>]) -> usize {
    let copied = to.len().min(bytes.len());
    // SAFETY: both are at least this long, and the caller's memory is none of ours.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_mut_ptr().cast(), copied) };
    bytes.len()
}

/// A text; null is an error.
pub(crate) fn text(text: Option<&c_char>) -> Result<&str> {
    let Some(first) = text else { return Err(Error::invalid("a text is null")) };
    // SAFETY: the caller gives a text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(first) };
    text.to_str().map_err(|_| Error::invalid("a text is not UTF-8"))
}

/// A path; null is an error.
pub(crate) fn path(path: Option<&c_char>) -> Result<&std::path::Path> {
    let Some(first) = path else { return Err(Error::invalid("a path is null")) };
    // SAFETY: the caller gives a text that ends with a zero byte.
    bindings::path(unsafe { CStr::from_ptr(first) }.to_bytes())
}

/// Puts a result where the caller wants it; null is an error.
pub(crate) fn give<T>(place: Option<&mut MaybeUninit<T>>, value: T) -> Result<()> {
    wanted(place)?.write(value);
    Ok(())
}

/// Where the caller wants a result; null is an error.
#[inline(always)]
pub(crate) fn wanted<T>(place: Option<&mut MaybeUninit<T>>) -> Result<&mut MaybeUninit<T>> {
    place.ok_or_else(|| Error::invalid("the place for a result is null"))
}

/// A text for the caller, without the zero bytes that would end it early.
pub(crate) fn c_text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// Gives the caller a handle for `thing`, as a pointer of a type that C can tell from others. It is
/// a number, not an address.
pub(crate) fn give_handle<C, T>(
    place: Option<&mut MaybeUninit<*mut C>>,
    handles: &Handles<T>,
    thing: T,
) -> Result<()> {
    let Some(place) = place else { return Err(Error::invalid("the place for a handle is null")) };
    place.write(ptr::without_provenance_mut(handles.insert(thing)?.get()));
    Ok(())
}
