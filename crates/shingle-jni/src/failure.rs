//! Errors as Java sees them: a `ShingleException` that is pending when the function returns.

use crate::env::{Env, Machine, Thrower};
use bindings::{Failure, guarded};
use jni_sys::{JNI_ERR, JNI_VERSION_1_8, jint, jlong};
use shingle::Result;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// The exception.
const CLASS: &CStr = c"org/shingle/ShingleException";
/// What its constructor takes: code, message, remedy, file, offset. Texts are UTF-8.
const CONSTRUCTOR: &CStr = c"(I[B[B[BJ)V";

static THROWER: OnceLock<Thrower> = OnceLock::new();

/// The Java machine calls it when it has loaded the library. The class loader is that of the class
/// that loads the library.
#[unsafe(no_mangle)]
pub extern "system" fn JNI_OnLoad(machine: Machine, _reserved: *mut c_void) -> jint {
    match machine.env().and_then(|env| env.thrower(CLASS, CONSTRUCTOR)) {
        Some(thrower) => {
            // A library is loaded once: another class loader has a copy of it.
            let _ = THROWER.set(thrower);
            JNI_VERSION_1_8
        }
        None => JNI_ERR,
    }
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
