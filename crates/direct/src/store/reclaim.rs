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
            let mut left = Vec::new();
            for node in nodes.iter().filter(|node| held_in(node) > 0) {
                match self.move_out(state, node, range, &mut left) {
                    Err(error) if error.kind() == ErrorKind::NoSpace => break,
                    result => result?,
                }
            }
            // The copies first: power loss may keep metadata and lose what was written before it.
            self.port.flush(Cause::Reclaim)?;
            self.commit(state, Some(Cause::Reclaim))?;
            let is_won = left.iter().map(|extent| extent.bytes).sum::<u64>() == live_bytes;
            self.give_back(state, left)?;
            if is_won {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves what `node` holds in `range`; `left` collects where it was.
    fn move_out(
        &self,
        state: &mut State,
        node: &Node,
        range: Extent,
        left: &mut Vec<Extent>,
    ) -> Result<()> {
        let count = node.shared().held.len();
        for index in 0..count {
            let Some(held) = node.shared().held.get(index).copied() else { break };
            if held.extent.bytes == 0 || !range.contains(held.extent) {
                continue;
            }
            let bytes = held.extent.bytes;
            let request = Request {
                wanted_bytes: bytes,
                now_bytes: bytes,
                least_bytes: bytes,
                is_log: node.is_log,
                is_reclaim: true,
                avoid: range,
                ..Request::default()
            };
            let to = self.allocate(state, &request)?;
            self.copy(held.extent, to)?;
            self.close_extent(state, to, bytes)?;
            relocate(node, index, held, to);
            state.queue_file(node);
            left.push(held.extent);
        }
        Ok(())
    }

    fn copy(&self, from: Extent, to: Extent) -> Result<()> {
        let mut done = 0;
        let mut bytes = Vec::new();
        while done < from.bytes {
            bytes.resize((from.bytes - done).min(COPY_BYTES) as usize, 0);
            self.port.read(from.start + done, &mut bytes, Cause::Reclaim)?;
            self.port.write(to.start + done, &bytes, Cause::Reclaim)?;
            done += bytes.len() as u64;
        }
        Ok(())
    }
}

/// The file finds what it held at `held` in `to`.
fn relocate(node: &Node, index: usize, held: Held, to: Extent) {
    let mut file = node.exclusive();
    for piece in &mut file.pieces {
        let is_moved = piece.device != HOLE
            && held.extent.start <= piece.device
            && piece.device < held.extent.end();
        if is_moved {
            piece.device = to.start + (piece.device - held.extent.start);
        }
    }
    if let Some(place) = file.held.get_mut(index) {
        place.extent.start = to.start;
    }
}
