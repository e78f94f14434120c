//! What every command shares: global flags, the way to open the database, the output.

use crate::args::Global;
use crate::failure::{Failure, Outcome};
use crate::open::{Place, is_device};
use crate::progress::Bar;
use crate::text::Notation;
use serde::Serialize;
use shingle::{Db, Error, ErrorKind, Keyspace, KeyspaceOptions, Options};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a command means to do with the database that it opens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look only; the database must exist.
    Read,
    /// Change it; the database must exist.
    Change,
    /// Change it; a database that does not exist is created.
    Create,
}

/// Global flags and the output.
pub struct Context<'a> {
    /// The flags before or after the command.
    pub global: Global,
    /// Buffered, locked stdout.
    pub out: &'a mut dyn Write,
}

impl<'a> Context<'a> {
    /// For one command.
    pub fn new(global: Global, out: &'a mut dyn Write) -> Context<'a> {
        Context { global, out }
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
            options = options.set(key.trim(), value.trim()).map_err(|error| {
                Failure::usage(error.message(), "`shingle options` lists options and their values")
            })?;
        }
        Ok(options)
    }

    /// Where the database lies that the flags name.
    pub fn place(&self) -> Outcome<Place> {
        Ok(Place { path: self.path()?, cold: self.global.cold_store.clone() })
    }

    /// Opens the database that the flags name.
    pub fn open(&self, access: Access) -> Outcome<Db> {
        self.open_place(&self.place()?, access)
    }

    /// Opens the database in `path`.
    pub fn open_at(&self, path: &Path, access: Access) -> Outcome<Db> {
        self.open_place(&Place::at(path), access)
    }

    fn open_place(&self, place: &Place, access: Access) -> Outcome<Db> {
        // Operators of a program's own are in no command: what needs none works without.
        let options = self.options()?.create(access == Access::Create).absent_operators(true);
        let opened = match place.database(options.clone(), access == Access::Read) {
            Err(error) if error.kind() == ErrorKind::Locked && access == Access::Read => {
                self.open_beside(place, options, error)
            }
            opened => opened,
        };
        opened.map_err(|error| self.explain(&place.path, error))
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
        let db = place.followed(options)?;
        if !self.global.json {
            let said = error.message();
            let _ = writeln!(std::io::stderr(), "note: {said}; read is what it wrote until now");
        }
        Ok(db)
    }

    /// What an error of opening `path` means at a shell.
    pub fn explain(&self, path: &Path, error: Error) -> Failure {
        let is_device = is_device(path);
        let help = match error.kind() {
            ErrorKind::NotFound => {
                return Failure::said(
                    format!("there is no database in {}", path.display()),
                    "look at --db; `put`, `import` and `keyspace create` make a new one",
                );
            }
            ErrorKind::Incompatible if is_device => {
                "look at --db, which names a directory or a formatted file or disk; \
                 `shingle device format PATH` makes one"
            }
            ErrorKind::Incompatible if error.message().contains("LevelDB") => {
                "export its records as lines of key TAB value with that store's tools, then \
                 `shingle --db NEW import FILE --format tsv --raw`; nothing was changed"
            }
            ErrorKind::Io if path.exists() && !path.is_dir() && !is_device => {
                "look at --db, which names a directory or a formatted file or disk"
            }
            ErrorKind::InvalidArgument => {
                "look at --db, --cold-store and --option; nothing was changed"
            }
            ErrorKind::Locked => {
                "wait until that process closes the database, or end the process; commands that \
                 only read a directory work beside it"
            }
            _ => return Failure::Engine(error),
        };
        Failure::Opening { error, help: help.into() }
    }

    /// The keyspace that `--keyspace` names. `Create` makes one that is not there yet.
    pub fn keyspace(&self, db: &Db, access: Access) -> Outcome<Keyspace> {
        match db.keyspace(&self.global.keyspace) {
            Ok(keyspace) => Ok(keyspace),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if access == Access::Create {
                    let options = KeyspaceOptions::default();
                    return Ok(db.create_keyspace(&self.global.keyspace, options)?);
                }
                Err(Failure::said(
                    format!("there is no keyspace {}", self.global.keyspace),
                    "list them with `shingle keyspace list`",
                ))
            }
            Err(error) => Err(error.into()),
        }
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

    /// A progress bar over `total` bytes; invisible where nobody would see it.
    pub fn bar(&self, what: &str, total_bytes: u64) -> Bar {
        Bar::bytes(what, total_bytes, self.global.quiet || self.global.json)
    }

    /// A progress bar over things that are counted.
    pub fn count_bar(&self, what: &str) -> Bar {
        Bar::things(what, self.global.quiet || self.global.json)
    }
}
