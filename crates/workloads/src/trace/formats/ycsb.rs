//! What YCSB's binding `basic` prints with `basicdb.verbose=true`: operation, table, key, for scans
//! the number of records, and fields between brackets.
//!
//! A value is as large as the fields that stand there. A read-modify-write is a read and an update.
//! Lines of YCSB's own report are no operations.

use super::{Line, Parsed, Visit, number};
use crate::trace::operation::{Kind, Operation};

pub(super) fn parse(line: &[u8], visit: &mut Visit<'_>) -> Parsed {
    let mut words = line.splitn(4, |&byte| byte == b' ');
    let kind = match words.next() {
        Some(b"READ") => Kind::Get,
        Some(b"INSERT") => Kind::Put,
        Some(b"UPDATE") => Kind::Update,
        Some(b"DELETE") => Kind::Delete,
        Some(b"SCAN") => Kind::Scan,
        _ if is_report(line) => return Ok(Line::Other),
        _ => return Err("no READ, INSERT, UPDATE, DELETE or SCAN in front"),
    };
    words.next().filter(|table| !table.is_empty()).ok_or("no table")?;
    let key = words.next().filter(|key| !key.is_empty()).ok_or("no key")?;
    let rest = words.next().unwrap_or_default();
    let operation = Operation::new(None, kind, key);
    visit(&match kind {
        Kind::Put | Kind::Update => {
            let fields = rest.strip_prefix(b"[ ").and_then(|rest| rest.strip_suffix(b"]"));
            operation.value(value_bytes(fields.ok_or("no fields between brackets")?))
        }
        Kind::Scan => {
            let count = rest.split(|&byte| byte == b' ').next().and_then(number);
            operation.over(count.ok_or("a scan needs a number of records")?)
        }
        _ => operation,
    });
    Ok(Line::Operations)
}

/// A line of the result, or of the start.
fn is_report(line: &[u8]) -> bool {
    let starts = [
        &b"["[..],
        b"***",
        b"\"",
        b"YCSB",
        b"Command line",
        b"Loading",
        b"Starting",
        b"DBWrapper",
        b"mvn ",
    ];
    line.is_empty() || starts.iter().any(|start| line.starts_with(start))
}

/// Bytes of `field0=... field1=... `: all but the names, `=`, and the space after each.
fn value_bytes(fields: &[u8]) -> u64 {
    let mut bytes = fields.len() as u64;
    let mut rest = fields;
    let mut is_start = true;
    while !rest.is_empty() {
        if let Some(name) = is_start.then(|| field_name_bytes(rest)).flatten() {
            bytes = bytes.saturating_sub(name as u64 + 1);
        }
        is_start = rest.first() == Some(&b' ');
        rest = rest.get(1..).unwrap_or_default();
    }
    bytes
}

/// Bytes of `field`, digits and `=`, where the text begins with that.
fn field_name_bytes(text: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"field";
    let digits = text.strip_prefix(NAME)?;
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0 && digits.get(count) == Some(&b'=')).then_some(NAME.len() + count + 1)
}
