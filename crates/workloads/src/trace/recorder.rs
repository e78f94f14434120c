//! Recording a live workload in Shingle's own format.
//!
//! A [`Recorder`] writes lines; a program that embeds the engine calls it beside the engine's own
//! calls, or wraps a store of the lab in [`Recorded`]. Keys are written as they are: a trace holds
//! user data.

use super::formats;
use super::operation::{Kind, Operation};
use crate::clock::Clock;
use crate::store::{Store, StoreFactory};
use crate::watched::{Call, Watched, Watcher};
use base::{Error, Result};
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;

/// Writes operations to a trace. Shared by threads; a failed write ends the trace, not the
/// workload, and [`Recorder::finish`] tells.
pub struct Recorder {
    clock: Box<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    out: Box<dyn Write + Send>,
    failure: Option<std::io::Error>,
}

impl Recorder {
    /// A trace that goes to `out`, with the times of `clock`.
    pub fn new(out: Box<dyn Write + Send>, clock: Box<dyn Clock>) -> Recorder {
        let recorder = Recorder { clock, state: Mutex::new(State { out, failure: None }) };
        recorder.with(|out| writeln!(out, "{}", formats::HEADER));
        recorder
    }

    /// A write of a key and a value of `value_bytes` bytes.
    pub fn put(&self, key: &[u8], value_bytes: u64) {
        self.write(&Operation::new(None, Kind::Put, key).value(value_bytes));
    }

    /// A read of a key; `value_bytes`: what it found, 0 where it found nothing.
    pub fn get(&self, key: &[u8], value_bytes: u64) {
        self.write(&Operation::new(None, Kind::Get, key).value(value_bytes));
    }

    /// A removal.
    pub fn delete(&self, key: &[u8]) {
        self.write(&Operation::new(None, Kind::Delete, key));
    }

    /// A read in order from `key` on.
    pub fn scan(&self, key: &[u8], records: u64) {
        self.write(&Operation::new(None, Kind::Scan, key).over(records));
    }

    /// A removal of a range that begins at `key`.
    pub fn delete_range(&self, key: &[u8]) {
        self.write(&Operation::new(None, Kind::DeleteRange, key));
    }

    /// Writes what is buffered; the error of the first write that failed.
    pub fn finish(&self) -> Result<()> {
        self.with(|out| out.flush());
        let mut state = self.state.lock();
        state.failure.take().map_or(Ok(()), |error| Err(Error::io("write the trace", error)))
    }

    fn write(&self, operation: &Operation<'_>) {
        let timed = Operation { time_ns: Some(self.clock.now_ns()), ..*operation };
        self.with(|out| formats::write(&timed, out));
    }

    fn with(&self, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
        let mut state = self.state.lock();
        if state.failure.is_none() {
            state.failure = write(&mut *state.out).err();
        }
    }
}

/// A store whose operations are recorded once they are done.
pub type Recorded = Watched<Arc<Recorder>>;

impl Watcher for Arc<Recorder> {
    fn done(&self, call: &Call<'_>, _: u64) {
        match *call {
            Call::Put(entries) => {
                entries.iter().for_each(|(key, value)| self.put(key, value.len() as u64));
            }
            Call::Delete(key) => self.delete(key),
            Call::DeleteRange(begin, _) => self.delete_range(begin),
            Call::Get(key, value) => self.get(key, value.map_or(0, <[u8]>::len) as u64),
            Call::Scan(start, records) => self.scan(start.unwrap_or_default(), records as u64),
        }
    }
}

/// Opens stores whose operations are recorded.
pub struct RecordedFactory<'a> {
    factory: &'a dyn StoreFactory,
    recorder: Arc<Recorder>,
}

impl<'a> RecordedFactory<'a> {
    /// Around `factory`.
    pub fn new(factory: &'a dyn StoreFactory, recorder: Arc<Recorder>) -> RecordedFactory<'a> {
        RecordedFactory { factory, recorder }
    }
}

impl StoreFactory for RecordedFactory<'_> {
    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(Recorded::new(self.factory.open()?, self.recorder.clone())))
    }

    fn destroy(&self) -> Result<()> {
        self.factory.destroy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WallClock;
    use crate::memory_store::MemoryStore;
    use crate::store::{Direction, WriteOptions};
    use crate::trace::{Format, read};

    /// Bytes that the test still has when the recorder is gone.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_recorded_is_read_back() {
        let out = Shared::default();
        let recorder =
            Arc::new(Recorder::new(Box::new(out.clone()), Box::new(WallClock::default())));
        let store = Recorded::new(Box::new(MemoryStore::default()), recorder.clone());
        let options = WriteOptions::default();
        store.put_batch(&[(b"a\tb", b"12345"), (b"c", b"")], options).unwrap();
        let mut value = Vec::new();
        assert!(store.get(b"a\tb", &mut value).unwrap() && !store.get(b"z", &mut value).unwrap());
        store.scan(Some(&b"a"[..]), 10, Direction::Forward, &mut |_, _| {}).unwrap();
        store.delete(b"c", options).unwrap();
        recorder.finish().unwrap();
        let text = out.0.lock().clone();
        let mut found = Vec::new();
        let mut visit = |operation: &Operation<'_>| {
            found.push((operation.kind.name(), operation.value_bytes, operation.records));
            assert!(operation.time_ns.is_some());
        };
        let reading = read(&mut &text[..], None, &mut visit, &mut |_| {}).unwrap();
        assert_eq!((reading.format, reading.bad_lines), (Format::Shingle.name(), 0));
        let expected = [
            ("put", Some(5), 1),
            ("put", Some(0), 1),
            ("get", Some(5), 1),
            ("get", Some(0), 1),
            ("scan", None, 2),
            ("delete", None, 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_trace_that_cannot_be_written_says_so_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let recorder = Recorder::new(Box::new(Full), Box::new(WallClock::default()));
        recorder.put(b"key", 1);
        assert!(recorder.finish().is_err());
    }
}
