//! Sessions of users: each ends a while after its last use, and those of a user who is blocked go
//! with a compaction.
//!
//! `cargo run --example sessions`
//!
//! What it shows: a keyspace with a time to live; an expiry that a use moves; a compaction filter
//! that decides by the key alone; the report of what was removed.
#![allow(clippy::print_stdout)]

use shingle::{CompactionFilter, Db, Expiry, FilterDecision, FilterEntry, Keyspace};
use shingle::{KeyspaceOptions, Options, Result};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// A session without use ends after this time.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Drops the sessions of users who are blocked. Their keys begin with the user.
#[derive(Default)]
struct Blocked(RwLock<BTreeSet<String>>);

impl Blocked {
    fn block(&self, user: &str) {
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(user.into());
    }

    fn is_blocked(&self, key: &[u8]) -> bool {
        let user = key.split(|&byte| byte == b'/').next().unwrap_or_default();
        let users = self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::str::from_utf8(user).is_ok_and(|user| users.contains(user))
    }
}

impl CompactionFilter for Blocked {
    fn name(&self) -> &str {
        "blocked-users"
    }

    fn filter(&self, entry: &FilterEntry<'_>) -> Result<FilterDecision> {
        let is_blocked = self.is_blocked(entry.key());
        Ok(if is_blocked { FilterDecision::Drop } else { FilterDecision::Keep })
    }
}

struct Sessions {
    db: Db,
    /// What a session holds, by user and number.
    sessions: Keyspace,
    blocked: Arc<Blocked>,
}

impl Sessions {
    fn open(path: &Path) -> Result<Sessions> {
        let blocked = Arc::new(Blocked::default());
        let db = Options::new().compaction_filter(blocked.clone()).open(path)?;
        let options = KeyspaceOptions {
            ttl: Some(IDLE),
            compaction_filter: Some(blocked.name().into()),
            ..KeyspaceOptions::default()
        };
        let sessions = db.open_or_create_keyspace("sessions", options)?;
        Ok(Sessions { db, sessions, blocked })
    }

    /// What the session holds. It now ends `IDLE` after this use.
    fn enter(&self, key: &str) -> Result<Option<String>> {
        let Some(held) =
            self.sessions.get(key)?.filter(|_| !self.blocked.is_blocked(key.as_bytes()))
        else {
            return Ok(None);
        };
        self.sessions.put(key, &held)?;
        Ok(Some(String::from_utf8_lossy(&held).into_owned()))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let sessions = Sessions::open(&home.path().join("sessions.db"))?;
    let store = &sessions.sessions;
    store.put("ann/1", "3 books in the basket")?;
    store.put("bob/1", "an empty basket")?;
    store.put("bob/2", "1 lamp in the basket")?;
    store.put_expiring("shop/robot", "counts visits", Expiry::NEVER)?;
    store.put_with_ttl("eve/1", "a session that ends at once", Duration::ZERO)?;

    let print = |key: &str| -> Result<()> {
        println!("{key}: {}", sessions.enter(key)?.unwrap_or("no session".into()));
        Ok(())
    };
    print("ann/1")?;
    print("eve/1")?;
    let (_, expiry) = store.get_with_expiry("ann/1")?.ok_or("half an hour is not over")?;
    let latest = store.expiry_after(IDLE);
    println!("ann's session ends within half an hour: {}", expiry <= Some(latest));
    let (_, expiry) = store.get_with_expiry("shop/robot")?.ok_or("it stays")?;
    println!("the robot's session ends: {}", expiry.is_some());

    sessions.blocked.block("bob");
    print("bob/1")?;
    println!("{} sessions before the compaction", store.iter().count());
    store.compact()?;
    println!("{} sessions after it", store.iter().count());
    for report in sessions.db.stats().cleanup {
        let (expired, dropped) = (report.expired, report.filter_dropped);
        println!("{}: {expired} expired, {dropped} dropped", report.keyspace);
    }
    sessions.db.close()?;
    Ok(())
}
