//! `scan`.

use crate::args::ScanArgs;
use crate::commands::data::argument;
use crate::context::{Access, Context};
use crate::failure::Outcome;
use crate::text::{self, NotMerged};
use base::KeyRange;
use shingle::{Cursor, ReadOptions};

/// `shingle scan`.
pub fn scan(context: &mut Context, args: ScanArgs) -> Outcome {
    let range = range(context, &args)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    if range.is_empty() {
        return Ok(());
    }
    let mut cursor = keyspace.cursor(ReadOptions { range, ..ReadOptions::default() });
    let mut not_merged = NotMerged::default();
    for count in 0..args.limit.unwrap_or(u64::MAX) {
        let moved = match (count, args.reverse) {
            (0, false) => cursor.seek_to_first(),
            (0, true) => cursor.seek_to_last(),
            (_, false) => cursor.next(),
            (_, true) => cursor.prev(),
        };
        if !cursor.valid() {
            moved?;
            break;
        }
        show(context, &cursor, args.keys_only, &mut not_merged)?;
    }
    if not_merged.keys > 0 {
        context.remark(&not_merged.sentence("have operands that are not merged"));
    }
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

fn range(context: &Context, args: &ScanArgs) -> Outcome<KeyRange> {
    if let Some(prefix) = &args.prefix {
        return Ok(KeyRange::prefix(&argument(context, prefix)?));
    }
    let start = args.from.as_deref().map(|from| argument(context, from)).transpose()?;
    let end = args.to.as_deref().map(|to| argument(context, to)).transpose()?;
    Ok(KeyRange::new(start.unwrap_or_default(), end.map(Into::into)))
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
