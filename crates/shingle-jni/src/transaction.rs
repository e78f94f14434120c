//! Transactions.
//!
//! A commit takes the transaction out of its lock, and frees the handle whatever the commit does.
//! So it waits for the calls of other threads without using the processor, and later calls find
//! that the transaction has ended.

use crate::batch::{DELETE, DELETE_RANGE, MERGE, PUT};
use crate::cursor::{given_position, read_options};
use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{DBS, KEYSPACES, TRANSACTIONS, given, handle};
use crate::read::several;
use crate::write::{expiry, write_options};
use jni_sys::{jboolean, jint, jlong};
use parking_lot::Mutex;
use shingle::{Error, ErrorKind, Isolation, Keyspace, Result, Transaction, TransactionOptions};
use std::ops::Bound;
use std::time::Duration;

/// A flag of a transaction: snapshot isolation.
const OF_ONE_SNAPSHOT: jint = 1;
/// A flag of a get: the commit fails where another writes the key in the meantime.
const FOR_UPDATE: jint = 1;

/// Begins a transaction. `lock_timeout_millis`: how long locks are waited for; 0: keys are not
/// locked before the commit.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_begin(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    db: jlong,
    flags: jint,
    lock_timeout_millis: jlong,
) -> jlong {
    call(&env, || {
        let isolation = match flags & OF_ONE_SNAPSHOT {
            0 => Isolation::Serializable,
            _ => Isolation::Snapshot,
        };
        let timeout = u64::try_from(lock_timeout_millis).unwrap_or(0);
        let lock_timeout = (timeout > 0).then(|| Duration::from_millis(timeout));
        let options = TransactionOptions { isolation, lock_timeout };
        let begun = DBS.get(handle(db))?.transaction_with(options);
        given(&TRANSACTIONS, Mutex::new(Some(begun)))
    })
}

/// The value of a key as the transaction sees it; null where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_transactionGet<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
    _keyspace_owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
    flags: jint,
) -> ByteArray<'a> {
    call(&env, || {
        let mut space = Space::new();
        let key = env.bytes(key, &mut space)?;
        let found =
            within(transaction, keyspace, |transaction, keyspace| match flags & FOR_UPDATE {
                0 => transaction.get_in(keyspace, key),
                _ => transaction.get_for_update_in(keyspace, key),
            })?;
        env.new_optional_bytes(found.as_deref())
    })
}

/// Adds a write to a transaction. Operations have the numbers that they have in batches.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_transactionWrite(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
    _keyspace_owner: Object<'_>,
    keyspace: jlong,
    operation: jint,
    key: ByteArray<'_>,
    value: ByteArray<'_>,
) {
    call(&env, || {
        let (mut key_space, mut value_space) = (Space::new(), Space::new());
        let key = env.bytes(key, &mut key_space)?;
        let value = env.optional_bytes(value, &mut value_space)?;
        within(transaction, keyspace, |transaction, keyspace| {
            match (u8::try_from(operation), value) {
                (Ok(PUT), Some(value)) => transaction.put_in(keyspace, key, value),
                (Ok(DELETE), None) => transaction.delete_in(keyspace, key),
                (Ok(DELETE_RANGE), Some(end)) => transaction.delete_range_in(keyspace, key, end),
                (Ok(MERGE), Some(operand)) => transaction.merge_in(keyspace, key, operand),
                _ => Err(Error::invalid("an array is null")),
            }
        })
    });
}

/// Adds a put of a value that ends.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_transactionPutExpiring(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
    _keyspace_owner: Object<'_>,
    keyspace: jlong,
    key: ByteArray<'_>,
    value: ByteArray<'_>,
    expires_millis: jlong,
) {
    call(&env, || {
        let (mut key_space, mut value_space) = (Space::new(), Space::new());
        let key = env.bytes(key, &mut key_space)?;
        let value = env.bytes(value, &mut value_space)?;
        let expiry = expiry(expires_millis)?;
        within(transaction, keyspace, |transaction, keyspace| {
            transaction.put_expiring_in(keyspace, key, value, expiry)
        })
    });
}

/// The values of several keys as the transaction sees them.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_transactionMultiGet<'a>(
    env: Env<'a>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
    _keyspace_owner: Object<'_>,
    keyspace: jlong,
    packed_keys: ByteArray<'_>,
) -> ByteArray<'a> {
    call(&env, || {
        several(&env, packed_keys, |keys| {
            within(transaction, keyspace, |transaction, keyspace| {
                keys.iter().map(|key| transaction.get_in(keyspace, key)).collect()
            })
        })
    })
}

/// An iterator over entries as the transaction sees them now. It is a cursor without seeks.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_transactionScan(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
    _keyspace_owner: Object<'_>,
    keyspace: jlong,
    start: ByteArray<'_>,
    end: ByteArray<'_>,
    prefix: ByteArray<'_>,
) -> jlong {
    call(&env, || {
        let range = read_options(&env, [start, end, prefix], 0)?.range;
        let start = Bound::Included(&range.start[..]);
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let iter = within(transaction, keyspace, |transaction, keyspace| {
            transaction.range_in::<&[u8]>(keyspace, (start, end))
        })?;
        given_position(iter)
    })
}

/// Marks the point to which a later call returns.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_setSavepoint(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
) {
    call(&env, || {
        inside(transaction, |transaction| {
            transaction.set_savepoint();
            Ok(())
        })
    });
}

/// Discards the writes since the last savepoint; false where there is none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_rollBack(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
) -> jboolean {
    call(&env, || inside(transaction, |transaction| Ok(transaction.roll_back())))
}

fn within<T>(
    transaction: jlong,
    keyspace: jlong,
    work: impl FnOnce(&mut Transaction, &Keyspace) -> Result<T>,
) -> Result<T> {
    let keyspace = KEYSPACES.get(handle(keyspace))?;
    inside(transaction, |transaction| work(transaction, &keyspace))
}

fn inside<T>(transaction: jlong, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
    let transaction = TRANSACTIONS.get(handle(transaction))?;
    work(transaction.lock().as_mut().ok_or_else(ended)?)
}

fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction was committed")
}

/// Commits a transaction and frees it, also where the commit fails.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_commit(
    env: Env<'_>,
    _class: Object<'_>,
    _owner: Object<'_>,
    transaction: jlong,
    flags: jint,
) {
    call(&env, || {
        let taken = TRANSACTIONS.take(handle(transaction))?.lock().take();
        taken.ok_or_else(ended)?.commit_with(&write_options(flags)?)
    });
}

/// Ends a transaction without its writes. Where another thread is inside, its call ends first.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeTransaction(
    env: Env<'_>,
    _class: Object<'_>,
    transaction: jlong,
) {
    call(&env, || TRANSACTIONS.remove(handle(transaction)));
}
