//! Write batches: operations that become visible and durable together.
//!
//! A [`WriteBatch`] holds its operations as the log stores them, with space before them for the
//! head of the log's record. So a commit writes them where they are; see docs/format/batch.md. An
//! operation of the same keyspace as the one before it (of the default keyspace at the beginning)
//! costs one byte and its lengths beside key and value.
//!
//! Invariants:
//! - The limits of keys, values and ranges are checked in one place, [`Operation::new`]. Code that
//!   has an [`Operation`] need not check them again.
//! - [`Operations`] come from bytes that were made of operations, or that [`BatchView::parse`]
//!   looked at. Parsing is total: whatever the bytes, it gives operations within the limits or
//!   `Corruption`.

use crate::log::RECORD_HEAD_BYTES_MAX;
use base::coding::{Reader, push_bytes, push_varint};
use base::expiry::EXPIRY_BYTES;
use base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use base::{EntryKind, Error, ErrorKind, Expiry, KeyspaceId, Result};

/// Maximum encoded bytes of a batch.
pub const BATCH_BYTES_MAX: usize = 1 << 31;

/// Set in an operation's first byte when a keyspace follows; the other bits are the kind.
const KEYSPACE_FLAG: u8 = 0x80;
/// Maximum bytes of an operation beside key and value: first byte, keyspace, two lengths.
const OPERATION_OVERHEAD_MAX: usize = 1 + 5 + 3 + 5;
/// The sequence number before the operations in a log record.
const SEQUENCE_BYTES: usize = 8;
/// Bytes before the operations.
const FRONT_BYTES: usize = RECORD_HEAD_BYTES_MAX + SEQUENCE_BYTES;

/// One operation of a batch. Its key and value are within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    keyspace: KeyspaceId,
    kind: EntryKind,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Operation<'a> {
    /// The operation of `kind` on `key`. `value` is the value, operand or pointer, with its expiry
    /// before it where the kind has one; for a range deletion the first key after the range; for a
    /// deletion it is ignored.
    ///
    /// `InvalidArgument` beyond the limits, for a range that ends before it starts, and for an
    /// expiring value without its expiry.
    #[inline]
    pub fn new(
        keyspace: KeyspaceId,
        kind: EntryKind,
        key: &'a [u8],
        value: &'a [u8],
    ) -> Result<Operation<'a>> {
        let value = if kind == EntryKind::Delete { &[] } else { value };
        let is_range = kind == EntryKind::DeleteRange;
        let value_bytes_max = match kind {
            EntryKind::DeleteRange => KEY_BYTES_MAX,
            kind if kind.is_expiring() => VALUE_BYTES_MAX + EXPIRY_BYTES,
            _ => VALUE_BYTES_MAX,
        };
        let is_over = key.len() > KEY_BYTES_MAX || value.len() > value_bytes_max;
        let is_short = kind.is_expiring() && value.len() < EXPIRY_BYTES;
        if is_over || is_short || (is_range && value < key) {
            return Err(refused(kind, key, value));
        }
        Ok(Operation { keyspace, kind, key, value })
    }

    /// The keyspace it changes.
    #[inline]
    pub fn keyspace(&self) -> KeyspaceId {
        self.keyspace
    }

    /// What it does.
    #[inline]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The key; for a range deletion the first key of the range.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// The value, operand or pointer, with its expiry before it where the kind has one; for a range
    /// deletion the first key after the range; empty for a deletion.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The expiry, for a kind that has one, and the value or pointer alone.
    #[inline]
    pub fn expiry_and_value(&self) -> (Option<Expiry>, &'a [u8]) {
        match Expiry::split(self.value).filter(|_| self.kind.is_expiring()) {
            Some((expiry, value)) => (Some(expiry), value),
            None => (None, self.value),
        }
    }
}

/// Why there is no such operation.
#[cold]
fn refused(kind: EntryKind, key: &[u8], value: &[u8]) -> Error {
    let (what, bytes, bytes_max) = match kind {
        _ if key.len() > KEY_BYTES_MAX => ("key", key.len(), KEY_BYTES_MAX),
        EntryKind::DeleteRange if value.len() <= KEY_BYTES_MAX => {
            return Error::invalid("a range to delete ends before it starts");
        }
        EntryKind::DeleteRange => ("key", value.len(), KEY_BYTES_MAX),
        kind if kind.is_expiring() && value.len() < EXPIRY_BYTES => {
            return Error::invalid("an expiring value lacks its expiry");
        }
        kind if kind.is_expiring() => ("value", value.len() - EXPIRY_BYTES, VALUE_BYTES_MAX),
        _ => ("value", value.len(), VALUE_BYTES_MAX),
    };
    Error::invalid(format!("the {what} has {bytes} bytes; {bytes_max} are allowed"))
}

/// Operations in order, to be committed as one. Owned and `Send`.
#[derive(Clone, Debug)]
pub struct WriteBatch {
    /// Space of [`FRONT_BYTES`], and the operations; nothing before the first operation.
    bytes: Vec<u8>,
    count: usize,
    user_bytes: u64,
    /// Of the last operation.
    keyspace: KeyspaceId,
    /// Of the first operation.
    first_keyspace: KeyspaceId,
    is_mixed: bool,
    has_merge: bool,
    has_expiring: bool,
    put_bytes_max: usize,
}

impl Default for WriteBatch {
    fn default() -> WriteBatch {
        WriteBatch::new()
    }
}

impl WriteBatch {
    /// A batch without operations.
    pub const fn new() -> WriteBatch {
        WriteBatch {
            bytes: Vec::new(),
            count: 0,
            user_bytes: 0,
            keyspace: KeyspaceId(0),
            first_keyspace: KeyspaceId(0),
            is_mixed: false,
            has_merge: false,
            has_expiring: false,
            put_bytes_max: 0,
        }
    }

    /// A batch without operations, with capacity for `bytes` encoded bytes.
    pub fn with_capacity(bytes: usize) -> WriteBatch {
        WriteBatch { bytes: Vec::with_capacity(bytes), ..WriteBatch::default() }
    }

    /// Sets `key` to `value`. `InvalidArgument`, and no change, beyond the limits of keys, values
    /// and batches; this holds for every operation.
    #[inline]
    pub fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(&Operation::new(keyspace, EntryKind::Put, key, value)?)
    }

    /// Sets `key` to `value` until `expiry`; without end for [`Expiry::NEVER`].
    #[inline]
    pub fn put_expiring(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
    ) -> Result<()> {
        self.push_expiring(keyspace, (EntryKind::Put, EntryKind::ExpiringPut), key, value, expiry)
    }

    /// [`WriteBatch::put_pointer`] until `expiry`.
    pub fn put_expiring_pointer(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        pointer: &[u8],
        expiry: Expiry,
    ) -> Result<()> {
        let kinds = (EntryKind::Pointer, EntryKind::ExpiringPointer);
        self.push_expiring(keyspace, kinds, key, pointer, expiry)
    }

    #[inline]
    fn push_expiring(
        &mut self,
        keyspace: KeyspaceId,
        (lasting, expiring): (EntryKind, EntryKind),
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
    ) -> Result<()> {
        // The limit of a value is the same for both kinds, and does not count the expiry.
        let lasting = Operation::new(keyspace, lasting, key, value)?;
        if expiry == Expiry::NEVER {
            return self.push(&lasting);
        }
        let stored_bytes = EXPIRY_BYTES + value.len();
        self.push_parts(keyspace, expiring, key, stored_bytes, |out| expiry.push_with(value, out))?;
        self.note_expiring(value.len());
        Ok(())
    }

    /// The last operation has an expiring value of `value_bytes` without its expiry.
    fn note_expiring(&mut self, value_bytes: usize) {
        self.has_expiring = true;
        self.put_bytes_max = self.put_bytes_max.max(value_bytes);
        self.user_bytes -= EXPIRY_BYTES as u64;
    }

    /// Deletes `key`.
    pub fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.push(&Operation::new(keyspace, EntryKind::Delete, key, &[])?)
    }

    /// `operand` is handed to the keyspace's merge operator.
    pub fn merge(&mut self, keyspace: KeyspaceId, key: &[u8], operand: &[u8]) -> Result<()> {
        self.push(&Operation::new(keyspace, EntryKind::Merge, key, operand)?)
    }

    /// `key` has the value that `pointer` names in the value store.
    pub fn put_pointer(&mut self, keyspace: KeyspaceId, key: &[u8], pointer: &[u8]) -> Result<()> {
        self.push(&Operation::new(keyspace, EntryKind::Pointer, key, pointer)?)
    }

    /// Deletes all keys from `start` to `end` (exclusive). `InvalidArgument` if `end` is smaller
    /// than `start`; an empty range is an operation without effect.
    pub fn delete_range(&mut self, keyspace: KeyspaceId, start: &[u8], end: &[u8]) -> Result<()> {
        self.push(&Operation::new(keyspace, EntryKind::DeleteRange, start, end)?)
    }

    /// Adds an operation. `InvalidArgument`, and no change, if the batch would be too large.
    pub fn push(&mut self, operation: &Operation<'_>) -> Result<()> {
        let &Operation { keyspace, kind, key, value } = operation;
        self.push_parts(keyspace, kind, key, value.len(), |out| out.extend_from_slice(value))?;
        if kind.is_expiring() {
            self.note_expiring(value.len() - EXPIRY_BYTES);
        }
        Ok(())
    }

    /// [`WriteBatch::push`] of an operation whose value `write_value` writes, in `value_bytes`.
    /// Key and value are within the limits. Does not know of expiries: see
    /// [`WriteBatch::note_expiring`].
    #[inline]
    fn push_parts(
        &mut self,
        keyspace: KeyspaceId,
        kind: EntryKind,
        key: &[u8],
        value_bytes: usize,
        write_value: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let more_bytes = key.len() + value_bytes + OPERATION_OVERHEAD_MAX;
        if self.bytes.len() + more_bytes > BATCH_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the batch has {} bytes; {BATCH_BYTES_MAX} are allowed: commit it first",
                self.bytes.len()
            )));
        }
        if self.count == 0 {
            self.bytes.reserve(FRONT_BYTES + more_bytes);
            self.bytes.resize(FRONT_BYTES, 0);
            self.first_keyspace = keyspace;
        }
        if keyspace == self.keyspace {
            self.bytes.push(kind as u8);
        } else {
            self.bytes.push(kind as u8 | KEYSPACE_FLAG);
            push_varint(&mut self.bytes, u64::from(keyspace.0));
            self.keyspace = keyspace;
        }
        self.is_mixed |= keyspace != self.first_keyspace;
        self.has_merge |= kind == EntryKind::Merge;
        if kind == EntryKind::Put {
            self.put_bytes_max = self.put_bytes_max.max(value_bytes);
        }
        push_bytes(&mut self.bytes, key);
        if kind != EntryKind::Delete {
            push_varint(&mut self.bytes, value_bytes as u64);
            write_value(&mut self.bytes);
        }
        self.count += 1;
        self.user_bytes += (key.len() + value_bytes) as u64;
        Ok(())
    }

    /// Removes all operations and keeps the capacity.
    #[inline]
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

    /// Some operation puts a value that expires.
    #[inline]
    pub fn has_expiring(&self) -> bool {
        self.has_expiring
    }

    /// The keyspace of all operations; `None` when they have several, or there are none.
    pub fn only_keyspace(&self) -> Option<KeyspaceId> {
        (self.count > 0 && !self.is_mixed).then_some(self.first_keyspace)
    }

    /// The operations, encoded.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(FRONT_BYTES..).unwrap_or_default()
    }

    /// The batch as a log record that begins with `number`, the sequence number of its first
    /// operation as [`Origin::mark`](crate::log_record::Origin::mark) gives it: what
    /// [`LogWriter::append_in_place`](crate::log::LogWriter::append_in_place) takes. For a batch
    /// with operations.
    #[inline]
    pub fn as_record(&mut self, number: u64) -> &mut [u8] {
        if let Some(front) = self.bytes.get_mut(RECORD_HEAD_BYTES_MAX..FRONT_BYTES) {
            front.copy_from_slice(&number.to_le_bytes());
        }
        &mut self.bytes
    }

    /// Bytes of the largest value of a put; 0 without puts.
    pub fn put_bytes_max(&self) -> usize {
        self.put_bytes_max
    }

    /// Bytes of all keys and values, as the user gave them.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// The operations in order.
    pub fn iter(&self) -> Operations<'_> {
        Operations(Parts::new(self.bytes()))
    }
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
        let (mut parts, mut count) = (Parts::new(bytes), 0);
        while !parts.reader.is_empty() {
            let at = bytes.len() - parts.reader.rest().len();
            let operation = parts.next().and_then(|(keyspace, kind, key, value)| {
                Operation::new(keyspace, kind, key, value).ok()
            });
            if operation.is_none() {
                let message = format!("no operation at byte {at} of a write batch");
                return Err(Error::new(ErrorKind::Corruption, message));
            }
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
        Operations(Parts::new(self.bytes))
    }
}

/// The operations of a batch, one after another.
#[derive(Clone, Debug)]
pub struct Operations<'a>(Parts<'a>);

impl<'a> Iterator for Operations<'a> {
    type Item = Operation<'a>;

    #[inline]
    fn next(&mut self) -> Option<Operation<'a>> {
        if self.0.reader.is_empty() {
            return None;
        }
        let next = self.0.next();
        debug_assert!(next.is_some(), "a batch is made of operations");
        let (keyspace, kind, key, value) = next?;
        Some(Operation { keyspace, kind, key, value })
    }
}

/// Decodes the parts of operations, whose limits are not checked.
#[derive(Clone, Debug)]
struct Parts<'a> {
    reader: Reader<'a>,
    keyspace: KeyspaceId,
}

impl<'a> Parts<'a> {
    fn new(bytes: &'a [u8]) -> Parts<'a> {
        Parts { reader: Reader::new(bytes), keyspace: KeyspaceId::default() }
    }

    #[inline]
    fn next(&mut self) -> Option<(KeyspaceId, EntryKind, &'a [u8], &'a [u8])> {
        let first = self.reader.byte()?;
        let kind = EntryKind::from_byte(first & !KEYSPACE_FLAG)?;
        if first & KEYSPACE_FLAG != 0 {
            self.keyspace = KeyspaceId(self.reader.varint_u32()?);
        }
        let key = self.reader.bytes()?;
        let value = if kind == EntryKind::Delete { &[] } else { self.reader.bytes()? };
        Some((self.keyspace, kind, key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use proptest::prelude::*;

    fn operations(bytes: &[u8]) -> Result<Vec<Operation<'_>>> {
        Ok(BatchView::parse(bytes)?.iter().collect())
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
            batch.put_expiring(KeyspaceId(4), &long, b"", Expiry::from_millis(9)),
            batch.put_expiring(
                KeyspaceId(4),
                b"",
                &vec![0; VALUE_BYTES_MAX + 1],
                Expiry::from_millis(9),
            ),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!((batch.bytes(), batch.len()), (&before[..], 1));
        batch.put(KeyspaceId(3), longest, b"").unwrap();
        assert_eq!(batch.iter().count(), 2);
    }

    #[test]
    fn an_expiring_value_counts_without_its_expiry() {
        let mut batch = WriteBatch::new();
        batch.put_expiring(KeyspaceId(0), b"k", b"value", Expiry::NEVER).unwrap();
        assert!(!batch.has_expiring());
        batch.put_expiring(KeyspaceId(0), b"k", b"value 2", Expiry::from_millis(9)).unwrap();
        assert!(batch.has_expiring());
        assert_eq!((batch.user_bytes(), batch.put_bytes_max()), (14, 7));
        let parts: Vec<_> = batch.iter().map(|o| o.expiry_and_value()).collect();
        assert_eq!(parts[0], (None, &b"value"[..]));
        assert_eq!(parts[1], (Some(Expiry::from_millis(9)), &b"value 2"[..]));
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
    fn bytes_without_operations_are_corruption() {
        for bytes in [&[0xff, 1, 2, 3][..], &[1, 1], &[0x80]] {
            assert_eq!(BatchView::parse(bytes).unwrap_err().kind(), ErrorKind::Corruption);
        }
        // A range that ends before it starts.
        let reversed = [EntryKind::DeleteRange as u8, 1, b'b', 1, b'a'];
        assert_eq!(BatchView::parse(&reversed).unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(operations(&[]).unwrap(), []);
    }

    #[test]
    fn keys_and_values_beyond_the_limits_are_corruption() {
        let encode = |kind: EntryKind, key: &[u8], value: &[u8]| {
            let mut bytes = vec![kind as u8];
            push_bytes(&mut bytes, key);
            push_bytes(&mut bytes, value);
            bytes
        };
        let long = vec![b'x'; KEY_BYTES_MAX + 1];
        for bytes in [
            encode(EntryKind::Put, &long, b""),
            encode(EntryKind::Pointer, &long, b""),
            encode(EntryKind::DeleteRange, b"", &long),
            encode(EntryKind::Merge, b"", &vec![0; VALUE_BYTES_MAX + 1]),
            encode(EntryKind::ExpiringPut, b"k", &[0; EXPIRY_BYTES - 1]),
            encode(EntryKind::ExpiringPointer, b"k", b""),
        ] {
            assert_eq!(BatchView::parse(&bytes).unwrap_err().kind(), ErrorKind::Corruption);
        }
        assert_eq!(operations(&encode(EntryKind::Put, &long[1..], b"")).unwrap().len(), 1);
    }

    #[test]
    fn a_batch_is_a_log_record_with_space_before_it() {
        let mut batch = WriteBatch::new();
        batch.delete(KeyspaceId(0), b"key").unwrap();
        let bytes = batch.bytes().to_vec();
        for first in [7u64, 8] {
            let payload = [&first.to_le_bytes()[..], &bytes].concat();
            assert_eq!(batch.as_record(first)[RECORD_HEAD_BYTES_MAX..], payload);
        }
        assert_eq!(batch.bytes(), bytes);
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
            let found: usize = operations(&bytes[..length])
                .unwrap_or_default()
                .iter()
                .map(|operation| operation.key.len() + operation.value.len() + 2)
                .sum();
            assert!(found <= length);
        }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            input in prop::collection::vec(
                (0u32..3, 0u8..7, prop::collection::vec(any::<u8>(), 0..20),
                 prop::collection::vec(any::<u8>(), EXPIRY_BYTES..200)),
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
                    EntryKind::ExpiringPut => {
                        let (expiry, value) = Expiry::split(value).unwrap();
                        prop_assume!(expiry != Expiry::NEVER);
                        batch.put_expiring(keyspace, key, value, expiry).unwrap();
                    }
                    EntryKind::ExpiringPointer => {
                        let (expiry, pointer) = Expiry::split(value).unwrap();
                        prop_assume!(expiry != Expiry::NEVER);
                        batch.put_expiring_pointer(keyspace, key, pointer, expiry).unwrap();
                    }
                }
                expected.push(Operation { keyspace, kind, key, value });
            }
            prop_assert_eq!(batch.len(), expected.len());
            let mut copy = WriteBatch::new();
            for operation in batch.iter() {
                copy.push(&operation).unwrap();
            }
            prop_assert_eq!(copy.bytes(), batch.bytes());
            let counts = |b: &WriteBatch| (b.user_bytes(), b.put_bytes_max(), b.has_expiring());
            prop_assert_eq!(counts(&copy), counts(&batch));
            let view = BatchView::parse(batch.bytes()).unwrap();
            prop_assert_eq!(view.len(), expected.len());
            prop_assert_eq!(operations(view.bytes()).unwrap(), expected);
        }
    }
}
