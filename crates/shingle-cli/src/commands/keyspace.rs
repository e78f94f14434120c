//! `keyspace list`, `create`, `drop`.

use crate::args::KeyspaceAction;
use crate::commands::data::done;
use crate::context::Context;
use crate::failure::Outcome;
use crate::open::Access;
use shingle::KeyspaceOptions;

/// `shingle keyspace`.
pub fn keyspace(context: &mut Context, action: KeyspaceAction) -> Outcome {
    match action {
        KeyspaceAction::List => {
            let names = context.open(Access::Read)?.keyspaces();
            if context.global.json {
                return context.json(&names);
            }
            for name in names {
                writeln!(context.out, "{name}")?;
            }
            return Ok(());
        }
        KeyspaceAction::Create { name, merge_operator, ttl, ingests_below } => {
            let db = context.open(Access::Create)?;
            let defaults = KeyspaceOptions::default();
            let options = KeyspaceOptions { merge_operator, ttl, ingests_below, ..defaults };
            db.create_keyspace(&name, options)?;
            db.close()?;
        }
        KeyspaceAction::Drop { name } => {
            let db = context.open(Access::Change)?;
            db.drop_keyspace(&name)?;
            db.close()?;
        }
    }
    done(context)
}
