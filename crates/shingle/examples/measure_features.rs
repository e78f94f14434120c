//! Runs one operation with one feature in use, to count its instructions:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*measure_features::counted' \
//!     measure_features OPERATION FEATURE COUNT [DIRECTORY]
//! ```
//!
//! Only the thread and the function that run the operation are counted, without the background and
//! without the kernel. Run it with N and with 2 N operations, and divide the difference by N.
//!
//! Operations: `put-100` and `put-1024` (bytes of a value), `get-memtable`, `get-table` (in the
//! cache), `get-missing`, `seek-50` (a cursor, its seek and 50 steps), `next` (a step of a full
//! scan), `range-50` and `iterate` (the same by an iterator), `change` (reads one change of the
//! feed), `stats` (reads the statistics). `compact` is for counts without `--toggle-collect`: it
//! writes COUNT values as two tables, and merges them.
//!
//! Features: `none`, `transaction` (one for each operation), `expiry`, `filter`, `feed`,
//! `listener`, `ingest` (tables are ingested), `backup` (one was taken), `follower` (puts beside
//! it, reads on it), `metrics` (the statistics are read once in 1000 operations).

use shingle::{
    Backups, CompactionFilter, Cursor, Db, Error, Event, EventListener, FilterDecision,
    FilterEntry, IngestOptions, Keyspace, KeyspaceOptions, Options, ReadOptions, Result,
    SortedFileWriter,
};
use std::any::Any;
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Entries that reads find.
const ENTRIES: u64 = 50_000;
/// Entries of one scan.
const STEPS: usize = 50;
/// Operations for one reading of the statistics.
const OPERATIONS_PER_READING: u64 = 1000;
const FILTER: &str = "keep";
const VALUE: [u8; 1024] = [b'v'; 1024];

#[derive(Clone, Copy, PartialEq)]
enum Feature {
    None,
    Transaction,
    Expiry,
    Filter,
    Feed,
    Listener,
    Ingest,
    Backup,
    Follower,
    Metrics,
}

impl Feature {
    fn named(name: &str) -> Result<Feature> {
        Ok(match name {
            "none" => Feature::None,
            "transaction" => Feature::Transaction,
            "expiry" => Feature::Expiry,
            "filter" => Feature::Filter,
            "feed" => Feature::Feed,
            "listener" => Feature::Listener,
            "ingest" => Feature::Ingest,
            "backup" => Feature::Backup,
            "follower" => Feature::Follower,
            "metrics" => Feature::Metrics,
            other => return Err(Error::invalid(format!("there is no feature `{other}`"))),
        })
    }
}

struct KeepAll;

impl CompactionFilter for KeepAll {
    fn name(&self) -> &str {
        FILTER
    }

    fn filter(&self, _entry: &FilterEntry<'_>) -> Result<FilterDecision> {
        Ok(FilterDecision::Keep)
    }
}

#[derive(Default)]
struct CountEvents(AtomicU64);

impl EventListener for CountEvents {
    fn on_event(&self, _event: &Event, _time_micros: u64) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A database whose feature is in use.
struct Subject {
    feature: Feature,
    db: Db,
    /// Takes the writes.
    keyspace: Keyspace,
    /// Takes the reads.
    reader: Keyspace,
    /// What exists beside the database.
    beside: Vec<Box<dyn Any>>,
}

impl Subject {
    fn open(feature: Feature, dir: &Path) -> Result<Subject> {
        let _ = std::fs::remove_dir_all(dir);
        // Nothing is flushed unless the operation asks for it.
        let mut options = Options::new()
            .memory_bytes(4 << 30)
            .write_buffer_bytes(2 << 30)
            .cache_bytes(256 << 20)
            .expert(|expert| expert.memtable_bytes = Some(1 << 30));
        let mut keyspace = KeyspaceOptions::default();
        match feature {
            Feature::Expiry => keyspace.ttl = Some(Duration::from_secs(24 * 3600)),
            Feature::Filter => {
                options = options.compaction_filter(Arc::new(KeepAll));
                keyspace.compaction_filter = Some(FILTER.into());
            }
            Feature::Feed => options = options.changes_retention_bytes(1 << 40),
            Feature::Listener => options = options.event_listener(Arc::new(CountEvents::default())),
            _ => {}
        }
        let db = options.open(dir.join("database"))?;
        let keyspace = db.create_keyspace("data", keyspace)?;
        Ok(Subject { feature, db, reader: keyspace.clone(), keyspace, beside: Vec::new() })
    }

    /// Writes what reads find: to the memtable, or to one table, which is then in the cache.
    fn fill(&mut self, to_table: bool, dir: &Path) -> Result<()> {
        match self.feature {
            Feature::Ingest if to_table => self.ingest(&dir.join("sorted"), 0..ENTRIES)?,
            _ => puts(self, ENTRIES, &VALUE[..100])?,
        }
        if to_table {
            self.db.flush()?;
            self.keyspace.compact()?;
            self.db.wait_idle()?;
        }
        if self.feature == Feature::Backup && to_table {
            self.back_up(dir)?;
        }
        if self.feature == Feature::Follower {
            let follower = Options::new().cache_bytes(256 << 20).follow(dir.join("database"))?;
            self.reader = follower.db().keyspace("data")?;
            self.beside.push(Box::new(follower));
        }
        if to_table {
            gets(self, ENTRIES, 0)?;
            iterate(self, ENTRIES)?;
        }
        self.db.wait_idle()
    }

    fn ingest(&self, file: &Path, numbers: Range<u64>) -> Result<()> {
        let mut writer = SortedFileWriter::create(file, &self.keyspace.sorted_file_options())?;
        let mut keys: Vec<_> = numbers.map(key).collect();
        keys.sort_unstable();
        keys.iter().try_for_each(|key| writer.put(key, &VALUE[..100]))?;
        writer.finish()?;
        self.keyspace.ingest(&[file], &IngestOptions::default()).map(drop)
    }

    /// Uses the feature before an operation that needs no table.
    fn use_feature(&mut self, dir: &Path) -> Result<()> {
        match self.feature {
            Feature::Backup => self.back_up(dir)?,
            Feature::Ingest => self.ingest(&dir.join("sorted"), ENTRIES..ENTRIES + 1)?,
            Feature::Feed => self.beside.push(Box::new(self.db.changes(0)?)),
            Feature::Follower => {
                let follower = Options::new().follow(dir.join("database"))?;
                self.beside.push(Box::new(follower));
            }
            _ => {}
        }
        Ok(())
    }

    fn back_up(&mut self, dir: &Path) -> Result<()> {
        let backups = Backups::open(dir.join("backups"))?;
        backups.create(&self.db, &mut |_| {})?;
        self.beside.push(Box::new(backups));
        Ok(())
    }

    fn put(&self, key: [u8; 16], value: &[u8]) -> Result<()> {
        if self.feature != Feature::Transaction {
            return self.keyspace.put(key, value);
        }
        let mut transaction = self.db.transaction();
        transaction.put_in(&self.keyspace, key, value)?;
        transaction.commit()
    }

    fn get(&self, key: [u8; 16]) -> Result<bool> {
        if self.feature != Feature::Transaction {
            return Ok(black_box(self.reader.get(key)?).is_some());
        }
        let mut transaction = self.db.transaction();
        let is_found = black_box(transaction.get_in(&self.keyspace, key)?).is_some();
        transaction.commit()?;
        Ok(is_found)
    }

    fn cursor(&self) -> Result<Cursor> {
        match self.feature {
            Feature::Transaction => Err(Error::invalid("a transaction has no cursor: iterate")),
            _ => Ok(self.reader.cursor(ReadOptions::default())),
        }
    }

    /// Iterates over at most `steps` entries from `start` on.
    fn iterate(&self, start: [u8; 16], steps: usize) -> Result<usize> {
        if self.feature != Feature::Transaction {
            return walk(self.reader.range(start..).take(steps));
        }
        let mut transaction = self.db.transaction();
        let walked = walk(transaction.range_in(&self.keyspace, start..)?.take(steps))?;
        transaction.commit()?;
        Ok(walked)
    }

    fn note_operation(&self, number: u64) {
        if self.feature == Feature::Metrics && number.is_multiple_of(OPERATIONS_PER_READING) {
            black_box(self.db.stats());
        }
    }
}

fn walk<T>(entries: impl Iterator<Item = Result<T>>) -> Result<usize> {
    let mut walked = 0;
    for entry in entries {
        black_box(entry?);
        walked += 1;
    }
    Ok(walked)
}

/// Every bit of the number counts, and no two keys are equal.
fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

fn puts(subject: &Subject, count: u64, value: &[u8]) -> Result<()> {
    for number in 0..count {
        subject.put(key(number), value)?;
        subject.note_operation(number);
    }
    Ok(())
}

fn gets(subject: &Subject, count: u64, first: u64) -> Result<()> {
    for number in 0..count {
        let is_found = subject.get(key(first + number % ENTRIES))?;
        assert_eq!(is_found, first == 0);
        subject.note_operation(number);
    }
    Ok(())
}

fn seeks(subject: &Subject, count: u64) -> Result<()> {
    for number in 0..count {
        let mut cursor = subject.cursor()?;
        cursor.seek(key(number))?;
        for _ in 0..STEPS {
            if !cursor.valid() {
                break;
            }
            black_box((cursor.key(), cursor.value()));
            cursor.next()?;
        }
        subject.note_operation(number);
    }
    Ok(())
}

fn nexts(subject: &Subject, count: u64) -> Result<()> {
    let mut cursor = subject.cursor()?;
    cursor.seek_to_first()?;
    for number in 0..count {
        if !cursor.valid() {
            cursor.seek_to_first()?;
        }
        black_box((cursor.key(), cursor.value()));
        cursor.next()?;
        subject.note_operation(number);
    }
    Ok(())
}

fn ranges(subject: &Subject, count: u64) -> Result<()> {
    for number in 0..count {
        subject.iterate(key(number), STEPS)?;
        subject.note_operation(number);
    }
    Ok(())
}

fn iterate(subject: &Subject, count: u64) -> Result<()> {
    let mut left = count as usize;
    while left > 0 {
        left -= subject.iterate([0; 16], left)?;
    }
    Ok(())
}

fn changes(subject: &Subject, count: u64) -> Result<()> {
    let walked = walk(subject.db.changes(0)?.take(count as usize))?;
    assert_eq!(walked as u64, count);
    Ok(())
}

fn statistics(subject: &Subject, count: u64) -> Result<()> {
    (0..count).for_each(|_| drop(black_box(subject.db.stats())));
    Ok(())
}

/// Two tables whose keys alternate are merged.
fn compact(subject: &Subject, count: u64) -> Result<()> {
    let put_half = |half: u64| {
        (0..count / 2).try_for_each(|number| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&(number * 2 + half).to_be_bytes());
            subject.put(key, &VALUE[..100])
        })
    };
    put_half(0)?;
    subject.db.flush()?;
    subject.db.wait_idle()?;
    put_half(1)?;
    // Flushes the second half, and merges before the background would.
    subject.keyspace.compact()?;
    subject.db.wait_idle()
}

type Operation = fn(&Subject, u64) -> Result<()>;

/// Runs the operation. The function that is counted.
#[inline(never)]
fn counted(operation: Operation, subject: &Subject, count: u64) -> Result<()> {
    operation(subject, count)
}

/// The operation of a name; where its reads find their entries: `None` if it does not read.
fn operation(name: &str) -> Result<(Operation, Option<bool>)> {
    Ok(match name {
        "put-100" => (|subject, count| puts(subject, count, &VALUE[..100]), None),
        "put-1024" => (|subject, count| puts(subject, count, &VALUE), None),
        "get-memtable" => (|subject, count| gets(subject, count, 0), Some(false)),
        "get-table" => (|subject, count| gets(subject, count, 0), Some(true)),
        "get-missing" => (|subject, count| gets(subject, count, ENTRIES), Some(true)),
        "seek-50" => (seeks, Some(true)),
        "next" => (nexts, Some(true)),
        "range-50" => (ranges, Some(true)),
        "iterate" => (iterate, Some(true)),
        "change" => (changes, Some(false)),
        "stats" => (statistics, Some(true)),
        "compact" => (compact, None),
        other => return Err(Error::invalid(format!("there is no operation `{other}`"))),
    })
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, feature, count, rest @ ..] = &arguments[..] else {
        return Err(Error::invalid("usage: measure_features OPERATION FEATURE COUNT [DIRECTORY]"));
    };
    let count = count.parse().map_err(|_| Error::invalid("COUNT is a number"))?;
    let parent = rest.first().map_or_else(std::env::temp_dir, Into::into);
    let dir = parent.join("shingle-measure-features");
    let (operation, reads) = operation(name)?;
    let mut subject = Subject::open(Feature::named(feature)?, &dir)?;
    if reads != Some(true) {
        subject.use_feature(&dir)?;
    }
    if let Some(to_table) = reads {
        subject.fill(to_table, &dir)?;
    }
    counted(operation, &subject, count)?;
    // No destructor flushes.
    std::process::exit(0);
}
