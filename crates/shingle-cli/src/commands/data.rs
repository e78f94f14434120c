//! `put`, `get`, `delete`, `delete-range`, `merge`.

use crate::args::range::RangeArgs;
use crate::args::{DeleteArgs, DeleteRangeArgs, GetArgs, MergeArgs, PutArgs, duration};
use crate::context::{Context, Opened};
use crate::failure::{Failure, Outcome};
use crate::open::Access;
use crate::text;
use base::KeyRange;
use serde_json::json;
use shingle::{Db, Durability, Keyspace, ReadOptions, WriteBatch, WriteOptions};
use std::io::Read;
use std::path::Path;

/// Commits `batch`.
pub fn commit(db: &Db, batch: WriteBatch, sync: bool) -> Outcome {
    let durability = sync.then_some(Durability::Synced);
    Ok(db.write(batch, &WriteOptions { durability, wait: true })?)
}

/// Writes the operations that `add` adds, at once or with the batch that a shell has begun.
fn write(
    context: &mut Context,
    db: Opened,
    sync: bool,
    add: impl Fn(&mut WriteBatch) -> shingle::Result<()>,
) -> Outcome {
    let mut alone = WriteBatch::new();
    add(&mut alone)?;
    match context.session.as_mut().and_then(|session| session.batch.as_mut()) {
        Some(_) if sync => {
            return Err(Failure::usage(
                "--sync has no meaning for a part of a batch",
                "sync the batch: `commit --sync`",
            ));
        }
        Some(batch) => add(batch)?,
        None => commit(&db, alone, sync)?,
    }
    db.close()?;
    done(context)
}

/// Says so to a program; a person sees no error.
pub fn done(context: &mut Context) -> Outcome {
    if context.global.json { context.json(&json!({ "ok": true })) } else { Ok(()) }
}

/// `shingle put`.
pub fn put(context: &mut Context, args: PutArgs) -> Outcome {
    let key = context.bytes(&args.key)?;
    let value = match (&args.value, &args.value_file) {
        (Some(value), _) => context.bytes(value)?,
        (None, Some(file)) => read_value(context, file)?,
        (None, None) => return Err(Failure::usage("put: no value", "see `shingle put --help`")),
    };
    let db = context.open(Access::Create)?;
    let keyspace = context.keyspace(&db, Access::Create)?;
    let expiry = args.ttl.map(|ttl| keyspace.expiry_after(ttl));
    write(context, db, args.sync, |batch| match expiry {
        None => batch.put_in(&keyspace, &key, &value),
        Some(expiry) => batch.put_expiring_in(&keyspace, &key, &value, expiry),
    })
}

fn read_value(context: &Context, file: &Path) -> Outcome<Vec<u8>> {
    let mut value = Vec::new();
    let read = if file == Path::new("-") {
        context.check_stdin_is_free()?;
        std::io::stdin().lock().read_to_end(&mut value).map(|_| value)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Failure::io(format!("read {}", file.display()), &error))
}

/// `shingle get`.
pub fn get(context: &mut Context, args: GetArgs) -> Outcome {
    let key = context.bytes(&args.key)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    let Some((value, expiry)) = keyspace.get_with_expiry(&key)? else {
        return Err(Failure::NoSuchKey(text::brief(&key).into_owned()));
    };
    if context.global.json {
        let value = (!args.expiry).then_some(&value[..]);
        return context.json(&text::expiring_record(&key, value, expiry));
    }
    if args.expiry {
        writeln!(context.out, "{}", duration::moment(expiry))?;
        return Ok(());
    }
    if context.global.hex && !args.raw {
        context.out.write_all(text::hex(&value).as_bytes())?;
    } else {
        context.out.write_all(&value)?;
    }
    if !args.raw {
        context.out.write_all(b"\n")?;
    }
    Ok(())
}

/// `shingle delete`.
pub fn delete(context: &mut Context, args: DeleteArgs) -> Outcome {
    let keys = args.keys.iter().map(|key| context.bytes(key)).collect::<Outcome<Vec<_>>>()?;
    let db = context.open(Access::Change)?;
    let keyspace = context.keyspace(&db, Access::Change)?;
    write(context, db, args.sync, |batch| {
        keys.iter().try_for_each(|key| batch.delete_in(&keyspace, key))
    })
}

/// `shingle merge`.
pub fn merge(context: &mut Context, args: MergeArgs) -> Outcome {
    let (key, operand) = (context.bytes(&args.key)?, context.bytes(&args.operand)?);
    let db = context.open(Access::Change)?;
    let keyspace = context.keyspace(&db, Access::Change)?;
    write(context, db, args.sync, |batch| batch.merge_in(&keyspace, &key, &operand))
}

/// `shingle delete-range`.
pub fn delete_range(context: &mut Context, args: DeleteRangeArgs) -> Outcome {
    let mut flags = args.range;
    if let [from, to] = &args.bounds[..] {
        flags = RangeArgs { from: Some(from.clone()), to: Some(to.clone()), prefix: None };
    }
    if flags.is_all() {
        return Err(Failure::usage(
            "delete-range: which keys?",
            "name them with --from, --to or --prefix; `--prefix ''` is every key",
        ));
    }
    let range = context.range(&flags)?;
    let is_in_batch = context.session.as_ref().is_some_and(|session| session.batch.is_some());
    if range.end.is_none() && is_in_batch {
        return Err(Failure::usage(
            "a range without an end ends at the last key, which is not known before the commit",
            "name the end with --to, or commit first",
        ));
    }
    let db = context.open(Access::Change)?;
    let keyspace = context.keyspace(&db, Access::Change)?;
    let last = if range.end.is_none() { last_key(&keyspace, &range)? } else { None };
    write(context, db, args.sync, |batch| match (&range.end, &last) {
        (Some(end), _) => batch.delete_range_in(&keyspace, &range.start, end),
        (None, Some(last)) => {
            batch.delete_range_in(&keyspace, &range.start, last)?;
            batch.delete_in(&keyspace, last)
        }
        (None, None) => Ok(()),
    })
}

/// The last key of the range, where it has one.
fn last_key(keyspace: &Keyspace, range: &KeyRange) -> Outcome<Option<Vec<u8>>> {
    let options = ReadOptions { range: range.clone(), ..ReadOptions::default() };
    let mut cursor = keyspace.cursor(options);
    let moved = cursor.seek_to_last();
    if cursor.valid() {
        return Ok(Some(cursor.key().to_vec()));
    }
    Ok(moved.map(|()| None)?)
}
