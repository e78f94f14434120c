//! How long logs are kept for change feeds.

use std::time::Duration;

/// How long logs are kept that only change feeds need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Maximum bytes of these logs together.
    pub bytes_max: u64,
    /// Maximum time since the end of a log.
    pub age_micros_max: u64,
}

impl Retention {
    /// Zero: no limit. `None` where both are zero: no changes are kept.
    pub(crate) fn new(bytes: u64, age: Duration) -> Option<Retention> {
        if bytes == 0 && age.is_zero() {
            return None;
        }
        let age_micros = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let limit = |number: u64| if number == 0 { u64::MAX } else { number };
        Some(Retention { bytes_max: limit(bytes), age_micros_max: limit(age_micros) })
    }
}
