//! Write batches: operations that become visible and durable together.
//!
//! A [`WriteBatch`] holds its operations as the log stores them, so that a commit writes
//! [`WriteBatch::bytes`] with nothing but a header before them; see docs/format/batch.md. An
//! operation of the same keyspace as the one before it (of the default keyspace at the beginning)
//! costs one byte and its lengths beside key and value.
//!
//! Decoding is total: whatever the bytes, it gives operations within the limits or `Corruption`.

use base::coding::{Reader, push_bytes, push_varint};
use base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use base::{EntryKind, Error, ErrorKind, KeyspaceId, Result};

/// Maximum encoded bytes of a batch.
pub const BATCH_BYTES_MAX: usize = 1 << 31;

/// Set in an operation's first byte when a keyspace follows; the other bits are the kind.
const KEYSPACE_FLAG: u8 = 0x80;
/// Maximum bytes of an operation beside key and value: first byte, keyspace, two lengths.
const OPERATION_OVERHEAD_MAX: usize = 1 + 5 + 3 + 5;

/// One operation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// The keyspace it changes.
    pub keyspace: KeyspaceId,
    /// What it does.
    pub kind: EntryKind,
    /// The key; for a range deletion the first key of the range.
    pub key: &'a [u8],
    /// The value, operand or pointer; for a range deletion the first key after the range; empty for
    /// a deletion.
    pub value: &'a [u8],
}

/// Operations in order, to be committed as one. Owned and `Send`.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    count: usize,
    user_bytes: u64,
    /// Of the last operation.
    keyspace: KeyspaceId,
    /// Of the first operation.
    first_keyspace: KeyspaceId,
    is_mixed: bool,
    has_merge: bool,
}

impl WriteBatch {
    /// A batch without operations.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// A batch without operations, with capacity for `bytes` encoded bytes.
    pub fn with_capacity(bytes: usize) -> WriteBatch {
        WriteBatch { bytes: Vec::with_capacity(bytes), ..WriteBatch::default() }
    }

    /// Sets `key` to `value`. `InvalidArgument`, and no change, beyond the limits of keys, values
    /// and batches; this holds for every operation.
    pub fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(EntryKind::Put, keyspace, key, value)
    }

    /// Deletes `key`.
    pub fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.push(EntryKind::Delete, keyspace, key, &[])
    }

    /// `operand` is handed to the keyspace's merge operator.
    pub fn merge(&mut self, keyspace: KeyspaceId, key: &[u8], operand: &[u8]) -> Result<()> {
        self.push(EntryKind::Merge, keyspace, key, operand)
    }

    /// `key` has the value that `pointer` names in the value store.
    pub fn put_pointer(&mut self, keyspace: KeyspaceId, key: &[u8], pointer: &[u8]) -> Result<()> {
        self.push(EntryKind::Pointer, keyspace, key, pointer)
    }

    /// An operation of another batch.
    pub fn copy(&mut self, operation: &Operation<'_>) -> Result<()> {
        let &Operation { keyspace, kind, key, value } = operation;
        self.push(kind, keyspace, key, value)
    }

    /// Deletes all keys from `start` to `end` (exclusive). `InvalidArgument` if `end` is smaller
    /// than `start`; an empty range is an operation without effect.
    pub fn delete_range(&mut self, keyspace: KeyspaceId, start: &[u8], end: &[u8]) -> Result<()> {
        check_range(start, end)?;
        self.push(EntryKind::DeleteRange, keyspace, start, end)
    }

    fn push(
        &mut self,
        kind: EntryKind,
        keyspace: KeyspaceId,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        check_put(key, value)?;
        if self.bytes.len() + key.len() + value.len() + OPERATION_OVERHEAD_MAX > BATCH_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the batch has {} bytes; {BATCH_BYTES_MAX} are allowed: commit it first",
                self.bytes.len()
            )));
        }
        if keyspace == self.keyspace {
            self.bytes.push(kind as u8);
        } else {
            self.bytes.push(kind as u8 | KEYSPACE_FLAG);
            push_varint(&mut self.bytes, u64::from(keyspace.0));
            self.keyspace = keyspace;
        }
        if self.count == 0 {
            self.first_keyspace = keyspace;
        }
        self.is_mixed |= keyspace != self.first_keyspace;
        self.has_merge |= kind == EntryKind::Merge;
        push_bytes(&mut self.bytes, key);
        if kind != EntryKind::Delete {
            push_bytes(&mut self.bytes, value);
        }
        self.count += 1;
        self.user_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    /// Removes all operations and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
        *self = WriteBatch { bytes: std::mem::take(&mut self.bytes), ..WriteBatch::default() };
    }

    /// Bytes of memory that it keeps for operations.
    pub fn room_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Operations in the batch.
    pub fn len(&self) -> usize {
        self.count
    }

    /// There is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Some operation is a merge.
    pub fn has_merge(&self) -> bool {
        self.has_merge
    }

    /// The keyspace of all operations; `None` when they have several, or there are none.
    pub fn only_keyspace(&self) -> Option<KeyspaceId> {
        (self.count > 0 && !self.is_mixed).then_some(self.first_keyspace)
    }

    /// The operations, encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of all keys and values, as the user gave them.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// The operations in order.
    pub fn iter(&self) -> Operations<'_> {
        Operations::new(&self.bytes)
    }
}

/// Checks the limits of a key and a value: `InvalidArgument` beyond them.
pub fn check_put(key: &[u8], value: &[u8]) -> Result<()> {
    check_key(key)?;
    if value.len() > VALUE_BYTES_MAX {
        return Err(Error::invalid(format!(
            "the value has {} bytes; {VALUE_BYTES_MAX} are allowed",
            value.len()
        )));
    }
    Ok(())
}

/// Checks a range to delete: `InvalidArgument` if it ends before it starts, or a key is too long.
pub fn check_range(start: &[u8], end: &[u8]) -> Result<()> {
    if end < start {
        return Err(Error::invalid("a range to delete ends before it starts"));
    }
    check_key(start)?;
    check_key(end)
}

fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::invalid(format!(
            "the key has {} bytes; {KEY_BYTES_MAX} are allowed",
            key.len()
        )));
    }
    Ok(())
}

/// Encoded operations that were verified to decode; what replay applies.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> BatchView<'a> {
    /// Looks at every operation in `bytes`; `Corruption` if one does not decode.
    pub fn parse(bytes: &'a [u8]) -> Result<BatchView<'a>> {
        let mut count = 0;
        for operation in Operations::new(bytes) {
            operation?;
            count += 1;
        }
        Ok(BatchView { bytes, count })
    }

    /// Operations in the batch.
    pub fn len(&self) -> usize {
        self.count
    }

    /// There is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The operations, encoded.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The operations in order.
    pub fn iter(&self) -> Operations<'a> {
        Operations::new(self.bytes)
    }
}

/// Decodes operations one after another; ends after the first that does not decode.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    reader: Reader<'a>,
    total_bytes: usize,
    keyspace: KeyspaceId,
}

impl<'a> Operations<'a> {
    fn new(bytes: &'a [u8]) -> Operations<'a> {
        let keyspace = KeyspaceId::default();
        Operations { reader: Reader::new(bytes), total_bytes: bytes.len(), keyspace }
    }

    fn decode(&mut self) -> Option<Operation<'a>> {
        let first = self.reader.byte()?;
        let kind = EntryKind::from_byte(first & !KEYSPACE_FLAG)?;
        if first & KEYSPACE_FLAG != 0 {
            self.keyspace = KeyspaceId(self.reader.varint_u32()?);
        }
        let key = self.reader.bytes().filter(|key| key.len() <= KEY_BYTES_MAX)?;
        let value_bytes_max = match kind {
            EntryKind::Delete => {
                return Some(Operation { keyspace: self.keyspace, kind, key, value: &[] });
            }
            EntryKind::DeleteRange => KEY_BYTES_MAX,
            EntryKind::Put | EntryKind::Merge | EntryKind::Pointer => VALUE_BYTES_MAX,
        };
        let value = self.reader.bytes().filter(|value| value.len() <= value_bytes_max)?;
        let reversed = kind == EntryKind::DeleteRange && value < key;
        (!reversed).then_some(Operation { keyspace: self.keyspace, kind, key, value })
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<Operation<'a>>;

    fn next(&mut self) -> Option<Result<Operation<'a>>> {
        if self.reader.is_empty() {
            return None;
        }
        let at = self.total_bytes - self.reader.rest().len();
        let operation = self.decode();
        if operation.is_none() {
            self.reader = Reader::new(&[]);
        }
        Some(operation.ok_or_else(|| {
            let message = format!("no operation at byte {at} of a write batch");
            Error::new(ErrorKind::Corruption, message)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use proptest::prelude::*;

    fn operations(bytes: &[u8]) -> Result<Vec<Operation<'_>>> {
        Operations::new(bytes).collect()
    }

    #[test]
    fn an_operation_of_the_default_keyspace_costs_one_byte_and_its_lengths() {
        let mut batch = WriteBatch::new();
        batch.put(KeyspaceId(0), b"key", b"value").unwrap();
        assert_eq!(batch.bytes().len(), 1 + 1 + 3 + 1 + 5);
        batch.delete(KeyspaceId(0), b"key").unwrap();
        assert_eq!(batch.bytes().len(), 11 + 1 + 1 + 3);
        assert_eq!((batch.len(), batch.user_bytes()), (2, 11));
    }

    #[test]
    fn a_refused_operation_leaves_the_batch_as_it_was() {
        let mut batch = WriteBatch::new();
        batch.put(KeyspaceId(3), b"k", b"v").unwrap();
        let before = batch.bytes().to_vec();
        let long = vec![0; KEY_BYTES_MAX + 1];
        let longest = &long[1..];
        for refused in [
            batch.put(KeyspaceId(4), &long, b""),
            batch.delete(KeyspaceId(4), &long),
            batch.merge(KeyspaceId(4), &long, b""),
            batch.delete_range(KeyspaceId(4), b"", &long),
            batch.delete_range(KeyspaceId(4), b"b", b"a"),
            batch.put(KeyspaceId(4), b"", &vec![0; VALUE_BYTES_MAX + 1]),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!((batch.bytes(), batch.len()), (&before[..], 1));
        batch.put(KeyspaceId(3), longest, b"").unwrap();
        assert_eq!(batch.iter().count(), 2);
    }

    #[test]
    fn a_cleared_batch_begins_again_in_the_default_keyspace() {
        let mut batch = WriteBatch::with_capacity(100);
        batch.put(KeyspaceId(7), b"k", b"v").unwrap();
        batch.clear();
        assert!(batch.is_empty() && batch.bytes().is_empty() && batch.user_bytes() == 0);
        batch.delete(KeyspaceId(7), b"k").unwrap();
        assert_eq!(operations(batch.bytes()).unwrap()[0].keyspace, KeyspaceId(7));
    }

    #[test]
    fn an_error_ends_the_operations() {
        let mut iter = Operations::new(&[0xff, 1, 2, 3]);
        assert_eq!(iter.next().unwrap().unwrap_err().kind(), ErrorKind::Corruption);
        assert!(iter.next().is_none());
        assert!(BatchView::parse(&[1, 1]).is_err());
    }

    #[test]
    fn a_batch_can_go_to_another_thread() {
        fn send<T: Send + 'static>(_: T) {}
        send(WriteBatch::new());
    }

    #[test]
    fn hostile_bytes_decode_or_fail_within_their_length() {
        let mut random = Random::new(7);
        let mut bytes = [0; 40];
        for _ in 0..100_000 {
            random.fill(&mut bytes);
            bytes[0] &= 0x87;
            let length = random.below(41) as usize;
            let found: usize = Operations::new(&bytes[..length])
                .filter_map(Result::ok)
                .map(|operation| operation.key.len() + operation.value.len() + 2)
                .sum();
            assert!(found <= length);
        }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            input in prop::collection::vec(
                (0u32..3, 0u8..5, prop::collection::vec(any::<u8>(), 0..20),
                 prop::collection::vec(any::<u8>(), 0..200)),
                0..40,
            )
        ) {
            let mut batch = WriteBatch::new();
            let mut expected = Vec::new();
            for (keyspace, kind, key, value) in &input {
                let keyspace = KeyspaceId(keyspace * 1000);
                let kind = EntryKind::from_byte(*kind).unwrap();
                let (mut key, mut value) = (&key[..], &value[..]);
                match kind {
                    EntryKind::Delete => {
                        value = &[];
                        batch.delete(keyspace, key).unwrap();
                    }
                    EntryKind::Put => batch.put(keyspace, key, value).unwrap(),
                    EntryKind::Merge => batch.merge(keyspace, key, value).unwrap(),
                    EntryKind::Pointer => batch.put_pointer(keyspace, key, value).unwrap(),
                    EntryKind::DeleteRange => {
                        (key, value) = (key.min(value), key.max(value));
                        batch.delete_range(keyspace, key, value).unwrap();
                    }
                }
                expected.push(Operation { keyspace, kind, key, value });
            }
            prop_assert_eq!(batch.len(), expected.len());
            let mut copy = WriteBatch::new();
            for operation in batch.iter() {
                copy.copy(&operation.unwrap()).unwrap();
            }
            prop_assert_eq!(copy.bytes(), batch.bytes());
            let view = BatchView::parse(batch.bytes()).unwrap();
            prop_assert_eq!(view.len(), expected.len());
            prop_assert_eq!(operations(view.bytes()).unwrap(), expected);
        }
    }
}
