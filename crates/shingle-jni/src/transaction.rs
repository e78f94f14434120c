//! Transactions.

use crate::env::{ByteArray, Env, Object, Space};
use crate::failure::call;
use crate::kinds::{DBS, KEYSPACES, TRANSACTIONS, given, handle};
use crate::write::write_options;
use jni_sys::{jint, jlong};
use parking_lot::Mutex;
use shingle::{Error, Isolation, Keyspace, Result, Transaction, TransactionOptions};
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
        given(&TRANSACTIONS, Mutex::new(DBS.get(handle(db))?.transaction_with(options)))
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
        within(transaction, keyspace, |transaction, keyspace| match (operation, value) {
            (1, Some(value)) => transaction.put_in(keyspace, key, value),
            (2, None) => transaction.delete_in(keyspace, key),
            (3, Some(end)) => transaction.delete_range_in(keyspace, key, end),
            (4, Some(operand)) => transaction.merge_in(keyspace, key, operand),
            _ => Err(Error::invalid("an array is null")),
        })
    });
}

fn within<T>(
    transaction: jlong,
    keyspace: jlong,
    work: impl FnOnce(&mut Transaction, &Keyspace) -> Result<T>,
) -> Result<T> {
    let keyspace = KEYSPACES.get(handle(keyspace))?;
    let transaction = TRANSACTIONS.get(handle(transaction))?;
    work(&mut transaction.lock(), &keyspace)
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
        let options = write_options(flags)?;
        TRANSACTIONS.take(handle(transaction))?.into_inner().commit_with(&options)
    });
}

/// Ends a transaction without its writes. One that was committed is no error.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_shingle_Native_closeTransaction(
    env: Env<'_>,
    _class: Object<'_>,
    transaction: jlong,
) {
    call(&env, || match TRANSACTIONS.remove(handle(transaction)) {
        Err(error) if error.kind() == shingle::ErrorKind::Closed => Ok(()),
        result => result,
    });
}
