//! Errors as LevelDB's statuses spell them.

use crate::memory::{copied, free};
use bindings::{Failure, guarded};
use shingle::ErrorKind;
use std::ffi::c_char;

/// Where a function puts its error.
pub type Place<'a> = Option<&'a mut *mut c_char>;

/// What LevelDB's `Status::ToString` would say.
fn text(failure: &Failure) -> String {
    let begin = match failure.error().map(shingle::Error::kind) {
        Some(ErrorKind::Corruption | ErrorKind::Incompatible) => "Corruption: ",
        Some(ErrorKind::InvalidArgument | ErrorKind::AlreadyExists) => "Invalid argument: ",
        Some(ErrorKind::Unsupported) => "Not implemented: ",
        _ => "IO error: ",
    };
    let message = failure.to_string();
    let message = match message.split_once(": ") {
        // The engine's own name of the kind.
        Some((kind, rest)) if failure.error().is_some() && kind == failure.kind() => rest,
        _ => &message,
    };
    format!("{begin}{message}")
}

/// Puts the text of a failure at `place`, in place of an earlier one.
pub fn fail(place: Place<'_>, failure: &Failure) {
    let Some(place) = place else { return };
    free((*place).cast());
    *place = copied(text(failure).as_bytes());
}

/// Does the work of a function; `None` where it failed, and the place has its error.
pub fn call<T>(place: Place<'_>, work: impl FnOnce() -> shingle::Result<T>) -> Option<T> {
    match guarded(work) {
        Ok(done) => Some(done),
        Err(failure) => {
            fail(place, &failure);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::c_bytes;
    use shingle::Error;

    #[test]
    fn an_error_replaces_the_one_before_it() {
        let mut place = std::ptr::null_mut();
        for (error, begin) in [
            (Error::corruption("000007.table", 4, "broken"), "Corruption: "),
            (Error::invalid("wrong"), "Invalid argument: wrong"),
            (Error::new(ErrorKind::Locked, "by another"), "IO error: by another"),
            (Error::new(ErrorKind::Unsupported, "no"), "Not implemented: no"),
        ] {
            assert_eq!(call::<()>(Some(&mut place), || Err(error.clone())), None);
            let text = String::from_utf8_lossy(c_bytes(place)).into_owned();
            assert!(text.starts_with(begin), "{text}");
        }
        assert_eq!(call(Some(&mut place), || Ok(7)), Some(7));
        free(place.cast());
        assert_eq!(call::<()>(None, || Err(Error::invalid("no place for it"))), None);
    }
}
