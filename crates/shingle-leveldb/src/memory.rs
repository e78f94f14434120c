//! Memory of `malloc`, and memory that callers give.
//!
//! This is the only file that trusts a caller: that a pointer with a length is that much memory,
//! that a text ends with a zero byte, and that a thing is what its type says.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::slice;

/// The bytes that a caller gives, for the time of the call.
pub fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: the caller gives memory of this length that nothing changes during the call.
    unsafe { slice::from_raw_parts(data.cast(), length) }
}

/// The items of an array that a caller gives.
pub fn items<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: the caller gives an array of this many.
    unsafe { slice::from_raw_parts(first, count) }
}

/// The places of an array that a caller gives.
pub fn places<'a, T>(first: *mut T, count: usize) -> &'a mut [T] {
    if count == 0 || first.is_null() {
        return &mut [];
    }
    // SAFETY: the caller gives an array of this many, which nothing else uses during the call.
    unsafe { slice::from_raw_parts_mut(first, count) }
}

/// Does `work` with two things that a caller gives. `None`: the second is the first.
pub fn both<T>(first: *mut T, second: *const T, work: impl FnOnce(&mut T, Option<&T>)) {
    // SAFETY: the caller gives things of this type that nothing else uses during the call. Where
    // they are the same, there is only the first reference.
    unsafe {
        if let Some(first_thing) = first.as_mut() {
            let is_same = second == first.cast_const();
            work(first_thing, if is_same { None } else { second.as_ref() });
        }
    }
}

/// The number of the user whose rights the process has.
pub fn user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// A path that a caller gives.
pub fn path<'a>(name: *const c_char) -> &'a Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(c_bytes(name)))
}

/// A text that a caller gives, without its zero byte.
pub fn c_bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: the caller gives a text that ends with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// A copy in memory of `malloc`, with a zero byte behind it. Null: there is no memory left.
pub fn copied(bytes: &[u8]) -> *mut c_char {
    // SAFETY: the memory is large enough for the bytes and the zero, or null.
    unsafe {
        let memory: *mut c_char = libc::malloc(bytes.len() + 1).cast();
        if !memory.is_null() {
            std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), memory, bytes.len());
            memory.add(bytes.len()).write(0);
        }
        memory
    }
}

/// Frees memory of `malloc`.
pub fn free(memory: *mut c_void) {
    // SAFETY: the caller gives what `copied` gave, once, or null.
    unsafe { libc::free(memory) }
}
