//! `keyspace list`, `create`, `drop`.

use crate::args::{KeyspaceAction, KeyspaceArgs};
use crate::context::{Access, Context};
use crate::failure::Outcome;
use serde_json::json;
use shingle::KeyspaceOptions;

/// `shingle keyspace`.
pub fn keyspace(context: &mut Context, args: KeyspaceArgs) -> Outcome {
    match args.action {
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
        KeyspaceAction::Create { name } => {
            let db = context.open(Access::Create)?;
            db.create_keyspace(&name, KeyspaceOptions::default())?;
            db.close()?;
        }
        KeyspaceAction::Drop { name } => {
            let db = context.open(Access::Change)?;
            db.drop_keyspace(&name)?;
            db.close()?;
        }
    }
    if context.global.json { context.json(&json!({ "ok": true })) } else { Ok(()) }
}
