//! Import, change, and the comparison of everything with its source.
//!
//! Keyspaces: `files` (path to content), `packages` (name to stanza), `words` (`word/file number`
//! to how often the word is in the first part of the file). A file and its words are one batch.

use super::account::{Account, Origin, Verification};
use super::source::{Found, Packages, Root, State, Tracked};
use super::space::Sampler;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::progress::Bar;
use crate::text;
use crate::transfer::{Loader, Record};
use base::checksum::hash64;
use shingle::{Db, Keyspace, KeyspaceOptions, WriteBatch, WriteOptions};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// What an update puts at the end of a value.
pub const UPDATE: &[u8] = b"\n-- updated by the demonstration\n";

const WORD_BYTES: std::ops::RangeInclusive<usize> = 4..=24;
const WORDS_PER_FILE_MAX: usize = 24;
const INDEXED_BYTES_MAX: usize = 1 << 14;
const WORDS_KEPT: usize = 4096;
const EXAMPLES_MAX: usize = 5;

/// The keyspaces of the demonstration.
pub struct Spaces {
    /// path -> content
    pub files: Keyspace,
    /// name -> stanza
    pub packages: Keyspace,
    /// word/file number -> count
    pub words: Keyspace,
}

impl Spaces {
    /// Creates those that are not there.
    pub fn open(db: &Db) -> Outcome<Spaces> {
        let open = |name: &str| match db.keyspace(name) {
            Ok(keyspace) => Ok(keyspace),
            Err(_) => db.create_keyspace(name, KeyspaceOptions::default()),
        };
        Ok(Spaces { files: open("files")?, packages: open("packages")?, words: open("words")? })
    }
}

/// What was imported, and what became of it.
#[derive(Default)]
pub struct Data {
    /// The files, in key order within their origin; the position is the file number.
    pub files: Vec<Tracked>,
    /// The packages by name.
    pub packages: HashMap<Vec<u8>, Tracked>,
    /// Some words of the index.
    pub words: Vec<Vec<u8>>,
    source: Option<Packages>,
    source_bytes_max: u64,
}

fn words_of(content: &[u8]) -> BTreeMap<&[u8], u32> {
    let head = &content[..content.len().min(INDEXED_BYTES_MAX)];
    let mut words: BTreeMap<&[u8], u32> = BTreeMap::new();
    for word in head.split(|byte| !byte.is_ascii_alphabetic() && *byte != b'_') {
        if !WORD_BYTES.contains(&word.len()) {
            continue;
        }
        if let Some(count) = words.get_mut(word) {
            *count += 1;
        } else if words.len() < WORDS_PER_FILE_MAX {
            words.insert(word, 1);
        }
    }
    words
}

fn posting(word: &[u8], file: usize) -> Vec<u8> {
    [word, format!("/{file:08}").as_bytes()].concat()
}

/// Imports everything that was found.
pub fn import(
    db: &Db,
    found: Found,
    account: &mut Account,
    space: &mut Sampler,
    bar: &Bar,
) -> Outcome<Data> {
    let start = Instant::now();
    let spaces = Spaces::open(db)?;
    let mut data = Data {
        source: found.packages.clone(),
        source_bytes_max: found.packages_bytes_max,
        ..Data::default()
    };
    let mut loader = Loader::new(db);
    let interrupt = Interrupt::listen()?;
    for (root, files) in found.files {
        let origin = import_files(&spaces, &root, files, &mut data, &mut loader, space, bar)?;
        account.origins.push(origin);
    }
    if let Some(packages) = &found.packages {
        let mut origin = Origin { name: "packages".into(), ..Origin::default() };
        packages.read(found.packages_bytes_max, &mut |name, stanza| {
            interrupt.check(String::new)?;
            loader.put(&spaces.packages, Record::new(name, stanza))?;
            origin.records += 1;
            origin.bytes += stanza.len() as u64;
            let key = name.to_vec();
            let checksum = hash64(stanza);
            let tracked =
                Tracked { key, path: Default::default(), checksum, state: State::Original };
            data.packages.insert(name.to_vec(), tracked);
            bar.add(stanza.len() as u64);
            space.tick();
            Ok(())
        })?;
        account.origins.push(origin);
    }
    loader.write()?;
    db.sync()?;
    account.import_records = loader.records;
    account.import_bytes = loader.bytes;
    account.import_ns = start.elapsed().as_nanos() as u64;
    Ok(data)
}

fn import_files(
    spaces: &Spaces,
    root: &Root,
    files: Vec<(Tracked, u64)>,
    data: &mut Data,
    loader: &mut Loader,
    space: &mut Sampler,
    bar: &Bar,
) -> Outcome<Origin> {
    let mut origin = Origin { name: root.name.clone(), ..Origin::default() };
    let interrupt = Interrupt::listen()?;
    for (mut file, bytes) in files {
        interrupt.check(String::new)?;
        bar.add(bytes);
        // What cannot be read is not part of the demonstration.
        let Ok(content) = std::fs::read(&file.path) else { continue };
        file.checksum = hash64(&content);
        let number = data.files.len();
        loader.put(&spaces.files, Record::new(&file.key, &content))?;
        for (word, count) in words_of(&content) {
            loader.put(
                &spaces.words,
                Record::new(&posting(word, number), count.to_string().as_bytes()),
            )?;
            if data.words.len() < WORDS_KEPT && number.is_multiple_of(7) {
                data.words.push(word.to_vec());
            }
        }
        origin.records += 1;
        origin.bytes += content.len() as u64;
        data.files.push(file);
        space.tick();
    }
    Ok(origin)
}

/// Updates every seventh file and every fifth package, deletes every eleventh package, and removes
/// a whole directory with one range deletion, its words in the same batch.
pub fn change(db: &Db, data: &mut Data, account: &mut Account, space: &mut Sampler) -> Outcome {
    let spaces = Spaces::open(db)?;
    let mut loader = Loader::new(db);
    let interrupt = Interrupt::listen()?;
    for file in data.files.iter_mut().step_by(7) {
        interrupt.check(String::new)?;
        let Some(content) = spaces.files.get(&file.key)? else {
            return Err(lost(&file.key));
        };
        loader.put(&spaces.files, Record::new(&file.key, &[&content[..], UPDATE].concat()))?;
        file.state = State::Updated;
        account.updated += 1;
        space.tick();
    }
    let mut names: Vec<Vec<u8>> = data.packages.keys().cloned().collect();
    names.sort_unstable();
    for (i, name) in names.iter().enumerate() {
        interrupt.check(String::new)?;
        let package = data.packages.get_mut(name).expect("the names are the map's keys");
        if i % 11 == 0 {
            loader.delete(&spaces.packages, name)?;
            package.state = State::Deleted;
            account.deleted += 1;
        } else if i % 5 == 0 {
            let Some(stanza) = spaces.packages.get(name)? else { return Err(lost(name)) };
            loader.put(&spaces.packages, Record::new(name, &[&stanza[..], UPDATE].concat()))?;
            package.state = State::Updated;
            account.updated += 1;
        }
        space.tick();
    }
    loader.write()?;
    delete_directory(db, &spaces, data, account)?;
    Ok(db.sync()?)
}

fn lost(key: &[u8]) -> Failure {
    Failure::said(
        format!("{}: was imported and is not there", text::brief(key)),
        "report this: a value must not vanish",
    )
}

/// The directory whose share of the files comes nearest to a twentieth; not a whole origin.
fn pick_directory(files: &[Tracked]) -> Vec<u8> {
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for file in files {
        for (at, _) in file.key.iter().enumerate().filter(|(_, byte)| **byte == b'/').skip(1) {
            *counts.entry(&file.key[..=at]).or_default() += 1;
        }
    }
    let distance = |count: usize| (count * 20).abs_diff(files.len());
    let best = counts.into_iter().min_by_key(|(_, count)| distance(*count));
    best.map(|(directory, _)| directory.to_vec()).unwrap_or_default()
}

fn delete_directory(db: &Db, spaces: &Spaces, data: &mut Data, account: &mut Account) -> Outcome {
    let directory = pick_directory(&data.files);
    let range = base::KeyRange::prefix(&directory);
    let Some(end) = &range.end else { return Ok(()) }; // no file lies below a directory
    let mut batch = WriteBatch::new();
    batch.delete_range_in(&spaces.files, &range.start, end)?;
    for (number, file) in data.files.iter_mut().enumerate() {
        if !range.contains(&file.key) {
            continue;
        }
        if let Ok(content) = std::fs::read(&file.path) {
            for word in words_of(&content).keys() {
                batch.delete_in(&spaces.words, posting(word, number))?;
            }
        }
        account.range_deleted_keys += 1;
        file.state = State::Deleted;
    }
    account.range_deleted = text::escape(&directory);
    Ok(db.write(batch, &WriteOptions { durability: None, wait: true })?)
}

/// Compares every value with its source, and looks for every deleted key.
pub fn verify(db: &Db, data: &Data, bar: &Bar) -> Outcome<Verification> {
    let start = Instant::now();
    let spaces = Spaces::open(db)?;
    let mut result = Verification::default();
    let interrupt = Interrupt::listen()?;
    for (number, file) in data.files.iter().enumerate() {
        interrupt.check(String::new)?;
        let now = std::fs::read(&file.path).unwrap_or_default();
        let stored = spaces.files.get(&file.key)?;
        bar.add(now.len() as u64);
        let unchanged = compare(&mut result, file, stored.as_deref(), &now);
        if !unchanged {
            continue;
        }
        for (word, count) in words_of(&now) {
            let key = posting(word, number);
            let stored = spaces.words.get(&key)?;
            let expected = (file.state != State::Deleted).then(|| count.to_string().into_bytes());
            judge(&mut result, &key, stored.as_deref(), expected.as_deref());
        }
    }
    if let Some(source) = &data.source {
        source.read(data.source_bytes_max, &mut |name, stanza| {
            interrupt.check(String::new)?;
            bar.add(stanza.len() as u64);
            if let Some(package) = data.packages.get(name) {
                let stored = spaces.packages.get(name)?;
                compare(&mut result, package, stored.as_deref(), stanza);
            }
            Ok(())
        })?;
    }
    result.ns = start.elapsed().as_nanos() as u64;
    Ok(result)
}

/// False when the source is no longer what was imported: then the checksum of the import decides.
fn compare(result: &mut Verification, file: &Tracked, stored: Option<&[u8]>, now: &[u8]) -> bool {
    let unchanged = hash64(now) == file.checksum;
    let mut expected = now.to_vec();
    if !unchanged {
        result.source_changed += 1;
        let body = stored.map(|stored| match file.state {
            State::Updated => stored.strip_suffix(UPDATE).unwrap_or(stored),
            _ => stored,
        });
        expected = body.filter(|body| hash64(body) == file.checksum).unwrap_or(now).to_vec();
    }
    if file.state == State::Updated {
        expected.extend_from_slice(UPDATE);
    }
    let expected = (file.state != State::Deleted).then_some(&expected[..]);
    judge(result, &file.key, stored, expected);
    unchanged
}

fn judge(result: &mut Verification, key: &[u8], stored: Option<&[u8]>, expected: Option<&[u8]>) {
    if stored == expected {
        match stored {
            Some(value) => {
                result.values += 1;
                result.bytes += (key.len() + value.len()) as u64;
            }
            None => result.absent += 1,
        }
        return;
    }
    result.wrong += 1;
    if result.wrong_examples.len() < EXAMPLES_MAX {
        let length = |value: Option<&[u8]>| match value {
            Some(value) => format!("{} bytes", value.len()),
            None => "nothing".into(),
        };
        result.wrong_examples.push(format!(
            "{}: expected {}, found {}",
            text::brief(key),
            length(expected),
            length(stored)
        ));
    }
}
