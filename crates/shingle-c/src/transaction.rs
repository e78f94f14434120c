//! Transactions.

use crate::arguments::{Slice, Value, give_handle};
use crate::failure::{Place, call};
use crate::kinds::{DBS, Db, KEYSPACES, Keyspace, TRANSACTIONS, Transaction};
use crate::read::give_value;
use crate::write::write_options;
use parking_lot::Mutex;
use shingle::{Error, ErrorKind, Isolation, TransactionOptions};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Begins a transaction. It sees the database as it is now, and its own writes. With
/// `of_one_snapshot` its commit fails only where another wrote a key that it wrote; otherwise also
/// where another wrote a key that it read. `lock_timeout_millis`: how long locks are waited for; 0:
/// keys are not locked before the commit. End it with `shingle_commit` or
/// `shingle_transaction_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_begin(
    db: *mut Db,
    of_one_snapshot: bool,
    lock_timeout_millis: u64,
    transaction: Option<&mut MaybeUninit<*mut Transaction>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let isolation = if of_one_snapshot { Isolation::Snapshot } else { Isolation::Serializable };
        let lock_timeout =
            (lock_timeout_millis > 0).then(|| Duration::from_millis(lock_timeout_millis));
        let options = TransactionOptions { isolation, lock_timeout };
        let made = DBS.get(db.addr())?.transaction_with(options);
        give_handle(transaction, &TRANSACTIONS, Mutex::new(Some(made)))
    })
}

/// The value of `key` as the transaction sees it; see `shingle_get`. `for_update`: the commit fails
/// where another writes the key in the meantime, whatever the isolation.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_get(
    transaction: *mut Transaction,
    keyspace: *mut Keyspace,
    key: Slice,
    for_update: bool,
    value: Option<&mut MaybeUninit<Value>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let key = key.bytes()?;
        let mut found = None;
        within(transaction, keyspace, |transaction, keyspace| {
            found = match for_update {
                true => transaction.get_for_update_in(keyspace, key)?,
                false => transaction.get_in(keyspace, key)?,
            };
            Ok(())
        })?;
        give_value(value, found)
    })
}

/// Stores `value` under `key` at the commit.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_put(
    transaction: *mut Transaction,
    keyspace: *mut Keyspace,
    key: Slice,
    value: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (key, value) = (key.bytes()?, value.bytes()?);
        within(transaction, keyspace, |transaction, keyspace| {
            transaction.put_in(keyspace, key, value)
        })
    })
}

/// Removes `key` at the commit.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_delete(
    transaction: *mut Transaction,
    keyspace: *mut Keyspace,
    key: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let key = key.bytes()?;
        within(transaction, keyspace, |transaction, keyspace| transaction.delete_in(keyspace, key))
    })
}

/// Removes the keys from `start` on and before `end` at the commit.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_delete_range(
    transaction: *mut Transaction,
    keyspace: *mut Keyspace,
    start: Slice,
    end: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (start, end) = (start.bytes()?, end.bytes()?);
        within(transaction, keyspace, |transaction, keyspace| {
            transaction.delete_range_in(keyspace, start, end)
        })
    })
}

/// Applies `operand` to the value of `key` at the commit.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_merge(
    transaction: *mut Transaction,
    keyspace: *mut Keyspace,
    key: Slice,
    operand: Slice,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let (key, operand) = (key.bytes()?, operand.bytes()?);
        within(transaction, keyspace, |transaction, keyspace| {
            transaction.merge_in(keyspace, key, operand)
        })
    })
}

/// Commits a transaction and frees it, also where the commit fails. `SHINGLE_CONFLICT`: another
/// write came between; begin again.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_commit(
    transaction: *mut Transaction,
    flags: u32,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let taken = TRANSACTIONS.take(transaction.addr())?.lock().take();
        taken.ok_or_else(ended)?.commit_with(&write_options(flags)?)
    })
}

/// Ends a transaction without its writes. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_transaction_free(transaction: *mut Transaction) {
    call(None, || TRANSACTIONS.remove(transaction.addr()));
}

fn within(
    transaction: *mut Transaction,
    keyspace: *mut Keyspace,
    work: impl FnOnce(&mut shingle::Transaction, &shingle::Keyspace) -> shingle::Result<()>,
) -> shingle::Result<()> {
    let keyspace = KEYSPACES.get(keyspace.addr())?;
    let transaction = TRANSACTIONS.get(transaction.addr())?;
    work(transaction.lock().as_mut().ok_or_else(ended)?, &keyspace)
}

/// What a thread finds that waited for another, which committed.
fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction was committed")
}
