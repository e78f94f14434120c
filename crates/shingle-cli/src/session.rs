//! The database that a shell has open from one command to the next.
//!
//! - The first command that needs the database opens it, for writing where that is possible. Only
//!   a command that creates a database does so here.
//! - Beside a process that writes, the shell follows: each command sees what the writer has written
//!   by then. A command that changes something tries to open the database for writing again.

use crate::failure::{Failure, Outcome};
use crate::open::{Access, Place, explain};
use shingle::{Db, ErrorKind, Follower, Options, WriteBatch};

/// How often a follower tries again while the writer changes files faster than they are read.
const CATCH_UPS_MAX: usize = 5;

enum Handle {
    /// For reads and writes, or, of what cannot be followed, for reads of one moment.
    Db(Db),
    Follower(Follower),
}

/// Gives the options of an opening for writing (`true`), or for reading.
pub type OptionsFor<'a> = &'a dyn Fn(bool) -> Outcome<Options>;

/// The database of a shell.
pub struct Session {
    handle: Option<Handle>,
    /// The options that opened it.
    options: Options,
    /// The shell only reads, even where it could write.
    read_only: bool,
    /// Commands come from a person, so stdin is free for data while a command runs.
    pub is_on_terminal: bool,
    /// Operations that wait for `commit`.
    pub batch: Option<WriteBatch>,
}

impl Session {
    /// Nothing is open yet.
    pub fn new(read_only: bool, is_on_terminal: bool) -> Session {
        Session { handle: None, options: Options::new(), read_only, is_on_terminal, batch: None }
    }

    /// The shell cannot change the database.
    pub fn only_reads(&self) -> bool {
        self.read_only || matches!(self.handle, Some(Handle::Follower(_)))
    }

    /// The options that opened the database.
    pub fn options(&self) -> Options {
        self.options.clone()
    }

    /// The names of the keyspaces, as far as they are known without opening anything.
    pub fn keyspaces(&self) -> Vec<String> {
        match &self.handle {
            Some(Handle::Db(db)) => db.keyspaces(),
            Some(Handle::Follower(follower)) => follower.db().keyspaces(),
            None => Vec::new(),
        }
    }

    /// The database at `place` as a command needs it. `remark` says what a person should know.
    pub fn open(
        &mut self,
        place: &Place,
        options: OptionsFor<'_>,
        access: Access,
        remark: &dyn Fn(&str),
    ) -> Outcome<Db> {
        let changes = access != Access::Read;
        if changes && self.read_only {
            return Err(Failure::said(
                "this shell only reads",
                "start it without --read-only to change the database",
            ));
        }
        match &self.handle {
            Some(Handle::Db(db)) => return Ok(db.clone()),
            Some(Handle::Follower(follower)) if !changes => return newest(follower, remark),
            _ => {}
        }
        let (handle, db) = self.open_anew(place, options, access, remark)?;
        self.handle = Some(handle);
        Ok(db)
    }

    fn open_anew(
        &mut self,
        place: &Place,
        options: OptionsFor<'_>,
        access: Access,
        remark: &dyn Fn(&str),
    ) -> Outcome<(Handle, Db)> {
        let mut options = |writes| {
            self.options = options(writes)?.create(access == Access::Create).absent_operators(true);
            Outcome::Ok(self.options.clone())
        };
        let explain = |error| explain(&place.path, error);
        let can_follow = place.can_be_followed() && access == Access::Read;
        if !(self.read_only && can_follow) {
            match place.database(options(!self.read_only)?, self.read_only) {
                Ok(db) => return Ok((Handle::Db(db.clone()), db)),
                Err(error) if error.kind() == ErrorKind::Locked && can_follow => {
                    let said = error.message();
                    remark(&format!("note: {said}; this shell reads what it writes"));
                }
                Err(error) => return Err(explain(error)),
            }
        }
        let follower = place.follower(options(false)?).map_err(explain)?;
        let db = follower.db();
        Ok((Handle::Follower(follower), db))
    }

    /// Forgets a database that an interrupted command closed; the next command opens it again.
    pub fn forget(&mut self) {
        self.handle = None;
    }

    /// Ends the use of the database.
    pub fn close(self) -> Outcome {
        match self.handle {
            Some(Handle::Db(db)) => Ok(db.close()?),
            _ => Ok(()),
        }
    }
}

/// What the writer has written by now.
fn newest(follower: &Follower, remark: &dyn Fn(&str)) -> Outcome<Db> {
    for _ in 0..CATCH_UPS_MAX {
        match follower.catch_up() {
            Err(error) if error.kind() == ErrorKind::WouldWait => {}
            caught_up => {
                caught_up?;
                return Ok(follower.db());
            }
        }
    }
    remark("note: the writer changes files faster than they are read; this is older");
    Ok(follower.db())
}
