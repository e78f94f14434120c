//! What every command shares: global flags, the way to open the database, the output.
//!
//! A command opens the database and closes it. In a shell the database stays open for the next
//! command: [`Opened`] hides the difference.

use crate::args::range::RangeArgs;
use crate::args::{GlobalArgs, LineArgs};
use crate::assumed::{Assumed, OptionsOrigin, last_opening};
use crate::failure::{Failure, Outcome};
use crate::open::{self, Access, Place};
use crate::progress::Bar;
use crate::session::Session;
use crate::suggest;
use crate::text::{self, Notation};
use base::KeyRange;
use serde::Serialize;
use shingle::{Db, Error, ErrorKind, Keyspace, KeyspaceOptions, Options};
use std::ffi::OsStr;
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The keyspace of a command that names none.
const KEYSPACE: &str = "default";

/// The flags of a command that it shares with all others.
#[derive(Clone, Debug)]
pub struct Global {
    /// The directory of the database, or a formatted file or disk.
    pub db: Option<PathBuf>,
    /// The same of its cold store.
    pub cold_store: Option<PathBuf>,
    /// The keyspace that the command works on.
    pub keyspace: String,
    /// Options of the database.
    pub option: Vec<String>,
    /// Keys and values are hex digits.
    pub hex: bool,
    /// Results and errors are JSON.
    pub json: bool,
    /// No remarks and no progress bars.
    pub quiet: bool,
}

impl Global {
    /// The flags for one command of a shell that was started with these.
    pub fn of_line(&self, line: LineArgs) -> Global {
        Global {
            keyspace: line.keyspace.unwrap_or_else(|| self.keyspace.clone()),
            hex: self.hex || line.hex,
            json: self.json || line.json,
            quiet: self.quiet || line.quiet,
            ..self.clone()
        }
    }
}

impl From<GlobalArgs> for Global {
    fn from(args: GlobalArgs) -> Global {
        let LineArgs { keyspace, hex, json, quiet } = args.line;
        Global {
            db: args.db,
            cold_store: args.cold_store,
            keyspace: keyspace.unwrap_or_else(|| KEYSPACE.into()),
            option: args.option,
            hex,
            json,
            quiet,
        }
    }
}

/// A database that a command has open.
pub struct Opened {
    db: Db,
    /// The shell goes on with it.
    is_of_shell: bool,
}

impl Opened {
    /// Ends the command's use of the database.
    pub fn close(self) -> shingle::Result<()> {
        if self.is_of_shell { Ok(()) } else { self.db.close() }
    }
}

impl Deref for Opened {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

/// What `--option` is set on top of, for an opening that writes, or only reads.
fn base_options(place: &Place, writes: bool) -> Options {
    let last = if writes { last_opening(place) } else { None };
    last.unwrap_or_default()
}

/// Global flags and the output.
pub struct Context<'a> {
    /// The flags before or after the command.
    pub global: Global,
    /// Buffered, locked stdout.
    pub out: &'a mut dyn Write,
    /// The database of a shell.
    pub session: Option<Session>,
}

impl<'a> Context<'a> {
    /// For one command.
    pub fn new(global: Global, out: &'a mut dyn Write) -> Context<'a> {
        Context { global, out, session: None }
    }

    /// The database's directory, file or disk.
    pub fn path(&self) -> Outcome<PathBuf> {
        self.global.db.clone().ok_or_else(|| {
            Failure::usage(
                "which database? None was named",
                "name it with --db PATH or the environment variable SHINGLE_DB",
            )
        })
    }

    /// Options as `--option` set them.
    pub fn options(&self) -> Outcome<Options> {
        self.set_options(Options::new())
    }

    /// `options` with what `--option` sets on top.
    pub fn set_options(&self, mut options: Options) -> Outcome<Options> {
        for pair in &self.global.option {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--option {pair}: no `=` in it"), "write key=value")
            })?;
            let (key, value) = (key.trim(), value.trim());
            options = options
                .set(key, value)
                .map_err(|error| Failure::usage(error.message(), suggest::help_of_option(key)))?;
        }
        Ok(options)
    }

    /// Where the database lies that the flags name.
    pub fn place(&self) -> Outcome<Place> {
        Ok(Place { path: self.path()?, cold: self.global.cold_store.clone() })
    }

    /// Opens the database that the flags name. A command that writes goes on with the options of
    /// the last opening, where `--option` sets no others: it does not change how the database is
    /// laid out.
    pub fn open(&mut self, access: Access) -> Outcome<Opened> {
        let place = self.place()?;
        let Some(mut session) = self.session.take() else {
            let base = base_options(&place, access != Access::Read);
            let db = self.open_place(&place, access, base)?;
            return Ok(Opened { db, is_of_shell: false });
        };
        let options = |writes| self.set_options(base_options(&place, writes));
        let db = session.open(&place, &options, access, &|text| self.remark(text));
        self.session = Some(session);
        Ok(Opened { db: db?, is_of_shell: true })
    }

    /// Opens the database in `path`.
    pub fn open_at(&self, path: &Path, access: Access) -> Outcome<Db> {
        self.open_place(&Place::at(path), access, Options::new())
    }

    /// Opens the database that the flags name for reading, with the options of the last opening for
    /// writing and `--option` on top. In a shell the options are those of the shell.
    pub fn open_as_last(&mut self) -> Outcome<(Opened, Assumed)> {
        if self.session.is_some() {
            let db = self.open(Access::Read)?;
            let options = self.session.as_ref().map_or_else(Options::new, Session::options);
            return Ok((db, Assumed { options, origin: OptionsOrigin::Shell }));
        }
        let place = self.place()?;
        let Assumed { options: base, origin } = Assumed::of_last_opening(&place);
        let assumed = Assumed { options: self.set_options(base.clone())?, origin };
        let db = self.open_place(&place, Access::Read, base)?;
        Ok((Opened { db, is_of_shell: false }, assumed))
    }

    /// Opens with `base` and `--option` on top.
    fn open_place(&self, place: &Place, access: Access, base: Options) -> Outcome<Db> {
        let options = self.set_options(base)?;
        // Operators of a program's own are in no command: what needs none works without.
        let options = options.create(access == Access::Create).absent_operators(true);
        let opened = match place.database(options.clone(), access == Access::Read) {
            Err(error) if error.kind() == ErrorKind::Locked && access == Access::Read => {
                self.open_beside(place, options, error)
            }
            opened => opened,
        };
        opened.map_err(|error| open::explain(&place.path, error))
    }

    /// Reads the database although another process has it open, as `error` says.
    pub fn open_beside(
        &self,
        place: &Place,
        options: Options,
        error: Error,
    ) -> shingle::Result<Db> {
        if !place.can_be_followed() {
            return Err(error);
        }
        let db = place.follower(options)?.db();
        self.remark(&format!("note: {}; showing what it has written so far", error.message()));
        Ok(db)
    }

    /// Refuses `command`, which commits by itself, while a shell has a batch begun.
    pub fn check_no_batch(&self, command: &str) -> Outcome {
        if self.session.as_ref().is_some_and(|session| session.batch.is_some()) {
            return Err(Failure::usage(
                format!(
                    "{command} writes batches of its own, and no part of the batch that was begun"
                ),
                "commit or discard that batch first",
            ));
        }
        Ok(())
    }

    /// The keyspace that `--keyspace` names. `Create` makes one that is not there yet.
    pub fn keyspace(&self, db: &Db, access: Access) -> Outcome<Keyspace> {
        self.keyspace_of_name(db, access, &self.global.keyspace)
    }

    /// Refuses a keyspace other than the usual one where the source names keyspaces.
    pub fn check_no_keyspace(&self, reason: &str) -> Outcome {
        match self.global.keyspace.as_str() {
            "default" => Ok(()),
            _ => Err(Failure::usage(reason, "leave out --keyspace")),
        }
    }

    /// The keyspace `name`.
    pub fn keyspace_of_name(&self, db: &Db, access: Access, name: &str) -> Outcome<Keyspace> {
        match db.keyspace(name) {
            Ok(keyspace) => Ok(keyspace),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if access == Access::Create {
                    return Ok(db.create_keyspace(name, KeyspaceOptions::default())?);
                }
                Err(Failure::said(
                    format!("there is no keyspace {name}"),
                    "list them with `shingle keyspace list`",
                ))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The keys that flags of the command name.
    pub fn range(&self, args: &RangeArgs) -> Outcome<KeyRange> {
        if let Some(prefix) = &args.prefix {
            return Ok(KeyRange::prefix(&self.bytes(prefix)?));
        }
        let bound = |text: &Option<_>| text.as_deref().map(|text| self.bytes(text)).transpose();
        let (start, end) = (bound(&args.from)?.unwrap_or_default(), bound(&args.to)?);
        if end.as_ref().is_some_and(|end| *end < start) {
            let (from, to) = (text::brief(&start), text::brief(&end.unwrap_or_default()));
            return Err(Failure::usage(
                format!("the range begins at {from} and ends at {to}, which comes before it"),
                "give the smaller key to --from; keys are ordered by their bytes",
            ));
        }
        Ok(KeyRange::new(start, end.map(Into::into)))
    }

    /// A key or value of the command line as bytes.
    pub fn bytes(&self, text: &OsStr) -> Outcome<Vec<u8>> {
        self.notation().read(text).map_err(|message| {
            Failure::usage(message, "without --hex, arguments are taken as they are")
        })
    }

    /// Stdin is free for data: it does not have the commands of a shell.
    pub fn check_stdin_is_free(&self) -> Outcome {
        if self.session.as_ref().is_none_or(|session| session.is_on_terminal) {
            return Ok(());
        }
        Err(Failure::usage("stdin has the commands of this shell, and no data", "name a file"))
    }

    /// How bytes are spelled on the command line and in lines of output.
    pub fn notation(&self) -> Notation {
        if self.global.hex { Notation::Hex } else { Notation::Text }
    }

    /// One JSON value and a newline.
    pub fn json(&mut self, value: &impl Serialize) -> Outcome {
        serde_json::to_writer(&mut *self.out, value)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// A remark for people, on stderr; silent under `--quiet` and `--json`.
    pub fn remark(&self, text: &str) {
        if !self.global.quiet && !self.global.json {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }

    /// A progress bar over `total` bytes; invisible where no terminal shows it.
    pub fn bar(&self, what: &str, total_bytes: u64) -> Bar {
        Bar::bytes(what, total_bytes, self.global.quiet || self.global.json)
    }

    /// A progress bar over things that are counted.
    pub fn count_bar(&self, what: &str) -> Bar {
        Bar::things(what, self.global.quiet || self.global.json)
    }
}
