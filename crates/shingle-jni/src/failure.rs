//! Errors as Java sees them: a `ShingleException` that is pending when the function returns.

use crate::env::{Env, Machine, Thrower};
use bindings::{Failure, guarded};
use jni_sys::{JNI_ERR, JNI_VERSION_1_8, jint, jlong};
use parking_lot::RwLock;
use shingle::Result;
use std::ffi::{CStr, c_void};

/// The exception.
const CLASS: &CStr = c"org/shingle/ShingleException";
/// What its constructor takes: code, message, remedy, file, offset. Texts are UTF-8.
const CONSTRUCTOR: &CStr = c"(I[B[B[BJ)V";

/// That of the class loader that has the library. A later one takes its place: the library stays in
/// memory when a class loader is collected.
static THROWER: RwLock<Option<Thrower>> = RwLock::new(None);

/// The Java machine calls it when it has loaded the library. The class loader is that of the class
/// that loads the library.
#[unsafe(no_mangle)]
pub extern "system" fn JNI_OnLoad(machine: Machine, _reserved: *mut c_void) -> jint {
    match machine.env().and_then(|env| env.thrower(CLASS, CONSTRUCTOR)) {
        Some(thrower) => {
            *THROWER.write() = Some(thrower);
            JNI_VERSION_1_8
        }
        None => JNI_ERR,
    }
}

/// The Java machine calls it when it has collected the class loader. No database is open then: an
/// open one keeps its classes, and they keep the loader.
#[unsafe(no_mangle)]
pub extern "system" fn JNI_OnUnload(machine: Machine, _reserved: *mut c_void) {
    if let (Some(env), Some(thrower)) = (machine.env(), THROWER.write().take()) {
        env.forget(thrower);
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
    let thrower = THROWER.read();
    let Some(thrower) = &*thrower else { return };
    let error = failure.error();
    let file = error.and_then(shingle::Error::file).unwrap_or_default();
    let offset = error.and_then(shingle::Error::offset);
    let offset = offset.and_then(|offset| jlong::try_from(offset).ok()).unwrap_or(-1);
    let texts = [&failure.to_string(), failure.remedy(), file];
    env.throw(thrower, jint::from(failure.code()), texts, offset);
}
