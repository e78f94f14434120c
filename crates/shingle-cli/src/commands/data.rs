//! `put`, `get`, `delete`, `delete-range`.

use crate::args::{DeleteArgs, DeleteRangeArgs, GetArgs, PutArgs};
use crate::context::{Access, Context};
use crate::failure::{Failure, Outcome};
use crate::text;
use serde_json::json;
use shingle::{Db, Durability, WriteBatch, WriteOptions};
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

/// An argument of the command line as bytes.
pub fn argument(context: &Context, text: &OsStr) -> Outcome<Vec<u8>> {
    context.notation().read(text).map_err(|message| {
        Failure::usage(message, "without --hex, arguments are taken as they are")
    })
}

fn write(db: &Db, batch: WriteBatch, sync: bool) -> Outcome {
    let durability = sync.then_some(Durability::Synced);
    Ok(db.write(batch, &WriteOptions { durability, wait: true })?)
}

fn done(context: &mut Context, db: Db) -> Outcome {
    db.close()?;
    if context.global.json { context.json(&json!({ "ok": true })) } else { Ok(()) }
}

/// `shingle put`.
pub fn put(context: &mut Context, args: PutArgs) -> Outcome {
    let key = argument(context, &args.key)?;
    let value = match (&args.value, &args.value_file) {
        (Some(value), _) => argument(context, value)?,
        (None, Some(file)) => read_value(file)?,
        (None, None) => return Err(Failure::usage("put: no value", "see `shingle put --help`")),
    };
    let db = context.open(Access::Create)?;
    let keyspace = context.keyspace(&db, Access::Create)?;
    let mut batch = WriteBatch::new();
    batch.put_in(&keyspace, key, value)?;
    write(&db, batch, args.sync)?;
    done(context, db)
}

fn read_value(file: &Path) -> Outcome<Vec<u8>> {
    let mut value = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut value).map(|_| value)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Failure::io(format!("read {}", file.display()), &error))
}

/// `shingle get`.
pub fn get(context: &mut Context, args: GetArgs) -> Outcome {
    let key = argument(context, &args.key)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    let Some(value) = keyspace.get(&key)? else {
        return Err(Failure::NoSuchKey(text::brief(&key).into_owned()));
    };
    if context.global.json {
        return context.json(&text::record(&key, Some(&value)));
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
    let db = context.open(Access::Change)?;
    let keyspace = context.keyspace(&db, Access::Change)?;
    let mut batch = WriteBatch::new();
    for key in &args.keys {
        batch.delete_in(&keyspace, argument(context, key)?)?;
    }
    write(&db, batch, args.sync)?;
    done(context, db)
}

/// `shingle delete-range`.
pub fn delete_range(context: &mut Context, args: DeleteRangeArgs) -> Outcome {
    let from = argument(context, &args.from)?;
    let to = argument(context, &args.to)?;
    if from > to {
        return Err(Failure::usage(
            format!("{} comes after {}", text::brief(&from), text::brief(&to)),
            "give the smaller key first; keys are ordered by their bytes",
        ));
    }
    let db = context.open(Access::Change)?;
    let keyspace = context.keyspace(&db, Access::Change)?;
    let mut batch = WriteBatch::new();
    batch.delete_range_in(&keyspace, from, to)?;
    write(&db, batch, args.sync)?;
    done(context, db)
}
