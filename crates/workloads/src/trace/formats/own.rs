//! Shingle's own format: time, kind, key and a number between tabs; see `docs/format/trace.md`.
//!
//! Keys are escaped as `shingle scan` prints them. What the number counts follows from the kind.

use super::{Line, Parsed, Visit, number};
use crate::text::{escape, unescape};
use crate::trace::operation::{Kind, Operation};
use std::borrow::Cow;
use std::io::Write;

/// The first line of a file.
pub const HEADER: &str = "# shingle trace 1: time_ns, kind, key, bytes of the value or records";

pub(super) fn parse(line: &[u8], visit: &mut Visit<'_>) -> Parsed {
    if line.starts_with(b"#") {
        return Ok(Line::Other);
    }
    let mut fields = line.split(|&byte| byte == b'\t');
    let mut next = || fields.next().ok_or("four fields between tabs are needed");
    let (time, kind, key, count) = (next()?, next()?, next()?, next()?);
    if fields.next().is_some() {
        return Err("more than four fields");
    }
    let time_ns = if time == b"-" { None } else { Some(number(time).ok_or("no time in ns")?) };
    let kind = Kind::by_name(kind).ok_or("no kind of operation has this name")?;
    let key = match key.contains(&b'\\') {
        true => Cow::Owned(unescape(key).map_err(|_| "the key has a wrong escape")?),
        false => Cow::Borrowed(key),
    };
    let operation = Operation::new(time_ns, kind, &key);
    let count =
        if count == b"-" { None } else { Some(number(count).ok_or("no number at the end")?) };
    visit(&match (kind, count) {
        (Kind::Scan, count) => operation.over(count.unwrap_or(1)),
        (Kind::Put | Kind::Update, None) => return Err("a write needs the bytes of its value"),
        (_, Some(bytes)) => operation.value(bytes),
        (_, None) => operation,
    });
    Ok(Line::Operations)
}

/// Writes an operation as a line.
pub fn write(operation: &Operation<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    match operation.time_ns {
        Some(time_ns) => write!(out, "{time_ns}")?,
        None => write!(out, "-")?,
    }
    write!(out, "\t{}\t{}\t", operation.kind.name(), escape(operation.key))?;
    match (operation.kind, operation.value_bytes) {
        (Kind::Scan, _) => writeln!(out, "{}", operation.records),
        (_, Some(bytes)) => writeln!(out, "{bytes}"),
        (_, None) => writeln!(out, "-"),
    }
}
