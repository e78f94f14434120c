//! From a device to a store: metadata, the frames of logs, and what is in use.

use super::inner::{DirectOptions, Inner, State, rewrites_sectors};
use super::write::cut_pieces;
use crate::extent::Extent;
use crate::frame::{self, FRAME_BYTES};
use crate::journal::Journal;
use crate::node::{Freed, Held, Node, NodeState};
use crate::placement::{self, Placement};
use crate::port::Port;
use crate::record::{FileRecord, Part, Record};
use crate::superblock::{self, Places};
use base::{Cause, Error, Result};
use media::block::{DeviceLock, Zone, ZoneState};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Numbers that one epoch may give out: its metadata has no space to describe as many files.
const EPOCH_NUMBERS: u64 = 1 << 32;

/// Bytes of a log read at a time.
const READ_BYTES: u64 = 1 << 20;

pub(super) fn recover(port: Arc<Port>, options: DirectOptions, lock: DeviceLock) -> Result<Inner> {
    let superblock = superblock::find(&port)?;
    let geometry = port.geometry();
    let places = Places::of(&geometry, superblock.version)?;
    let chosen = placement::find(&superblock.placement, &geometry)?;
    let mut placement = chosen.make(geometry, places.data, superblock.unit_bytes);
    let found = Journal::open(&port, superblock.clone(), &places)?;
    let freed = Freed::default();
    let mut names = BTreeMap::new();
    let mut cut = Vec::new();
    for file in found.catalogue.files.values() {
        let state = state_of(&port, superblock.store, file)?;
        for held in state.held.iter().filter(|held| held.extent.bytes > 0) {
            adopt(&port, &places, placement.as_mut(), file, held.extent)?;
        }
        let sector_bytes = port.sector_bytes();
        let node =
            Node::new(file.number, file.name, file.is_log, sector_bytes, state, freed.clone());
        let record = node.record();
        if !file.is_log && record != *file {
            cut.push(Record::File(record));
        }
        if names.insert(file.name, Arc::new(node)).is_some() {
            let message = "two files of one name are in the metadata";
            return Err(Error::corruption(file.name.to_string(), 0, message));
        }
    }
    if let Some(zones) = geometry.zones {
        let starts = (places.data.start..places.data.end()).step_by(zones.zone_bytes as usize);
        for start in starts {
            if let Some(zone) = port.zone(start)? {
                placement.observe(&zone);
            }
        }
    }
    let rewrites_sectors = rewrites_sectors(&geometry);
    let (mut catalogue, journal, pending) = (found.catalogue, found.journal, Vec::new());
    // Power loss may have kept frames of a log, and have lost the metadata that knew their
    // generation. No opening gives it out again: each begins with an epoch and with numbers of its
    // own, and its epoch is durable before a frame of it is written.
    let first = (journal.epoch() + 1).saturating_mul(EPOCH_NUMBERS);
    catalogue.next = catalogue.next.max(first);
    // In the snapshot that comes before the first write.
    cut.iter().for_each(|record| catalogue.apply(record));
    let state = Mutex::new(State {
        names,
        catalogue,
        pending,
        flushes: 0,
        journal,
        placement,
        reserve_bytes: 0,
    });
    let is_locked = AtomicBool::new(false);
    Ok(Inner {
        port,
        superblock,
        places,
        options,
        rewrites_sectors,
        tears_sectors: geometry.atomic_bytes < geometry.sector_bytes,
        freed,
        state,
        is_locked,
        _lock: lock,
    })
}

fn adopt(
    port: &Port,
    places: &Places,
    placement: &mut dyn Placement,
    file: &FileRecord,
    extent: Extent,
) -> Result<()> {
    let is_whole = extent.start.is_multiple_of(port.sector_bytes());
    if !is_whole || !places.data.contains(extent) || !placement.adopt(extent) {
        let message = format!(
            "the metadata places {} bytes of {} where they cannot be, or where another file is",
            extent.bytes, file.name
        );
        return Err(Error::corruption(port.describe(), extent.start, message));
    }
    Ok(())
}

/// The file that a record describes.
fn state_of(port: &Port, store: u64, file: &FileRecord) -> Result<NodeState> {
    let sector_bytes = port.sector_bytes();
    let mut state = NodeState::default();
    if !file.is_log {
        for part in &file.parts {
            let there_bytes = part.bytes.min(written_bytes(port, part.start)?);
            let bytes = there_bytes.checked_next_multiple_of(sector_bytes).unwrap_or(u64::MAX);
            let extent = Extent { start: part.start, bytes };
            if bytes > 0 || part.bytes == 0 {
                state.held.push(Held { extent, logical: state.tail_start(), generation: 0 });
                state.push_piece(part.start, there_bytes, sector_bytes, sector_bytes);
            }
            if there_bytes < part.bytes {
                break;
            }
        }
        return Ok(state);
    }
    for (index, part) in file.parts.iter().enumerate() {
        let limit = file.parts.get(index + 1).map_or(u64::MAX, |next| next.logical);
        let gap = part.logical.saturating_sub(state.tail_start());
        state.push_hole(gap);
        let extent = Extent { start: part.start, bytes: part.bytes };
        state.held.push(Held { extent, logical: part.logical, generation: part.generation });
        let used_bytes = read_frames(port, store, part, limit, &mut state)?;
        match state.held.last_mut() {
            Some(held) if used_bytes > 0 || part.bytes == 0 => held.extent.bytes = used_bytes,
            _ => drop(state.held.pop()),
        }
    }
    let missing = file.bytes.saturating_sub(state.tail_start());
    state.push_hole(missing);
    Ok(state)
}

/// Bytes from `start` to the write pointer of its zone. What metadata places behind that was never
/// synced: it survived power loss alone, and other files will be written there.
fn written_bytes(port: &Port, start: u64) -> Result<u64> {
    let geometry = port.geometry();
    if geometry.zones.is_none() || start >= geometry.capacity_bytes {
        return Ok(u64::MAX);
    }
    let has_pointer =
        |zone: &Zone| matches!(zone.state, ZoneState::Empty | ZoneState::Open | ZoneState::Closed);
    let zone = port.zone(start)?.filter(has_pointer);
    Ok(zone.map_or(u64::MAX, |zone| zone.write_pointer.saturating_sub(start)))
}

/// Adds what the frames of a part hold below `limit`; returns the bytes of the part up to its last
/// frame. Sectors between frames that hold none become holes: they were lost, and the reader of the
/// file decides what that means. A sector behind a frame that the device fails to read may be the
/// next one: it stays a part of the file, whose reader meets the same failure.
fn read_frames(
    port: &Port,
    store: u64,
    part: &Part,
    limit: u64,
    state: &mut NodeState,
) -> Result<u64> {
    let sector_bytes = port.sector_bytes();
    let payload = sector_bytes - FRAME_BYTES;
    let capacity = port.geometry().capacity_bytes;
    let end = part.start.saturating_add(part.bytes).min(capacity);
    let (mut offset, mut used_end) = (part.start, part.start);
    let (mut bytes, mut unread_from) = (Vec::new(), None);
    while offset < end {
        bytes.resize((end - offset).min(READ_BYTES) as usize, 0);
        bytes.truncate(bytes.len() - bytes.len() % sector_bytes as usize);
        if bytes.is_empty() {
            break;
        }
        let unread = port.salvage(offset, &mut bytes, Cause::Recovery)?;
        for (index, sector) in bytes.chunks(sector_bytes as usize).enumerate() {
            let device = offset + index as u64 * sector_bytes;
            let most_bytes = payload.min(limit.saturating_sub(state.tail_start()));
            let is_unread = unread.overlaps(Extent { start: device, bytes: sector_bytes });
            if is_unread && device == used_end && most_bytes > 0 {
                unread_from.get_or_insert(state.tail_start());
                state.push_piece(device, most_bytes, sector_bytes, payload);
                used_end = device + sector_bytes;
            }
            let found = frame::decode(sector, store);
            let Some(found) = found.filter(|frame| frame.generation == part.generation) else {
                continue;
            };
            if unread_from.is_some_and(|from| found.logical >= from) {
                cut_pieces(state, found.logical);
                unread_from = None;
            }
            let place = state.tail_start();
            if found.logical < place || found.logical >= limit {
                continue;
            }
            state.push_hole(found.logical - place);
            let count = found.bytes.min(limit - found.logical);
            state.push_piece(device, count, sector_bytes, payload);
            used_end = device + sector_bytes;
        }
        offset += bytes.len() as u64;
    }
    Ok(used_end - part.start)
}
