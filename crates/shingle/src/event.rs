//! Events: what happened in an open database. Each event is defined once, in the table of this
//! file. The lines of `LOG`, the [`EventListener`] and the feature `tracing` all come from there.
//!
//! Names of events and fields are those of RocksDB's event log where the meaning is the same. A
//! field's name in Rust is its name in `LOG`.

mod field;
mod table;

pub use field::{CauseBytes, Field, StallTimes};
pub use table::Event;

use crate::json;

/// How serious an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Normal operation.
    Info,
    /// A failure that the database handles by itself, by a retry or at the next opening.
    Warning,
    /// A failure that needs a person: writes may fail.
    Error,
}

impl Severity {
    /// The level of `tracing`.
    #[cfg(feature = "tracing")]
    const fn level(self) -> tracing::Level {
        match self {
            Severity::Info => tracing::Level::INFO,
            Severity::Warning => tracing::Level::WARN,
            Severity::Error => tracing::Level::ERROR,
        }
    }
}

/// A program's code that is called for each event of a database; see
/// [`Options::event_listener`](crate::Options::event_listener).
///
/// # Threads
///
/// A background thread of the database calls the listener, one event at a time, in the order of the
/// events, and without holding a lock of the engine. Opening and closing call it on the thread of
/// the caller. The call comes soon after the event, not before the operation returns: an event of a
/// flush may arrive after [`Db::flush`](crate::Db::flush) has returned. Every event has arrived
/// when [`Db::close`](crate::Db::close) returns.
///
/// A background thread that is inside a listener does no other work. Keep the call short: count, or
/// send the event to a thread of your own. While a listener is slow, at most
/// [`EVENTS_PENDING_MAX`] events wait for it. Later ones are dropped, and
/// [`Event::EventsLost`] counts them.
///
/// # What a listener may call
///
/// Reads, [`Db::stats`](crate::Db::stats) and properties. It must not call what waits for
/// background work or for this call: `flush`, `compact`, `close`, and writes, which may be stalled.
/// Such a call can wait for ever. A listener that holds a [`Db`](crate::Db) keeps the database
/// open.
///
/// # Panics
///
/// A panic of the listener does not reach the engine. It is caught, [`Event::ListenerPanicked`] is
/// written to the event log, and the listener is not called again.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{Event, EventListener, Options};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// #[derive(Default)]
/// struct FlushedBytes(AtomicU64);
///
/// impl EventListener for FlushedBytes {
///     fn on_event(&self, event: &Event, _time_micros: u64) {
///         if let Event::FlushFinished { output_bytes, .. } = event {
///             self.0.fetch_add(*output_bytes, Relaxed);
///         }
///     }
/// }
///
/// let flushed = Arc::new(FlushedBytes::default());
/// let db = Options::new().event_listener(flushed.clone()).open(dir.path())?;
/// db.put("apple", "red")?;
/// db.close()?;
/// assert!(flushed.0.load(Relaxed) > 0);
/// # Ok(())
/// # }
/// ```
pub trait EventListener: Send + Sync {
    /// `event` happened at `time_micros`, in microseconds since 1970, the time of its line in
    /// `LOG`.
    fn on_event(&self, event: &Event, time_micros: u64);
}

/// Maximum number of events that wait for a listener.
pub const EVENTS_PENDING_MAX: usize = 10_000;

impl Event {
    /// The event as one JSON object: `time_micros`, `event`, and its fields.
    pub fn to_json(&self, time_micros: u64) -> String {
        let first = [
            ("time_micros".to_string(), time_micros.to_string()),
            ("event".to_string(), json::string(self.name())),
        ];
        let fields = self.fields().into_iter().map(|(name, field)| (name, field.to_json()));
        let all: Vec<(String, String)> = first.into_iter().chain(fields).collect();
        json::object(all.iter().map(|(name, value)| (name.as_str(), value.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stall, StallReason};
    use base::{Cause, Error};
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_words() {
        let names: BTreeSet<&str> = Event::NAMES.iter().copied().collect();
        assert_eq!(names.len(), Event::NAMES.len());
        let is_word = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(names.iter().all(is_word), "{names:?}");
    }

    #[test]
    fn an_event_is_one_json_object() {
        let event = Event::FlushFinished {
            job: 3,
            keyspace: "a \"b\"".into(),
            memtables: 2,
            entries_in: 7,
            output_level: 0,
            output_bytes: 100,
            files: vec![4, 5],
            extents: vec![0..10, 10..30, 64..65],
            micros: 9,
        };
        assert_eq!(
            event.to_json(5),
            "{\"time_micros\": 5, \"event\": \"flush_finished\", \"job\": 3, \
             \"keyspace\": \"a \\\"b\\\"\", \"memtables\": 2, \"entries_in\": 7, \
             \"output_level\": 0, \"output_bytes\": 100, \"files\": [4, 5], \
             \"extents\": [0, 30, 64, 1], \"micros\": 9}"
        );
    }

    #[test]
    fn unknown_extents_are_left_out_and_causes_are_fields() {
        let causes = CauseBytes(vec![(Cause::Wal, [1, 2, 0, 0])]);
        let stalls = StallTimes(vec![
            Stall { reason: StallReason::Level0, count: 2, ns: 5 },
            Stall { reason: StallReason::ValueSpace, count: 0, ns: 0 },
        ]);
        let event =
            Event::Traffic { micros: 1, user_write_bytes: 2, user_read_bytes: 3, stalls, causes };
        let json = event.to_json(0);
        let tail = "\"user_read_bytes\": 3, \"stall-level-0\": [2, 5], \"wal\": [1, 2, 0, 0]}";
        assert!(json.ends_with(tail), "{json}");
    }

    #[test]
    fn a_failure_has_its_error_and_a_severity() {
        let event = Event::Poisoned { error: Error::invalid("the file \"x\"") };
        assert_eq!((event.name(), event.severity()), ("poisoned", Severity::Error));
        assert!(event.to_json(0).contains("\"error\": \"the file \\\"x\\\""), "{event:?}");
    }
}
