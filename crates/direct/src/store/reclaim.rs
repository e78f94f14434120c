//! Reclaiming space where freed bytes lie among live ones: live bytes are moved, counted under a
//! cause of their own, and durable in their new place before the old one is reused.

use super::inner::{Inner, State};
use crate::extent::Extent;
use crate::node::{HOLE, Held, Node};
use crate::placement::Request;
use base::{Cause, ErrorKind, Result};
use std::sync::Arc;

/// Bytes moved at a time.
const COPY_BYTES: u64 = 1 << 20;

/// A copy of what `node` holds as its extent number `index`.
struct Copy {
    node: Arc<Node>,
    index: usize,
    from: Held,
    to: Extent,
}

impl Inner {
    /// Moves everything out of the range that gives back most space. False if there is none, or no
    /// space to move it to.
    pub(super) fn reclaim(&self, state: &mut State) -> Result<bool> {
        for (range, live_bytes) in state.placement.victims() {
            let nodes: Vec<Arc<Node>> = state.names.values().cloned().collect();
            let held_in = |node: &Arc<Node>| {
                let file = node.shared();
                file.held
                    .iter()
                    .map(|held| held.extent)
                    .filter(|e| range.contains(*e))
                    .map(|e| e.bytes)
                    .sum::<u64>()
            };
            // What a removed file still holds for its readers cannot be moved.
            let movable: u64 = nodes.iter().map(held_in).sum();
            if movable != live_bytes {
                continue;
            }
            let mut copies = Vec::new();
            if let Err(error) = self.copy_out(state, &nodes, range, &mut copies) {
                copies.iter().for_each(|copy| state.placement.free(copy.to));
                return Err(error);
            }
            if copies.is_empty() {
                continue;
            }
            for copy in &copies {
                relocate(copy);
                state.queue_file(&copy.node);
            }
            let left = copies.iter().map(|copy| copy.from.extent);
            let left_bytes: u64 = left.clone().map(|extent| extent.bytes).sum();
            self.freed.lock().extend(left);
            self.commit(state, Some(Cause::Reclaim))?;
            if left_bytes == live_bytes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies what `nodes` hold in `range`, as far as there is space, and makes the copies durable.
    /// Until then no record may name them: power loss may keep metadata and lose what was written
    /// before it.
    fn copy_out(
        &self,
        state: &mut State,
        nodes: &[Arc<Node>],
        range: Extent,
        copies: &mut Vec<Copy>,
    ) -> Result<()> {
        for node in nodes {
            let all: Vec<Held> = node.shared().held.clone();
            let is_in_range = |held: &Held| held.extent.bytes > 0 && range.contains(held.extent);
            for (index, from) in all.into_iter().enumerate().filter(|(_, held)| is_in_range(held)) {
                let bytes = from.extent.bytes;
                let request = Request {
                    wanted_bytes: bytes,
                    now_bytes: bytes,
                    least_bytes: bytes,
                    is_log: node.is_log,
                    is_reclaim: true,
                    avoid: range,
                    ..Request::default()
                };
                let to = match self.allocate(state, &request) {
                    Err(error) if error.kind() == ErrorKind::NoSpace => return self.flush(copies),
                    result => result?,
                };
                let copied = self.copy(from.extent, to);
                let is_copied = matches!(copied, Ok(true));
                if is_copied {
                    copies.push(Copy { node: node.clone(), index, from, to });
                }
                self.close_extent(state, to, if is_copied { bytes } else { 0 })?;
                copied?;
            }
        }
        self.flush(copies)
    }

    fn flush(&self, copies: &[Copy]) -> Result<()> {
        if copies.is_empty() { Ok(()) } else { self.port.flush(Cause::Reclaim) }
    }

    /// False if the device fails to read `from`, which stays where it is.
    fn copy(&self, from: Extent, to: Extent) -> Result<bool> {
        let mut done = 0;
        let mut bytes = Vec::new();
        while done < from.bytes {
            bytes.resize((from.bytes - done).min(COPY_BYTES) as usize, 0);
            match self.port.read(from.start + done, &mut bytes, Cause::Reclaim) {
                Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io) => {
                    return Ok(false);
                }
                result => result?,
            }
            self.port.write(to.start + done, &bytes, Cause::Reclaim)?;
            done += bytes.len() as u64;
        }
        Ok(true)
    }
}

/// The file finds what it held in the copy.
fn relocate(copy: &Copy) {
    let Copy { node, index, from: held, to } = copy;
    let mut file = node.exclusive();
    for piece in &mut file.pieces {
        let is_moved = piece.device != HOLE
            && held.extent.start <= piece.device
            && piece.device < held.extent.end();
        if is_moved {
            piece.device = to.start + (piece.device - held.extent.start);
        }
    }
    if let Some(place) = file.held.get_mut(*index) {
        place.extent.start = to.start;
    }
}
