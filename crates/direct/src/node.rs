//! A file in memory: where its bytes are, and those that are not yet on the device.
//!
//! Invariants of [`NodeState`]:
//! - Pieces are in the order of the file and without gaps; they end where the tail begins.
//! - Every piece that is no hole lies in one held extent: extents go, and are moved, one by one.
//! - Sectors of a held extent belong to this file alone until [`Freed`] has them.

use crate::extent::Extent;
use crate::frame::FRAME_BYTES;
use crate::port::Port;
use crate::record::{FileRecord, Part};
use base::{Cause, Error, Result};
use media::{FileName, ReadFile};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The device offset of a piece that no medium holds: it reads as zeros.
pub const HOLE: u64 = u64::MAX;

/// Bytes of a file that lie on the device in one run of sectors. In a log each sector but the last
/// is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub logical: u64,
    pub bytes: u64,
    pub device: u64,
}

/// An extent that a file has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub extent: Extent,
    /// Place in the file of its first byte.
    pub logical: u64,
    pub generation: u64,
}

/// Extents that no file needs any more; they are reusable once metadata without them is durable.
pub type Freed = Arc<Mutex<Vec<Extent>>>;

#[derive(Debug, Default)]
pub struct NodeState {
    pub pieces: Vec<Piece>,
    pub held: Vec<Held>,
    /// Bytes behind the pieces. In a log on a medium that takes writes anywhere, those of the last,
    /// partly filled sector, which are on the device too.
    pub tail: Vec<u8>,
}

impl NodeState {
    /// Where the tail begins.
    pub fn tail_start(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.logical + piece.bytes)
    }

    pub fn len(&self) -> u64 {
        self.tail_start() + self.tail.len() as u64
    }

    /// Adds an extent for bytes from the tail on. With `joins` it becomes one with the last if it
    /// lies behind that.
    pub fn push_held(&mut self, extent: Extent, generation: u64, joins: impl Fn(Extent) -> bool) {
        if let Some(last) = self.held.last_mut()
            && last.extent.bytes > 0
            && last.extent.end() == extent.start
            && joins(Extent::between(last.extent.start, extent.end()))
        {
            last.extent.bytes += extent.bytes;
            return;
        }
        let logical = self.tail_start();
        self.held.push(Held { extent, logical, generation });
    }

    /// Adds bytes that were written at `device`, which lies in the last held extent. `payload`
    /// bytes fill each sector before them.
    pub fn push_piece(&mut self, device: u64, bytes: u64, sector_bytes: u64, payload: u64) {
        let logical = self.tail_start();
        let extent_start = self.held.last().map_or(u64::MAX, |held| held.extent.start);
        if let Some(last) = self.pieces.last_mut()
            && last.device != HOLE
            && last.device >= extent_start
            && last.bytes.is_multiple_of(payload)
            && last.device + last.bytes / payload * sector_bytes == device
        {
            last.bytes += bytes;
            return;
        }
        if bytes > 0 {
            self.pieces.push(Piece { logical, bytes, device });
        }
    }

    /// Adds `bytes` that no medium holds.
    pub fn push_hole(&mut self, bytes: u64) {
        if bytes > 0 {
            self.pieces.push(Piece { logical: self.tail_start(), bytes, device: HOLE });
        }
    }
}

/// A file.
pub struct Node {
    pub number: u64,
    pub name: FileName,
    pub is_log: bool,
    pub is_writing: AtomicBool,
    pub is_removed: AtomicBool,
    state: RwLock<NodeState>,
    freed: Freed,
    /// Bytes of the file in a sector.
    payload: u64,
    sector_bytes: u64,
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.is_removed.load(Ordering::Acquire) {
            let state = self.state.get_mut();
            let extents = state.held.iter().map(|held| held.extent).filter(|e| e.bytes > 0);
            self.freed.lock().extend(extents);
        }
    }
}

impl Node {
    pub fn new(
        number: u64,
        name: FileName,
        is_log: bool,
        sector_bytes: u64,
        state: NodeState,
        freed: Freed,
    ) -> Node {
        let payload = if is_log { sector_bytes - FRAME_BYTES } else { sector_bytes };
        Node {
            number,
            name,
            is_log,
            is_writing: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            state: RwLock::new(state),
            freed,
            payload,
            sector_bytes,
        }
    }

    /// Bytes of the file in a full sector.
    pub fn payload(&self) -> u64 {
        self.payload
    }

    pub fn shared(&self) -> RwLockReadGuard<'_, NodeState> {
        self.state.read()
    }

    pub fn exclusive(&self) -> RwLockWriteGuard<'_, NodeState> {
        self.state.write()
    }

    /// How the metadata describes the file as it is on the device now.
    pub fn record(&self) -> FileRecord {
        let state = self.shared();
        let parts = if self.is_log {
            let part = |held: &Held| Part {
                start: held.extent.start,
                bytes: held.extent.bytes,
                logical: held.logical,
                generation: held.generation,
            };
            state.held.iter().map(part).collect()
        } else {
            let part = |piece: &Piece| Part {
                start: piece.device,
                bytes: piece.bytes,
                logical: piece.logical,
                generation: 0,
            };
            state.pieces.iter().map(part).collect()
        };
        let (number, name, is_log) = (self.number, self.name, self.is_log);
        FileRecord { number, name, is_log, bytes: state.tail_start(), parts }
    }

    /// Where the sectors of bytes `range` are, in the order of the file.
    pub fn places(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let state = self.shared();
        let mut places: Vec<Range<u64>> = Vec::new();
        let before = |piece: &Piece| piece.logical + piece.bytes <= range.start;
        let pieces = &state.pieces[state.pieces.partition_point(before)..];
        let inside = pieces.iter().take_while(|piece| range.start.max(piece.logical) < range.end);
        for piece in inside.filter(|piece| piece.device != HOLE) {
            let start = range.start.max(piece.logical);
            let end = range.end.min(piece.logical + piece.bytes);
            let sector = |at: u64| piece.device + at * self.sector_bytes;
            let first = sector((start - piece.logical) / self.payload);
            let behind = sector((end - piece.logical).div_ceil(self.payload));
            match places.last_mut() {
                Some(last) if last.end == first => last.end = behind,
                _ => places.push(first..behind),
            }
        }
        places
    }

    /// Where the sector ends that byte `offset` falls into or begins, in bytes of the file.
    pub fn boundary(&self, offset: u64) -> u64 {
        let state = self.shared();
        let before = |piece: &Piece| piece.logical + piece.bytes < offset;
        let Some(piece) = state.pieces.get(state.pieces.partition_point(before)) else {
            return offset;
        };
        let inside = offset.saturating_sub(piece.logical).next_multiple_of(self.payload);
        piece.logical + inside.min(piece.bytes)
    }

    /// Fills `into` from `offset`.
    pub fn read(&self, port: &Port, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let state = self.shared();
        let len = state.len();
        let wanted = into.len();
        if offset.checked_add(wanted as u64).is_none_or(|end| end > len) {
            let message = format!("read of {wanted} bytes past the end: the file has {len} bytes");
            return Err(Error::corruption(self.name.to_string(), offset, message));
        }
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let tail_start = state.tail_start();
            if at >= tail_start {
                let from = (at - tail_start) as usize;
                into[done..].copy_from_slice(&state.tail[from..from + wanted - done]);
                break;
            }
            let index = state.pieces.partition_point(|piece| piece.logical + piece.bytes <= at);
            let piece = state.pieces[index];
            let count = (piece.logical + piece.bytes - at).min((wanted - done) as u64) as usize;
            self.read_piece(port, &piece, at - piece.logical, &mut into[done..done + count], cause)
                .map_err(|error| error.in_file(self.name.to_string()).at(at))?;
            done += count;
        }
        Ok(())
    }

    /// Fills `into` from byte `from` of a piece.
    fn read_piece(
        &self,
        port: &Port,
        piece: &Piece,
        from: u64,
        into: &mut [u8],
        cause: Cause,
    ) -> Result<()> {
        if piece.device == HOLE {
            into.fill(0);
            return Ok(());
        }
        let (first, end) = (from / self.payload, (from + into.len() as u64).div_ceil(self.payload));
        let device = piece.device + first * self.sector_bytes;
        let is_whole =
            from.is_multiple_of(self.payload) && (into.len() as u64).is_multiple_of(self.payload);
        if is_whole && self.payload == self.sector_bytes {
            return port.read(device, into, cause);
        }
        let mut sectors = vec![0; ((end - first) * self.sector_bytes) as usize];
        port.read(device, &mut sectors, cause)?;
        let mut skip = (from - first * self.payload) as usize;
        let mut rest = into;
        for sector in sectors.chunks(self.sector_bytes as usize) {
            let content = &sector[skip..self.payload as usize];
            let count = content.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&content[..count]);
            (rest, skip) = (later, 0);
        }
        Ok(())
    }
}

/// An open file.
pub struct Reader {
    pub node: Arc<Node>,
    pub port: Arc<Port>,
}

impl ReadFile for Reader {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        self.node.read(&self.port, offset, into, cause)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.node.shared().len())
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        for place in self.node.places(offset..offset.saturating_add(bytes)) {
            self.port.prefetch(place.start, place.end - place.start);
        }
    }

    fn boundary(&self, offset: u64) -> u64 {
        self.node.boundary(offset)
    }

    fn name(&self) -> FileName {
        self.node.name
    }
}
