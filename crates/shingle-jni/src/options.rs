//! Options by name, and what several databases share.
//!
//! Java keeps options as names and values, in the form of [`bindings::Entries`], and hands all of
//! them over each time. So the engine has the only table of them, and nothing must be freed.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{RESOURCES, given, handle};
use bindings::Entries;
use jni_sys::jlong;
use shingle::{Error, Options, Result};

/// The options that these names and values make.
pub(crate) fn options(bytes: &[u8]) -> Result<Options> {
    let mut options = Options::new();
    for (name, value) in Entries::from(bytes) {
        options = options.set(text(name)?, text(value)?)?;
    }
    Ok(options)
}

/// A text, which Java gives as UTF-8.
pub(crate) fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::invalid("a text is not UTF-8"))
}

/// Every option as the text of a configuration file. Fails where a name or a value is wrong.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_optionsText<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    pairs: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        let mut space = Space::new();
        let options = options(env.bytes(pairs, &mut space)?)?;
        env.new_bytes(options.to_ini().as_bytes())
    })
}

/// A block cache for several databases.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_createResources(
    env: Env<'_>,
    _class: Object<'_>,
    cache_bytes: jlong,
) -> jlong {
    call(&env, || {
        let bytes = u64::try_from(cache_bytes).map_err(|_| {
            Error::invalid(format!("a cache of {cache_bytes} bytes: it has 0 or more"))
        })?;
        given(&RESOURCES, shingle::Resources::new(bytes))
    })
}

/// Bytes in the shared cache now.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_cacheUsedBytes(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    resources: jlong,
) -> jlong {
    call(&env, || {
        let used = RESOURCES.get(handle(resources))?.cache_used_bytes();
        Ok(jlong::try_from(used).unwrap_or(jlong::MAX))
    })
}

/// Frees resources; databases that use them keep them.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeResources(
    env: Env<'_>,
    _class: Object<'_>,
    resources: jlong,
) {
    call(&env, || RESOURCES.remove(handle(resources)));
}
