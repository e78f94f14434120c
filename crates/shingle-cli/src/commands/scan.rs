//! `scan` and `count`.

use crate::args::range::OrderArgs;
use crate::args::{CountArgs, ScanArgs};
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
        show(context, cursor, args.keys_only, &mut not_merged)?;
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
    keys_only: bool,
    not_merged: &mut NotMerged,
) -> Outcome {
    let (key, notation) = (cursor.key(), context.notation());
    let Some(held) = cursor.unmerged().filter(|_| !keys_only) else {
        return print(context, key, (!keys_only).then(|| cursor.value()));
    };
    not_merged.add(held);
    if context.global.json {
        return context.json(&text::unmerged_record(key, held));
    }
    let base = held.base.as_ref().map_or("nothing".into(), |base| notation.show(base));
    let operands: Vec<String> = held.operands.iter().map(|o| notation.show(o)).collect();
    let (key, operands) = (notation.show(key), operands.join(", "));
    writeln!(context.out, "{key} : (not merged) on {base}: {operands}")?;
    Ok(())
}

fn print(context: &mut Context, key: &[u8], value: Option<&[u8]>) -> Outcome {
    if context.global.json {
        return context.json(&text::record(key, value));
    }
    let notation = context.notation();
    match value {
        Some(value) => writeln!(context.out, "{} : {}", notation.show(key), notation.show(value))?,
        None => writeln!(context.out, "{}", notation.show(key))?,
    }
    Ok(())
}
