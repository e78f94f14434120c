//! Where flushes and compactions of an existing database wrote, and when: what its event log says
//! of the extents of their output.
//!
//! The log is bounded, so these are the newest; a line that cannot be read is left out.

use crate::device::map::Write;
use direct::Extent;
use media::FileStore;
use serde_json::Value;
use shingle::{Cause, Result};

/// The notes of the event log, the older first.
const NOTES: [&str; 2] = ["LOG.old", "LOG"];
const PREFIX: &str = "EVENT_LOG_v1 ";

/// Every write that the event log of a store tells of, in order of time.
pub fn writes(store: &dyn FileStore) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for note in NOTES {
        let text = store.read_note(note)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        writes.extend(text.lines().filter_map(event).flat_map(|event| of_event(&event)));
    }
    writes.sort_by_key(|write| write.at_ns);
    Ok(writes)
}

fn event(line: &str) -> Option<Value> {
    serde_json::from_str(line.strip_prefix(PREFIX)?).ok()
}

fn of_event(event: &Value) -> Vec<Write> {
    let number = |name: &str| event[name].as_u64();
    let level = number("output_level").and_then(|level| u8::try_from(level).ok());
    let cause = match (event["event"].as_str(), level) {
        (Some("flush_finished"), _) => Cause::Flush,
        (Some("compaction_finished"), Some(level)) => Cause::Compaction(level),
        _ => return Vec::new(),
    };
    let Some(micros) = number("time_micros") else { return Vec::new() };
    let numbers: Vec<u64> =
        event["extents"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let write = |pair: &[u64]| match *pair {
        [start, bytes] if start.checked_add(bytes).is_some() => {
            let extent = Extent { start, bytes };
            Some(Write { at_ns: micros.saturating_mul(1000), cause, extent })
        }
        _ => None,
    };
    numbers.chunks_exact(2).filter_map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::mem::MemStore;
    use std::sync::Arc;

    #[test]
    fn writes_come_from_flushes_and_compactions_and_bad_lines_are_left_out() {
        let store = MemStore::new(Arc::default());
        let old = "EVENT_LOG_v1 {\"time_micros\": 5, \"event\": \"flush_finished\", \
                   \"output_level\": 0, \"extents\": [4096, 100]}\n";
        let new = "noise\nEVENT_LOG_v1 {\"time_micros\": 9, \"event\": \"compaction_finished\", \
                   \"output_level\": 2, \"extents\": [8192, 10, 40960, 20, 7]}\n\
                   EVENT_LOG_v1 {\"time_micros\": 9, \"event\": \"trivial_move\", \
                   \"extents\": [1, 2]}\nEVENT_LOG_v1 {\"time_mic";
        store.note("LOG.old", old.as_bytes(), false).unwrap();
        store.note("LOG", new.as_bytes(), false).unwrap();
        let told: Vec<_> = writes(&store)
            .unwrap()
            .iter()
            .map(|write| (write.at_ns, write.cause, write.extent.start, write.extent.bytes))
            .collect();
        let expected = [
            (5000, Cause::Flush, 4096, 100),
            (9000, Cause::Compaction(2), 8192, 10),
            (9000, Cause::Compaction(2), 40960, 20),
        ];
        assert_eq!(told, expected);
    }
}
