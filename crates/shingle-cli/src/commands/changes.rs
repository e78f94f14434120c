//! `shingle changes`: the batches that were committed, in commit order.

use crate::args::ChangesArgs;
use crate::context::{Context, Opened};
use crate::failure::Outcome;
use crate::interrupt::{Interrupt, interrupted};
use crate::open::{Access, explain};
use crate::{text, units};
use serde_json::{Map, Value, json};
use shingle::{Change, Changes, Operation, Since};
use std::time::Duration;

/// How often a waiting command looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// `shingle changes`.
pub fn changes(context: &mut Context, args: &ChangesArgs) -> Outcome {
    let since = args.since.map_or(Since::Oldest, Since::Sequence);
    // The database stays open as long as its feed is read.
    let (db, mut changes) = open(context, since)?;
    let interrupt = Interrupt::listen()?;
    let mut count = 0;
    loop {
        while let Some(change) = changes.next().transpose()? {
            print(context, &change)?;
            count += 1;
            check(&interrupt, count, &changes)?;
        }
        if !args.follow {
            break;
        }
        // A reader of the output sees each change at once.
        context.out.flush()?;
        while !changes.wait(LOOK)? {
            check(&interrupt, count, &changes)?;
        }
    }
    context.remark(&format!(
        "{}; go on with --since {}",
        units::counted(count, "commit"),
        changes.sequence()
    ));
    db.map_or(Ok(()), |db| Ok(db.close()?))
}

/// The feed beside the process that writes; where that is impossible, of a database that no process
/// writes.
fn open(context: &mut Context, since: Since) -> Outcome<(Option<Opened>, Changes)> {
    let place = context.place()?;
    if place.can_be_followed() {
        let follower = place.follower(context.options()?.absent_operators(true));
        let follower = follower.map_err(|error| explain(&place.path, error))?;
        return Ok((None, follower.changes(since)?));
    }
    let db = context.open(Access::Read)?;
    let changes = db.changes(since)?;
    Ok((Some(db), changes))
}

fn check(interrupt: &Interrupt, count: u64, changes: &Changes) -> Outcome {
    if !interrupt.is_asked() {
        return Ok(());
    }
    let done = format!("{} were printed", units::counted(count, "commit"));
    Err(interrupted(&done, format!("go on with --since {}", changes.sequence())))
}

fn print(context: &mut Context, change: &Change) -> Outcome {
    if context.global.json {
        let operations: Vec<Value> = change
            .operations()
            .map(|(keyspace, operation)| Value::Object(object(keyspace, operation)))
            .collect();
        return context.json(&json!({
            "first_sequence": change.first_sequence(),
            "last_sequence": change.last_sequence(),
            "operations": operations,
        }));
    }
    let notation = context.notation();
    let show = |bytes: &[u8]| notation.show(bytes);
    for (keyspace, operation) in change.operations() {
        let what = match operation {
            Operation::Put { key, value, expires, .. } => {
                let until =
                    expires.map_or(String::new(), |at| format!(" until {}", at.as_millis()));
                format!("put {} : {}{until}", show(key), show(value))
            }
            Operation::Delete { key } => format!("delete {}", show(key)),
            Operation::Merge { key, operand } => {
                format!("merge {} : {}", show(key), show(operand))
            }
            Operation::DeleteRange { start, end } => {
                format!("delete-range {} to {}", show(start), show(end))
            }
            other => format!("{other:?}"),
        };
        let keyspace = text::escape(keyspace.as_bytes());
        writeln!(context.out, "{} {keyspace} {what}", change.last_sequence())?;
    }
    Ok(())
}

fn object(keyspace: &str, operation: Operation<'_>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("keyspace".into(), keyspace.into());
    if let Operation::Put { expires: Some(at), .. } = operation {
        object.insert("expires_ms".into(), at.as_millis().into());
    }
    let (name, fields) = match operation {
        Operation::Put { key, value, .. } => ("put", vec![("key", key), ("value", value)]),
        Operation::Delete { key } => ("delete", vec![("key", key)]),
        Operation::Merge { key, operand } => ("merge", vec![("key", key), ("operand", operand)]),
        Operation::DeleteRange { start, end } => {
            ("delete_range", vec![("start", start), ("end", end)])
        }
        _ => ("unknown", Vec::new()),
    };
    object.insert("operation".into(), name.into());
    for (name, bytes) in fields {
        text::add(&mut object, name, bytes);
    }
    object
}
