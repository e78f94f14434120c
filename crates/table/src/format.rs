//! The fixed pieces of a table file: header, footers, handles and the numbers that name them.
//!
//! Every piece carries a checksum with its place. Data blocks carry CRC-32C, everything else
//! XXH3-64. See `docs/format/table.md`.

use crate::piece::{self, BlockKind};
use crate::place::TablePlace;
use base::coding::Reader;
use base::{Cause, Error, ErrorKind, Result, RunId};
use media::ReadFile;

/// The version of the format; in the header and in every footer.
pub const FORMAT_VERSION: u32 = 1;

/// The first bytes of a table file.
pub const HEADER_MAGIC: [u8; 8] = *b"SHNGLTBL";

/// The last bytes of a run.
pub const FOOTER_MAGIC: [u8; 8] = *b"SHNGLRUN";

/// Bytes of the file header.
pub const HEADER_BYTES: u64 = 36;

/// Bytes of the footer of a run.
pub const FOOTER_BYTES: u64 = 128;

/// Where a block lies: its place in the file and its stored bytes without the trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// Byte offset in the file.
    pub offset: u64,
    /// Stored bytes, trailer not counted.
    pub bytes: u32,
}

impl Handle {
    /// Appends the handle: offset in eight bytes, length in four. Fixed widths, because every
    /// lookup decodes two.
    pub fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
    }

    /// Reads a handle off the front.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Option<Handle> {
        Some(Handle { offset: reader.u64()?, bytes: reader.u32()? })
    }

    /// The first byte after the block and its trailer. Saturates for hostile handles.
    pub fn end(self, kind: BlockKind) -> u64 {
        self.offset.saturating_add(u64::from(self.bytes) + kind.trailer_bytes() as u64)
    }
}

/// The file header: magic, version, database, file, checksum.
pub fn header(place: TablePlace) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES as usize);
    out.extend_from_slice(&HEADER_MAGIC);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&place.database.0.to_le_bytes());
    out.extend_from_slice(&place.file.0.to_le_bytes());
    let sum = place.at(0, piece::HEADER).hash64(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// Reads the header of `file` and compares it with `place`. `Incompatible`: not a table file of
/// ours, of another database, or of a newer version. `Corruption`: damaged.
pub fn check_header(file: &dyn ReadFile, place: TablePlace, cause: Cause) -> Result<()> {
    let mut found = [0; HEADER_BYTES as usize];
    file.read_at(0, &mut found, cause)?;
    let expected = header(place);
    if found[..] == expected[..] {
        return Ok(());
    }
    let name = file.name().to_string();
    let foreign = |message: String| {
        Err(Error::new(ErrorKind::Incompatible, message).in_file(name.clone()).at(0))
    };
    if found[..8] != HEADER_MAGIC {
        return Err(Error::corruption(name, 0, "this is not the header of a table file"));
    }
    let mut reader = Reader::new(&found[8..]);
    let (version, database, id) = (reader.u32(), reader.u64(), reader.u64());
    let sum = reader.u64();
    let theirs = TablePlace {
        database: base::DatabaseId(database.unwrap_or_default()),
        file: base::FileId(id.unwrap_or_default()),
    };
    if sum != Some(theirs.at(0, piece::HEADER).hash64(&found[..28])) {
        return Err(Error::corruption(name, 0, "the checksum of the table file's header is wrong"));
    }
    if version != Some(FORMAT_VERSION) {
        let version = version.unwrap_or_default();
        return foreign(format!("table format {version}; this program knows {FORMAT_VERSION}"));
    }
    foreign(format!("the file is {theirs:?}, expected {place:?}"))
}

/// Which table file a sound header says that `file` is, whatever its name. `None`: it has none.
pub fn header_place(file: &dyn ReadFile, cause: Cause) -> Result<Option<TablePlace>> {
    let mut found = [0; HEADER_BYTES as usize];
    if file.len()? < HEADER_BYTES {
        return Ok(None);
    }
    file.read_at(0, &mut found, cause)?;
    let mut reader = Reader::new(&found[12..]);
    let (Some(database), Some(id)) = (reader.u64(), reader.u64()) else { return Ok(None) };
    let place = TablePlace { database: base::DatabaseId(database), file: base::FileId(id) };
    Ok((found[..] == header(place)[..]).then_some(place))
}

/// The end of a run: where everything in it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// The run.
    pub run: RunId,
    /// Where its extent begins in the file.
    pub start: u64,
    /// Bytes of its extent, the footer included.
    pub bytes: u64,
    /// Point entries.
    pub entries: u64,
    /// Range tombstones.
    pub range_deletes: u64,
    /// 1: the top index points at data blocks. 2: it points at index blocks and their filters.
    pub index_levels: u32,
    /// The first byte after the data blocks, where filter blocks begin.
    pub data_end: u64,
    /// The first byte after the filter blocks, where index blocks of a two-level index begin.
    pub filters_end: u64,
    /// The filter block of a one-level index.
    pub filter: Option<Handle>,
    /// The block of range tombstones, if there are any.
    pub tombstones: Option<Handle>,
    /// The top index.
    pub top: Handle,
    /// The run's summary.
    pub summary: Handle,
}

impl Footer {
    /// The handle of a `kind` block, and of a filter if one follows, in an index entry's value.
    /// `None`: they are not inside the run.
    #[inline]
    pub(crate) fn handles(
        &self,
        value: &[u8],
        kind: BlockKind,
    ) -> Option<(Handle, Option<Handle>)> {
        let mut reader = Reader::new(value);
        let handle = Handle::read(&mut reader);
        let filter = if reader.is_empty() { None } else { Handle::read(&mut reader) };
        let inside = |handle: &Handle, kind: BlockKind| {
            let (low, high) = match kind {
                BlockKind::Data => (self.start, self.data_end),
                BlockKind::Filter => (self.data_end, self.filters_end),
                _ => (self.filters_end, self.pinned_start()),
            };
            low <= handle.offset && handle.end(kind) <= high
        };
        let handle = handle.filter(|handle| inside(handle, kind))?;
        let is_inside = filter.is_none_or(|filter| inside(&filter, BlockKind::Filter));
        is_inside.then_some((handle, filter))
    }

    /// The footer as it stands at the end of the extent.
    pub fn encode(&self, place: TablePlace) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES as usize);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&self.index_levels.to_le_bytes());
        for word in [
            self.run.0,
            self.start,
            self.bytes,
            self.entries,
            self.range_deletes,
            self.data_end,
            self.filters_end,
        ] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for handle in [self.filter, self.tombstones, Some(self.top), Some(self.summary)] {
            handle.unwrap_or_default().push(&mut out);
        }
        let offset = self.start + self.bytes - FOOTER_BYTES;
        let sum = place.at(offset, piece::FOOTER).hash64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&FOOTER_MAGIC);
        out
    }

    /// Reads the footer that ends where `bytes` ends, at byte `end` of the file. Says what is wrong
    /// otherwise.
    pub fn decode(
        bytes: &[u8],
        end: u64,
        place: TablePlace,
    ) -> std::result::Result<Footer, &'static str> {
        let bytes = bytes.last_chunk::<{ FOOTER_BYTES as usize }>().ok_or("too short a run")?;
        let offset = end.checked_sub(FOOTER_BYTES).ok_or("too short a file")?;
        let (body, tail) = bytes.split_at(FOOTER_BYTES as usize - 16);
        let (sum, magic) = tail.split_at(8);
        if magic != FOOTER_MAGIC {
            return Err("no run ends here");
        }
        if sum != place.at(offset, piece::FOOTER).hash64(body).to_le_bytes() {
            return Err("the checksum of the run's footer is wrong");
        }
        let footer = Footer::decode_body(body).ok_or("the run's footer is malformed")?;
        footer.check(end)?;
        Ok(footer)
    }

    fn decode_body(body: &[u8]) -> Option<Footer> {
        let mut reader = Reader::new(body);
        if reader.u32()? != FORMAT_VERSION {
            return None;
        }
        let index_levels = reader.u32()?;
        let mut footer = Footer {
            index_levels,
            run: RunId(reader.u64()?),
            start: reader.u64()?,
            bytes: reader.u64()?,
            entries: reader.u64()?,
            range_deletes: reader.u64()?,
            data_end: reader.u64()?,
            filters_end: reader.u64()?,
            ..Footer::default()
        };
        let present = |handle: Handle| (handle != Handle::default()).then_some(handle);
        footer.filter = present(Handle::read(&mut reader)?);
        footer.tombstones = present(Handle::read(&mut reader)?);
        footer.top = Handle::read(&mut reader)?;
        footer.summary = Handle::read(&mut reader)?;
        reader.is_empty().then_some(footer)
    }

    /// The pieces lie one after another from `start` to `end` and leave no byte between them.
    fn check(&self, end: u64) -> std::result::Result<(), &'static str> {
        let ends_here = self.start.checked_add(self.bytes) == Some(end);
        let filters = match self.filter {
            Some(filter) => {
                filter.offset == self.data_end && filter.end(BlockKind::Filter) == self.filters_end
            }
            None => self.index_levels == 2 || self.filters_end == self.data_end,
        };
        let pinned = self.pinned_start();
        let index = match self.index_levels {
            1 => pinned == self.filters_end,
            2 => pinned > self.filters_end && self.filter.is_none(),
            _ => false,
        };
        let tombstones = self.tombstones.is_none_or(|h| h.end(BlockKind::Top) == self.top.offset);
        let tail = self.top.end(BlockKind::Top) == self.summary.offset
            && self.summary.end(BlockKind::Top) == end.saturating_sub(FOOTER_BYTES);
        let ordered = self.start <= self.data_end && self.data_end <= self.filters_end;
        if ends_here && filters && index && tombstones && tail && ordered {
            Ok(())
        } else {
            Err("the pieces of the run do not fill its extent")
        }
    }

    /// Where the pieces begin that are kept in memory while the run is open.
    pub fn pinned_start(&self) -> u64 {
        self.tombstones.map_or(self.top.offset, |handle| handle.offset)
    }
}

/// Walks back from byte `end` of a file and gives the footers of its runs, last run first. Stops at
/// the header, or with the error that says where no run ends.
pub fn footers_backwards(
    file: &dyn ReadFile,
    place: TablePlace,
    mut end: u64,
    cause: Cause,
) -> (Vec<Footer>, Option<Error>) {
    let mut footers = Vec::new();
    while end > HEADER_BYTES {
        let mut bytes = [0; FOOTER_BYTES as usize];
        let at = end.saturating_sub(FOOTER_BYTES);
        if let Err(error) = file.read_at(at, &mut bytes, cause) {
            return (footers, Some(error));
        }
        match Footer::decode(&bytes, end, place) {
            Ok(footer) => {
                end = footer.start;
                footers.push(footer);
            }
            Err(what) => {
                return (footers, Some(Error::corruption(file.name().to_string(), at, what)));
            }
        }
    }
    (footers, None)
}
