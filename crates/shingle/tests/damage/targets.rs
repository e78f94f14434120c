//! The fuzzing targets, which `replay` runs again over the corpus: each target takes any bytes and
//! panics only when the store is wrong. The file depends on no other module, so that the fuzzing
//! workspace can include it.
//!
//! Bytes with random changes stop at the first checksum. So most targets take their input as a list
//! of changes to a sound file, and then correct the checksums, to test the code behind them.

use base::checksum::Place;
use base::key::{EntryKind, SEQUENCE_MAX, internal_key};
use base::{Cause, DatabaseId, Error, ErrorKind, FileId, KeyRange, Ledger, RunId};
use media::mem::MemStore;
use media::{FileHint, FileKind, FileName, FileStore};
use shingle::runtime::Stepped;
use shingle::{Db, Options};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use table::batch::BatchView;
use table::format::{FOOTER_BYTES, Footer, HEADER_BYTES};
use table::log::{LogHeader, LogIdentity, LogKind, LogReader, LogWriter, Salvage, durable_bytes};
use table::manifest::{decode_edit, decode_root, encode_edit, encode_root};
use table::piece;
use table::{
    BlockCache, Compression, EntryIter, Extent, Filter, IterOptions, PrefixRule, RangeDeletes, Run,
    TableOptions, TablePlace, TableWriter,
};
use values::segment::{self, SegmentScan, SegmentWriter};
use values::{SegmentPlace, ValuePointer};

/// A name, and what is done with the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target by name.
pub const TARGETS: [Target; 12] = [
    ("log", log),
    ("edit", edit),
    ("batch", batch),
    ("root", root),
    ("footer", footer),
    ("range_deletes", range_deletes),
    ("block", block),
    ("filter", filter),
    ("run", run),
    ("value_segment", value_segment),
    ("image", image),
    ("history", history),
];

const PLACE: TablePlace = TablePlace { database: DatabaseId(7), file: FileId(3) };

fn store() -> Arc<MemStore> {
    Arc::new(MemStore::new(Arc::new(Ledger::default())))
}

fn stored(store: &MemStore, name: FileName, bytes: &[u8]) {
    let mut file = store.create(name, &FileHint::default()).unwrap();
    file.append(bytes, Cause::Check).unwrap();
}

fn read(store: &dyn FileStore, name: FileName) -> Vec<u8> {
    let file = store.open(name, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes, Cause::Check).unwrap();
    bytes
}

/// Damage is an error of two kinds; anything else is an error of the store.
fn acceptable<T>(result: Result<T, Error>) -> Option<T> {
    let is_damage = |e: &Error| matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Incompatible);
    result.map_err(|error| assert!(is_damage(&error), "{error:?}")).ok()
}

/// Applies `changes` to `bytes`. A change has four bytes: an offset (2), an action, a value.
fn change(bytes: &mut Vec<u8>, changes: &[u8]) {
    for change in changes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len().max(1);
        match change[2] % 8 {
            6 => bytes.truncate(at + 1),
            7 if bytes.len() < 60_000 => bytes.extend(vec![change[3]; at % 64]),
            how => match bytes.get_mut(at) {
                Some(byte) if how == 5 => *byte ^= 1 << (change[3] % 8),
                Some(byte) => *byte = change[3],
                None => {}
            },
        }
    }
}

// ---- Separated values ----

/// Records of a value segment: raw bytes, or a sound segment with changes, of which a prefix must
/// come back; and pointers.
pub fn value_segment(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    acceptable(ValuePointer::decode(rest));
    let (place, name) =
        (SegmentPlace { database: PLACE.database, file: PLACE.file }, FileKind::Value);
    let name = FileName { kind: name, id: PLACE.file };
    let values: Vec<Option<Vec<u8>>> =
        (0..12u8).map(|n| (n % 5 != 4).then(|| vec![n; usize::from(n) * 30])).collect();
    let mut bytes = rest.to_vec();
    if mode & 1 != 0 {
        let store = store();
        let file = store.create(name, &FileHint::default()).unwrap();
        let mut writer = SegmentWriter::new(file, place, 100, Cause::Flush);
        for (n, value) in (0..).zip(&values) {
            writer.add(n, &n.to_be_bytes(), value.as_deref()).unwrap();
        }
        writer.sync().unwrap();
        bytes = read(&*store, name);
        change(&mut bytes, rest);
    }
    let store = store();
    stored(&store, name, &bytes);
    let file = store.open(name, false).unwrap();
    let mut scan = SegmentScan::new(&*file, place, bytes.len() as u64, Cause::Check);
    let mut found: Vec<(Vec<u8>, Option<Vec<u8>>, ValuePointer)> = Vec::new();
    while let Some(Some((record, pointer))) = acceptable(scan.next_record()) {
        found.push((record.key.to_vec(), record.value.map(<[u8]>::to_vec), pointer));
    }
    for (key, value, pointer) in &found {
        let read = acceptable(segment::read(&*file, place, pointer, key, Cause::Check));
        assert_eq!(read.as_ref(), value.as_ref());
    }
    let found: Vec<_> = found.into_iter().map(|(_, value, _)| value).collect();
    assert!(mode & 1 == 0 || values.starts_with(&found), "{} records", found.len());
}

// ---- Logs and what they carry ----

fn log_payloads() -> Vec<Vec<u8>> {
    (0..9u8).map(|n| vec![n; usize::from(n) * 20]).collect()
}

fn sound_log(kind: LogKind, payloads: &[Vec<u8>]) -> Vec<u8> {
    let store = store();
    let name = log_name(kind);
    let file = store.create(name, &FileHint::default()).unwrap();
    let (database, file_id) = (PLACE.database, PLACE.file);
    let header = LogHeader {
        database,
        file: file_id,
        kind,
        salt: 5,
        previous: None,
        has_origins: false,
        restates: false,
    };
    let mut writer = LogWriter::create(file, header, Cause::Wal).unwrap();
    for (index, payload) in payloads.iter().enumerate() {
        writer.append(&[payload]).unwrap();
        if index == 4 {
            writer.sync().unwrap();
        }
    }
    read(&*store, name)
}

fn log_name(kind: LogKind) -> FileName {
    match kind {
        LogKind::Wal => FileName::wal(PLACE.file),
        LogKind::Manifest => FileName::manifest(PLACE.file),
    }
}

/// The log reader: raw bytes, or a sound log with changes, of which a prefix must come back.
pub fn log(data: &[u8]) {
    let Some((&mode, rest)) = data.split_first() else { return };
    let kind = if mode & 1 == 0 { LogKind::Wal } else { LogKind::Manifest };
    let mut bytes = rest.to_vec();
    if mode & 2 != 0 {
        bytes = sound_log(kind, &log_payloads());
        change(&mut bytes, rest);
    }
    let store = store();
    stored(&store, log_name(kind), &bytes);
    let file = store.open(log_name(kind), false).unwrap();
    let identity = LogIdentity { database: PLACE.database, file: PLACE.file, kind };
    if let Some(mut reader) = acceptable(LogReader::open(&*file, identity, 0, Cause::Check)) {
        let mut records = Vec::new();
        while let Some(Some(record)) = acceptable(reader.next()) {
            records.push(record.payload.to_vec());
        }
        // Input that contains the places can forge a log; a changed log is not forged.
        assert!(mode & 2 == 0 || log_payloads().starts_with(&records), "{} records", records.len());
    }
    acceptable(durable_bytes(&*file, identity, Cause::Check));
    let mut found = Salvage::open(&*file, identity, Cause::Check).unwrap();
    let mut salvaged = 0;
    while let Some(Some(record)) = acceptable(found.next()) {
        salvaged += record.payload.len();
    }
    assert!(salvaged <= bytes.len());
}

/// If it decodes as an edit, it encodes to the same edit.
pub fn edit(data: &[u8]) {
    let name = log_name(LogKind::Manifest);
    if let Some(edit) = acceptable(decode_edit(data, name, 0)) {
        let mut bytes = Vec::new();
        encode_edit(&edit, &mut bytes);
        assert_eq!(decode_edit(&bytes, name, 0).unwrap(), edit);
    }
}

/// Batches as the log carries them.
pub fn batch(data: &[u8]) {
    let Some(view) = acceptable(BatchView::parse(data)) else { return };
    let mut operations = 0;
    for operation in view.iter() {
        assert!(operation.key().len() + operation.value().len() <= data.len());
        operations += 1;
    }
    assert_eq!(operations, view.len());
}

/// Roots, with and without a right checksum.
pub fn root(data: &[u8]) {
    acceptable(decode_root(data));
    if let Ok(head) = <[u8; 40]>::try_from(data) {
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let (database, file) = (DatabaseId(number(16)), FileId(number(24)));
        let sum = Place { database, file, offset: 0, kind: 0x30 }.hash64(&head);
        let bytes = [&head[..], &sum.to_le_bytes()].concat();
        if let Some(root) = acceptable(decode_root(&bytes)) {
            assert_eq!(decode_root(&encode_root(&root)).unwrap(), root);
        }
    }
}

// ---- Runs ----

/// A table file with every kind of block, and its frames: kind, begin, end.
struct Golden {
    bytes: Vec<u8>,
    extent: Extent,
    frames: Vec<(u8, usize, usize)>,
}

fn goldens() -> &'static [Golden] {
    static GOLDENS: OnceLock<Vec<Golden>> = OnceLock::new();
    GOLDENS.get_or_init(|| {
        let bloom = Filter::Bloom { bits_per_key: 10 };
        let ribbon = Filter::Ribbon { bits_per_key: 7 };
        vec![
            golden(Compression::None, bloom, 60),
            golden(Compression::Lz4, ribbon, 40),
            golden(Compression::Zstd(1), bloom, 4096),
        ]
    })
}

fn golden(compression: Compression, filter: Filter, index_block_bytes: u32) -> Golden {
    let store = store();
    let name = FileName::table(PLACE.file);
    let file = store.create(name, &FileHint::default()).unwrap();
    let mut writer = TableWriter::create(file, PLACE, Cause::Flush).unwrap();
    let options = TableOptions {
        block_bytes: 150,
        restart_interval: 3,
        hash_index: true,
        index_block_bytes,
        compression,
        filter,
        prefix: PrefixRule::Fixed(3),
    };
    writer.begin_run(RunId(3), &options).unwrap();
    for n in 0..40u64 {
        let key = internal_key(format!("key{:03}", n / 2).as_bytes(), 99 - n, EntryKind::Put);
        writer.add(&key, &[b'x'; 30]).unwrap();
    }
    writer.add_range_delete(b"a", b"key004", 9).unwrap();
    writer.add_range_delete(b"b", b"z", 3).unwrap();
    let extent = Extent::of(writer.finish_run().unwrap().summary(), PLACE);
    writer.finish().unwrap();
    let bytes = read(&*store, name);
    let frames = frames(&bytes, PLACE);
    Golden { bytes, extent, frames }
}

fn is_sound(bytes: &[u8], place: TablePlace, kind: u8, offset: usize) -> bool {
    let place = Place { database: place.database, file: place.file, offset: offset as u64, kind };
    match kind {
        piece::DATA => bytes
            .split_last_chunk()
            .is_some_and(|(body, sum)| place.crc32c(body) == u32::from_le_bytes(*sum)),
        _ => bytes
            .split_last_chunk()
            .is_some_and(|(body, sum)| place.hash64(body) == u64::from_le_bytes(*sum)),
    }
}

/// The frames of the runs in a sound file, found by their checksums.
fn frames(bytes: &[u8], place: TablePlace) -> Vec<(u8, usize, usize)> {
    let kinds = [piece::DATA, piece::FILTER, piece::INDEX, piece::TOP];
    let (mut frames, mut at) = (Vec::new(), HEADER_BYTES as usize);
    while at < bytes.len() {
        let found = (at + 5..=bytes.len()).find_map(|to| {
            let kind = kinds.into_iter().find(|&k| is_sound(&bytes[at..to], place, k, at))?;
            Some((kind, at, to))
        });
        // Bytes that are no frame are a footer.
        let frame = found.unwrap_or((piece::FOOTER, at, at + FOOTER_BYTES as usize));
        at = frame.2;
        frames.push(frame);
    }
    frames
}

/// Corrects the checksum of a frame.
fn fix(bytes: &mut [u8], place: TablePlace, (kind, from, to): (u8, usize, usize)) {
    if to > bytes.len() {
        return;
    }
    let place = Place { database: place.database, file: place.file, offset: from as u64, kind };
    let end = if kind == piece::FOOTER { to - 8 } else { to };
    if kind == piece::DATA {
        let sum = place.crc32c(&bytes[from..end - 4]);
        bytes[end - 4..end].copy_from_slice(&sum.to_le_bytes());
    } else {
        let sum = place.hash64(&bytes[from..end - 8]);
        bytes[end - 8..end].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Walks every read path of a run that may be malformed.
fn read_run(bytes: &[u8], extent: Extent) {
    let store = store();
    let name = FileName::table(extent.file);
    stored(&store, name, bytes);
    let file = store.open(name, false).unwrap();
    let opened = Run::open(file, extent, BlockCache::new(1 << 20), Cause::OpenRun);
    let Some(run) = acceptable(opened) else { return };
    for key in ["key000", "key007", "key019", "zzz", ""] {
        let hash = base::checksum::hash64(key.as_bytes());
        acceptable(run.get(key.as_bytes(), hash, SEQUENCE_MAX, Cause::Get));
        acceptable(run.may_contain_prefix(&key.as_bytes()[..key.len().min(3)], Cause::Scan));
    }
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    let mut moved = iter.seek_to_first();
    // However the blocks are forged, a walk ends.
    let steps_max = 256 * bytes.len();
    for _ in 0..steps_max {
        if acceptable(moved).is_none() || !iter.valid() {
            break;
        }
        moved = iter.next();
    }
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    let mut moved = iter.seek_to_last();
    for _ in 0..steps_max {
        if acceptable(moved).is_none() || !iter.valid() {
            break;
        }
        moved = iter.prev();
    }
    let mut iter = run.iter(IterOptions::cached(Cause::Scan));
    acceptable(iter.seek(&internal_key(b"key010", SEQUENCE_MAX, EntryKind::SEARCH)));
    let range = KeyRange::new(*b"key002", Some((*b"key009").into()));
    acceptable(run.approximate_bytes(&range, Cause::Scan));
    acceptable(run.boundaries(&range, Cause::Scan));
    acceptable(run.split_points(&range, 3, Cause::Scan));
    acceptable(run.verify(&mut |_| {}));
}

/// Changes inside the frames of one of `kinds`, with right checksums.
fn forge_frames(data: &[u8], kinds: &[u8]) {
    let Some((&choice, changes)) = data.split_first() else { return };
    let goldens = goldens();
    let golden = &goldens[usize::from(choice) % goldens.len()];
    let frames: Vec<_> =
        golden.frames.iter().filter(|frame| kinds.contains(&frame.0)).copied().collect();
    let mut bytes = golden.bytes.clone();
    for change in changes.chunks_exact(4) {
        let Some(&frame) = frames.get(usize::from(change[0]) % frames.len().max(1)) else { return };
        let at =
            frame.1 + usize::from(u16::from_le_bytes([change[1], change[2]])) % (frame.2 - frame.1);
        bytes[at] = change[3];
        fix(&mut bytes, PLACE, frame);
    }
    read_run(&bytes, golden.extent);
}

/// Data and index blocks.
pub fn block(data: &[u8]) {
    forge_frames(data, &[piece::DATA, piece::INDEX]);
}

/// Filters.
pub fn filter(data: &[u8]) {
    forge_frames(data, &[piece::FILTER]);
}

/// Footers, summaries, top indexes, tombstones.
pub fn footer(data: &[u8]) {
    if let Some(bytes) = data.get(..FOOTER_BYTES as usize) {
        let mut bytes = bytes.to_vec();
        bytes[120..].copy_from_slice(&table::format::FOOTER_MAGIC);
        fix(&mut bytes, PLACE, (piece::FOOTER, 0, FOOTER_BYTES as usize));
        let _ = Footer::decode(&bytes, FOOTER_BYTES, PLACE);
    }
    forge_frames(data, &[piece::TOP, piece::FOOTER]);
}

/// A whole table file, checksums left wrong.
pub fn run(data: &[u8]) {
    let Some((&choice, changes)) = data.split_first() else { return };
    let golden = &goldens()[usize::from(choice) % goldens().len()];
    let mut bytes = golden.bytes.clone();
    change(&mut bytes, changes);
    read_run(&bytes, golden.extent);
}

/// Range tombstones encode to what they decoded from.
pub fn range_deletes(data: &[u8]) {
    let Some(deletes) = RangeDeletes::decode(data) else { return };
    assert_eq!(RangeDeletes::decode(&deletes.encode()).as_ref(), Some(&deletes));
    let _ = (deletes.count(), deletes.sequence_bounds(), deletes.range(), deletes.memory_bytes());
    let clipped = deletes.clip(&KeyRange::new(*b"b", Some((*b"y").into())));
    assert!(clipped.covering(b"a", SEQUENCE_MAX).is_none());
}

// ---- Whole databases ----

fn options() -> Options {
    Options::new().write_buffer_bytes(16 << 10).cache_bytes(64 << 10).expert(|expert| {
        expert.no_threads = true;
        expert.memtable_bytes = Some(4 << 10);
        expert.block_bytes = Some(200);
        expert.scheme.table_bytes_max = Some(1 << 10);
        expert.scheme.level_bytes_base = Some(2 << 10);
        expert.scheme.fan_out = Some(3.0);
        expert.scheme.level0_runs_trigger = Some(2);
        expert.scheme.levels = Some(4);
    })
}

fn open(store: Arc<MemStore>, read_only: bool) -> shingle::Result<Db> {
    options().read_only(read_only).open_in(store, Arc::new(Stepped::new(1, 3)))
}

type Files = (Vec<u8>, Vec<(FileName, Vec<u8>)>);

/// The files of a small database in the middle of its life.
fn database() -> &'static Files {
    static DATABASE: OnceLock<Files> = OnceLock::new();
    DATABASE.get_or_init(|| {
        let store = store();
        let db = open(store.clone(), false).unwrap();
        for n in 0..200u32 {
            let key = format!("key{:03}", n * 7 % 100);
            db.put(&key, format!("value {n} of {key}")).unwrap();
            if n % 50 == 49 {
                db.delete_range(format!("key{:03}", n % 90), format!("key{:03}", n % 90 + 5))
                    .unwrap();
                db.flush().unwrap();
                db.wait_idle().unwrap();
            }
        }
        db.put("synced", "yes").unwrap();
        db.sync().unwrap();
        db.put("last", "yes").unwrap();
        let names = store.list().unwrap().into_iter().map(|file| file.name);
        let files = names.map(|name| (name, read(&*store, name))).collect();
        (store.root().unwrap().unwrap(), files)
    })
}

/// Changes a file and corrects its checksums.
fn forge(name: FileName, bytes: &[u8], database: DatabaseId, changes: &[u8]) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    let kind = match name.kind {
        FileKind::Wal => LogKind::Wal,
        FileKind::Manifest => LogKind::Manifest,
        _ => {
            let place = TablePlace { database, file: name.id };
            change(&mut forged, changes);
            for frame in frames(bytes, place) {
                fix(&mut forged, place, frame);
            }
            return forged;
        }
    };
    let store = store();
    stored(&store, name, bytes);
    let file = store.open(name, false).unwrap();
    let identity = LogIdentity { database, file: name.id, kind };
    let mut reader = LogReader::open(&*file, identity, 0, Cause::Check).unwrap();
    let header = *reader.header().unwrap();
    let mut payloads = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        payloads.push(record.payload.to_vec());
    }
    for change_of_one in changes.chunks_exact(5) {
        let index = usize::from(change_of_one[0]) % payloads.len().max(1);
        if let Some(payload) = payloads.get_mut(index).filter(|payload| !payload.is_empty()) {
            change(payload, &change_of_one[1..]);
        }
    }
    store.remove(name).unwrap();
    let file = store.create(name, &FileHint::default()).unwrap();
    let mut writer = LogWriter::create(file, header, Cause::Check).unwrap();
    for payload in &payloads {
        writer.append(&[payload]).unwrap();
    }
    read(&*store, name)
}

/// Like [`acceptable`]; forged kinds of entries may need an operator or a value layout that is
/// missing.
fn acceptable_read<T>(result: Result<T, Error>) {
    let lacks = |error: &Error| match error.kind() {
        ErrorKind::InvalidArgument => error.message().contains("merge operator"),
        ErrorKind::Unsupported => error.message().contains("Pointer"),
        _ => false,
    };
    if !result.as_ref().is_err_and(lacks) {
        acceptable(result);
    }
}

/// A whole database with changes in one file: opened, read, checked, opened for writing.
pub fn image(data: &[u8]) {
    let [mode, choice, changes @ ..] = data else { return };
    let (root, files) = database();
    let id = decode_root(root).unwrap().database;
    let mutated = || {
        let store = store();
        for (index, (name, bytes)) in files.iter().enumerate() {
            let mut bytes = bytes.clone();
            if index == usize::from(*choice) % files.len() {
                match mode & 1 {
                    0 => change(&mut bytes, changes),
                    _ => bytes = forge(*name, &bytes, id, changes),
                }
            }
            stored(&store, *name, &bytes);
        }
        store.set_root(root).unwrap();
        store
    };
    for read_only in [true, false] {
        let Some(db) = acceptable(open(mutated(), read_only)) else { continue };
        for pair in db.iter() {
            acceptable_read(pair);
        }
        for pair in db.iter().rev() {
            acceptable_read(pair);
        }
        acceptable_read(db.get("key010"));
        acceptable_read(db.get("last"));
        // A forged database may contradict itself; the report must say so.
        db.check(&mut |_| {}).unwrap();
        if !read_only {
            let _ = db.put("new", "value").and_then(|()| db.compact());
        }
    }
}

/// Any history of operations, flushes and restarts against a sorted map; its first byte chooses the
/// compaction scheme and the value layout, anew at each restart.
pub fn history(data: &[u8]) {
    let (schemes, layouts) = (tree::policy::registry(), values::registry());
    let mut choice = data.first().map_or(0, |&byte| usize::from(byte));
    let store = store();
    let mut open = || {
        let scheme = schemes[choice % schemes.len()].name;
        let layout = layouts[choice / schemes.len() % layouts.len()].name;
        // The next scheme and the next layout.
        choice += schemes.len() + 1;
        let options = options().scheme(scheme).values(layout).value_threshold_bytes(64);
        options.open_in(store.clone(), Arc::new(Stepped::new(1, 3)))
    };
    let mut db = open().unwrap();
    let mut model = BTreeMap::new();
    for operation in data.chunks_exact(3).take(400) {
        let key = vec![b'k'; usize::from(operation[1] % 4)];
        let key = [&key[..], &[operation[1]]].concat();
        match operation[0] % 16 {
            0..=6 => {
                let value = vec![operation[2]; usize::from(operation[2])];
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            7..=9 => {
                db.delete(&key).unwrap();
                model.remove(&key);
            }
            10 => {
                let end = [&key[..1], &[operation[2]]].concat();
                if db.delete_range(&key, &end).is_ok() {
                    model.retain(|k, _| *k < key || *k >= end);
                }
            }
            11 => db.flush().unwrap(),
            12 => db.compact().unwrap(),
            13 => db.wait_idle().unwrap(),
            14 => assert_eq!(db.get(&key).unwrap().as_deref(), model.get(&key).map(Vec::as_slice)),
            _ => {
                db.close().unwrap();
                db = open().unwrap();
            }
        }
    }
    let pairs = db.iter().map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec()));
    assert!(pairs.eq(model.clone()), "forward");
    let pairs = db.iter().rev().map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec()));
    assert!(pairs.eq(model.into_iter().rev()), "backward");
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}
