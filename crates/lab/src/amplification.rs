//! Amplification by the papers' definitions, of a whole run or of an interval.

use crate::store::Counters;
use serde::{Deserialize, Serialize};

/// Factors; `None` where a store or its device cannot tell, or nothing was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amplification {
    /// Write amplification (WA, WA1): host bytes written over user bytes.
    pub wa: Option<f64>,
    /// The same without the bytes of the write-ahead log.
    pub wa_without_wal: Option<f64>,
    /// Auxiliary write amplification (AWA, WA2): bytes of the medium over host bytes written.
    pub awa: Option<f64>,
    /// Multiplicative write amplification (MWA): bytes of the medium over user bytes.
    pub mwa: Option<f64>,
    /// Read amplification of merges (RA): bytes that merges read over user bytes written.
    #[serde(default)]
    pub ra: Option<f64>,
    /// Auxiliary read amplification (ARA): bytes that the medium read for writes and merges over
    /// those that merges read.
    #[serde(default)]
    pub ara: Option<f64>,
    /// Multiplicative read amplification (MRA): the same over user bytes written.
    #[serde(default)]
    pub mra: Option<f64>,
}

fn over(bytes: Option<u64>, base: Option<u64>) -> Option<f64> {
    let (bytes, base) = (bytes?, base?);
    (base > 0).then(|| bytes as f64 / base as f64)
}

impl Amplification {
    /// Of what the counters added while users wrote `user_bytes`.
    pub fn of(added: &Counters, user_bytes: u64) -> Amplification {
        let user = Some(user_bytes);
        let without_wal =
            added.host_write_bytes.zip(added.wal_bytes).map(|(all, wal)| all.saturating_sub(wal));
        Amplification {
            wa: over(added.host_write_bytes, user),
            wa_without_wal: over(without_wal, user),
            awa: over(added.media_write_bytes, added.host_write_bytes),
            mwa: over(added.media_write_bytes, user),
            ra: over(added.merge_read_bytes, user),
            ara: over(added.media_merge_read_bytes, added.merge_read_bytes),
            mra: over(added.media_merge_read_bytes, user),
        }
    }

    /// Each factor with its name, in a fixed order.
    pub fn factors(&self) -> [(&'static str, Option<f64>); 7] {
        [
            ("wa", self.wa),
            ("wa_without_wal", self.wa_without_wal),
            ("awa", self.awa),
            ("mwa", self.mwa),
            ("ra", self.ra),
            ("ara", self.ara),
            ("mra", self.mra),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_multiply_and_are_absent_where_nobody_tells() {
        let added = Counters {
            host_write_bytes: Some(600),
            wal_bytes: Some(100),
            media_write_bytes: Some(1200),
            merge_read_bytes: Some(300),
            media_merge_read_bytes: Some(900),
            ..Counters::default()
        };
        let found = Amplification::of(&added, 100);
        let expected = [6.0, 5.0, 2.0, 12.0, 3.0, 3.0, 9.0].map(Some);
        assert_eq!(found.factors().map(|factor| factor.1), expected);
        assert_eq!(Amplification::of(&added, 0).wa, None);
        assert_eq!(Amplification::of(&added, 0).awa, Some(2.0));
        assert_eq!(Amplification::of(&Counters::default(), 10), Amplification::default());
    }
}
