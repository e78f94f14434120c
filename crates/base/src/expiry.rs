//! Expiry: when a value ends, and how an entry stores that.
//!
//! An expiring entry stores its expiry, eight bytes little-endian, before its value or pointer. The
//! kinds [`EntryKind::ExpiringPut`](crate::EntryKind::ExpiringPut) and
//! [`EntryKind::ExpiringPointer`](crate::EntryKind::ExpiringPointer) say that it does.

use std::time::Duration;

/// Bytes of the expiry before the value of an expiring entry.
pub const EXPIRY_BYTES: usize = 8;

/// The moment when a value ends: from then on, its key is missing. Milliseconds since 1970, UTC.
///
/// ```
/// # extern crate base as shingle;
/// use shingle::Expiry;
///
/// let expiry = Expiry::from_millis(1_900_000_000_000); // in March 2030
/// assert!(expiry < Expiry::NEVER);
/// assert_eq!(expiry.as_millis(), 1_900_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expiry(u64);

impl Expiry {
    /// The value does not end. Written with this expiry, a key does not get the time to live of its
    /// keyspace.
    pub const NEVER: Expiry = Expiry(u64::MAX);

    /// At `millis` milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Expiry {
        Expiry(millis)
    }

    /// The time `ttl`, rounded up to a millisecond, after `now_ms` milliseconds since 1970.
    pub fn after(now_ms: u64, ttl: Duration) -> Expiry {
        Expiry(now_ms.saturating_add(millis_up(ttl)))
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The value has ended at `now_ms` milliseconds since 1970.
    #[inline]
    pub const fn is_over(self, now_ms: u64) -> bool {
        self.0 <= now_ms
    }

    /// Appends `value` with the expiry before it, as an expiring entry stores it.
    pub fn push_with(self, value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes());
        out.extend_from_slice(value);
    }

    /// Splits what an expiring entry stores into expiry and value; `None` when it is too short,
    /// which is damage.
    #[inline]
    pub fn split(stored: &[u8]) -> Option<(Expiry, &[u8])> {
        let (expiry, value) = stored.split_first_chunk::<EXPIRY_BYTES>()?;
        Some((Expiry(u64::from_le_bytes(*expiry)), value))
    }
}

/// The entries of a run that expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpirySpan {
    /// Number of expiring entries; at least 1.
    pub entries: u64,
    /// When the first of them expires.
    pub first: Expiry,
    /// When the last of them expires.
    pub last: Expiry,
}

impl ExpirySpan {
    /// One entry.
    pub fn of(expiry: Expiry) -> ExpirySpan {
        ExpirySpan { entries: 1, first: expiry, last: expiry }
    }

    /// Adds an entry.
    pub fn add(&mut self, expiry: Expiry) {
        self.entries += 1;
        self.first = self.first.min(expiry);
        self.last = self.last.max(expiry);
    }

    /// When a compaction of the run pays, in milliseconds since 1970: about half of its
    /// `run_entries` entries have expired, or the first expired `delay_ms` ago. The moments between
    /// the first and the last are taken to be spread evenly.
    pub fn due_ms(&self, run_entries: u64, delay_ms: u64) -> u64 {
        let (first, last) = (self.first.as_millis(), self.last.as_millis());
        let late = first.saturating_add(delay_ms);
        let needed = run_entries.div_ceil(2);
        if self.entries < needed {
            return late;
        }
        let span = u128::from(last.saturating_sub(first));
        let half = span * u128::from(needed) / u128::from(self.entries.max(1));
        late.min(first.saturating_add(half as u64))
    }
}

fn millis_up(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_not_before_its_time_to_live() {
        let expiry = Expiry::after(1000, Duration::from_micros(1500));
        assert_eq!(expiry, Expiry::from_millis(1002));
        assert!(!expiry.is_over(1001) && expiry.is_over(1002));
        assert_eq!(Expiry::after(u64::MAX - 1, Duration::from_secs(1)), Expiry::NEVER);
    }

    #[test]
    fn a_run_is_due_when_half_of_it_has_expired_or_its_first_entry_long_ago() {
        let mut span = ExpirySpan::of(Expiry::from_millis(2000));
        span.add(Expiry::from_millis(1000));
        assert_eq!((span.entries, span.first.as_millis(), span.last.as_millis()), (2, 1000, 2000));
        assert_eq!(span.due_ms(2, 10_000), 1500);
        assert_eq!(span.due_ms(4, 10_000), 2000);
        assert_eq!(span.due_ms(5, 10_000), 11_000);
        assert_eq!(span.due_ms(2, 100), 1100);
        assert_eq!(ExpirySpan::of(Expiry::NEVER).due_ms(1, 5), u64::MAX);
    }

    #[test]
    fn stored_bytes_come_apart_as_they_were_put_together() {
        let mut stored = Vec::new();
        Expiry::from_millis(77).push_with(b"value", &mut stored);
        assert_eq!(Expiry::split(&stored), Some((Expiry::from_millis(77), &b"value"[..])));
        assert_eq!(Expiry::split(&stored[..8]), Some((Expiry::from_millis(77), &b""[..])));
        assert_eq!(Expiry::split(&stored[..7]), None);
    }
}
