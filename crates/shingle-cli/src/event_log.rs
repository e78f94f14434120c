//! The event log of a database that need not be open: one object for each thing that happened.
//!
//! The log is bounded, so these are the newest; a line that cannot be read is left out.

use media::FileStore;
use serde_json::Value;
use shingle::Result;

/// The notes of the event log, the older first.
const NOTES: [&str; 2] = ["LOG.old", "LOG"];
const PREFIX: &str = "EVENT_LOG_v1 ";

/// Every event that the log of a store tells of, in its order.
pub fn events(store: &dyn FileStore) -> Result<Vec<Value>> {
    let mut events = Vec::new();
    let Some(notes) = store.notes() else { return Ok(events) };
    for note in NOTES {
        let text = notes.read_note(note)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let event = |line: &str| serde_json::from_str(line.strip_prefix(PREFIX)?).ok();
        events.extend(text.lines().filter_map(event));
    }
    Ok(events)
}

/// The numbers of a list in an event; none where there is no list.
pub fn numbers(event: &Value, key: &str) -> Vec<u64> {
    event[key].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}
