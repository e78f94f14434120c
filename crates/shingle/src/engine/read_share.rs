//! The share of reads among recent operations, which policies use to judge the workload (ADR 0071).
//! It counts operations, not time, so that a pause changes nothing.

use base::SequenceNumber;

/// After this many operations, an earlier operation counts half. The share follows a change of
/// workload within a few times this number.
const HALF_LIFE_OPERATIONS: f64 = 65_536.0;

/// Recent reads and writes; older ones have less weight.
#[derive(Default)]
pub(super) struct ReadShare {
    reads: f64,
    writes: f64,
    /// The keyspace's reads and the newest sequence number at the last look.
    seen: Option<(u64, SequenceNumber)>,
}

impl ReadShare {
    /// Notes the number of reads and the newest sequence number. Returns the share of reads.
    pub(super) fn observe(&mut self, reads: u64, sequence: SequenceNumber) -> Option<f64> {
        let (reads_seen, sequence_seen) = self.seen.replace((reads, sequence))?;
        let new_reads = reads.saturating_sub(reads_seen) as f64;
        let new_writes = sequence.saturating_sub(sequence_seen) as f64;
        let kept = 0.5f64.powf((new_reads + new_writes) / HALF_LIFE_OPERATIONS);
        self.reads = self.reads * kept + new_reads;
        self.writes = self.writes * kept + new_writes;
        let all = self.reads + self.writes;
        (all > 0.0).then(|| self.reads / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_follows_a_workload_that_changes_and_not_a_pause() {
        let mut recent = ReadShare::default();
        assert_eq!(recent.observe(50, 1_000_000), None, "what was before is not known");
        assert_eq!(recent.observe(50, 1_000_000), None, "nothing happened");
        assert_eq!(recent.observe(50, 1_010_000), Some(0.0));
        let balanced = recent.observe(10_050, 1_010_000).unwrap();
        assert!((0.45..0.60).contains(&balanced), "{balanced}");
        assert_eq!(recent.observe(10_050, 1_010_000), Some(balanced), "a pause");
        let reads_alone = recent.observe(400_000, 1_010_000).unwrap();
        assert!(reads_alone > 0.99, "{reads_alone}");
        let mut writes = recent.observe(400_000, 1_100_000).unwrap();
        for round in 1..10 {
            writes = recent.observe(400_000, 1_100_000 + round * 100_000).unwrap();
        }
        assert!(writes < 0.01, "{writes}");
    }
}
