//! The metadata journal: two areas used in turn, each a snapshot and the records since.
//!
//! An area begins with a copy of the superblock. Blocks follow, each of whole sectors, each with a
//! checksum that covers its place and the checksum of the block before. When an area is full, and
//! at the first change after opening, a snapshot goes to the other area under the next epoch; it is
//! flushed before anything relies on it.
//!
//! A snapshot that is read may be in a cache only: its flush failed, and the next process reads it
//! all the same. A block behind it, written after that flush, therefore confirms it. The newest
//! confirmed snapshot is the truth, and is durable. Nothing relies on a snapshot before the flush
//! that follows its confirmation; so the next snapshot goes over an unconfirmed one, and not over
//! the one before. Stores of version 1 have no such block.
//!
//! A block also says how many blocks before it were durable when it was written. So an unreadable
//! block that a later one calls durable is damage, and the last block of a crash is not; nor is one
//! of an older epoch, over which a snapshot was being written when power was lost.

use crate::extent::Extent;
use crate::port::{Port, Unread};
use crate::record::{Catalogue, Record};
use crate::superblock::{Places, Superblock};
use base::checksum::hash64_seeded;
use base::coding::Reader;
use base::{Cause, Error, ErrorKind, Result};
use media::block::Overwrite;

const MAGIC: u32 = 0x4c4e_524a;

/// Magic, length, store, epoch, sequence, durable, hash before, hash.
const HEAD_BYTES: usize = 56;

/// Where the checksum stands in the head.
const HASH_AT: usize = 48;

/// Bytes of records in a block, one larger record aside.
const BLOCK_BYTES: usize = 256 << 10;

/// Writes metadata.
pub struct Journal {
    superblock: Superblock,
    areas: [Extent; 2],
    active: usize,
    epoch: u64,
    /// Where the next block goes; `None` before the first snapshot of this opening.
    position: Option<u64>,
    sequence: u64,
    previous: u64,
    durable: u64,
    /// Blocks of this epoch without which an opening would not take its snapshot.
    needed: u64,
}

/// What the areas hold.
pub struct Found {
    pub catalogue: Catalogue,
    pub journal: Journal,
}

struct Block {
    sequence: u64,
    durable: u64,
    previous: u64,
    hash: u64,
    /// Bytes of the block on the device.
    bytes: u64,
    records: Vec<Record>,
}

/// An area as it was read.
struct Replay {
    epoch: u64,
    catalogue: Catalogue,
    is_complete: bool,
    /// The snapshot was flushed, or the version of the store does not tell.
    is_confirmed: bool,
    damage: Option<Damage>,
    /// The device failed to read the place at which the next block would be.
    unread: Option<Unread>,
}

/// A block that was durable and cannot be read.
struct Damage {
    epoch: u64,
    sequence: u64,
    place: u64,
}

impl Journal {
    /// The journal of a device that is being formatted.
    pub fn new(superblock: Superblock, places: &Places) -> Journal {
        Journal {
            superblock,
            areas: places.areas,
            active: 1,
            epoch: 0,
            position: None,
            sequence: 0,
            previous: 0,
            durable: 0,
            needed: 0,
        }
    }

    /// Reads the newest metadata.
    pub fn open(port: &Port, superblock: Superblock, places: &Places) -> Result<Found> {
        let first = replay(port, &superblock, places.areas[0])?;
        let second = replay(port, &superblock, places.areas[1])?;
        let epoch = first.epoch.max(second.epoch);
        let Some(newest) = newest(&first, &second) else {
            if let Some(unread) = first.unread.or(second.unread) {
                return Err(unreadable(port, unread));
            }
            let message = "neither metadata area holds a complete snapshot";
            let place = places.areas[0].start;
            return Err(Error::corruption(port.describe(), place, message));
        };
        let mut areas = [first, second];
        let truth = areas[newest].epoch;
        if let Some(area) = areas.iter_mut().find(|area| area.may_hide(truth, &superblock)) {
            return Err(unreadable(port, area.unread.take().unwrap_or_default()));
        }
        let mut damages = areas.iter().filter_map(|area| area.damage.as_ref());
        if let Some(damage) = damages.find(|damage| damage.epoch >= truth) {
            let sequence = damage.sequence;
            let message = format!("a durable metadata block, number {sequence}, cannot be read");
            return Err(Error::corruption(port.describe(), damage.place, message));
        }
        let [first, second] = areas;
        let catalogue = if newest == 0 { first.catalogue } else { second.catalogue };
        let mut journal = Journal::new(superblock, places);
        (journal.active, journal.epoch) = (newest, epoch);
        Ok(Found { catalogue, journal })
    }

    /// A snapshot of this opening and what confirms it are durable: the next opening takes it,
    /// or a newer one.
    pub fn is_relied_on(&self) -> bool {
        self.position.is_some() && self.durable >= self.needed
    }

    /// The newest epoch of which something was found or written.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Bytes of one area.
    pub fn area_bytes(&self) -> u64 {
        self.areas[0].bytes.min(self.areas[1].bytes)
    }

    /// Writes `records`, which `catalogue` holds already. Durable after the next flush.
    pub fn write(&mut self, port: &Port, catalogue: &Catalogue, records: &[Record]) -> Result<()> {
        port.check_trusted()?;
        if records.is_empty() && self.position.is_some() {
            return Ok(());
        }
        if let Some(position) = self.position {
            let before = (self.sequence, self.previous);
            let blocks = self.blocks(records, position);
            let bytes: u64 = blocks.iter().map(|block| block.len() as u64).sum();
            if position + bytes <= self.areas[self.active].end() {
                return self.put(port, position, &blocks);
            }
            (self.sequence, self.previous) = before;
        }
        self.snapshot(port, catalogue)
    }

    /// All blocks written so far are durable: a flush returned.
    pub fn flushed(&mut self) {
        self.durable = self.sequence;
    }

    /// Puts the whole catalogue into the other area and makes it durable.
    fn snapshot(&mut self, port: &Port, catalogue: &Catalogue) -> Result<()> {
        let next = 1 - self.active;
        let area = self.areas[next];
        let sector_bytes = port.sector_bytes();
        let is_sequential = port.zone(area.start)?.is_some_and(|zone| {
            zone.state != media::block::ZoneState::Conventional && zone.start == area.start
        });
        let before = (self.epoch, self.sequence, self.previous, self.durable);
        (self.epoch, self.sequence, self.previous, self.durable) = (self.epoch + 1, 0, 0, 0);
        let start = area.start + sector_bytes;
        let blocks = self.blocks(&catalogue.snapshot(), start);
        let bytes: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        // 25 % of the area has to remain for the journal, or every change would be a snapshot.
        if start + bytes > area.end() - area.bytes / 4 {
            (self.epoch, self.sequence, self.previous, self.durable) = before;
            let message = "the metadata area is full: there are too many files or parts of files";
            return Err(Error::new(ErrorKind::NoSpace, message).in_file(port.describe()));
        }
        let confirms = self.superblock.confirms_snapshots();
        if self.position.is_none() && !confirms {
            // What was found at opening may be in a cache only, and what it follows lies in `area`.
            port.flush(Cause::StoreMetadata)?;
        }
        if is_sequential {
            port.reset_zone(area.start)?;
        } else if matches!(port.geometry().overwrite, Overwrite::DestroysDownstream { .. }) {
            // What an older epoch left behind the snapshot is destroyed by writing it.
            port.discard(area.start, area.bytes);
        }
        port.write(area.start, &self.superblock.encode(), Cause::StoreMetadata)
            .map_err(|error| port.distrust(error))?;
        self.put_last(port, start, &blocks, is_sequential)?;
        port.flush(Cause::StoreMetadata)?;
        self.flushed();
        if let (true, Some(position)) = (confirms, self.position) {
            let blocks = self.blocks(&[Record::Complete(catalogue.next)], position);
            self.put_last(port, position, &blocks, is_sequential)?;
        }
        self.needed = self.sequence;
        self.active = next;
        Ok(())
    }

    /// Puts blocks where an older epoch may have left others.
    fn put_last(
        &mut self,
        port: &Port,
        position: u64,
        blocks: &[Vec<u8>],
        is_sequential: bool,
    ) -> Result<()> {
        self.put(port, position, blocks)?;
        if let (false, Some(position)) = (is_sequential, self.position) {
            // What stood here may continue an older snapshot of the same epoch.
            port.write(position, &vec![0; port.sector_bytes() as usize], Cause::StoreMetadata)
                .map_err(|error| port.distrust(error))?;
        }
        Ok(())
    }

    fn put(&mut self, port: &Port, position: u64, blocks: &[Vec<u8>]) -> Result<()> {
        let all = blocks.concat();
        port.write(position, &all, Cause::StoreMetadata).map_err(|error| port.distrust(error))?;
        self.position = Some(position + all.len() as u64);
        Ok(())
    }

    /// The blocks that hold `records`, the first of them at `position`.
    fn blocks(&mut self, records: &[Record], position: u64) -> Vec<Vec<u8>> {
        let mut blocks = Vec::new();
        let (mut payload, mut at) = (Vec::new(), position);
        for (index, record) in records.iter().enumerate() {
            record.encode(&mut payload);
            if payload.len() >= BLOCK_BYTES || index + 1 == records.len() {
                let block = self.block(&payload, at);
                at += block.len() as u64;
                blocks.push(block);
                payload.clear();
            }
        }
        blocks
    }

    fn block(&mut self, payload: &[u8], position: u64) -> Vec<u8> {
        let mut block = MAGIC.to_le_bytes().to_vec();
        block.extend((payload.len() as u32).to_le_bytes());
        for number in
            [self.superblock.store, self.epoch, self.sequence, self.durable, self.previous, 0]
        {
            block.extend(number.to_le_bytes());
        }
        block.extend(payload);
        let sector_bytes = self.superblock.sector_bytes as usize;
        block.resize(block.len().next_multiple_of(sector_bytes), 0);
        let hash = hash64_seeded(&block, position);
        block[HASH_AT..HEAD_BYTES].copy_from_slice(&hash.to_le_bytes());
        (self.sequence, self.previous) = (self.sequence + 1, hash);
        block
    }
}

impl Replay {
    /// Whether a durable block of epoch `truth` or a newer one may be where the device failed to
    /// read. Behind the first block of a snapshot that was relied on, another one tells its epoch:
    /// only if more than one sector is bad, they may hide both.
    fn may_hide(&self, truth: u64, superblock: &Superblock) -> bool {
        let sector_bytes = u64::from(superblock.sector_bytes);
        self.unread.as_ref().is_some_and(|unread| {
            let hides_all = unread.bytes() > sector_bytes || !superblock.confirms_snapshots();
            let is_known = self.epoch > 0;
            let is_damaged = self.damage.as_ref().is_some_and(|damage| damage.epoch >= truth);
            is_damaged || if is_known { self.epoch >= truth } else { hides_all }
        })
    }
}

/// What an opening says that would have to guess what the bad sectors hold.
fn unreadable(port: &Port, unread: Unread) -> Error {
    let cause = unread.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
    let message = format!(
        "the device fails to read {} bytes of metadata, which no other copy has; opening without \
         them could lose synced changes{cause}",
        unread.bytes()
    );
    Error::new(ErrorKind::Io, message).in_file(port.describe())
}

/// Which of the areas is the truth; `None` if none holds a complete snapshot.
fn newest(first: &Replay, second: &Replay) -> Option<usize> {
    let areas = [first, second];
    let by_epoch = |index: &usize| areas[*index].epoch;
    let confirmed = [1, 0].into_iter().filter(|index| areas[*index].is_confirmed);
    let complete = [0, 1].into_iter().filter(|index| areas[*index].is_complete);
    // Without a confirmed one, the newer one was never relied on.
    confirmed.max_by_key(by_epoch).or_else(|| complete.min_by_key(by_epoch))
}

/// Bytes of the block that seems to begin at the start of `bytes`.
fn block_bytes(bytes: &[u8], superblock: &Superblock) -> Option<u64> {
    let mut head = Reader::new(bytes);
    if head.u32()? != MAGIC {
        return None;
    }
    let bytes = HEAD_BYTES as u64 + u64::from(head.u32()?);
    Some(bytes.next_multiple_of(u64::from(superblock.sector_bytes)))
}

/// The block at the start of `bytes`, which lie at `position`; `None` if there is none of `epoch`.
fn decode(bytes: &[u8], position: u64, superblock: &Superblock) -> Option<(u64, Block)> {
    let mut head = Reader::new(bytes);
    if head.u32()? != MAGIC {
        return None;
    }
    let payload_bytes = head.u32()? as usize;
    let store = head.u64()?;
    let (epoch, sequence, durable) = (head.u64()?, head.u64()?, head.u64()?);
    let (previous, hash) = (head.u64()?, head.u64()?);
    let block = bytes.get(..block_bytes(bytes, superblock)? as usize)?;
    if store != superblock.store {
        return None;
    }
    let mut unsigned = block.to_vec();
    unsigned[HASH_AT..HEAD_BYTES].fill(0);
    if hash64_seeded(&unsigned, position) != hash {
        return None;
    }
    let mut reader = Reader::new(block.get(HEAD_BYTES..HEAD_BYTES + payload_bytes)?);
    let mut records = Vec::new();
    while !reader.is_empty() {
        records.push(Record::decode(&mut reader)?);
    }
    let bytes = block.len() as u64;
    Some((epoch, Block { sequence, durable, previous, hash, bytes, records }))
}

/// Reads an area: the snapshot, and the blocks after it as far as they chain.
fn replay(port: &Port, superblock: &Superblock, area: Extent) -> Result<Replay> {
    let sector_bytes = port.sector_bytes();
    let (mut bytes, mut unread) = (vec![0; area.bytes as usize], Unread::default());
    for (index, piece) in bytes.chunks_mut(1 << 20).enumerate() {
        let place = area.start + (index << 20) as u64;
        unread.extend(port.salvage(place, piece, Cause::Recovery)?);
    }
    let at = |offset: u64| bytes.get(offset as usize..).unwrap_or_default();
    let catalogue = Catalogue::default();
    let mut replay = Replay {
        epoch: 0,
        catalogue,
        is_complete: false,
        is_confirmed: false,
        damage: None,
        unread: None,
    };
    let mut snapshot_blocks = None;
    let (mut offset, mut sequence, mut previous) = (sector_bytes, 0, 0);
    while let Some((epoch, block)) = decode(at(offset), area.start + offset, superblock) {
        let continues = if sequence == 0 { block.sequence == 0 } else { epoch == replay.epoch };
        if !continues || block.sequence != sequence || block.previous != previous {
            break;
        }
        replay.epoch = epoch;
        for record in &block.records {
            replay.catalogue.apply(record);
            replay.is_complete |= matches!(record, Record::Complete(_));
        }
        if replay.is_complete {
            let blocks = *snapshot_blocks.get_or_insert(sequence + 1);
            replay.is_confirmed |= !superblock.confirms_snapshots() || block.durable >= blocks;
        }
        (sequence, previous) = (sequence + 1, block.hash);
        offset += block.bytes;
    }
    // Whether a block behind the first unreadable one knows that one as durable: of its epoch, or
    // of a newer one, of which then nothing is found at the beginning.
    let place = area.start + offset;
    let block_bytes = block_bytes(at(offset), superblock).unwrap_or(sector_bytes);
    if unread.overlaps(Extent { start: place, bytes: block_bytes }) {
        replay.unread = Some(unread);
    }
    while offset + sector_bytes <= area.bytes {
        if let Some((epoch, block)) = decode(at(offset), area.start + offset, superblock) {
            let sequence = if epoch == replay.epoch { sequence } else { 0 };
            let known = replay.damage.as_ref().map_or(replay.epoch, |damage| damage.epoch);
            if epoch >= known && block.durable > sequence {
                replay.damage = Some(Damage { epoch, sequence, place });
            }
        }
        offset += sector_bytes;
    }
    Ok(replay)
}
