//! Where the database of a benchmark lies: it is opened there, and removed from there.

use super::simulated::Simulated;
use super::temporary;
use crate::args::BenchArgs;
use crate::device::is_model;
use crate::failure::{Failure, Outcome};
use crate::interrupt::{Interrupt, Watch, interrupted};
use crate::open;
use media::FileStore;
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::{Db, Error, ErrorKind, Ledger, Options, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use workloads::shingle_store::ShingleStore;
use workloads::{Clock, Store, StoreFactory, VirtualClock, WallClock};

/// What the database lies on.
pub enum Place {
    /// A directory that the user named.
    Named(PathBuf),
    /// A directory for this run only.
    Temporary(PathBuf),
    /// Memory, kept between openings.
    Memory(Mutex<Arc<MemStore>>),
    /// A model of a device.
    Simulated(Box<Simulated>),
}

impl Place {
    /// Where the flags say.
    pub fn new(args: &BenchArgs, named: Option<PathBuf>) -> Outcome<Place> {
        let (placement, seed) = (args.placement.as_deref(), args.simulation_seed);
        Ok(match (args.device.as_str(), named) {
            (model, None) if is_model(model) => {
                let simulated = Simulated::new(model, placement, seed, args.map.is_some())
                    .map_err(Failure::of_value)?;
                Place::Simulated(Box::new(simulated))
            }
            _ if placement.is_some() || args.map.is_some() => {
                return Err(Failure::usage(
                    "--placement and --map are for models of devices",
                    "name one with --device MODEL, without --db",
                ));
            }
            ("memory", _) => Place::Memory(Mutex::new(empty_memory())),
            ("files", Some(path)) => Place::Named(path),
            ("files", None) => Place::Temporary(temporary()),
            (device, _) => {
                return Err(Failure::usage(
                    format!("bench: --device {device} is no model, or has no place for --db"),
                    "there are `files`, `memory`, and the models that `shingle device list` has",
                ));
            }
        })
    }
}

fn empty_memory() -> Arc<MemStore> {
    Arc::new(MemStore::new(Arc::new(Ledger::default())))
}

/// Opens and removes the database of a run.
pub struct Factory {
    options: Options,
    place: Arc<Place>,
    disable_wal: bool,
    /// What closed databases of this run wrote.
    written: Arc<AtomicU64>,
    interrupt: Arc<Interrupt>,
    /// Closes the open database on a signal.
    watch: Mutex<Option<Watch>>,
}

impl Factory {
    /// For a run under these options.
    pub fn new(options: Options, place: Place, disable_wal: bool) -> Outcome<Factory> {
        let interrupt = Arc::new(Interrupt::listen()?);
        let (place, written, watch) = (Arc::new(place), Arc::default(), Mutex::default());
        Ok(Factory { options, place, disable_wal, written, interrupt, watch })
    }

    /// At the same place, under other options.
    pub fn under(&self, options: Options) -> Factory {
        let (place, written) = (self.place.clone(), self.written.clone());
        let (interrupt, watch) = (self.interrupt.clone(), Mutex::default());
        Factory { options, place, disable_wal: self.disable_wal, written, interrupt, watch }
    }

    /// The user asked for the end of the run.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_asked()
    }

    /// Ends an interrupted run: says what there is of it, and removes a database that was only for
    /// this run.
    pub fn end_early(&self, done: &str) -> Failure {
        let help = match &*self.place {
            Place::Named(path) => {
                format!("the database {} is closed, with what was written", path.display())
            }
            Place::Temporary(path) => match self.destroy() {
                Ok(()) => "the temporary database was removed".into(),
                Err(error) => format!("{} is left: {}", path.display(), error.message()),
            },
            Place::Memory(_) | Place::Simulated(_) => "nothing is left of the database".into(),
        };
        interrupted(done, help)
    }

    /// Lets go of the database, so that it can be removed.
    pub fn unwatch(&self) {
        drop(self.watch.lock().take());
    }

    /// Bytes that the databases of this run wrote to their files, those that were closed.
    pub fn write_bytes(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// The clock of the run.
    pub fn clock(&self) -> Box<dyn Clock> {
        match &*self.place {
            Place::Simulated(simulated) => Box::new(VirtualClock(simulated.runtime())),
            _ => Box::new(WallClock::default()),
        }
    }

    /// The model of the run.
    pub fn simulated(&self) -> Option<&Simulated> {
        if let Place::Simulated(simulated) = &*self.place { Some(simulated) } else { None }
    }

    /// The database is on files, or on one file or disk.
    pub fn is_on_files(&self) -> bool {
        matches!(*self.place, Place::Named(_) | Place::Temporary(_))
    }

    /// The database is for this run only.
    pub fn is_temporary(&self) -> bool {
        matches!(*self.place, Place::Temporary(_))
    }
}

/// A device is not formatted by a benchmark: that takes a command of its own.
fn require_empty(path: &Path) -> Result<()> {
    if open::store(path, true)?.layout().files.is_empty() {
        return Ok(());
    }
    let message = "the benchmark begins with an empty database and the device has one: format it \
                   with --force, or pass --use_existing_db";
    Err(Error::new(ErrorKind::AlreadyExists, message).in_file(path.display().to_string()))
}

impl StoreFactory for Factory {
    fn open(&self) -> Result<Box<dyn Store>> {
        let options = self.options.clone();
        let flag = self.interrupt.flag();
        let db = match &*self.place {
            Place::Simulated(simulated) => {
                let store = simulated.open(options, self.disable_wal)?;
                return Ok(Box::new(store.cancelled_by(flag)));
            }
            Place::Named(path) | Place::Temporary(path) => {
                open::Place::at(path).database(options, false)?
            }
            Place::Memory(store) => {
                let store: Arc<dyn FileStore> = store.lock().clone();
                options.open_store(store)?
            }
        };
        let watch = self.interrupt.closes(&db).map_err(|f| Error::invalid(f.message()))?;
        *self.watch.lock() = Some(watch);
        let store = ShingleStore::new(db, self.disable_wal)?;
        Ok(Box::new(store.cancelled_by(flag).counted_in(self.written.clone())))
    }

    fn destroy(&self) -> Result<()> {
        self.unwatch();
        let path = match &*self.place {
            Place::Named(path) | Place::Temporary(path) => path,
            Place::Simulated(simulated) => return simulated.renew(),
            Place::Memory(store) => {
                *store.lock() = empty_memory();
                return Ok(());
            }
        };
        if open::is_device(path) {
            return require_empty(path);
        }
        let Ok(mut entries) = std::fs::read_dir(path) else { return Ok(()) };
        if entries.next().is_none() {
            return Ok(());
        }
        // Only what opens as a database is removed; a mistyped path removes no directory.
        let opened = Options::new().create(false).read_only(true).open(path);
        opened.and_then(Db::close).map_err(|error| {
            let message = format!(
                "{} does not open as a database and is not removed: {}",
                path.display(),
                error.message()
            );
            Error::new(error.kind(), message)
        })?;
        std::fs::remove_dir_all(path)
            .map_err(|error| Error::io(format!("remove {}", path.display()), error))
    }
}
