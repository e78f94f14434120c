//! Options by name, and what several databases share.

use crate::arguments::{give, give_handle, text};
use crate::failure::{Place, Text, call};
use crate::kinds::{OPTIONS, Options, RESOURCES, Resources};
use parking_lot::Mutex;
use shingle::ResourceLimits;
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

/// The default options, to be changed with `shingle_options_set`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_create(
    options: Option<&mut MaybeUninit<*mut Options>>,
    error: Place<'_>,
) -> c_int {
    call(error, || give_handle(options, &OPTIONS, Mutex::new(shingle::Options::new())))
}

/// Sets an option by its name, such as "scheme" or "memory_bytes", in the form that configuration
/// files have. The manual lists all names (docs/manual/options.md).
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_set(
    options: *mut Options,
    name: Option<&c_char>,
    value: Option<&c_char>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (name, value) = (text(name)?, text(value)?);
        change(options, |options| options.set(name, value))
    })
}

/// Whether a database that does not exist is created. Default: yes.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_set_create(
    options: *mut Options,
    yes: bool,
    error: Place<'_>,
) -> c_int {
    call(error, || change(options, |options| Ok(options.create(yes))))
}

/// Whether the database must be new: one that exists is refused, with `SHINGLE_ALREADY_EXISTS`.
/// Of several processes that create it at once, one succeeds. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_set_create_new(
    options: *mut Options,
    yes: bool,
    error: Place<'_>,
) -> c_int {
    call(error, || change(options, |options| Ok(options.create_new(yes))))
}

/// Whether the database is opened for reading only. Default: no.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_set_read_only(
    options: *mut Options,
    yes: bool,
    error: Place<'_>,
) -> c_int {
    call(error, || change(options, |options| Ok(options.read_only(yes))))
}

/// Databases that are opened with these options share what `resources` has.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_set_resources(
    options: *mut Options,
    resources: *mut Resources,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let resources = RESOURCES.get(resources.addr())?;
        change(options, |options| Ok(options.resources(&resources)))
    })
}

/// Every option, and every parameter that is set, as the text of a configuration file. Free it with
/// `shingle_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_text(
    options: *mut Options,
    out: Option<&mut MaybeUninit<Option<Box<Text>>>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let options = OPTIONS.get(options.addr())?;
        let text = options.lock().to_ini();
        give(out, Some(Text::boxed(&text)))
    })
}

/// Frees options. Databases that were opened with them stay as they are.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_options_free(options: *mut Options) {
    call(None, || OPTIONS.remove(options.addr()));
}

/// A block cache of `cache_bytes` for several databases.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_resources_create(
    cache_bytes: u64,
    resources: Option<&mut MaybeUninit<*mut Resources>>,
    error: Place<'_>,
) -> c_int {
    call(error, || give_handle(resources, &RESOURCES, shingle::Resources::new(cache_bytes)))
}

/// Memory, background threads and a limit of background work for several databases. Memory is at
/// least 1 MiB, threads are at least 1; `background_bytes_per_second` of 0 is no limit.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_resources_create_within(
    memory_bytes: u64,
    background_threads: usize,
    background_bytes_per_second: u64,
    resources: Option<&mut MaybeUninit<*mut Resources>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let limits =
            ResourceLimits { memory_bytes, background_threads, background_bytes_per_second };
        give_handle(resources, &RESOURCES, shingle::Resources::within(&limits))
    })
}

/// Bytes in the shared cache now, and bytes in the memtables of all databases: 0 where memory is
/// not shared. Each database says what it has when it seals or flushes a memtable.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_resources_used(
    resources: *mut Resources,
    cache_bytes: Option<&mut MaybeUninit<u64>>,
    memtable_bytes: Option<&mut MaybeUninit<u64>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let resources = RESOURCES.get(resources.addr())?;
        give(cache_bytes, resources.cache_used_bytes())?;
        give(memtable_bytes, resources.memtable_bytes())
    })
}

/// Frees resources; databases that use them keep them.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_resources_free(resources: *mut Resources) {
    call(None, || RESOURCES.remove(resources.addr()));
}

/// Replaces the options by what `change` makes of them, or keeps them where it fails.
fn change(
    options: *mut Options,
    change: impl FnOnce(shingle::Options) -> shingle::Result<shingle::Options>,
) -> shingle::Result<()> {
    let options = OPTIONS.get(options.addr())?;
    let mut options = options.lock();
    *options = change(options.clone())?;
    Ok(())
}
