//! The medium of a scenario: files as an engine writes them.
//!
//! | line | writes |
//! |---|---|
//! | `manifest 1` | a manifest whose first edit creates the keyspace `default`; the root names it |
//! | `edit table 4, flushed 3, floor 5` | an edit, and the record that proves it |
//! | `edit ... unproven` | an edit that its sync did not follow |
//! | `table 4: a@1=x b@2=` | a table file with a run; without a value, a deletion |
//! | `log 2` | a log that continues the one before it; `log 2 alone` continues none |
//! | `write 2: a=x b= c=>8:big` | a record of a log: one batch, with the next sequence numbers |
//! | `sync 2` | the next record of the log says that everything before it was durable |
//! | `sequence 7` | the next record begins with this sequence number |
//!
//! Changes of an edit: `table N` (its run joins level 0), `flushed SEQUENCE`, `floor LOG`, `last
//! SEQUENCE`, `keyspace NAME`, `drop NAME`, `segment N BYTES` and `grow N` (to the bytes that the
//! segment has now). A key may stand in another keyspace, `words/a=x`. A value `=>8:big` is in the
//! value segment 8, and the log has its pointer.

use super::Image;
use base::key::internal_key;
use base::{Cause, DatabaseId, EntryKind, FileId, KeyRange, KeyspaceId, Ledger, RunId};
use media::mem::MemStore;
use media::{AppendFile, FileHint, FileName, FileStore};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use table::batch::WriteBatch;
use table::log::{LogHeader, LogKind, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use table::{TableOptions, TablePlace, TableWriter};
use tree::edit::{
    Change, DatabaseEdit, KeyspaceEdit, KeyspaceRecord, RunRecord, SegmentChange, SliceRecord,
};
use tree::{Group, KnownKeys, Tier};
use values::SegmentPlace;
use values::segment::SegmentWriter;

const DATABASE: DatabaseId = DatabaseId(0x5ca1_ab1e);

/// Where the records of each log are, and the edits of each manifest.
pub type Records = BTreeMap<FileName, Vec<Range<u64>>>;

/// Files that are being written.
pub struct Medium {
    store: MemStore,
    manifest: Option<(FileId, LogWriter)>,
    logs: BTreeMap<u64, (LogWriter, u64)>,
    tables: BTreeMap<u64, (RunRecord, u64)>,
    segments: BTreeMap<u64, SegmentWriter>,
    keyspaces: Vec<String>,
    next_sequence: u64,
    records: Records,
}

impl Medium {
    /// The files that `lines` describe.
    pub fn build(lines: &[&str]) -> (Image, Records) {
        let mut medium = Medium {
            store: MemStore::new(Arc::new(Ledger::default())),
            manifest: None,
            logs: BTreeMap::new(),
            tables: BTreeMap::new(),
            segments: BTreeMap::new(),
            keyspaces: vec!["default".into()],
            next_sequence: 1,
            records: Records::new(),
        };
        lines.iter().for_each(|line| medium.line(line));
        (Image::of(&medium.store), medium.records)
    }

    fn line(&mut self, line: &str) {
        let (head, tail) = line.split_once(':').unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        match words[..] {
            ["manifest", id] => self.begin_manifest(number(id)),
            ["edit", .., "unproven"] => {
                self.edit(line.strip_prefix("edit ").unwrap().strip_suffix("unproven").unwrap());
            }
            ["edit", ..] => {
                self.edit(line.strip_prefix("edit ").unwrap());
                let (_, manifest) = self.manifest.as_mut().unwrap();
                manifest.sync().unwrap();
                manifest.append(&[]).unwrap();
            }
            ["table", id] => self.table(number(id), tail),
            ["log", id] => self.log(number(id), true),
            ["log", id, "alone"] => self.log(number(id), false),
            ["write", id] => self.write(number(id), tail),
            ["sync", id] => self.logs.get_mut(&number(id)).unwrap().0.sync().unwrap(),
            ["sequence", sequence] => self.next_sequence = number(sequence),
            _ => panic!("no such line: {line}"),
        }
    }

    fn create(&self, name: FileName) -> Box<dyn AppendFile> {
        self.store.create(name, &FileHint::default()).unwrap()
    }

    fn begin_manifest(&mut self, id: u64) {
        let (database, file) = (DATABASE, FileId(id));
        let header = LogHeader {
            database,
            file,
            kind: LogKind::Manifest,
            salt: id,
            previous: None,
            has_origins: false,
            restates: false,
        };
        let append = self.create(FileName::manifest(file));
        let writer = LogWriter::create(append, header, Cause::Manifest).unwrap();
        self.manifest = Some((file, writer));
        let record = |(id, name): (usize, &String)| KeyspaceRecord {
            id: KeyspaceId(id as u32),
            name: name.clone(),
            options: String::new(),
        };
        let created = self.keyspaces.iter().enumerate().map(record).collect();
        self.append_edit(&DatabaseEdit { created, ..DatabaseEdit::default() });
        let (_, manifest) = self.manifest.as_mut().unwrap();
        manifest.sync().unwrap();
        let root = Root { database, manifest: file, manifest_bytes_min: manifest.bytes() };
        self.store.set_root(&encode_root(&root)).unwrap();
    }

    fn append_edit(&mut self, edit: &DatabaseEdit) {
        let mut bytes = Vec::new();
        encode_edit(edit, &mut bytes);
        let (file, manifest) = self.manifest.as_mut().unwrap();
        let start = manifest.bytes();
        manifest.append(&[&bytes]).unwrap();
        let records = self.records.entry(FileName::manifest(*file)).or_default();
        records.push(start..manifest.bytes());
    }

    fn edit(&mut self, changes: &str) {
        let mut edit = DatabaseEdit::default();
        for change in changes.split(',') {
            let words: Vec<&str> = change.split_whitespace().collect();
            match words[..] {
                ["keyspace", name] => {
                    let id = KeyspaceId(self.keyspaces.len() as u32);
                    self.keyspaces.push(name.into());
                    let options = String::new();
                    edit.created.push(KeyspaceRecord { id, name: name.into(), options });
                }
                ["drop", name] => edit.dropped.push(self.keyspace(name)),
                ["floor", log] => edit.log_floor = Some(FileId(number(log))),
                ["last", sequence] => edit.last_sequence = Some(number(sequence)),
                _ => {
                    let changes = self.change(&words);
                    edit.keyspaces.push(KeyspaceEdit { keyspace: KeyspaceId(0), changes });
                }
            }
        }
        // As the engine does: no later run gets the number of an earlier one.
        edit.next_run = self.tables.keys().max().map(|id| id + 1);
        self.append_edit(&edit);
    }

    fn change(&self, words: &[&str]) -> Vec<Change> {
        let segment = |id: &str, change| vec![Change::Segment { file: FileId(number(id)), change }];
        match *words {
            ["table", id] => {
                let (run, bytes) = self.tables[&number(id)].clone();
                let slice = SliceRecord { run: run.id, range: run.range.clone(), bytes: run.bytes };
                vec![
                    Change::File { file: run.file, bytes },
                    Change::AddRun(run),
                    Change::PushSlices { level: 0, node: tree::NodeId(0), slices: vec![slice] },
                ]
            }
            ["flushed", sequence] => vec![Change::SetFlushed { sequence: number(sequence) }],
            ["segment", id, bytes] => segment(
                id,
                SegmentChange::Add {
                    group: Group::all(Tier::Main),
                    bytes: number(bytes),
                    is_provisional: false,
                    is_in_cold_store: false,
                },
            ),
            ["grow", id] => segment(id, SegmentChange::Grow(self.segments[&number(id)].bytes())),
            _ => panic!("no such change: {words:?}"),
        }
    }

    fn table(&mut self, id: u64, entries: &str) {
        let (database, file) = (DATABASE, FileId(id));
        let append = self.create(FileName::table(file));
        let place = TablePlace { database, file };
        let mut writer = TableWriter::create(append, place, Cause::Flush).unwrap();
        writer.begin_run(RunId(id), &TableOptions::default()).unwrap();
        for entry in entries.split_whitespace() {
            let (key, rest) = entry.split_once('@').unwrap();
            let (sequence, value) = rest.split_once('=').unwrap();
            let kind = if value.is_empty() { EntryKind::Delete } else { EntryKind::Put };
            let key = internal_key(key.as_bytes(), number(sequence), kind);
            writer.add(&key, value.as_bytes()).unwrap();
        }
        let end = writer.finish_run().unwrap().into_summary();
        let bytes = writer.finish().unwrap();
        let run = RunRecord {
            id: RunId(id),
            file,
            offset: end.run.offset,
            bytes: end.run.bytes,
            range: KeyRange::closed(&end.smallest, &end.largest),
            entries: end.run.entries,
            deletes: end.run.deletes,
            range_deletes: 0,
            sequence_min: end.run.sequence_min,
            sequence_max: end.run.sequence_max,
            expiry: None,
            keys: KnownKeys::default(),
        };
        self.tables.insert(id, (run, bytes));
    }

    fn log(&mut self, id: u64, continues: bool) {
        let before = self.logs.last_key_value().filter(|_| continues);
        let previous = before.map(|(_, (writer, last))| writer.as_previous(*last));
        let (database, file) = (DATABASE, FileId(id));
        let header = LogHeader {
            database,
            file,
            kind: LogKind::Wal,
            salt: id,
            previous,
            has_origins: false,
            restates: false,
        };
        let writer = LogWriter::create(self.create(FileName::wal(file)), header, Cause::Wal);
        let last = previous.map_or(0, |previous| previous.last_sequence);
        self.logs.insert(id, (writer.unwrap(), last));
    }

    fn write(&mut self, id: u64, entries: &str) {
        let first = self.next_sequence;
        let mut batch = WriteBatch::new();
        for (sequence, entry) in (first..).zip(entries.split_whitespace()) {
            let (key, value) = entry.split_once('=').unwrap();
            let (keyspace, key) = match key.split_once('/') {
                Some((name, key)) => (self.keyspace(name), key.as_bytes()),
                None => (KeyspaceId(0), key.as_bytes()),
            };
            if let Some((segment, value)) = value.strip_prefix('>').and_then(|v| v.split_once(':'))
            {
                let writer = self.segment(number(segment));
                let pointer = writer.add(sequence, key, Some(value.as_bytes())).unwrap();
                batch.put_pointer(keyspace, key, &pointer.encode()).unwrap();
            } else if value.is_empty() {
                batch.delete(keyspace, key).unwrap();
            } else {
                batch.put(keyspace, key, value.as_bytes()).unwrap();
            }
        }
        self.next_sequence = first + batch.len() as u64;
        let (writer, last) = self.logs.get_mut(&id).unwrap();
        let start = writer.bytes();
        writer.append(&[&first.to_le_bytes(), batch.bytes()]).unwrap();
        *last = self.next_sequence - 1;
        let records = self.records.entry(FileName::wal(FileId(id))).or_default();
        records.push(start..writer.bytes());
    }

    fn segment(&mut self, id: u64) -> &mut SegmentWriter {
        let (database, file) = (DATABASE, FileId(id));
        let store = &self.store;
        self.segments.entry(id).or_insert_with(|| {
            let append = store.create(FileName::value(file), &FileHint::default()).unwrap();
            SegmentWriter::new(append, SegmentPlace { database, file }, 1, Cause::ValueWrite)
        })
    }

    fn keyspace(&self, name: &str) -> KeyspaceId {
        let id = self.keyspaces.iter().position(|known| known == name);
        KeyspaceId(id.expect("a keyspace of the manifest") as u32)
    }
}

/// A number of a scenario.
pub fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}
