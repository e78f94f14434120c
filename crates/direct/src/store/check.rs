//! Verification of a store: its superblock copies, and every sector that a file has.

use super::DirectStore;
use crate::frame;
use crate::node::{HOLE, Node};
use crate::superblock;
use base::{Cause, ErrorKind, Result};

/// Bytes read at a time.
const READ_BYTES: u64 = 1 << 20;

/// How far a check has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes checked.
    pub done_bytes: u64,
    /// Bytes to check.
    pub all_bytes: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Files checked.
    pub files: u64,
    /// Bytes read of them.
    pub bytes: u64,
    /// What is wrong, each with its place.
    pub problems: Vec<String>,
}

impl DirectStore {
    /// Reads everything that files have on the device. Metadata was verified by opening; that what
    /// plain files hold is what was written is for the engine to say, whose checksums it carries.
    pub fn check(&self, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
        let inner = &self.inner;
        let mut report = CheckReport::default();
        let places = superblock::damaged_copies(&inner.port, &inner.superblock)?;
        report.problems.extend(places.iter().map(|place| {
            format!("the copy of the superblock at byte {place} is missing or damaged")
        }));
        let nodes: Vec<_> = inner.state().names.values().cloned().collect();
        let bytes = |node: &Node| node.shared().held.iter().map(|held| held.extent.bytes).sum();
        let all_bytes = nodes.iter().map(|node| -> u64 { bytes(node) }).sum();
        let mut done_bytes = 0;
        for node in nodes {
            self.check_file(&node, &mut report, &mut |bytes| {
                done_bytes += bytes;
                progress(Progress { done_bytes, all_bytes });
            })?;
            report.files += 1;
        }
        report.bytes = done_bytes;
        Ok(report)
    }

    fn check_file(
        &self,
        node: &Node,
        report: &mut CheckReport,
        read: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let port = &self.inner.port;
        let sector_bytes = port.sector_bytes();
        let file = node.shared();
        for piece in &file.pieces {
            if piece.device == HOLE {
                let (name, at) = (node.name, piece.logical);
                report
                    .problems
                    .push(format!("{name}: {} bytes at byte {at} are lost", piece.bytes));
                continue;
            }
            let all = piece.bytes.div_ceil(node.payload()) * sector_bytes;
            let mut done = 0;
            while done < all {
                let mut bytes = vec![0; (all - done).min(READ_BYTES) as usize];
                let place = piece.device + done;
                match port.read(place, &mut bytes, Cause::Check) {
                    Ok(()) if node.is_log => {
                        let damaged = bytes
                            .chunks(sector_bytes as usize)
                            .filter(|sector| {
                                frame::decode(sector, self.inner.superblock.store).is_none()
                            })
                            .count();
                        if damaged > 0 {
                            report.problems.push(format!(
                                "{}: {damaged} sectors behind byte {place} of the device are bad",
                                node.name
                            ));
                        }
                    }
                    Ok(()) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io) => {
                        report.problems.push(format!("{}: {error}", node.name));
                    }
                    Err(error) => return Err(error),
                }
                done += bytes.len() as u64;
                read(bytes.len() as u64);
            }
        }
        Ok(())
    }
}
