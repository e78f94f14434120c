//! Edits of the manifest: fields behind their tags.

use crate::coding::Input;
use crate::entry::split_key;

/// A table, as an edit adds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    pub level: u64,
    pub number: u64,
    pub bytes: u64,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    /// `largest` ends a deleted range and is no key of the table.
    pub is_largest_outside: bool,
    /// `None`: the edit does not tell.
    pub largest_sequence: Option<u64>,
    /// Which of the database's directories it is in.
    pub directory: u8,
}

/// A log that the manifest knows, and how many of its bytes were synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    pub number: u64,
    pub synced_bytes: u64,
}

/// What an edit changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    pub family: u64,
    pub add_family: Option<String>,
    pub drops_family: bool,
    pub comparator: Option<String>,
    pub log_number: Option<u64>,
    pub previous_log_number: Option<u64>,
    pub first_log_needed: Option<u64>,
    pub last_sequence: Option<u64>,
    pub add_tables: Vec<TableFile>,
    /// By level and number.
    pub remove_tables: Vec<(u64, u64)>,
    pub add_logs: Vec<Log>,
    pub remove_logs_before: Option<u64>,
    /// Number and count of values.
    pub add_blobs: Vec<(u64, u64)>,
    /// Number, and how many more of its values are garbage.
    pub blob_garbage: Vec<(u64, u64)>,
    /// The edit counts only together with this many edits behind it.
    pub group_left: Option<u64>,
}

const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE_NUMBER: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const COMPACT_CURSOR: u64 = 5;
const DELETED_FILE: u64 = 6;
const NEW_FILE: u64 = 7;
const PREVIOUS_LOG_NUMBER: u64 = 9;
const FIRST_LOG_NEEDED: u64 = 10;
const NEW_FILE_2: u64 = 100;
const NEW_FILE_3: u64 = 102;
const NEW_FILE_4: u64 = 103;
const FAMILY: u64 = 200;
const FAMILY_ADD: u64 = 201;
const FAMILY_DROP: u64 = 202;
const FAMILY_MAX: u64 = 203;
const IN_GROUP: u64 = 300;
const BLOB_ADD: u64 = 400;
const BLOB_GARBAGE: u64 = 401;
/// Tags with this bit that are not known have a length, and may be left out.
const CAN_BE_LEFT_OUT: u64 = 1 << 13;
const BLOB_ADD_OLD: u64 = CAN_BE_LEFT_OUT + 2;
const BLOB_GARBAGE_OLD: u64 = CAN_BE_LEFT_OUT + 3;
const LOG_ADD_OLD: u64 = CAN_BE_LEFT_OUT + 4;
const LOG_REMOVE_OLD: u64 = CAN_BE_LEFT_OUT + 5;
const LOG_ADD: u64 = CAN_BE_LEFT_OUT + 7;
const LOG_REMOVE: u64 = CAN_BE_LEFT_OUT + 8;

/// Fields of a table.
mod of_table {
    pub const END: u64 = 1;
    pub const FIRST_LOG_NEEDED: u64 = 3;
    /// Fields with this bit that are not known must not be left out.
    pub const MUST_BE_KNOWN: u64 = 1 << 6;
    pub const DIRECTORY: u64 = MUST_BE_KNOWN + 1;
}

/// The largest key of a table that a deleted range gave: no version has this number.
const OUTSIDE: (u64, u8) = ((1 << 56) - 1, super::kinds::RANGE_DELETE);

/// Whether LevelDB has this tag too.
pub fn is_of_leveldb(tag: u64) -> bool {
    matches!(tag, 1..=7 | 9)
}

impl Edit {
    pub fn parse(record: &[u8]) -> Result<Edit, String> {
        let mut input = Input::new(record);
        let mut edit = Edit::default();
        while !input.is_empty() {
            let tag = input.varint().ok_or("an edit ends in a tag")?;
            edit.field(tag, &mut input).ok_or_else(|| {
                format!("an edit has a field {tag} that is not whole or not known")
            })?;
        }
        Ok(edit)
    }

    fn field(&mut self, tag: u64, input: &mut Input<'_>) -> Option<()> {
        match tag {
            COMPARATOR => self.comparator = Some(text(input)?),
            LOG_NUMBER => self.log_number = Some(input.varint()?),
            LAST_SEQUENCE => self.last_sequence = Some(input.varint()?),
            PREVIOUS_LOG_NUMBER => self.previous_log_number = Some(input.varint()?),
            FIRST_LOG_NEEDED => self.first_log_needed = Some(input.varint()?),
            NEXT_FILE_NUMBER | FAMILY_MAX => drop(input.varint()?),
            COMPACT_CURSOR => drop((input.varint()?, input.slice()?)),
            DELETED_FILE => self.remove_tables.push((input.varint()?, input.varint()?)),
            NEW_FILE | NEW_FILE_2 | NEW_FILE_3 | NEW_FILE_4 => self.table(tag, input)?,
            FAMILY => self.family = input.varint()?,
            FAMILY_ADD => self.add_family = Some(text(input)?),
            FAMILY_DROP => self.drops_family = true,
            IN_GROUP => self.group_left = Some(input.varint()?),
            BLOB_ADD | BLOB_ADD_OLD => self.add_blobs.push(blobs(input, true)?),
            BLOB_GARBAGE | BLOB_GARBAGE_OLD => self.blob_garbage.push(blobs(input, false)?),
            LOG_ADD_OLD => self.add_logs.push(log(input)?),
            LOG_ADD => self.add_logs.push(log(&mut Input::new(input.slice()?))?),
            LOG_REMOVE_OLD => self.remove_logs_before = Some(input.varint()?),
            LOG_REMOVE => {
                self.remove_logs_before = Some(Input::new(input.slice()?).varint()?);
            }
            _ if tag & CAN_BE_LEFT_OUT != 0 => drop(input.slice()?),
            _ => return None,
        }
        Some(())
    }

    fn table(&mut self, tag: u64, input: &mut Input<'_>) -> Option<()> {
        let (level, number) = (input.varint()?, input.varint()?);
        let mut directory = 0;
        if tag == NEW_FILE_3 {
            directory = u8::try_from(input.varint()?).ok()?;
        }
        let bytes = input.varint()?;
        let (smallest, ..) = split_key(input.slice()?)?;
        let (largest, sequence, kind) = split_key(input.slice()?)?;
        let mut largest_sequence = None;
        if tag != NEW_FILE {
            input.varint()?;
            largest_sequence = Some(input.varint()?);
        }
        if tag == NEW_FILE_4 {
            directory = self.table_fields(input)?;
        }
        self.add_tables.push(TableFile {
            level,
            number,
            bytes,
            smallest: smallest.to_vec(),
            largest: largest.to_vec(),
            is_largest_outside: (sequence, kind) == OUTSIDE,
            largest_sequence,
            directory,
        });
        Some(())
    }

    /// Further fields of a table, up to their end; gives its directory.
    fn table_fields(&mut self, input: &mut Input<'_>) -> Option<u8> {
        let mut directory = 0;
        loop {
            let field = input.varint()?;
            if field == of_table::END {
                return Some(directory);
            }
            let mut value = Input::new(input.slice()?);
            match field {
                of_table::DIRECTORY => directory = value.byte()?,
                of_table::FIRST_LOG_NEEDED => self.first_log_needed = Some(value.fixed64()?),
                _ if field & of_table::MUST_BE_KNOWN != 0 => return None,
                _ => {}
            }
        }
    }
}

fn text(input: &mut Input<'_>) -> Option<String> {
    String::from_utf8(input.slice()?.to_vec()).ok()
}

/// The number of a file of values, and how many of them the edit is about.
fn blobs(input: &mut Input<'_>, is_new: bool) -> Option<(u64, u64)> {
    const END: u64 = 0;
    let (number, count) = (input.varint()?, input.varint()?);
    input.varint()?;
    if is_new {
        // The checksum of the file: its method and its bytes.
        input.slice()?;
        input.slice()?;
    }
    loop {
        match input.varint()? {
            END => return Some((number, count)),
            tag if tag & of_table::MUST_BE_KNOWN != 0 => return None,
            _ => drop(input.slice()?),
        }
    }
}

fn log(input: &mut Input<'_>) -> Option<Log> {
    const END: u64 = 1;
    const SYNCED_BYTES: u64 = 2;
    let mut log = Log { number: input.varint()?, synced_bytes: 0 };
    loop {
        match input.varint()? {
            END => return Some(log),
            SYNCED_BYTES => log.synced_bytes = input.varint()?,
            _ => return None,
        }
    }
}
