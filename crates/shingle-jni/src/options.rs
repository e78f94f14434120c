//! Options by name, and what several databases share.
//!
//! Java keeps options as names and values, in the form of [`bindings::Entries`], and hands all of
//! them over each time. So the engine has the only table of them, and nothing must be freed.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{RESOURCES, given, handle};
use bindings::Entries;
use jni_sys::{jint, jlong};
use shingle::{Error, Options, ResourceLimits, Resources, Result};

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
        given(&RESOURCES, Resources::new(bytes))
    })
}

/// Memory, threads and a limit of background work for several databases.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_createSharedResources(
    env: Env<'_>,
    _class: Object<'_>,
    memory_bytes: jlong,
    background_threads: jint,
    background_bytes_per_second: jlong,
) -> jlong {
    call(&env, || {
        let limits = ResourceLimits {
            memory_bytes: at_least(1 << 20, memory_bytes, "bytes of memory")?,
            background_threads: at_least(1, background_threads.into(), "threads")? as usize,
            background_bytes_per_second: at_least(0, background_bytes_per_second, "bytes")?,
        };
        given(&RESOURCES, Resources::within(&limits))
    })
}

fn at_least(min: u64, number: jlong, what: &str) -> Result<u64> {
    u64::try_from(number)
        .ok()
        .filter(|&number| number >= min)
        .ok_or_else(|| Error::invalid(format!("{number} {what}: it must be {min} or more")))
}

/// Bytes that the memtables of databases with shared memory have now.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_sharedMemtableBytes(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    resources: jlong,
) -> jlong {
    bytes_of(&env, resources, Resources::memtable_bytes)
}

/// Bytes in the shared cache now.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_cacheUsedBytes(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    resources: jlong,
) -> jlong {
    bytes_of(&env, resources, Resources::cache_used_bytes)
}

fn bytes_of(env: &Env<'_>, resources: jlong, bytes: fn(&Resources) -> u64) -> jlong {
    call(env, || {
        let resources = RESOURCES.get(handle(resources))?;
        let bytes = bytes(&resources);
        Ok(jlong::try_from(bytes).unwrap_or(jlong::MAX))
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
