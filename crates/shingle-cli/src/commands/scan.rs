//! `scan`.

use crate::args::ScanArgs;
use crate::commands::data::argument;
use crate::context::{Access, Context};
use crate::failure::Outcome;
use crate::text;
use base::KeyRange;
use std::ops::Bound;

/// `shingle scan`.
pub fn scan(context: &mut Context, args: ScanArgs) -> Outcome {
    let range = range(context, &args)?;
    let db = context.open(Access::Read)?;
    let keyspace = context.keyspace(&db, Access::Read)?;
    if range.is_empty() {
        return Ok(());
    }
    let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut records = keyspace.range(Bound::Included(&range.start), end);
    for _ in 0..args.limit.unwrap_or(u64::MAX) {
        let record = if args.reverse { records.next_back() } else { records.next() };
        let Some((key, value)) = record.transpose()? else { break };
        print(context, &key, (!args.keys_only).then_some(&value[..]))?;
    }
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
