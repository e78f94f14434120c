//! Errors as Java sees them: a `ShingleException` that is pending when the function returns.

use crate::env::{Env, Global};
use bindings::{Failure, guarded};
use jni_sys::{_jmethodID, _jobject, jint, jlong};
use shingle::Result;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The exception.
pub(crate) const CLASS: &CStr = c"org/shingle/ShingleException";
/// What its constructor takes: code, message, remedy, file, offset. Texts are UTF-8.
pub(crate) const CONSTRUCTOR: &CStr = c"(I[B[B[BJ)V";

/// The exception's class and constructor.
pub(crate) struct Thrower {
    pub(crate) class: Global<_jobject>,
    pub(crate) constructor: Global<_jmethodID>,
}

static THROWER: OnceLock<Thrower> = OnceLock::new();

/// Keeps what is needed to throw.
pub(crate) fn keep(thrower: Thrower) {
    // A library is loaded once for each class loader, and each has its own copy of the library.
    let _ = THROWER.set(thrower);
}

/// Does the work of a function. Where it fails, an exception is pending and the result is zero or
/// null.
pub(crate) fn call<T: Default>(env: &Env<'_>, work: impl FnOnce() -> Result<T>) -> T {
    match guarded(work) {
        Ok(result) => result,
        Err(failure) => {
            throw(env, &failure);
            T::default()
        }
    }
}

#[cold]
fn throw(env: &Env<'_>, failure: &Failure) {
    // Java calls no function before the library was loaded.
    let Some(thrower) = THROWER.get() else { return };
    let error = failure.error();
    let file = error.and_then(shingle::Error::file).unwrap_or_default();
    let offset = error.and_then(shingle::Error::offset);
    let offset = offset.and_then(|offset| jlong::try_from(offset).ok()).unwrap_or(-1);
    let texts = [&failure.to_string(), failure.remedy(), file];
    env.throw(thrower, jint::from(failure.code()), texts, offset);
}
