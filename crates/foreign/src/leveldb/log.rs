//! Logs: batches of writes that are in no table yet.

use super::kind::kind;
use crate::coding::{Input, damage, read};
use crate::entry::{Entry, Kind};
use crate::merge::Memory;
use crate::records::Records;
use base::Result;
use std::path::Path;

/// Adds every write of a log, in the order in which they were made.
pub fn replay(path: &Path, memory: &mut Memory) -> Result<()> {
    let bytes = read(path)?;
    let mut records = Records::new(path, &bytes);
    while let Some((at, record)) = records.next()? {
        add_batch(&record, memory)
            .ok_or_else(|| damage(path, at as u64, "a batch of writes is not whole"))?;
    }
    Ok(())
}

fn add_batch(record: &[u8], memory: &mut Memory) -> Option<()> {
    let mut input = Input::new(record);
    let (first, count) = (input.fixed64()?, input.fixed32()?);
    for n in 0..u64::from(count) {
        let kind = kind(input.byte()?)?;
        let key = input.slice()?;
        let value = if kind == Kind::Put { input.slice()? } else { &[] };
        memory.add(Entry { key, sequence: first.checked_add(n)?, kind, value });
    }
    input.is_empty().then_some(())
}
