//! What a backup directory holds, as bytes: the root that names the file of generations, that file,
//! and a list of files for each generation. docs/format/backup.md has the layout.
//!
//! Decoding is total: whatever the bytes, it gives a catalog or an error.

use base::checksum::hash64;
use base::coding::{Reader, push_bytes, push_varint};
use base::{DatabaseId, Error, ErrorKind, FileId, Result};
use media::{FileKind, FileName};

const ROOT_MAGIC: &[u8; 8] = b"SHNGBKUP";
const GENERATIONS_MAGIC: &[u8; 8] = b"SHNGBGEN";
const LIST_MAGIC: &[u8; 8] = b"SHNGBLST";
const VERSION: u32 = 1;
/// The version of roots that name a file of generations. Those before have the generations.
const ROOT_VERSION: u32 = 2;

/// A generation as the directory lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    /// The database; `None` in a root of version 1.
    pub database: Option<DatabaseId>,
    pub number: u64,
    /// Microseconds since 1970 when it was taken.
    pub taken_micros: u64,
    /// The sequence number of the last write in it.
    pub sequence: u64,
    /// Bytes of its files together.
    pub bytes: u64,
    /// Bytes that no earlier generation had.
    pub new_bytes: u64,
    pub files: u64,
    /// The file that holds its list.
    pub list: FileId,
    /// The checksum of the list.
    pub list_hash: u64,
}

/// A file that a reader knows by the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    pub file: FileId,
    pub hash: u64,
}

/// What the root says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// The file of the generations; `None` without any.
    Named(Option<Sealed>),
    /// The generations themselves, as version 1 had them.
    Listed(Vec<Generation>),
}

/// A file of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its name in the database.
    pub name: FileName,
    pub content: Content,
    /// The file that holds it in the backup directory.
    pub stored: FileId,
}

/// What a file holds, for certain: two files are the same if this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Content {
    pub bytes: u64,
    /// Of all bytes, see [`super::files::digest`].
    pub hash: u64,
}

/// The files of a generation, and the root of the database that they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileList {
    pub root: Vec<u8>,
    pub entries: Vec<Entry>,
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("the {what} of the backup directory is damaged"))
}

fn begin(magic: &[u8; 8], version: u32) -> Vec<u8> {
    let mut out = magic.to_vec();
    out.extend_from_slice(&version.to_le_bytes());
    out
}

fn finish(mut out: Vec<u8>) -> Vec<u8> {
    let hash = hash64(&out);
    out.extend_from_slice(&hash.to_le_bytes());
    out
}

/// The version, and the bytes between it and the checksum.
fn open<'a>(
    bytes: &'a [u8],
    magic: &[u8; 8],
    version_max: u32,
    what: &str,
) -> Result<(u32, Reader<'a>)> {
    let (body, hash) = bytes.split_last_chunk::<8>().ok_or_else(|| damaged(what))?;
    if hash64(body) != u64::from_le_bytes(*hash) {
        return Err(damaged(what));
    }
    let mut reader = Reader::new(body);
    if reader.take(8) != Some(magic) {
        return Err(damaged(what));
    }
    let version = reader.u32().ok_or_else(|| damaged(what))?;
    if (1..=version_max).contains(&version) {
        return Ok((version, reader));
    }
    let message = format!(
        "the backup directory has format version {version}; this program knows {version_max}"
    );
    Err(Error::new(ErrorKind::Incompatible, message))
}

/// The root of a backup directory whose generations are in `file`; without one, it has none.
pub(super) fn encode_root(file: Option<Sealed>) -> Vec<u8> {
    let mut out = begin(ROOT_MAGIC, ROOT_VERSION);
    let Sealed { file, hash } = file.unwrap_or(Sealed { file: FileId(0), hash: 0 });
    push_varint(&mut out, file.0);
    out.extend_from_slice(&hash.to_le_bytes());
    finish(out)
}

/// What a root says. `Incompatible` for the root of something else.
pub(super) fn decode_root(bytes: &[u8]) -> Result<Root> {
    if !bytes.starts_with(ROOT_MAGIC) {
        let message = "it is not a backup directory: perhaps it is a database";
        return Err(Error::new(ErrorKind::Incompatible, message));
    }
    let (version, mut reader) = open(bytes, ROOT_MAGIC, ROOT_VERSION, "root")?;
    let read = |reader: &mut Reader<'_>| {
        if version == VERSION {
            return read_generations(reader, false).map(Root::Listed);
        }
        let sealed = Sealed { file: FileId(reader.varint()?), hash: reader.u64()? };
        reader.is_empty().then_some(Root::Named(Some(sealed).filter(|s| s.file != FileId(0))))
    };
    read(&mut reader).ok_or_else(|| damaged("root"))
}

/// The file of `generations`, oldest first.
pub(super) fn encode_generations(generations: &[Generation]) -> Vec<u8> {
    let mut out = begin(GENERATIONS_MAGIC, VERSION);
    push_varint(&mut out, generations.len() as u64);
    for generation in generations {
        let database = generation.database.unwrap_or(DatabaseId(0));
        out.extend_from_slice(&database.0.to_le_bytes());
        let numbers = [
            generation.number,
            generation.taken_micros,
            generation.sequence,
            generation.bytes,
            generation.new_bytes,
            generation.files,
            generation.list.0,
        ];
        numbers.into_iter().for_each(|number| push_varint(&mut out, number));
        out.extend_from_slice(&generation.list_hash.to_le_bytes());
    }
    finish(out)
}

/// The generations in such a file.
pub(super) fn decode_generations(bytes: &[u8]) -> Result<Vec<Generation>> {
    let what = "file of generations";
    let (_, mut reader) = open(bytes, GENERATIONS_MAGIC, VERSION, what)?;
    read_generations(&mut reader, true).ok_or_else(|| damaged(what))
}

fn read_generations(reader: &mut Reader<'_>, has_databases: bool) -> Option<Vec<Generation>> {
    let count = reader.varint()?;
    let mut generations = Vec::new();
    for _ in 0..count {
        let database = if has_databases { Some(DatabaseId(reader.u64()?)) } else { None };
        let mut next = || reader.varint();
        generations.push(Generation {
            database,
            number: next()?,
            taken_micros: next()?,
            sequence: next()?,
            bytes: next()?,
            new_bytes: next()?,
            files: next()?,
            list: FileId(next()?),
            list_hash: reader.u64()?,
        });
    }
    reader.is_empty().then_some(generations)
}

fn kind_byte(kind: FileKind) -> u8 {
    match kind {
        FileKind::Table => 0,
        FileKind::Wal => 1,
        FileKind::Manifest => 2,
        FileKind::Value => 3,
    }
}

fn kind_of(byte: u8) -> Option<FileKind> {
    [FileKind::Table, FileKind::Wal, FileKind::Manifest, FileKind::Value]
        .into_iter()
        .find(|kind| kind_byte(*kind) == byte)
}

/// The list of a generation.
pub(super) fn encode_list(list: &FileList) -> Vec<u8> {
    let mut out = begin(LIST_MAGIC, VERSION);
    push_bytes(&mut out, &list.root);
    push_varint(&mut out, list.entries.len() as u64);
    for Entry { name, content, stored } in &list.entries {
        out.push(kind_byte(name.kind));
        push_varint(&mut out, name.id.0);
        push_varint(&mut out, content.bytes);
        out.extend_from_slice(&content.hash.to_le_bytes());
        push_varint(&mut out, stored.0);
    }
    finish(out)
}

/// The list that `bytes` are.
pub(super) fn decode_list(bytes: &[u8]) -> Result<FileList> {
    let (_, mut reader) = open(bytes, LIST_MAGIC, VERSION, "file list")?;
    let read = |reader: &mut Reader<'_>| {
        let root = reader.bytes()?.to_vec();
        let count = reader.varint()?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let name = FileName { kind: kind_of(reader.byte()?)?, id: FileId(reader.varint()?) };
            let content = Content { bytes: reader.varint()?, hash: reader.u64()? };
            entries.push(Entry { name, content, stored: FileId(reader.varint()?) });
        }
        reader.is_empty().then_some(FileList { root, entries })
    };
    read(&mut reader).ok_or_else(|| damaged("file list"))
}

/// A root as version 1 had it.
#[cfg(test)]
pub(super) fn encode_old_root(generations: &[Generation]) -> Vec<u8> {
    let mut out = begin(ROOT_MAGIC, 1);
    push_varint(&mut out, generations.len() as u64);
    for each in generations {
        for number in [each.number, each.taken_micros, each.sequence, each.bytes, each.new_bytes] {
            push_varint(&mut out, number);
        }
        push_varint(&mut out, each.files);
        push_varint(&mut out, each.list.0);
        out.extend_from_slice(&each.list_hash.to_le_bytes());
    }
    finish(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation() -> Generation {
        Generation {
            database: Some(DatabaseId(0xda7a)),
            number: 3,
            taken_micros: 1_700_000_000_000_000,
            sequence: 77,
            bytes: 1 << 40,
            new_bytes: 5,
            files: 2,
            list: FileId(9),
            list_hash: 0xdead,
        }
    }

    /// No change of a bit, and no cut, of `bytes` is taken for them.
    fn assert_damage_is_seen<T>(bytes: &[u8], decode: fn(&[u8]) -> Result<T>) {
        for at in 0..bytes.len() {
            let mut broken = bytes.to_vec();
            broken[at] ^= 1;
            assert!(decode(&broken).is_err(), "byte {at}");
            assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn catalogs_survive_their_encoding_and_no_damage_is_taken_for_one() {
        let sealed = Sealed { file: FileId(300), hash: 0xbeef };
        for file in [None, Some(sealed)] {
            assert_eq!(decode_root(&encode_root(file)).unwrap(), Root::Named(file));
        }
        assert_damage_is_seen(&encode_root(Some(sealed)), decode_root);
        let generations = encode_generations(&[generation()]);
        assert_eq!(decode_generations(&generations).unwrap(), [generation()]);
        assert_damage_is_seen(&generations, decode_generations);
        let content = Content { bytes: 300, hash: 7 };
        let entry = Entry { name: FileName::value(FileId(300)), content, stored: FileId(1) };
        let list = FileList { root: b"root".to_vec(), entries: vec![entry] };
        let bytes = encode_list(&list);
        assert_eq!(decode_list(&bytes).unwrap(), list);
        assert_damage_is_seen(&bytes, decode_list);
    }

    #[test]
    fn a_root_of_version_1_has_the_generations_without_their_databases() {
        let root = encode_old_root(&[generation()]);
        let expected = Generation { database: None, ..generation() };
        assert_eq!(decode_root(&root).unwrap(), Root::Listed(vec![expected]));
        assert_damage_is_seen(&root, decode_root);
    }

    #[test]
    fn a_database_is_not_taken_for_a_backup_directory() {
        let error = decode_root(b"SHNGROOT and more").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incompatible);
    }
}
