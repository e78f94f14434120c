//! Databases: opening, closing, and work on a whole database.

use crate::arguments::{c_text, give, give_handle, path, text};
use crate::failure::{Place, Text, call};
use crate::kinds::{DBS, Db, OPTIONS, Options};
use shingle::Progress;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

/// Opens the database in the directory `path`, and creates it where it does not exist. `options`
/// may be null.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_open(
    path: Option<&c_char>,
    options: *mut Options,
    db: Option<&mut MaybeUninit<*mut Db>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let options = match options.is_null() {
            true => shingle::Options::new(),
            false => OPTIONS.get(options.addr())?.lock().clone(),
        };
        give_handle(db, &DBS, options.open(self::path(path)?)?)
    })
}

/// Removes the database in a directory, and the directory where nothing else is in it. Files that
/// are not Shingle's stay. `SHINGLE_LOCKED` where a process has it open, `SHINGLE_NOT_FOUND` where
/// there is none.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_destroy(path: Option<&c_char>, error: Place<'_>) -> c_int {
    call(error, || shingle::destroy(self::path(path)?))
}

/// Closes a database. Everything that was acknowledged survives a power loss when this returns.
/// Calls of other threads that are in it end first; later ones fail with `SHINGLE_CLOSED`.
/// Snapshots and cursors stay readable until they are freed. An error is that of the last flush or
/// sync; the database is closed all the same. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_close(db: *mut Db, error: Place<'_>) -> c_int {
    call(error, || {
        if db.is_null() {
            return Ok(());
        }
        let open = shingle::Db::clone(&*DBS.get(db.addr())?);
        DBS.remove(db.addr())?;
        open.close()
    })
}

/// Flushes the memtables of all keyspaces to tables.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_flush(db: *mut Db, error: Place<'_>) -> c_int {
    call(error, || DBS.get(db.addr())?.flush())
}

/// Begins what `shingle_flush` does, and does not wait for its end. An error of the flush comes
/// with a later write, or with the close.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_begin_flush(db: *mut Db, error: Place<'_>) -> c_int {
    call(error, || DBS.get(db.addr())?.begin_flush())
}

/// Makes every earlier write durable.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_sync(db: *mut Db, error: Place<'_>) -> c_int {
    call(error, || DBS.get(db.addr())?.sync())
}

/// Compacts everything.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_compact(db: *mut Db, error: Place<'_>) -> c_int {
    call(error, || DBS.get(db.addr())?.compact())
}

/// Waits until no background work is due.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_wait_idle(db: *mut Db, error: Place<'_>) -> c_int {
    call(error, || DBS.get(db.addr())?.wait_idle())
}

/// Copies the database as it is now to the new directory `target`, by links where the file system
/// has them.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_checkpoint(
    db: *mut Db,
    target: Option<&c_char>,
    error: Place<'_>,
) -> c_int {
    call(error, || DBS.get(db.addr())?.checkpoint(path(target)?))
}

/// Changes an option of an open database; the manual says which can be changed.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_set_option(
    db: *mut Db,
    name: Option<&c_char>,
    value: Option<&c_char>,
    error: Place<'_>,
) -> c_int {
    call(error, || DBS.get(db.addr())?.set_option(text(name)?, text(value)?))
}

/// The statistics as JSON (docs/manual/statistics.md). Free them with `shingle_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_stats(
    db: *mut Db,
    json: Option<&mut MaybeUninit<Option<Box<Text>>>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let stats = DBS.get(db.addr())?.stats().to_json();
        give(json, Some(Text::boxed(&stats)))
    })
}

/// A property by its name; null where there is none of that name. Free it with
/// `shingle_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_property(
    db: *mut Db,
    name: Option<&c_char>,
    value: Option<&mut MaybeUninit<Option<Box<Text>>>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let found = DBS.get(db.addr())?.property(text(name)?);
        give(value, found.map(|found| Text::boxed(&found)))
    })
}

/// Hears how far a check is: bytes done and in all, and the file, a text that lives during the
/// call. It cancels the check by returning false. It must not call back into the database's
/// `shingle_close`.
pub type ProgressFunction = Option<
    extern "C" fn(argument: *mut c_void, done: u64, total: u64, what: *const c_char) -> bool,
>;

/// Reads the whole database and compares it with its checksums. `problems` gets how many there are,
/// and `report` their texts, one in a line. A check that finds problems is no error. `progress` may
/// be null; `argument` is handed to it.
#[unsafe(no_mangle)]
pub extern "C" fn shingle_check(
    db: *mut Db,
    progress: ProgressFunction,
    argument: *mut c_void,
    problems: Option<&mut MaybeUninit<usize>>,
    report: Option<&mut MaybeUninit<Option<Box<Text>>>>,
    error: Place<'_>,
) -> c_int {
    call(error, || {
        let db = DBS.get(db.addr())?;
        let found = db.check(&mut |step: Progress| {
            let Some(progress) = progress else { return };
            let what = c_text(&step.what);
            if !progress(argument, step.done_bytes, step.total_bytes, what.as_ptr()) {
                step.cancel();
            }
        })?;
        if found.is_cancelled {
            let message = "the receiver of the progress cancelled the check";
            return Err(shingle::Error::new(shingle::ErrorKind::Cancelled, message));
        }
        give(problems, found.problems.len())?;
        give(report, Some(Text::boxed(&found.problems.join("\n"))))
    })
}
