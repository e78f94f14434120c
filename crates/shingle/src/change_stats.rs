//! What is kept for change feeds, as statistics.

use crate::json;
use base::SequenceNumber;
use std::fmt;

/// The logs that are kept for change feeds alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeStats {
    /// Logs that recovery does not need any more.
    pub logs: u64,
    /// Bytes of these logs.
    pub bytes: u64,
    /// Changes from this sequence number on are there; `None`: no changes are kept.
    pub oldest_sequence: Option<SequenceNumber>,
}

impl ChangeStats {
    pub(crate) fn to_json(self) -> String {
        json::object([
            ("logs", self.logs.to_string()),
            ("bytes", self.bytes.to_string()),
            ("oldest_sequence", self.oldest_sequence.map_or("null".into(), |n| n.to_string())),
        ])
    }

    /// A line for people; none where no changes are kept.
    pub(crate) fn write_line(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let &ChangeStats { logs, bytes, oldest_sequence: Some(oldest) } = self else {
            return Ok(());
        };
        let gb = bytes as f64 / f64::from(1 << 30);
        writeln!(f, "Changes: from sequence {oldest}, {logs} logs kept for them, {gb:.3} GB")
    }
}
