//! Amplification by the papers' definitions, of a whole run or of an interval, and what each cause
//! adds to it.

use crate::store::Counters;
use base::LedgerSnapshot;
use serde::{Deserialize, Serialize};

/// Factors; `None` where a store or its device cannot tell, or nothing was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Amplification {
    /// Write amplification (WA, WA1): host bytes written over user bytes.
    pub wa: Option<f64>,
    /// The same without the bytes of the write-ahead log.
    pub wa_without_wal: Option<f64>,
    /// Auxiliary write amplification (AWA, WA2): device writes over host bytes written.
    pub awa: Option<f64>,
    /// Multiplicative write amplification (MWA): device writes over user bytes written.
    pub mwa: Option<f64>,
    /// Read amplification of merges (LWC-tree's RA): bytes that they read over user bytes.
    #[serde(default)]
    pub merge_ra: Option<f64>,
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
        let ledger = added.ledger.as_ref();
        let merged = ledger.map(|ledger| ledger.merges().read_bytes);
        let knows_medium = ledger.filter(|ledger| ledger.knows_medium());
        let media_read = knows_medium.map(|ledger| ledger.without_user_reads().media_read_bytes);
        Amplification {
            wa: over(added.host_write_bytes, user),
            wa_without_wal: over(without_wal, user),
            awa: over(added.media_write_bytes, added.host_write_bytes),
            mwa: over(added.media_write_bytes, user),
            merge_ra: over(merged, user),
            ara: over(media_read, merged),
            mra: over(media_read, user),
        }
    }

    /// Of what a ledger has.
    pub fn of_ledger(ledger: &LedgerSnapshot) -> Amplification {
        Amplification {
            wa: ledger.write_amplification(),
            wa_without_wal: ledger.write_amplification_without_wal(),
            awa: ledger.auxiliary_write_amplification(),
            mwa: ledger.multiplicative_write_amplification(),
            merge_ra: ledger.merge_read_amplification(),
            ara: ledger.auxiliary_read_amplification(),
            mra: ledger.multiplicative_read_amplification(),
        }
    }

    /// Each factor with its name, in a fixed order.
    pub fn factors(&self) -> [(&'static str, Option<f64>); 7] {
        [
            ("wa", self.wa),
            ("wa_without_wal", self.wa_without_wal),
            ("awa", self.awa),
            ("mwa", self.mwa),
            ("merge_ra", self.merge_ra),
            ("ara", self.ara),
            ("mra", self.mra),
        ]
    }
}

/// What one cause moved, and what it adds to the factors of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CausePart {
    /// The cause's name.
    pub cause: String,
    /// Bytes written to files.
    pub write_bytes: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes that the device wrote to its medium.
    pub media_write_bytes: u64,
    /// Bytes that the device read from its medium.
    pub media_read_bytes: u64,
    /// Its part of WA: bytes written over user bytes.
    pub wa: Option<f64>,
    /// Bytes that the medium wrote for it over the bytes written.
    pub awa: Option<f64>,
    /// Its part of MWA: bytes that the medium wrote for it over user bytes.
    pub mwa: Option<f64>,
}

/// Every cause that moved anything, while users wrote `user_bytes`.
pub fn by_cause(ledger: &LedgerSnapshot, user_bytes: u64) -> Vec<CausePart> {
    let known = |bytes: u64| ledger.knows_medium().then_some(bytes);
    let part = |(cause, moved): (base::Cause, base::ledger::Traffic)| CausePart {
        cause: cause.name(),
        write_bytes: moved.write_bytes,
        read_bytes: moved.read_bytes,
        media_write_bytes: moved.media_write_bytes,
        media_read_bytes: moved.media_read_bytes,
        wa: over(Some(moved.write_bytes), Some(user_bytes)),
        awa: over(known(moved.media_write_bytes), Some(moved.write_bytes)),
        mwa: over(known(moved.media_write_bytes), Some(user_bytes)),
    };
    ledger.causes().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Cause, Ledger};

    /// What a store tells of a ledger in which merges wrote half of everything.
    fn counters() -> Counters {
        let ledger = Ledger::default();
        ledger.user_wrote(100);
        for (cause, bytes) in [(Cause::Wal, 100), (Cause::Flush, 200), (Cause::Compaction(1), 300)]
        {
            ledger.wrote(cause, bytes);
            ledger.media_wrote(cause, 2 * bytes);
        }
        ledger.read(Cause::Compaction(1), 300);
        ledger.read(Cause::Get, 50);
        ledger.media_read(Cause::Compaction(1), 700);
        ledger.media_read(Cause::Flush, 200);
        ledger.media_read(Cause::Get, 50);
        Counters {
            host_write_bytes: Some(600),
            wal_bytes: Some(100),
            media_write_bytes: Some(1200),
            ledger: Some(ledger.snapshot()),
            ..Counters::default()
        }
    }

    #[test]
    fn factors_multiply_and_are_absent_where_unknown() {
        let added = counters();
        let found = Amplification::of(&added, 100);
        let expected = [6.0, 5.0, 2.0, 12.0, 3.0, 3.0, 9.0].map(Some);
        assert_eq!(found.factors().map(|factor| factor.1), expected);
        assert_eq!(found, Amplification::of_ledger(added.ledger.as_ref().unwrap()));
        assert_eq!(Amplification::of(&added, 0).wa, None);
        assert_eq!(Amplification::of(&added, 0).awa, Some(2.0));
        assert_eq!(Amplification::of(&Counters::default(), 10), Amplification::default());
    }

    #[test]
    fn parts_of_causes_add_up() {
        let added = counters();
        let (parts, all) = (by_cause(&added.ledger.clone().unwrap(), 100), counters());
        let sum = |of: fn(&CausePart) -> Option<f64>| parts.iter().filter_map(of).sum::<f64>();
        let all = Amplification::of(&all, 100);
        assert_eq!((Some(sum(|part| part.wa)), Some(sum(|part| part.mwa))), (all.wa, all.mwa));
        let names: Vec<&str> = parts.iter().map(|part| part.cause.as_str()).collect();
        assert_eq!(names, ["wal", "flush", "get", "compaction-L1"]);
        assert_eq!((parts[2].awa, parts[3].awa), (None, Some(2.0)));
    }
}
