//! Errors as C sees them.

use crate::arguments::c_text;
use bindings::{Failure, guarded};
use std::ffi::{CString, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;

/// A code: no error.
pub const SHINGLE_OK: c_int = 0;
/// A code: the call is wrong.
pub const SHINGLE_INVALID_ARGUMENT: c_int = 1;
/// A code: what was asked for does not exist.
pub const SHINGLE_NOT_FOUND: c_int = 2;
/// A code: what was to be created exists.
pub const SHINGLE_ALREADY_EXISTS: c_int = 3;
/// A code: stored bytes are not what was written.
pub const SHINGLE_CORRUPTION: c_int = 4;
/// A code: the operating system or the device refused.
pub const SHINGLE_IO: c_int = 5;
/// A code: the medium is full.
pub const SHINGLE_NO_SPACE: c_int = 6;
/// A code: an earlier failure left an unknown outcome: close and open again.
pub const SHINGLE_POISONED: c_int = 7;
/// A code: the write would have to wait.
pub const SHINGLE_WOULD_WAIT: c_int = 8;
/// A code: another process, or this one, has the database open.
pub const SHINGLE_LOCKED: c_int = 9;
/// A code: the files are foreign, or of a newer version.
pub const SHINGLE_INCOMPATIBLE: c_int = 10;
/// A code: the thing was closed.
pub const SHINGLE_CLOSED: c_int = 11;
/// A code: this store or configuration cannot do it.
pub const SHINGLE_UNSUPPORTED: c_int = 12;
/// A code: the work was cancelled.
pub const SHINGLE_CANCELLED: c_int = 13;
/// A code: the file has names in other directories.
pub const SHINGLE_SHARED: c_int = 14;
/// A code: another write came between: begin again.
pub const SHINGLE_CONFLICT: c_int = 15;
/// A code: what was asked for is no longer kept.
pub const SHINGLE_TOO_LATE: c_int = 16;
/// A code: a panic, which is a bug in Shingle.
pub const SHINGLE_PANIC: c_int = 65535;

/// What went wrong, where, and what to do about it.
pub struct Error {
    code: c_int,
    kind: CString,
    message: CString,
    remedy: CString,
    file: Option<CString>,
    offset: Option<u64>,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let error = failure.error();
        Error {
            code: failure.code().into(),
            kind: c_text(&failure.kind()),
            message: c_text(&failure.to_string()),
            remedy: c_text(failure.remedy()),
            file: error.and_then(shingle::Error::file).map(c_text),
            offset: error.and_then(shingle::Error::offset),
        }
    }
}

/// Where a function puts its error: null where the caller wants only the code.
pub(crate) type Place<'a> = Option<&'a mut MaybeUninit<Option<Box<Error>>>>;

/// Does the work of a function: 0, or the code of the error, which goes to its place.
#[inline(always)]
pub(crate) fn call(place: Place<'_>, work: impl FnOnce() -> shingle::Result<()>) -> c_int {
    let Err(failure) = guarded(work) else {
        if let Some(place) = place {
            place.write(None);
        }
        return SHINGLE_OK;
    };
    failed(place, failure)
}

#[cold]
fn failed(place: Place<'_>, failure: Failure) -> c_int {
    let code = failure.code().into();
    if let Some(place) = place {
        place.write(Some(Box::new(failure.into())));
    }
    code
}

/// The number of the error's kind, one of `enum shingle_code`; 0 without an error.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_code(error: Option<&Error>) -> c_int {
    error.map_or(0, |error| error.code)
}

/// The name of the error's kind, such as "Locked". Lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_kind(error: Option<&Error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.kind.as_ptr())
}

/// What happened, in words for people. Lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// What to do about it, one sentence. Lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_remedy(error: Option<&Error>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.remedy.as_ptr())
}

/// The file that the error is about, or null. Lives as long as the error.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_file(error: Option<&Error>) -> *const c_char {
    error.and_then(|error| error.file.as_ref()).map_or(ptr::null(), |file| file.as_ptr())
}

/// Whether the error is about a byte of its file; which, goes to `offset`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_offset(
    error: Option<&Error>,
    offset: Option<&mut MaybeUninit<u64>>,
) -> bool {
    match error.and_then(|error| error.offset) {
        Some(found) => {
            if let Some(offset) = offset {
                offset.write(found);
            }
            true
        }
        None => false,
    }
}

/// Frees an error. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_error_free(error: Option<Box<Error>>) {
    drop(error);
}

/// Frees a text that a function gave to the caller. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_text_free(text: Option<Box<Text>>) {
    drop(text);
}

/// A text for the caller, to be freed.
pub struct Text(CString);

impl Text {
    pub(crate) fn boxed(text: &str) -> Box<Text> {
        Box::new(Text(c_text(text)))
    }
}

/// The characters of a text, which ends with a zero byte. They live as long as the text.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_text_data(text: Option<&Text>) -> *const c_char {
    text.map_or(c"".as_ptr(), |text| text.0.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shingle::ErrorKind;

    #[test]
    fn codes_are_those_of_the_kinds() {
        let kinds = [
            (SHINGLE_INVALID_ARGUMENT, ErrorKind::InvalidArgument),
            (SHINGLE_NOT_FOUND, ErrorKind::NotFound),
            (SHINGLE_ALREADY_EXISTS, ErrorKind::AlreadyExists),
            (SHINGLE_CORRUPTION, ErrorKind::Corruption),
            (SHINGLE_IO, ErrorKind::Io),
            (SHINGLE_NO_SPACE, ErrorKind::NoSpace),
            (SHINGLE_POISONED, ErrorKind::Poisoned),
            (SHINGLE_WOULD_WAIT, ErrorKind::WouldWait),
            (SHINGLE_LOCKED, ErrorKind::Locked),
            (SHINGLE_INCOMPATIBLE, ErrorKind::Incompatible),
            (SHINGLE_CLOSED, ErrorKind::Closed),
            (SHINGLE_UNSUPPORTED, ErrorKind::Unsupported),
            (SHINGLE_CANCELLED, ErrorKind::Cancelled),
            (SHINGLE_SHARED, ErrorKind::Shared),
            (SHINGLE_CONFLICT, ErrorKind::Conflict),
            (SHINGLE_TOO_LATE, ErrorKind::TooLate),
        ];
        for (code, kind) in kinds {
            assert_eq!(code, c_int::from(kind.code()), "{kind:?}");
        }
        assert_eq!(SHINGLE_PANIC, c_int::from(bindings::PANIC_CODE));
    }

    #[test]
    fn a_panic_becomes_an_error_with_a_code_of_its_own() {
        let error = Error::from(guarded::<()>(|| panic!("a bug")).unwrap_err());
        assert_eq!(shingle_error_code(Some(&error)), SHINGLE_PANIC);
        assert_eq!(error.message.to_str(), Ok("a panic inside Shingle: a bug"));
        assert_eq!(call(None, || panic!("a bug")), SHINGLE_PANIC);
        assert_eq!(call(None, || Ok(())), SHINGLE_OK);
    }
}
