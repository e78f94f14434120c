//! Keyspaces: their names, and their creation with fixed properties.

use crate::arguments::{give, give_handle, text};
use crate::cursor::Chunk;
use crate::failure::{Place, Text, call};
use crate::kinds::{DBS, Db, KEYSPACES, Keyspace};
use shingle::{Error, ErrorKind};
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
        give_handle(keyspace, &KEYSPACES, made)
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
        give_handle(keyspace, &KEYSPACES, opened)
    })
}

/// The keyspace that every database has. Free it with `shingle_keyspace_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_default_keyspace(
    db: *mut Db,
    keyspace: Option<&mut MaybeUninit<*mut Keyspace>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let found = DBS.get(db.addr())?.default_keyspace().clone();
        give_handle(keyspace, &KEYSPACES, found)
    })
}

/// The names, one in a line; where a name is no line, the lines would be other names.
fn lines(names: &[String]) -> shingle::Result<String> {
    let Some(name) = names.iter().find(|name| name.contains(['\n', '\0'])) else {
        return Ok(names.join("\n"));
    };
    let message = format!(
        "the keyspace {name:?} has a line break or a zero byte in its name: \
         shingle_keyspace_names gives names of any bytes"
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// The names of all keyspaces, one in a line. Free them with `shingle_text_free`.
/// `SHINGLE_UNSUPPORTED` where a name has a line break or a zero byte: `shingle_keyspace_names`
/// gives those too.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_keyspaces(
    db: *mut Db,
    names: Option<&mut MaybeUninit<Option<Box<Text>>>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let found = lines(&DBS.get(db.addr())?.keyspaces())?;
        give(names, Some(Text::boxed(&found)))
    })
}

/// Puts the names of all keyspaces into `chunk`, in place of what it had. Each is the key of an
/// entry with an empty value.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_keyspace_names(
    db: *mut Db,
    chunk: Option<&mut Chunk>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let Some(chunk) = chunk else { return Err(Error::invalid("there is no chunk")) };
        let names = DBS.get(db.addr())?.keyspaces();
        chunk.put_keys(&names);
        Ok(())
    })
}

/// The keyspace called `name`. Free it with `shingle_keyspace_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_find_keyspace(
    db: *mut Db,
    name: Option<&c_char>,
    keyspace: Option<&mut MaybeUninit<*mut Keyspace>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let found = DBS.get(db.addr())?.keyspace(text(name)?)?;
        give_handle(keyspace, &KEYSPACES, found)
    })
}

/// Removes a keyspace with everything in it.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_drop_keyspace(
    db: *mut Db,
    name: Option<&c_char>,
    error: Place<'_>,
) -> c_int {
    call(error, || DBS.get(db.addr())?.drop_keyspace(text(name)?))
}

/// Frees the handle of a keyspace; the keyspace stays. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_keyspace_free(keyspace: *mut Keyspace) {
    call(None, || KEYSPACES.remove(keyspace.addr()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_lines_are_not_given_as_lines() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(lines(&names(&["default", "a b"])).unwrap(), "default\na b");
        for name in ["a\nb", "a\0b", "\n"] {
            let error = lines(&names(&["default", name])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
}
