//! Twitter's cache traces: seven columns between commas: seconds, anonymized key, bytes of the key,
//! bytes of the value, client, operation, time to live (Yang et al., OSDI 2020).
//!
//! Keys may hold commas: the columns are counted from both ends. A get that found nothing has a
//! value of 0 bytes. Times to live are not used: nothing expires.

use super::{Line, Parsed, Visit, number, seconds};
use crate::trace::operation::{Kind, Operation};

pub(super) fn parse(line: &[u8], visit: &mut Visit<'_>) -> Parsed {
    const COLUMNS: &str = "seven columns between commas are needed";
    let mut from_end = line.rsplitn(6, |&byte| byte == b',');
    let mut next = || from_end.next().ok_or(COLUMNS);
    let (ttl, operation, _client, value, key_bytes, head) =
        (next()?, next()?, next()?, next()?, next()?, next()?);
    let comma = head.iter().position(|&byte| byte == b',').ok_or(COLUMNS)?;
    let (time, key) = (head.get(..comma).unwrap_or_default(), head.get(comma + 1..));
    let time_ns = seconds(time).ok_or("the time is no number of seconds")?;
    let key_bytes = number(key_bytes).ok_or("the key's size is no number")?;
    let value_bytes = number(value).ok_or("the value's size is no number")?;
    number(ttl).ok_or("the time to live is no number")?;
    let kind = match operation {
        b"get" | b"gets" => Kind::Get,
        b"set" | b"add" => Kind::Put,
        b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" => Kind::Update,
        b"delete" => Kind::Delete,
        _ => return Err("no operation of a cache has this name"),
    };
    let operation = Operation::new(Some(time_ns), kind, key.unwrap_or_default());
    visit(&Operation { key_bytes, ..operation.value(value_bytes) });
    Ok(Line::Operations)
}
