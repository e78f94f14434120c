//! Logs: batches of writes that are in no table yet.

use super::blocks::Records;
use super::entry::Kind;
use crate::coding::{Input, damage, read};
use base::Result;
use std::path::Path;

/// A version of a key: the key, its sequence number, and its value or nothing.
pub type Version = (Vec<u8>, u64, Option<Vec<u8>>);

/// Every write of a log, in the order in which they were made.
pub fn replay(path: &Path) -> Result<Vec<Version>> {
    let bytes = read(path)?;
    let mut records = Records::new(path, &bytes);
    let mut versions = Vec::new();
    while let Some((at, record)) = records.next()? {
        add_batch(&record, &mut versions)
            .ok_or_else(|| damage(path, at as u64, "a batch of writes is not whole"))?;
    }
    Ok(versions)
}

fn add_batch(record: &[u8], versions: &mut Vec<Version>) -> Option<()> {
    let mut input = Input::new(record);
    let (first, count) = (input.fixed64()?, input.fixed32()?);
    for n in 0..u64::from(count) {
        let kind = match input.byte()? {
            0 => Kind::Delete,
            1 => Kind::Put,
            _ => return None,
        };
        let key = input.slice()?.to_vec();
        let value = match kind {
            Kind::Put => Some(input.slice()?.to_vec()),
            Kind::Delete => None,
        };
        versions.push((key, first + n, value));
    }
    input.is_empty().then_some(())
}
