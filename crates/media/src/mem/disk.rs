//! The state behind a memory store: what is on the disk, and what is written and not yet durable.

use super::content::Content;
use crate::FileName;
use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A change of a file that power loss may undo.
#[derive(Clone, Debug)]
pub(super) enum Write {
    /// Bytes put at an offset.
    Bytes(u64, Arc<[u8]>),
    /// The bytes from an offset on cut away.
    Cut(u64),
}

/// A change of the directory that power loss may undo.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Created(FileName, NodeRef),
    Removed(FileName),
}

/// A file without its name.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// What reads see.
    pub(super) content: Content,
    /// What the last sync left on the medium.
    pub(super) durable: Content,
    /// What happened since, in order.
    pub(super) pending: Vec<Write>,
    /// Bytes that a failed sync dropped although reads still see them.
    lost: Vec<Range<u64>>,
    /// Created with [`crate::FileHint::zeros_at_end`].
    pub(super) may_be_ahead: bool,
    /// Its length may be ahead: it may be, and it was synced.
    pub(super) is_ahead: bool,
    /// No name leads here any more.
    is_removed: bool,
}

pub(super) type NodeRef = Arc<Mutex<Node>>;

impl Node {
    pub(super) fn of(content: Content) -> NodeRef {
        Arc::new(Mutex::new(Node { durable: content.clone(), content, ..Node::default() }))
    }

    pub(super) fn sync(&mut self) {
        self.pending.clear();
        self.is_ahead = self.may_be_ahead;
        self.durable = self.content.clone();
        for range in &self.lost {
            let zeros = vec![0; (range.end - range.start) as usize];
            self.durable.write_at(range.start, &zeros);
        }
    }

    /// A sync failed: the system forgets that the pending bytes still have to be written.
    fn drop_pending(&mut self) {
        for write in self.pending.drain(..) {
            if let Write::Bytes(offset, bytes) = write {
                self.lost.push(offset..offset + bytes.len() as u64);
            }
        }
    }
}

/// Bytes and requests that a memory store received, counted apart from the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawTraffic {
    /// Bytes that writes passed in.
    pub write_bytes: u64,
    /// Bytes that reads took out.
    pub read_bytes: u64,
    /// Requests to make something durable.
    pub sync_ops: u64,
}

/// Everything that a memory store holds.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) names: BTreeMap<FileName, NodeRef>,
    pub(super) durable_names: BTreeMap<FileName, NodeRef>,
    pub(super) pending_names: Vec<NameChange>,
    pub(super) root: Option<Arc<[u8]>>,
    /// Durable only if nothing happens: a crash drops them.
    pub(super) notes: BTreeMap<String, Vec<u8>>,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) used_bytes: u64,
    pub(super) raw: RawTraffic,
    pub(super) operations: u64,
    pub(super) stop_after: Option<u64>,
    pub(super) is_stopped: bool,
    pub(super) is_locked: bool,
    /// Holders of a shared lock.
    pub(super) readers: u32,
    /// Files whose next sync fails.
    pub(super) failing_syncs: BTreeSet<FileName>,
}

impl Disk {
    /// Refuses everything once the machine has stopped.
    pub(super) fn check_running(&self) -> Result<()> {
        if self.is_stopped {
            return Err(Error::new(ErrorKind::Io, "the machine stopped"));
        }
        Ok(())
    }

    /// Counts a mutating operation, which may be the one at which the machine stops.
    pub(super) fn operate(&mut self) -> Result<()> {
        self.is_stopped |= self.stop_after.is_some_and(|after| self.operations >= after);
        self.check_running()?;
        self.operations += 1;
        Ok(())
    }

    pub(super) fn node(&self, name: FileName) -> Result<&NodeRef> {
        self.names.get(&name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "there is no such file").in_file(name.to_string())
        })
    }

    pub(super) fn create(&mut self, name: FileName) -> Result<NodeRef> {
        if self.names.contains_key(&name) {
            let error = Error::new(ErrorKind::AlreadyExists, "cannot create: it exists");
            return Err(error.in_file(name.to_string()));
        }
        let node = NodeRef::default();
        self.names.insert(name, node.clone());
        self.pending_names.push(NameChange::Created(name, node.clone()));
        Ok(node)
    }

    pub(super) fn remove(&mut self, name: FileName) -> Result<()> {
        let node = self.node(name)?.clone();
        let mut node = node.lock();
        node.is_removed = true;
        self.used_bytes -= node.content.len();
        self.names.remove(&name);
        self.pending_names.push(NameChange::Removed(name));
        Ok(())
    }

    /// Appends as many of `bytes` as there is space for, and returns their number.
    pub(super) fn append(&mut self, node: &NodeRef, bytes: &[u8]) -> usize {
        let room = self.capacity_bytes.map_or(u64::MAX, |all| all.saturating_sub(self.used_bytes));
        let count = (bytes.len() as u64).min(room) as usize;
        if count == 0 {
            return 0;
        }
        let mut node = node.lock();
        let offset = node.content.len();
        node.content.write_at(offset, &bytes[..count]);
        node.pending.push(Write::Bytes(offset, bytes[..count].into()));
        if !node.is_removed {
            self.used_bytes += count as u64;
        }
        self.raw.write_bytes += count as u64;
        count
    }

    /// Cuts the file at `at`. `Corruption` if it is shorter.
    pub(super) fn cut(&mut self, name: FileName, at: u64) -> Result<NodeRef> {
        let node = self.node(name)?.clone();
        let mut held = node.lock();
        let bytes = held.content.len();
        if bytes < at {
            let message = format!("the file is to go on at byte {at} but has {bytes} bytes");
            return Err(Error::corruption(name.to_string(), bytes, message));
        }
        if bytes > at {
            held.content.truncate(at);
            held.pending.push(Write::Cut(at));
            held.lost.iter_mut().for_each(|range| range.end = range.end.min(at));
            held.lost.retain(|range| range.start < range.end);
            self.used_bytes -= bytes - at;
        }
        drop(held);
        Ok(node)
    }

    pub(super) fn sync(&mut self, name: FileName, node: &NodeRef) -> Result<()> {
        self.raw.sync_ops += 1;
        if self.failing_syncs.remove(&name) {
            node.lock().drop_pending();
            let error = Error::new(ErrorKind::Io, "cannot sync: the device refused");
            return Err(error.in_file(name.to_string()));
        }
        node.lock().sync();
        Ok(())
    }

    /// Lets the next sync of `name` fail, if there is such a file.
    pub(super) fn fail_next_sync(&mut self, name: FileName) {
        self.failing_syncs.insert(name);
    }

    /// What a failed sync does to the pending bytes of `name`.
    pub(super) fn drop_pending(&mut self, name: FileName) {
        if let Some(node) = self.names.get(&name) {
            node.lock().drop_pending();
        }
    }

    pub(super) fn sync_names(&mut self) {
        self.raw.sync_ops += 1;
        self.durable_names = self.names.clone();
        self.pending_names.clear();
    }
}
