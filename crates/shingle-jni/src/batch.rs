//! Batches, which Java collects in an array and hands over once.
//!
//! | operation | content, after the byte that names it |
//! |---|---|
//! | 0: later operations are in another keyspace | its handle, eight bytes; 0: the default one |
//! | 1: put | a key and a value |
//! | 2: delete | a key and nothing |
//! | 3: delete a range | the first key, and the first one behind the range |
//! | 4: merge | a key and an operand |
//! | 5: put of a value that ends | milliseconds since 1970, eight bytes; a key and a value |
//!
//! Two texts are as in [`bindings::Entries`]: their sizes, four bytes each, and then they follow.
//! Numbers are little-endian.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{DBS, KEYSPACES, handle};
use crate::write::{expiry, write_options};
use bindings::split_entry;
use jni_sys::{jint, jlong};
use shingle::{Error, Keyspace, Result, WriteBatch};

/// Operations by the numbers that Java has for them, in transactions too.
pub(crate) const PUT: u8 = 1;
pub(crate) const DELETE: u8 = 2;
pub(crate) const DELETE_RANGE: u8 = 3;
pub(crate) const MERGE: u8 = 4;
const KEYSPACE: u8 = 0;
const PUT_EXPIRING: u8 = 5;

/// Writes a batch: all of it, or nothing. `used` bytes of the array are the batch.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_write(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    _batch: Object<'_>,
    operations: ByteArray<'_>,
    used: jint,
    flags: jint,
) {
    call(&env, || {
        let mut space = Space::new();
        let bytes = env.first_bytes(operations, used, &mut space)?;
        let db = DBS.get(handle(db))?;
        let batch = unpacked(bytes, |keyspace| match keyspace {
            0 => Ok(db.default_keyspace().clone()),
            _ => KEYSPACES.get(handle(keyspace)).map(|keyspace| Keyspace::clone(&keyspace)),
        })?;
        db.write(batch, &write_options(flags)?)
    });
}

/// The batch that these operations make.
fn unpacked(bytes: &[u8], keyspace: impl Fn(jlong) -> Result<Keyspace>) -> Result<WriteBatch> {
    let (mut batch, mut rest, mut current) = (WriteBatch::new(), bytes, keyspace(0)?);
    while let Some((&operation, after)) = rest.split_first() {
        rest = after;
        if operation == KEYSPACE {
            current = keyspace(number(&mut rest)?)?;
            continue;
        }
        let ends = if operation == PUT_EXPIRING { Some(expiry(number(&mut rest)?)?) } else { None };
        let (key, value, after) = split_entry(rest).ok_or_else(broken)?;
        rest = after;
        let into = &current;
        match (operation, ends) {
            (PUT, _) => batch.put_in(into, key, value)?,
            (DELETE, _) => batch.delete_in(into, key)?,
            (DELETE_RANGE, _) => batch.delete_range_in(into, key, value)?,
            (MERGE, _) => batch.merge_in(into, key, value)?,
            (PUT_EXPIRING, Some(expiry)) => batch.put_expiring_in(into, key, value, expiry)?,
            _ => return Err(broken()),
        }
    }
    Ok(batch)
}

/// Eight bytes as a number.
fn number(rest: &mut &[u8]) -> Result<jlong> {
    let (bytes, after) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
    *rest = after;
    Ok(jlong::from_le_bytes(*bytes))
}

fn broken() -> Error {
    Error::invalid("the batch was changed while it was written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use shingle::ErrorKind;

    fn add(bytes: &mut Vec<u8>, key: &[u8], value: &[u8]) {
        bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[key, value].concat());
    }

    #[test]
    fn operations_are_unpacked_and_each_cut_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let db = shingle::Options::new().open(dir.path()).unwrap();
        let keyspace = db.default_keyspace().clone();
        let mut bytes = vec![0];
        bytes.extend_from_slice(&7u64.to_le_bytes());
        let first = bytes.len();
        bytes.push(1);
        add(&mut bytes, b"apple", b"red");
        let second = bytes.len();
        bytes.push(5);
        bytes.extend_from_slice(&4_000_000_000_000u64.to_le_bytes());
        add(&mut bytes, b"pear", b"green");
        let find = |number| {
            assert!(number == 0 || number == 7);
            Ok(keyspace.clone())
        };
        let batch = unpacked(&bytes, find).unwrap();
        assert_eq!(batch.len(), 2);
        db.write(batch, &shingle::WriteOptions::default()).unwrap();
        assert_eq!(db.get("apple").unwrap().as_deref(), Some(&b"red"[..]));
        let (_, expiry) = db.get_with_expiry("pear").unwrap().unwrap();
        assert_eq!(expiry.unwrap().as_millis(), 4_000_000_000_000);
        for cut in (0..bytes.len()).filter(|cut| ![0, first, second].contains(cut)) {
            let error = unpacked(&bytes[..cut], find).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{cut}");
        }
        assert_eq!(unpacked(&bytes[first..], find).unwrap().len(), 2, "the default keyspace");
    }
}
