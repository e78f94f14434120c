//! Keyspaces: their creation with fixed properties.

use crate::arguments::{give, text};
use crate::db::keyspace_handle;
use crate::failure::{Place, call};
use crate::kinds::{DBS, Db, KEYSPACES, Keyspace};
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::time::Duration;

/// The fixed properties of a keyspace. All zero: the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeyspaceOptions {
    /// The name of a merge operator, or null: "append" or "add-u64".
    pub merge_operator: Option<&'static c_char>,
    /// Values end after these seconds; 0: never.
    pub ttl_seconds: u64,
    /// Filters know the first bytes of keys, as many as this; 0: none.
    pub prefix_bytes: u8,
    /// Writes do not go to the log: what was not flushed is lost when the process ends.
    pub without_wal: bool,
}

impl KeyspaceOptions {
    fn given(options: Option<&KeyspaceOptions>) -> shingle::Result<shingle::KeyspaceOptions> {
        let Some(options) = options else { return Ok(shingle::KeyspaceOptions::default()) };
        let operator = options.merge_operator.map(|name| text(Some(name))).transpose()?;
        Ok(shingle::KeyspaceOptions {
            merge_operator: operator.map(str::to_string),
            ttl: (options.ttl_seconds > 0).then(|| Duration::from_secs(options.ttl_seconds)),
            prefix: match options.prefix_bytes {
                0 => shingle::PrefixRule::None,
                bytes => shingle::PrefixRule::Fixed(bytes),
            },
            without_wal: options.without_wal,
            ..shingle::KeyspaceOptions::default()
        })
    }
}

/// Creates a keyspace. `options` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_create_keyspace(
    db: *mut Db,
    name: Option<&c_char>,
    options: Option<&KeyspaceOptions>,
    keyspace: Option<&mut MaybeUninit<*mut Keyspace>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let options = KeyspaceOptions::given(options)?;
        let made = DBS.get(db.addr())?.create_keyspace(text(name)?, options)?;
        give(keyspace, keyspace_handle(made)?)
    })
}

/// Opens a keyspace, and creates it where it does not exist. One that exists must have the
/// properties that `options` says; null takes it as it is.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_open_keyspace(
    db: *mut Db,
    name: Option<&c_char>,
    options: Option<&KeyspaceOptions>,
    keyspace: Option<&mut MaybeUninit<*mut Keyspace>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (db, name) = (DBS.get(db.addr())?, text(name)?);
        let found = match options {
            Some(_) => None,
            None => db.keyspace(name).ok(),
        };
        let opened = match found {
            Some(found) => found,
            None => db.open_or_create_keyspace(name, KeyspaceOptions::given(options)?)?,
        };
        give(keyspace, keyspace_handle(opened)?)
    })
}

/// Frees the handle of a keyspace; the keyspace stays. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_keyspace_free(keyspace: *mut Keyspace) {
    call(None, || KEYSPACES.remove(keyspace.addr()));
}
