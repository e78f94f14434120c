//! Checks merge operands before they are written, and refuses those that can never be applied.
//!
//! This happens before the commit and outside its lock, because an operator is the program's own
//! code.

use crate::engine::context::Context;
use crate::keyspace::KeyspaceState;
use base::{EntryKind, Error, Result};
use std::sync::Arc;
use table::batch::WriteBatch;

/// Checks that every operand of `batch` is for a keyspace with an operator, which accepts it.
/// `copies`: the operands come from another database, and are not checked.
pub(crate) fn check_operands(context: &Context, batch: &WriteBatch, copies: bool) -> Result<()> {
    if !batch.has_merge() {
        return Ok(());
    }
    let mut last: Option<Arc<KeyspaceState>> = None;
    for operation in batch.iter() {
        if operation.kind() != EntryKind::Merge {
            continue;
        }
        if last.as_ref().is_none_or(|keyspace| keyspace.id != operation.keyspace()) {
            last = context.find_keyspace(operation.keyspace());
        }
        // The commit refuses operations on a keyspace that does not exist.
        let Some(keyspace) = &last else { continue };
        match copies {
            true => keyspace.check_has_operator()?,
            false => keyspace.check_operand(operation.key(), operation.value())?,
        }
    }
    Ok(())
}

impl KeyspaceState {
    /// `InvalidArgument` if `operand` could never be applied, or there is no operator.
    pub(crate) fn check_operand(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.check_has_operator()?;
        self.operator.as_ref().map_or(Ok(()), |operator| operator.check(key, operand))
    }

    fn check_has_operator(&self) -> Result<()> {
        if self.operator.is_some() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "keyspace `{}` has no merge operator, so merges into it are refused",
            self.name
        )))
    }
}
