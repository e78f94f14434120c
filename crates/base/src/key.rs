//! User keys, internal keys and key ranges.
//!
//! A *user key* is any byte string up to [`KEY_BYTES_MAX`], ordered as unsigned bytes; the empty
//! key is an ordinary key, and the smallest. An *internal key* is the user key followed by an
//! eight-byte little-endian *trailer* `sequence << 8 | kind`. Internal keys are ordered by user key
//! ascending, then by trailer descending: newer before older.
//!
//! Ranges are half-open, start inclusive, end exclusive, so that versions of one user key are never
//! cut apart.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A position in the commit order. Every operation of a batch has its own.
pub type SequenceNumber = u64;

/// The largest sequence number; the trailer keeps 56 bits for it.
pub const SEQUENCE_MAX: SequenceNumber = (1 << 56) - 1;

/// The longest user key, in bytes.
pub const KEY_BYTES_MAX: usize = 65_535;

/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 1 << 30;

/// Bytes of the trailer of an internal key.
pub const TRAILER_BYTES: usize = 8;

/// An owned user key, cheap to share.
pub type Key = Arc<[u8]>;

/// What an entry says about its key. The numbers are on disk: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EntryKind {
    /// The key is deleted (a tombstone).
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// An operand for the keyspace's merge operator.
    Merge = 2,
    /// The key has the value that this pointer into the value store names.
    Pointer = 3,
    /// All keys from this key to the value (exclusive) are absent. Lives apart from point entries.
    DeleteRange = 4,
    /// The key has this value until it expires; see [`crate::expiry`].
    ExpiringPut = 5,
    /// The key has the value that this pointer names, until it expires.
    ExpiringPointer = 6,
}

impl EntryKind {
    /// The largest kind by number: with it, a search key stands before every entry of its sequence.
    pub const SEARCH: EntryKind = EntryKind::ExpiringPointer;

    /// The kind stored as `byte`, if there is one.
    pub fn from_byte(byte: u8) -> Option<EntryKind> {
        Some(match byte {
            0 => EntryKind::Delete,
            1 => EntryKind::Put,
            2 => EntryKind::Merge,
            3 => EntryKind::Pointer,
            4 => EntryKind::DeleteRange,
            5 => EntryKind::ExpiringPut,
            6 => EntryKind::ExpiringPointer,
            _ => return None,
        })
    }

    /// It holds a value, which may move to the value store.
    #[inline]
    pub fn is_value(self) -> bool {
        matches!(self, EntryKind::Put | EntryKind::ExpiringPut)
    }

    /// It holds a pointer into the value store.
    #[inline]
    pub fn is_pointer(self) -> bool {
        matches!(self, EntryKind::Pointer | EntryKind::ExpiringPointer)
    }

    /// Its value begins with an expiry.
    #[inline]
    pub fn is_expiring(self) -> bool {
        matches!(self, EntryKind::ExpiringPut | EntryKind::ExpiringPointer)
    }
}

/// The trailer of an internal key.
pub fn trailer(sequence: SequenceNumber, kind: EntryKind) -> u64 {
    debug_assert!(sequence <= SEQUENCE_MAX);
    (sequence << 8) | kind as u64
}

/// The sequence number in a trailer.
pub fn trailer_sequence(trailer: u64) -> SequenceNumber {
    trailer >> 8
}

/// The kind in a trailer; `None` when the byte is none of ours, which is damage.
pub fn trailer_kind(trailer: u64) -> Option<EntryKind> {
    EntryKind::from_byte(trailer as u8)
}

/// Appends the internal key of `user_key` to `out`.
pub fn push_internal_key(
    out: &mut Vec<u8>,
    user_key: &[u8],
    sequence: SequenceNumber,
    kind: EntryKind,
) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&trailer(sequence, kind).to_le_bytes());
}

/// An owned internal key.
pub fn internal_key(user_key: &[u8], sequence: SequenceNumber, kind: EntryKind) -> Vec<u8> {
    let mut out = Vec::with_capacity(user_key.len() + TRAILER_BYTES);
    push_internal_key(&mut out, user_key, sequence, kind);
    out
}

/// Splits an internal key into user key and trailer; `None` when it is too short, which is damage.
#[inline]
pub fn split_internal_key(internal: &[u8]) -> Option<(&[u8], u64)> {
    let (user_key, trailer) = internal.split_last_chunk::<TRAILER_BYTES>()?;
    Some((user_key, u64::from_le_bytes(*trailer)))
}

/// The user key of an internal key that is known to be whole.
#[inline]
pub fn user_key(internal: &[u8]) -> &[u8] {
    &internal[..internal.len() - TRAILER_BYTES]
}

/// The first eight bytes of a key as a number, short keys padded with zeros. Where two differ, the
/// keys are in the same order; where they are equal, nothing is known.
#[inline]
pub fn key_prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// How many bytes `a` and `b` have in common at their start.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut at = 0;
    for (x, y) in a_words.iter().zip(b_words) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < length && a[at] == b[at] {
        at += 1;
    }
    at
}

/// What many keys start with. The eight bytes after it order most of these keys as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonStart {
    bytes: Box<[u8]>,
    /// The bytes as [`key_prefix`] has them, where they are no more than eight, and which bits
    /// count: comparing them needs no memory beside this.
    prefix: u64,
    mask: u64,
}

impl CommonStart {
    /// Keys start with `bytes`.
    pub fn new(bytes: &[u8]) -> CommonStart {
        let mask = key_prefix(&[0xff; 8][..bytes.len().min(8)]);
        CommonStart { bytes: bytes.into(), prefix: key_prefix(bytes), mask }
    }

    /// What all keys from `first` to `last` start with.
    pub fn of(first: &[u8], last: &[u8]) -> CommonStart {
        CommonStart::new(&first[..common_prefix(first, last)])
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The [`key_prefix`] of what follows in `key`; `None`: `key` does not start so.
    #[inline]
    pub fn prefix_after(&self, key: &[u8]) -> Option<u64> {
        let length = self.bytes.len();
        let starts = match length {
            0..=8 => key.len() >= length && (key_prefix(key) ^ self.prefix) & self.mask == 0,
            _ => key.starts_with(&self.bytes),
        };
        if starts { Some(key_prefix(&key[length..])) } else { None }
    }
}

/// Orders two whole internal keys: user key ascending, then newer first.
#[inline]
pub fn compare_internal(a: &[u8], b: &[u8]) -> Ordering {
    let (a_user, a_trailer) = a.split_at(a.len() - TRAILER_BYTES);
    let (b_user, b_trailer) = b.split_at(b.len() - TRAILER_BYTES);
    compare_user(a_user, b_user).then_with(|| {
        let word = |t: &[u8]| t.try_into().map_or(0, u64::from_le_bytes);
        word(b_trailer).cmp(&word(a_trailer))
    })
}

/// Orders two user keys, eight bytes at a time: for keys of some words, faster than a call.
#[inline]
pub fn compare_user(a: &[u8], b: &[u8]) -> Ordering {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    for (x, y) in a_words.iter().zip(b_words) {
        if x != y {
            return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
        }
    }
    match a_words.len().cmp(&b_words.len()) {
        Ordering::Equal => a_rest.cmp(b_rest),
        Ordering::Less => a_rest.cmp(&b[8 * a_words.len()..]),
        Ordering::Greater => a[8 * b_words.len()..].cmp(b_rest),
    }
}

/// The smallest user key greater than `key`.
pub fn successor(key: &[u8]) -> Key {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

/// The smallest user key greater than every key that starts with `prefix`; `None` when there is
/// none.
pub fn prefix_end(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// User keys from `start` (inclusive) to `end` (exclusive; `None` = no bound).
///
/// ```
/// # extern crate base as shingle;
/// use shingle::KeyRange;
///
/// let users = KeyRange::prefix(b"user/");
/// assert!(users.contains(b"user/7") && !users.contains(b"users"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The first key; the empty key is the smallest of all.
    pub start: Key,
    /// The first key after the range.
    pub end: Option<Key>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange { start: Key::from([]), end: None }
    }

    /// From `start` to `end`, exclusive.
    pub fn new(start: impl Into<Key>, end: Option<Key>) -> KeyRange {
        KeyRange { start: start.into(), end }
    }

    /// The range that holds `smallest`, `largest` and what lies between.
    pub fn closed(smallest: &[u8], largest: &[u8]) -> KeyRange {
        KeyRange { start: smallest.into(), end: Some(successor(largest)) }
    }

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { start: prefix.into(), end: prefix_end(prefix) }
    }

    /// No key lies in the range.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| **end <= *self.start)
    }

    /// `key` lies in the range.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        compare_user(&self.start, key).is_le() && self.is_before_end(key)
    }

    /// `key` lies before the end of the range.
    #[inline]
    pub fn is_before_end(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| compare_user(key, end).is_lt())
    }

    /// Some key lies in both ranges.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && self.is_before_end(&other.start)
            && other.is_before_end(&self.start)
    }

    /// Every key of `other` lies in this range.
    pub fn covers(&self, other: &KeyRange) -> bool {
        other.is_empty()
            || (self.start <= other.start && compare_ends(&other.end, &self.end).is_le())
    }

    /// The keys that lie in both ranges; may be empty.
    pub fn intersect(&self, other: &KeyRange) -> KeyRange {
        let start = if self.start >= other.start { &self.start } else { &other.start };
        let end = if compare_ends(&self.end, &other.end).is_le() { &self.end } else { &other.end };
        KeyRange { start: start.clone(), end: end.clone() }
    }

    /// The smallest range that covers both; an empty range adds nothing.
    pub fn union(&self, other: &KeyRange) -> KeyRange {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        let start = if self.start <= other.start { &self.start } else { &other.start };
        let end = if compare_ends(&self.end, &other.end).is_ge() { &self.end } else { &other.end };
        KeyRange { start: start.clone(), end: end.clone() }
    }
}

/// Orders range ends; `None` is after every key.
pub fn compare_ends(a: &Option<Key>, b: &Option<Key>) -> Ordering {
    match (a, b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(b),
    }
}

/// Shows a key as text where it is text, and as hex where it is not.
pub fn display_key(key: &[u8]) -> String {
    if !key.is_empty() && key.iter().all(|b| b.is_ascii_graphic() || *b == b' ') {
        return String::from_utf8_lossy(key).into_owned();
    }
    let mut hex = String::from("0x");
    for byte in key {
        hex.push_str(&format!("{byte:02x}"));
    }
    hex
}

impl fmt::Debug for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start =
            if self.start.is_empty() { "-inf".to_string() } else { display_key(&self.start) };
        match &self.end {
            Some(end) => write!(f, "[{start}, {})", display_key(end)),
            None => write!(f, "[{start}, +inf)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &str, end: Option<&str>) -> KeyRange {
        KeyRange::new(start.as_bytes(), end.map(|e| e.as_bytes().into()))
    }

    #[test]
    fn newer_versions_come_first() {
        let newer = internal_key(b"a", 9, EntryKind::Put);
        let older = internal_key(b"a", 8, EntryKind::Delete);
        let other = internal_key(b"a\0", 100, EntryKind::Put);
        assert_eq!(compare_internal(&newer, &older), Ordering::Less);
        assert_eq!(compare_internal(&older, &other), Ordering::Less);
    }

    #[test]
    fn user_keys_are_ordered_as_bytes() {
        let mut random = crate::random::Random::new(5);
        for _ in 0..20_000 {
            let mut key = |length: u64| -> Vec<u8> {
                (0..random.below(length)).map(|_| random.below(3) as u8 * 127).collect()
            };
            let (head, a, b) = (key(20), key(12), key(12));
            let (a, b) = ([&head[..], &a].concat(), [&head[..], &b].concat());
            assert_eq!(compare_user(&a, &b), a.cmp(&b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn what_follows_a_common_start_orders_keys() {
        let mut random = crate::random::Random::new(6);
        for _ in 0..20_000 {
            let mut key = |length: u64| -> Vec<u8> {
                (0..random.below(length)).map(|_| random.below(3) as u8 * 127).collect()
            };
            let head = key(14);
            let mut keys = [(); 3].map(|()| [&head[..], &key(11)].concat());
            keys.sort();
            let stranger = key(20);
            let start = CommonStart::of(&keys[0], &keys[2]);
            let after = |key: &[u8]| start.prefix_after(key);
            for key in keys.iter().chain([&stranger, &head]) {
                assert_eq!(
                    after(key).is_some(),
                    key.starts_with(start.bytes()),
                    "{start:?} {key:?}"
                );
            }
            let inside = keys.each_ref().map(|key| after(key).unwrap());
            assert!(inside.is_sorted(), "{keys:?}");
            assert_eq!(inside[0], key_prefix(&keys[0][start.bytes().len()..]));
        }
    }

    #[test]
    fn a_search_key_stands_before_every_entry_of_its_sequence() {
        let search = internal_key(b"k", 7, EntryKind::SEARCH);
        for kind in (0..=6).filter_map(EntryKind::from_byte).filter(|k| *k != EntryKind::SEARCH) {
            assert!(compare_internal(&search, &internal_key(b"k", 7, kind)).is_lt());
        }
    }

    #[test]
    fn splitting_a_short_key_is_none() {
        assert!(split_internal_key(b"1234567").is_none());
        assert_eq!(
            split_internal_key(&internal_key(b"", 3, EntryKind::Put)),
            Some((&b""[..], 769))
        );
    }

    #[test]
    fn prefix_ends() {
        assert_eq!(prefix_end(b"ab").as_deref(), Some(&b"ac"[..]));
        assert_eq!(prefix_end(b"a\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }

    #[test]
    fn range_algebra() {
        let abc = range("a", Some("c"));
        let bd = range("b", Some("d"));
        let tail = range("c", None);
        assert!(abc.overlaps(&bd) && !abc.overlaps(&tail));
        assert_eq!(abc.intersect(&bd), range("b", Some("c")));
        assert!(abc.intersect(&tail).is_empty());
        assert_eq!(abc.union(&tail), range("a", None));
        assert!(KeyRange::all().covers(&tail) && !tail.covers(&bd));
        assert!(KeyRange::closed(b"a", b"a").contains(b"a"));
        assert!(!KeyRange::closed(b"a", b"a").contains(b"a\0"));
        assert!(!range("b", Some("b")).overlaps(&KeyRange::all()));
    }
}
