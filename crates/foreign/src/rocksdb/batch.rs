//! Batches of writes, as records of logs have them.
//!
//! A transaction of two phases has its writes between two marks in one batch, and is committed by
//! its name in a later one.

use super::kinds;
use crate::coding::Input;
use crate::entry::RangeDelete;

/// A write, before it has a sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// An entry by the byte for its kind.
    Entry {
        kind: u8,
        key: Vec<u8>,
        value: Vec<u8>,
    },
    DeleteRange {
        begin: Vec<u8>,
        end: Vec<u8>,
    },
}

/// What a batch has, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// For a column family.
    Write(u64, Write),
    /// What follows up to the next `Prepared` waits for its commit.
    Prepare,
    Prepared(Vec<u8>),
    Commit(Vec<u8>),
    RollBack(Vec<u8>),
    /// A transaction that writes before it commits.
    WrittenBefore,
}

/// A batch with the sequence number of its first write.
#[derive(Debug)]
pub struct Batch {
    pub sequence: u64,
    pub items: Vec<Item>,
}

/// No sequence number is larger.
const SEQUENCE_MAX: u64 = (1 << 56) - 1;

/// Kinds that batches alone have. One with a column family is the kind of the same entry without.
mod marks {
    pub const LOG_DATA: u8 = 0x03;
    pub const BEGIN_PREPARE: u8 = 0x09;
    pub const END_PREPARE: u8 = 0x0a;
    pub const COMMIT: u8 = 0x0b;
    pub const ROLL_BACK: u8 = 0x0c;
    pub const NOTHING: u8 = 0x0d;
    pub const BEGIN_PERSISTED_PREPARE: u8 = 0x12;
    pub const BEGIN_UNPREPARE: u8 = 0x13;
    pub const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
}

/// The kind without its column family; `None`: it has none.
fn without_family(kind: u8) -> Option<u8> {
    Some(match kind {
        0x04 => kinds::DELETE,
        0x05 => kinds::PUT,
        0x06 => kinds::MERGE,
        0x08 => kinds::SINGLE_DELETE,
        0x0e => kinds::RANGE_DELETE,
        0x10 => kinds::BLOB,
        0x17 => kinds::COLUMNS,
        0x19 => kinds::TIMED_PUT,
        _ => return None,
    })
}

impl Batch {
    /// `None`: the record is no whole batch.
    pub fn parse(record: &[u8]) -> Option<Batch> {
        let mut input = Input::new(record);
        let (sequence, count) = (input.fixed64()?, input.fixed32()?);
        let (mut items, mut writes) = (Vec::new(), 0);
        while !input.is_empty() {
            let item = Item::parse(&mut input)?;
            writes += u64::from(matches!(item, Some(Item::Write(..))));
            items.extend(item);
        }
        let is_whole = writes == u64::from(count) && sequence.checked_add(writes)? <= SEQUENCE_MAX;
        is_whole.then_some(Batch { sequence, items })
    }
}

impl Item {
    /// The outer `None`: it is not whole; the inner one: it has nothing for a reader.
    fn parse(input: &mut Input<'_>) -> Option<Option<Item>> {
        let kind = input.byte()?;
        let (kind, family) = match without_family(kind) {
            Some(kind) => (kind, input.varint()?),
            None => (kind, 0),
        };
        Some(Some(match kind {
            kinds::DELETE | kinds::SINGLE_DELETE => {
                let (key, value) = (input.slice()?.to_vec(), Vec::new());
                Item::Write(family, Write::Entry { kind, key, value })
            }
            kinds::PUT | kinds::MERGE | kinds::BLOB | kinds::COLUMNS | kinds::TIMED_PUT => {
                let (key, value) = (input.slice()?.to_vec(), input.slice()?);
                kinds::entry(kind, value)?;
                Item::Write(family, Write::Entry { kind, key, value: value.to_vec() })
            }
            kinds::RANGE_DELETE => {
                let (begin, end) = (input.slice()?.to_vec(), input.slice()?.to_vec());
                Item::Write(family, Write::DeleteRange { begin, end })
            }
            marks::LOG_DATA => {
                input.slice()?;
                return Some(None);
            }
            marks::NOTHING => return Some(None),
            marks::BEGIN_PREPARE => Item::Prepare,
            marks::END_PREPARE => Item::Prepared(input.slice()?.to_vec()),
            marks::COMMIT => Item::Commit(input.slice()?.to_vec()),
            marks::COMMIT_WITH_TIMESTAMP => {
                input.slice()?;
                Item::Commit(input.slice()?.to_vec())
            }
            marks::ROLL_BACK => Item::RollBack(input.slice()?.to_vec()),
            marks::BEGIN_PERSISTED_PREPARE | marks::BEGIN_UNPREPARE => Item::WrittenBefore,
            _ => return None,
        }))
    }
}

impl Write {
    /// The deleted range, if it is one.
    pub fn range(&self, sequence: u64) -> Option<RangeDelete> {
        match self {
            Write::DeleteRange { begin, end } => {
                Some(RangeDelete { begin: begin.clone(), end: end.clone(), sequence })
            }
            Write::Entry { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sequence: u64, count: u32, records: &[u8]) -> Option<Batch> {
        let header = [&sequence.to_le_bytes()[..], &count.to_le_bytes()].concat();
        Batch::parse(&[&header, records].concat())
    }

    #[test]
    fn a_batch_has_as_many_writes_as_it_says() {
        // A put, a note, a deletion of family 3, and a mark without meaning.
        let records = b"\x01\x01a\x02bc\x03\x04note\x04\x03\x01d\x0d";
        let items = batch(7, 2, records).unwrap().items;
        let entry = |family, kind, key: &[u8], value: &[u8]| {
            let (key, value) = (key.to_vec(), value.to_vec());
            Item::Write(family, Write::Entry { kind, key, value })
        };
        assert_eq!(items, [entry(0, 1, b"a", b"bc"), entry(3, 0, b"d", b"")]);
        assert!(batch(7, 1, records).is_none() && batch(7, 3, records).is_none());
        assert!(batch(SEQUENCE_MAX, 2, records).is_none());
        for end in 0..records.len() - 1 {
            assert!(batch(7, 2, &records[..end]).is_none(), "{end}");
        }
        assert!(batch(7, 0, b"\x7f").is_none());
    }

    #[test]
    fn a_timed_put_has_its_value_without_the_time() {
        let packed = [&b"value"[..], &[9; 8]].concat();
        assert_eq!(
            kinds::entry(kinds::TIMED_PUT, &packed),
            Some((crate::entry::Kind::Put, &b"value"[..]))
        );
        assert_eq!(kinds::entry(kinds::TIMED_PUT, b"short"), None);
        assert!(batch(1, 1, b"\x18\x01a\x05short").is_none());
    }
}
