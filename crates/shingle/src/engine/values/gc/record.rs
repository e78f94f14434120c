//! A record of a segment, and what the tree holds for its key.

use crate::engine::core::Core;
use crate::read::get::Found;
use base::{Result, SequenceNumber};
use values::ValuePointer;

/// What the tree holds for a record's key.
#[derive(Clone, Copy)]
pub(super) enum Held {
    /// A pointer to the record, unless something newer came since the order was found.
    ThisRecord,
    /// A pointer to the record in an entry that has expired.
    Expired,
    /// Operands, which may apply to the record.
    Operands,
    /// Something else, or nothing.
    Otherwise,
}

impl Held {
    /// What `found` is to the record that `pointer` names.
    pub(super) fn of(found: Option<&Found>, pointer: &ValuePointer, core: &Core) -> Result<Held> {
        Ok(match found {
            Some(Found::Pointer(held)) if ValuePointer::decode(held)? == *pointer => {
                Held::ThisRecord
            }
            Some(Found::Expiring(held)) if held.names(pointer)? => {
                if held.is_over(&core.read.clock) { Held::Expired } else { Held::ThisRecord }
            }
            Some(Found::Operand) => Held::Operands,
            _ => Held::Otherwise,
        })
    }
}

/// A record and its position.
pub(super) struct RecordAt<'a> {
    pub sequence: SequenceNumber,
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
    pub pointer: ValuePointer,
}

impl RecordAt<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.pointer.record_bytes.into()
    }
}
