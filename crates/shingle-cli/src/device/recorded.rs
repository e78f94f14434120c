//! Where flushes and compactions of an existing database wrote, and when: what its event log says
//! of the extents of their output.

use crate::device::map::Write;
use crate::event_log;
use direct::Extent;
use media::FileStore;
use serde_json::Value;
use shingle::{Cause, Result};

/// Every write that the event log of a store tells of, in order of time.
pub fn writes(store: &dyn FileStore) -> Result<Vec<Write>> {
    let mut writes: Vec<Write> = event_log::events(store)?.iter().flat_map(of_event).collect();
    writes.sort_by_key(|write| write.at_ns);
    Ok(writes)
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
    let write = |pair: &[u64]| match *pair {
        [start, bytes] if start.checked_add(bytes).is_some() => {
            let extent = Extent { start, bytes };
            Some(Write { at_ns: micros.saturating_mul(1000), cause, extent })
        }
        _ => None,
    };
    event_log::numbers(event, "extents").chunks_exact(2).filter_map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::Notes;
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
        store.write_note("LOG.old", old.as_bytes(), false).unwrap();
        store.write_note("LOG", new.as_bytes(), false).unwrap();
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
