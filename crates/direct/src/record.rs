//! Metadata: records, and the catalogue that they add up to.
//!
//! A record says how something is from now on, so that replaying one twice changes nothing.

use base::FileId;
use base::coding::{Reader, push_bytes, push_varint, varint_bytes};
use media::{FileKind, FileName};
use std::collections::BTreeMap;

/// Bytes of all notes together that the catalogue keeps, as a part of a metadata area.
const NOTES_PART: u64 = 8;

/// Part of a metadata area that stays free of files while the store keeps a reserve.
const RESERVE_PART: u64 = 16;

/// Bytes of a file's record that are no numbers: what record it is, the kind of file, whether its
/// bytes lie in frames.
const KINDS_BYTES: usize = 3;

/// A part of a file on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its first byte on the device; a sector's.
    pub start: u64,
    /// Plain files: bytes of the file in it; the rest of the last sector is padding. Logs: bytes
    /// reserved, of which frames say how many are used.
    pub bytes: u64,
    /// The place in the file of its first byte.
    pub logical: u64,
    /// Logs: what every frame in it carries. 0 for plain files.
    pub generation: u64,
}

impl Part {
    /// As they stand in a record.
    fn numbers(&self) -> [u64; 4] {
        [self.start, self.bytes, self.logical, self.generation]
    }
}

/// A file as the metadata describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Never used again.
    pub number: u64,
    /// The name.
    pub name: FileName,
    /// Its bytes lie in frames.
    pub is_log: bool,
    /// Plain files: the length. Logs: the length is at least this.
    pub bytes: u64,
    /// In the order of the file.
    pub parts: Vec<Part>,
}

/// A change of the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A file is as described.
    File(FileRecord),
    /// There is no such file any more.
    Remove(u64),
    /// The root.
    Root(Vec<u8>),
    /// Bytes of a note: all of them, or more at its end.
    Note { name: String, bytes: Vec<u8>, append: bool },
    /// The snapshot is complete; the next number.
    Complete(u64),
}

fn kind_number(kind: FileKind) -> u8 {
    match kind {
        FileKind::Table => 0,
        FileKind::Wal => 1,
        FileKind::Manifest => 2,
        FileKind::Value => 3,
    }
}

fn kind_of(number: u8) -> Option<FileKind> {
    Some(match number {
        0 => FileKind::Table,
        1 => FileKind::Wal,
        2 => FileKind::Manifest,
        3 => FileKind::Value,
        _ => return None,
    })
}

impl Record {
    /// Appends the record to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::File(file) => {
                out.push(1);
                push_varint(out, file.number);
                out.extend([kind_number(file.name.kind), u8::from(file.is_log)]);
                push_varint(out, file.name.id.0);
                push_varint(out, file.bytes);
                push_varint(out, file.parts.len() as u64);
                for number in file.parts.iter().flat_map(Part::numbers) {
                    push_varint(out, number);
                }
            }
            Record::Remove(number) => {
                out.push(2);
                push_varint(out, *number);
            }
            Record::Root(root) => {
                out.push(3);
                push_bytes(out, root);
            }
            Record::Note { name, bytes, append } => {
                out.extend([4, u8::from(*append)]);
                push_bytes(out, name.as_bytes());
                push_bytes(out, bytes);
            }
            Record::Complete(next) => {
                out.push(5);
                push_varint(out, *next);
            }
        }
    }

    /// The next record of `reader`; `None` if it is not one.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Record> {
        Some(match reader.byte()? {
            1 => {
                let number = reader.varint()?;
                let kind = kind_of(reader.byte()?)?;
                let is_log = reader.byte()? == 1;
                let name = FileName { kind, id: FileId(reader.varint()?) };
                let bytes = reader.varint()?;
                let count = reader.varint()?;
                let mut parts = Vec::new();
                for _ in 0..count {
                    parts.push(Part {
                        start: reader.varint()?,
                        bytes: reader.varint()?,
                        logical: reader.varint()?,
                        generation: reader.varint()?,
                    });
                }
                Record::File(FileRecord { number, name, is_log, bytes, parts })
            }
            2 => Record::Remove(reader.varint()?),
            3 => Record::Root(reader.bytes()?.to_vec()),
            4 => {
                let append = reader.byte()? == 1;
                let name = String::from_utf8(reader.bytes()?.to_vec()).ok()?;
                Record::Note { name, bytes: reader.bytes()?.to_vec(), append }
            }
            5 => Record::Complete(reader.varint()?),
            _ => return None,
        })
    }
}

/// All metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// Files by number.
    pub files: BTreeMap<u64, FileRecord>,
    /// The root.
    pub root: Option<Vec<u8>>,
    /// Notes by name.
    pub notes: BTreeMap<String, Vec<u8>>,
    /// Numbers and generations below this were given out.
    pub next: u64,
    /// Bytes that the files take in a snapshot.
    files_bytes: u64,
}

impl Catalogue {
    /// A number that was never used.
    pub fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Takes a record in.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::File(file) => {
                let highest = file.parts.iter().map(|part| part.generation).max().unwrap_or(0);
                self.next = self.next.max(file.number + 1).max(highest + 1);
                self.files_bytes += footprint(file);
                if let Some(old) = self.files.insert(file.number, file.clone()) {
                    self.files_bytes -= footprint(&old);
                }
            }
            Record::Remove(number) => {
                if let Some(old) = self.files.remove(number) {
                    self.files_bytes -= footprint(&old);
                }
            }
            Record::Root(root) => self.root = Some(root.clone()),
            Record::Note { name, bytes, append } => {
                let note = self.notes.entry(name.clone()).or_default();
                if !append {
                    note.clear();
                }
                note.extend(bytes);
            }
            Record::Complete(next) => self.next = self.next.max(*next),
        }
    }

    /// Records that make this catalogue from an empty one.
    pub fn snapshot(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self.files.values().cloned().map(Record::File).collect();
        records.extend(self.root.clone().map(Record::Root));
        for (name, bytes) in &self.notes {
            let (name, bytes) = (name.clone(), bytes.clone());
            records.push(Record::Note { name, bytes, append: false });
        }
        records.push(Record::Complete(self.next));
        records
    }

    /// Whether a snapshot leaves most of an area of `area_bytes` to the journal. `keeps_reserve`: a
    /// part stays free for files that must go on.
    pub fn has_room(&self, area_bytes: u64, keeps_reserve: bool) -> bool {
        let reserve_bytes = if keeps_reserve { area_bytes / RESERVE_PART } else { 0 };
        self.files_bytes + area_bytes / NOTES_PART + reserve_bytes < area_bytes / 2
    }

    /// Makes room for `more` bytes in the note `name`: when the notes take more than their part of
    /// an area, the older half of its lines goes. True if the note was rewritten.
    pub fn trim_note(&mut self, name: &str, more: usize, area_bytes: u64) -> bool {
        let all: usize = self.notes.values().map(Vec::len).sum();
        if ((all + more) as u64) < area_bytes / NOTES_PART {
            return false;
        }
        let Some(note) = self.notes.get_mut(name) else { return false };
        let half = note.len() / 2;
        let newline = note[half..].iter().position(|byte| *byte == b'\n');
        note.drain(..newline.map_or(note.len(), |at| half + at + 1));
        true
    }
}

/// Bytes of the record of `file`.
fn footprint(file: &FileRecord) -> u64 {
    let sum = |numbers: [u64; 4]| numbers.into_iter().map(varint_bytes).sum::<usize>();
    let parts = file.parts.iter().map(|part| sum(part.numbers()));
    let head = sum([file.number, file.name.id.0, file.bytes, file.parts.len() as u64]);
    (KINDS_BYTES + head + parts.sum::<usize>()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64, parts: usize) -> FileRecord {
        let part = |i: usize| Part {
            start: i as u64 * 4096,
            bytes: 4096,
            logical: i as u64 * 4000,
            generation: i as u64 + number,
        };
        let name = FileName { kind: FileKind::Value, id: FileId(number * 3) };
        let parts: Vec<Part> = (0..parts).map(part).collect();
        FileRecord { number, name, is_log: !number.is_multiple_of(2), bytes: 77, parts }
    }

    #[test]
    fn a_snapshot_makes_the_same_catalogue() {
        let mut catalogue = Catalogue::default();
        for number in 0..5 {
            catalogue.apply(&Record::File(file(number, number as usize * 3)));
        }
        catalogue.apply(&Record::File(file(2, 1)));
        catalogue.apply(&Record::Remove(3));
        catalogue.apply(&Record::Root(b"root".to_vec()));
        for (bytes, append) in [(b"one", false), (b"two", true)] {
            let (name, bytes) = ("events".to_string(), bytes.to_vec());
            catalogue.apply(&Record::Note { name, bytes, append });
        }
        catalogue.take_number();
        let mut files_bytes = Vec::new();
        let files = catalogue.files.values().cloned().map(Record::File);
        files.for_each(|record| record.encode(&mut files_bytes));
        assert_eq!(catalogue.files_bytes, files_bytes.len() as u64);
        let mut bytes = Vec::new();
        catalogue.snapshot().iter().for_each(|record| record.encode(&mut bytes));
        let (mut reader, mut again) = (Reader::new(&bytes), Catalogue::default());
        while !reader.is_empty() {
            again.apply(&Record::decode(&mut reader).unwrap());
        }
        assert_eq!(again, catalogue);
        assert_eq!(again.notes["events"], b"onetwo");
        for end in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..end]);
            while Record::decode(&mut reader).is_some() {}
        }
    }

    #[test]
    fn a_full_note_loses_its_older_lines() {
        let mut catalogue = Catalogue::default();
        let grow = |catalogue: &mut Catalogue, line: String| {
            catalogue.trim_note("events", line.len(), 8000);
            let (name, bytes) = ("events".to_string(), line.into_bytes());
            catalogue.apply(&Record::Note { name, bytes, append: true });
        };
        for n in 0..1000 {
            grow(&mut catalogue, format!("line {n}\n"));
            assert!(catalogue.notes["events"].len() <= 1000);
        }
        let text = String::from_utf8(catalogue.notes["events"].clone()).unwrap();
        assert!(text.ends_with("line 999\n") && text.starts_with("line "), "{text}");
    }
}
