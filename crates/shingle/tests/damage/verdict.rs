//! The verdict on an opened mutation: detected, harmless, a torn tail, or a failure of the store.

use crate::build::{Content, History, State};
use base::{Error, ErrorKind};
use shingle::Db;

/// The outcome of a mutation. Everything else fails the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// An error named the file.
    Detected,
    /// All data is as it was written.
    Harmless,
    /// Operations that were never durable are missing, from some commit on.
    TornTail,
}

/// Fails if the error does not name the file, or is of a wrong kind.
pub fn judge_error(error: &Error) -> Result<(), String> {
    let is_damage = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Incompatible);
    match is_damage && error.file().is_some() {
        true => Ok(()),
        false => Err(format!("an error that names no file or is no damage: {error:?}")),
    }
}

/// Reads everything in every way and compares; then lets the check decide. A state before `first`
/// must not come back.
pub fn judge(
    opened: shingle::Result<Db>,
    history: &History,
    first: usize,
) -> Result<Verdict, String> {
    let db = match opened {
        Ok(db) => db,
        Err(error) => return judge_error(&error).map(|()| Verdict::Detected),
    };
    // Damage of a segment may be damage and a torn tail.
    let mut earlier = history.states[first.min(history.states.len())..].iter().rev();
    let read = read_all(&db, history.last())
        .or_else(|why| earlier.find_map(|state| read_all(&db, state).ok()).ok_or(why))?;
    let report = db.check(&mut |_| {}).map_err(|error| format!("check failed: {error}"))?;
    let Some(state) = read else {
        return match report.is_clean() {
            true => Err("reads found damage, the check did not".into()),
            false => Ok(Verdict::Detected),
        };
    };
    let Some(position) = history.position(&state, first) else {
        return Err(format!("wrong data: {}", difference(&state, history.last())));
    };
    if !report.is_clean() {
        return Ok(Verdict::Detected);
    }
    match position + 1 == history.states.len() {
        true => Ok(Verdict::Harmless),
        false => Ok(Verdict::TornTail),
    }
}

/// The result that all ways of reading agree on; `None` when one of them found damage.
fn read_all(db: &Db, last: &State) -> Result<Option<State>, String> {
    let mut state = State::new();
    let mut is_damaged = false;
    for (name, expected) in last {
        let keyspace = db.keyspace(name).map_err(|error| format!("keyspace {name}: {error}"))?;
        let (forward, damaged) = collect(keyspace.iter())?;
        let (backward, damaged_back) = collect(keyspace.iter().rev())?;
        match damaged || damaged_back {
            false if forward != backward => return Err("the directions disagree".into()),
            false => {}
            true => agree(forward.iter().chain(&backward), expected)?,
        }
        is_damaged |= damaged || damaged_back;
        let whole = if damaged || damaged_back { expected } else { &forward };
        for key in expected.keys() {
            match keyspace.get(key) {
                Err(error) => {
                    judge_error(&error)?;
                    is_damaged = true;
                }
                Ok(value) if value.as_deref() == whole.get(key).map(Vec::as_slice) => {}
                Ok(_) => return Err(format!("a lookup of {} disagrees", key.escape_ascii())),
            }
        }
        state.insert(name.clone(), forward);
    }
    Ok((!is_damaged).then_some(state))
}

fn collect<K: AsRef<[u8]>>(
    pairs: impl Iterator<Item = shingle::Result<(K, table::Bytes)>>,
) -> Result<(Content, bool), String> {
    let mut content = Content::new();
    for pair in pairs {
        match pair {
            Ok((key, value)) => {
                content.insert(key.as_ref().to_vec(), value.to_vec());
            }
            Err(error) => {
                judge_error(&error)?;
                return Ok((content, true));
            }
        }
    }
    Ok((content, false))
}

fn agree<'a>(
    mut found: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
    expected: &Content,
) -> Result<(), String> {
    match found.find(|(key, value)| expected.get(*key) != Some(value)) {
        Some((key, _)) => Err(format!("a scan gave a wrong {}", key.escape_ascii())),
        None => Ok(()),
    }
}

/// Where two states differ first, for messages.
pub fn difference(found: &State, expected: &State) -> String {
    for (name, expected) in expected {
        let empty = Content::new();
        let found = found.get(name).unwrap_or(&empty);
        let missing = expected.iter().find(|(key, value)| found.get(*key) != Some(value));
        let extra = found.keys().find(|key| !expected.contains_key(*key));
        if let Some(key) = missing.map(|(key, _)| key).or(extra) {
            let (key, counts) = (key.escape_ascii(), (found.len(), expected.len()));
            return format!("{name}: first at key {key}; found and expected keys: {counts:?}");
        }
    }
    "none".into()
}
