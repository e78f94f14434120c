//! `scan` and `count`.

use crate::args::range::OrderArgs;
use crate::args::{CountArgs, ScanArgs, duration};
use crate::context::Context;
use crate::failure::Outcome;
use crate::interrupt::Interrupt;
use crate::open::Access;
use crate::text::{self, NotMerged};
use crate::units;
use crate::walk::Walk;
use serde_json::json;
use shingle::Cursor;

/// `shingle scan`.
pub fn scan(context: &mut Context, args: ScanArgs) -> Outcome {
    let range = context.range(&args.range)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    let interrupt = Interrupt::listen()?;
    let mut walk = Walk::new(&keyspace, range, &args.order);
    let mut not_merged = NotMerged::default();
    loop {
        interrupt.check(|| format!("{} were listed", units::counted(walk.count, "record")))?;
        let Some(cursor) = walk.next()? else { break };
        show(context, cursor, &args, &mut not_merged)?;
    }
    if not_merged.keys > 0 {
        context.remark(&not_merged.sentence("have operands that are not merged"));
    }
    Ok(())
}
/// `shingle count`.
pub fn count(context: &mut Context, args: CountArgs) -> Outcome {
    let range = context.range(&args.range)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    let interrupt = Interrupt::listen()?;
    let mut walk = Walk::new(&keyspace, range, &OrderArgs::default());
    let mut bytes = 0;
    loop {
        interrupt.check(|| format!("{} were counted", units::counted(walk.count, "key")))?;
        let Some(cursor) = walk.next()? else { break };
        if context.global.json {
            let is_merged = cursor.unmerged().is_none();
            let value_bytes = if is_merged { cursor.value().len() } else { 0 };
            bytes += (cursor.key().len() + value_bytes) as u64;
        }
    }
    if context.global.json {
        return context.json(&json!({ "keys": walk.count, "bytes": bytes }));
    }
    writeln!(context.out, "{}", walk.count)?;
    Ok(())
}

fn show(
    context: &mut Context,
    cursor: &Cursor,
    args: &ScanArgs,
    not_merged: &mut NotMerged,
) -> Outcome {
    let (key, notation) = (cursor.key(), context.notation());
    let Some(held) = cursor.unmerged().filter(|_| !args.keys_only) else {
        return print(context, cursor, args);
    };
    not_merged.add(held);
    if context.global.json {
        return context.json(&text::unmerged_record(key, held, cursor.expiry()));
    }
    let base = held.base.as_ref().map_or("nothing".into(), |base| notation.show(base));
    let operands: Vec<String> = held.operands.iter().map(|o| notation.show(o)).collect();
    let mut line = notation.show(key);
    if args.expiry {
        line += &format!(" : {}", duration::moment(cursor.expiry()));
    }
    writeln!(context.out, "{line} : (not merged) on {base}: {}", operands.join(", "))?;
    Ok(())
}

fn print(context: &mut Context, cursor: &Cursor, args: &ScanArgs) -> Outcome {
    let (key, expiry) = (cursor.key(), cursor.expiry());
    let value = (!args.keys_only).then(|| cursor.value());
    if context.global.json {
        return context.json(&text::expiring_record(key, value, expiry));
    }
    let notation = context.notation();
    let mut line = notation.show(key);
    if args.expiry {
        line += &format!(" : {}", duration::moment(expiry));
    }
    if let Some(value) = value {
        line += &format!(" : {}", notation.show(value));
    }
    writeln!(context.out, "{line}")?;
    Ok(())
}
