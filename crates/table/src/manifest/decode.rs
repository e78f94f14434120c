//! Bytes to edits. Total: whatever the bytes, an edit within the limits, `Corruption` or
//! `Incompatible`, in memory that their length explains.

use super::{VERSION, change_tag, edit_tag};
use base::coding::Reader;
use base::key::{KEY_BYTES_MAX, SEQUENCE_MAX};
use base::{
    DatabaseId, Error, ErrorKind, Expiry, ExpirySpan, FileId, Key, KeyRange, KeyspaceId, Result,
    RunId, SequenceNumber,
};
use media::FileName;
use tree::edit::{KeyspaceRecord, RunRecord, SliceRecord};
use tree::segments::GROUP_DEPTH_MAX;
use tree::{Change, DatabaseEdit, Group, KeyspaceEdit, KnownKeys, NodeId, SegmentChange, Tier};

/// A range may end right behind the longest key.
const BOUND_BYTES_MAX: usize = KEY_BYTES_MAX + 1;

/// Why bytes are not an edit; the caller adds the place.
#[derive(Debug)]
enum Fault {
    Damage(&'static str),
    Unknown(String),
}

type Decoded<T> = std::result::Result<T, Fault>;

/// Reads the edit that `bytes` are, all of them. `file` and `offset` say where they stand, for
/// errors. No bytes at all are an edit that changes nothing: such a record proves that the one
/// before it was durable. `Incompatible`, naming it, for a version or a required tag of a newer
/// program; `Corruption` for everything else that is no edit.
pub fn decode_edit(bytes: &[u8], file: FileName, offset: u64) -> Result<DatabaseEdit> {
    edit(bytes).map_err(|fault| {
        let (kind, message) = match fault {
            Fault::Damage(what) => {
                (ErrorKind::Corruption, format!("an edit of the database does not decode: {what}"))
            }
            Fault::Unknown(message) => (ErrorKind::Incompatible, message),
        };
        Error::new(kind, message).in_file(file.to_string()).at(offset)
    })
}

fn edit(bytes: &[u8]) -> Decoded<DatabaseEdit> {
    if bytes.is_empty() {
        return Ok(DatabaseEdit::default());
    }
    let mut fields = Reader::new(bytes);
    let version = need(fields.byte(), "no version")?;
    if version != VERSION {
        return Err(Fault::Unknown(format!(
            "an edit of version {version}; this program knows version {VERSION}"
        )));
    }
    let mut edit = DatabaseEdit::default();
    while !fields.is_empty() {
        let (tag, mut body) = field(&mut fields)?;
        match tag {
            edit_tag::CREATED => edit.created.push(created(&mut body)?),
            edit_tag::DROPPED => edit.dropped.push(keyspace_id(&mut body)?),
            edit_tag::KEYSPACE => edit.keyspaces.push(keyspace_edit(&mut body)?),
            edit_tag::NEXT_FILE => once(&mut edit.next_file, number(&mut body)?)?,
            edit_tag::NEXT_RUN => once(&mut edit.next_run, number(&mut body)?)?,
            edit_tag::NEXT_KEYSPACE => once(&mut edit.next_keyspace, keyspace_id(&mut body)?.0)?,
            edit_tag::LAST_SEQUENCE => once(&mut edit.last_sequence, sequence(&mut body)?)?,
            edit_tag::LOG_FLOOR => once(&mut edit.log_floor, FileId(number(&mut body)?))?,
            edit_tag::COLD_MARK => once(&mut edit.cold_mark, number(&mut body)?)?,
            _ => {
                skip_optional(tag, "an edit of the database")?;
                continue;
            }
        }
        expect_end(&body)?;
    }
    Ok(edit)
}

fn keyspace_edit(body: &mut Reader<'_>) -> Decoded<KeyspaceEdit> {
    let keyspace = keyspace_id(body)?;
    let mut changes = Vec::new();
    while !body.is_empty() {
        let (tag, mut change_body) = field(body)?;
        if let Some(change) = change(tag, &mut change_body)? {
            expect_end(&change_body)?;
            changes.push(change);
        }
    }
    Ok(KeyspaceEdit { keyspace, changes })
}

/// The change with `tag`; `None` for an optional one that is unknown.
fn change(tag: u64, body: &mut Reader<'_>) -> Decoded<Option<Change>> {
    let change = match tag {
        change_tag::FILE => Change::File { file: FileId(number(body)?), bytes: number(body)? },
        change_tag::INGESTED_FILE => Change::IngestedFile {
            file: FileId(number(body)?),
            bytes: number(body)?,
            identity: DatabaseId(need(body.u64(), "no identity of a file")?),
        },
        change_tag::ADD_RUN => Change::AddRun(run(body)?),
        change_tag::ADD_EXPIRING_RUN => {
            let run = run(body)?;
            Change::AddRun(RunRecord { expiry: Some(expiry(body)?), ..run })
        }
        change_tag::ALLOW_EXPIRY => Change::AllowExpiry,
        change_tag::ADD_NODE => {
            let (level, node) = place(body)?;
            Change::AddNode { level, node, range: range(body)?, slices: slices(body)? }
        }
        change_tag::REMOVE_NODE => {
            let (level, node) = place(body)?;
            Change::RemoveNode { level, node }
        }
        change_tag::PUSH_SLICES => {
            let (level, node) = place(body)?;
            Change::PushSlices { level, node, slices: slices(body)? }
        }
        change_tag::REMOVE_SLICES => {
            let (level, node) = place(body)?;
            let runs = list(body, |body| Ok(RunId(number(body)?)))?;
            Change::RemoveSlices { level, node, runs }
        }
        change_tag::NARROW_SLICE => {
            let (level, node) = place(body)?;
            Change::NarrowSlice { level, node, run: RunId(number(body)?), to: slices(body)? }
        }
        change_tag::SET_RANGE => {
            let (level, node) = place(body)?;
            Change::SetRange { level, node, range: range(body)? }
        }
        change_tag::SET_FLUSHED => Change::SetFlushed { sequence: sequence(body)? },
        change_tag::SET_CURSOR => {
            let level = need(body.byte(), "no level")?;
            Change::SetCursor { level, key: optional_key(body)? }
        }
        change_tag::ADD_SEGMENT
        | change_tag::CONFIRM_SEGMENT
        | change_tag::GROW_SEGMENT
        | change_tag::BURY_VALUES
        | change_tag::RETIRE_SEGMENT
        | change_tag::REMOVE_SEGMENT => {
            let file = FileId(number(body)?);
            Change::Segment { file, change: segment_change(tag, body)? }
        }
        _ => {
            skip_optional(tag, "a change of a keyspace")?;
            return Ok(None);
        }
    };
    Ok(Some(change))
}

/// What an edit says of a segment, under one of the tags of segments.
fn segment_change(tag: u64, body: &mut Reader<'_>) -> Decoded<SegmentChange> {
    Ok(match tag {
        change_tag::ADD_SEGMENT => {
            let (group, marks) = group(body)?;
            let (is_provisional, is_in_cold_store) = (marks & 1 != 0, marks & 2 != 0);
            SegmentChange::Add { group, bytes: number(body)?, is_provisional, is_in_cold_store }
        }
        change_tag::CONFIRM_SEGMENT => SegmentChange::Confirm,
        change_tag::GROW_SEGMENT => SegmentChange::Grow(number(body)?),
        change_tag::BURY_VALUES => SegmentChange::Bury(number(body)?),
        change_tag::RETIRE_SEGMENT => SegmentChange::Retire(sequence(body)?),
        _ => SegmentChange::Remove,
    })
}

/// A group, and the marks of its segment: 1, it is provisional; 2, it is in the cold store.
fn group(body: &mut Reader<'_>) -> Decoded<(Group, u8)> {
    let tier = need(body.byte().and_then(Tier::from_byte), "no tier of a group")?;
    let marks = need(body.byte().filter(|&marks| marks < 4), "no marks of a segment")?;
    let depth = need(body.byte().filter(|&d| d <= GROUP_DEPTH_MAX), "no depth of a group")?;
    let bytes = need(body.take(usize::from(depth).div_ceil(8)), "no bits of a group")?;
    let prefix = bytes.iter().zip([56, 48, 40]).map(|(&b, shift)| u64::from(b) << shift).sum();
    let group = Group { tier, prefix, depth };
    need(group.is_valid().then_some((group, marks)), "bits of a group beyond its depth")
}

fn created(body: &mut Reader<'_>) -> Decoded<KeyspaceRecord> {
    Ok(KeyspaceRecord { id: keyspace_id(body)?, name: text(body)?, options: text(body)? })
}

fn run(body: &mut Reader<'_>) -> Decoded<RunRecord> {
    let run = RunRecord {
        id: RunId(number(body)?),
        file: FileId(number(body)?),
        offset: number(body)?,
        bytes: number(body)?,
        range: range(body)?,
        entries: number(body)?,
        deletes: number(body)?,
        range_deletes: number(body)?,
        sequence_min: sequence(body)?,
        sequence_max: sequence(body)?,
        expiry: None,
        keys: KnownKeys::default(),
    };
    need(run.offset.checked_add(run.bytes), "a run that ends nowhere")?;
    Ok(run)
}

fn expiry(body: &mut Reader<'_>) -> Decoded<ExpirySpan> {
    let entries = number(body)?;
    let (first, last) = (Expiry::from_millis(number(body)?), Expiry::from_millis(number(body)?));
    let span = ExpirySpan { entries, first, last };
    need((entries > 0 && first <= last).then_some(span), "no span of expiries")
}

fn slices(body: &mut Reader<'_>) -> Decoded<Vec<SliceRecord>> {
    list(body, |body| {
        Ok(SliceRecord { run: RunId(number(body)?), range: range(body)?, bytes: number(body)? })
    })
}

/// A counted list. It grows as its items are read, so a false count costs nothing.
fn list<T>(body: &mut Reader<'_>, item: impl Fn(&mut Reader<'_>) -> Decoded<T>) -> Decoded<Vec<T>> {
    let count = number(body)?;
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(item(body)?);
    }
    Ok(items)
}

fn field<'a>(fields: &mut Reader<'a>) -> Decoded<(u64, Reader<'a>)> {
    let tag = need(fields.varint(), "no tag")?;
    let body = need(fields.bytes(), "a field longer than its edit")?;
    Ok((tag, Reader::new(body)))
}

fn skip_optional(tag: u64, of: &str) -> Decoded<()> {
    if tag % 2 == 1 {
        return Ok(());
    }
    Err(Fault::Unknown(format!(
        "{of} has the required tag {tag}, which this program does not know"
    )))
}

fn once<T>(slot: &mut Option<T>, value: T) -> Decoded<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Fault::Damage("a field that stands once stands twice")),
    }
}

fn place(body: &mut Reader<'_>) -> Decoded<(u8, NodeId)> {
    Ok((need(body.byte(), "no level")?, NodeId(number(body)?)))
}

fn range(body: &mut Reader<'_>) -> Decoded<KeyRange> {
    Ok(KeyRange { start: key(body)?, end: optional_key(body)? })
}

fn optional_key(body: &mut Reader<'_>) -> Decoded<Option<Key>> {
    match body.byte() {
        Some(0) => Ok(None),
        Some(1) => key(body).map(Some),
        _ => Err(Fault::Damage("no mark of an optional key")),
    }
}

fn key(body: &mut Reader<'_>) -> Decoded<Key> {
    let key = body.bytes().filter(|key| key.len() <= BOUND_BYTES_MAX);
    need(key, "no key, or one that is too long").map(Key::from)
}

fn text(body: &mut Reader<'_>) -> Decoded<String> {
    let text = body.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok());
    need(text, "no text").map(str::to_owned)
}

fn keyspace_id(body: &mut Reader<'_>) -> Decoded<KeyspaceId> {
    need(body.varint_u32(), "no keyspace").map(KeyspaceId)
}

fn sequence(body: &mut Reader<'_>) -> Decoded<SequenceNumber> {
    let sequence = number(body)?;
    need((sequence <= SEQUENCE_MAX).then_some(sequence), "a sequence number beyond the largest")
}

fn number(body: &mut Reader<'_>) -> Decoded<u64> {
    need(body.varint(), "no number")
}

fn need<T>(found: Option<T>, missing: &'static str) -> Decoded<T> {
    found.ok_or(Fault::Damage(missing))
}

fn expect_end(body: &Reader<'_>) -> Decoded<()> {
    need(body.is_empty().then_some(()), "bytes behind the end of a field")
}
