//! RocksDB's traces as `trace_analyzer -convert_to_human_readable_trace` writes them: the key in
//! hex, the number of the operation, the column family, the value's bytes, microseconds; older
//! versions have the key at the end.
//!
//! Keys of other column families than the first stand behind the family's number. Newer versions
//! write a range deletion as two lines, one for each end.

use super::{Line, Parsed, Visit, number};
use crate::text::from_hex;
use crate::trace::operation::{Kind, Operation};

/// The kinds by their numbers: get, put, delete, single delete, range delete, merge, seek, seek for
/// previous, and the keys of a multiget.
const KINDS: [Kind; 9] = [
    Kind::Get,
    Kind::Put,
    Kind::Delete,
    Kind::Delete,
    Kind::DeleteRange,
    Kind::Put,
    Kind::Scan,
    Kind::Scan,
    Kind::Get,
];

pub(super) fn parse(line: &[u8], visit: &mut Visit<'_>) -> Parsed {
    const COLUMNS: &str = "key, operation, column family, bytes of the value, time are needed";
    let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let mut next = || fields.next();
    let (first, second, third, fourth) = (next(), next(), next(), next().ok_or(COLUMNS)?);
    let (Some(first), Some(second), Some(third)) = (first, second, third) else {
        return Err(COLUMNS);
    };
    let Some(fifth) = next() else {
        return Err("no key: run trace_analyzer without -no_key");
    };
    if next().is_some() {
        return Err("more than five columns");
    }
    let (key, columns) = match first.starts_with(b"0x") {
        true => (first, [second, third, fourth, fifth]),
        false => (fifth, [first, second, third, fourth]),
    };
    let digits = key.strip_prefix(b"0x").ok_or("the key is not hex with 0x in front")?;
    let key = from_hex(digits).ok_or("the key is not hex with 0x in front")?;
    let [kind, family, value_bytes, time_us] =
        columns.map(|column| number(column).ok_or("a column is no number"));
    let kind = usize::try_from(kind?).ok().and_then(|kind| KINDS.get(kind).copied());
    let kind = kind.ok_or("no operation has this number")?;
    let time_ns = time_us?.checked_mul(1000).ok_or("the time is too large")?;
    let (family, value_bytes) = (family?, value_bytes?);
    let stored = if family == 0 { key.clone() } else { [&family.to_be_bytes()[..], &key].concat() };
    let operation = Operation::new(Some(time_ns), kind, &stored);
    let operation = Operation { key_bytes: key.len() as u64, ..operation };
    // What a read found does not stand in the trace.
    visit(&if kind.is_write() { operation.value(value_bytes) } else { operation });
    Ok(Line::Operations)
}
