//! A benchmark's database on a model of a device, in virtual time.
//!
//! One simulation for the whole run; a database that begins anew gets a new device in it. Logs
//! gather up to [`LOG_BUFFER_BYTES`] before they write, as they would in a page cache: the rest of
//! them is lost with the process unless it was synced, which is what db_bench measures elsewhere.

use crate::device::map::{Picture, Write};
use crate::failure::Outcome;
use base::Cause;
use base::env::Runtime;
use devices::{SimulatedDevice, Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, Extent, FormatOptions, placement};
use lab::shingle_store::ShingleStore;
use media::block::{BlockDevice, DeviceLock, Geometry, Moved, Zone};
use shingle::{Ledger, Options, Result};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const LOG_BUFFER_BYTES: usize = 1 << 20;

/// A model, and the time that it is in.
pub struct Simulated {
    simulation: Simulation,
    model: String,
    placement: String,
    device: Mutex<Arc<Traced>>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulated {
    /// An empty store on a new device of `model`; its placement is that which suits the medium,
    /// where none is named.
    pub fn new(model: &str, placement: Option<&str>, seed: u64, trace: bool) -> Result<Simulated> {
        let options = SimulationOptions { seed, ..SimulationOptions::default() };
        let simulation = Simulation::new(options);
        let made = models::make(model)?;
        let suited = placement::suited(&made.geometry());
        let placement = placement.unwrap_or(suited).to_string();
        let traced = Traced::new(&simulation, simulation.device(made), trace);
        let simulated = Simulated {
            simulation,
            model: model.to_string(),
            placement,
            device: Mutex::new(Arc::new(traced)),
        };
        simulated.format()?;
        Ok(simulated)
    }

    /// The clock of the run.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(self.simulation.clone())
    }

    fn format(&self) -> Result<()> {
        let device = hold(&self.device).clone();
        let (placement, store) = (self.placement.clone(), self.simulation.random_u64());
        let options = FormatOptions { placement, unit_bytes: 0, store, force: false };
        direct::format(device.clone(), Arc::new(Ledger::default()), &options)?;
        hold(&device.writes).clear();
        Ok(())
    }

    /// A new device instead of this one.
    pub fn renew(&self) -> Result<()> {
        let trace = hold(&self.device).is_traced;
        let device = self.simulation.device(models::make(&self.model)?);
        *hold(&self.device) = Arc::new(Traced::new(&self.simulation, device, trace));
        self.format()
    }

    fn store(&self) -> Result<DirectStore> {
        let options =
            DirectOptions { log_buffer_bytes: LOG_BUFFER_BYTES, ..DirectOptions::default() };
        DirectStore::open(hold(&self.device).clone(), Arc::new(Ledger::default()), options)
    }

    /// Opens the database.
    pub fn open(&self, options: Options, disable_wal: bool) -> Result<ShingleStore> {
        let db = options.open_in(Arc::new(self.store()?), self.runtime())?;
        Ok(ShingleStore::new(db, disable_wal)?.in_runtime(self.runtime()))
    }

    /// Draws what lies where, and where each write went.
    pub fn draw(&self, path: &Path) -> Outcome {
        let writes = hold(&hold(&self.device).writes).clone();
        let store = self.store()?;
        let layout = store.layout();
        let db = Options::new().read_only(true).open_in(Arc::new(store), self.runtime())?;
        let (title, files) = (self.model.clone(), db.files());
        Picture { title, layout, files }.write(path, &writes)
    }
}

/// A device whose writes are remembered.
struct Traced {
    device: SimulatedDevice,
    simulation: Simulation,
    is_traced: bool,
    writes: Mutex<Vec<Write>>,
}

impl Traced {
    fn new(simulation: &Simulation, device: SimulatedDevice, is_traced: bool) -> Traced {
        Traced { device, simulation: simulation.clone(), is_traced, writes: Mutex::default() }
    }

    /// Requests that go on where one of the same cause ended are one write.
    fn note(&self, offset: u64, bytes: u64, cause: Cause) {
        let mut writes = hold(&self.writes);
        let known = writes.iter_mut().rev().take(8);
        let mut goes_on = known.filter(|last| last.cause == cause && last.extent.end() == offset);
        if let Some(last) = goes_on.next() {
            last.extent.bytes += bytes;
            return;
        }
        let at_ns = self.simulation.now_ns();
        writes.push(Write { at_ns, cause, extent: Extent { start: offset, bytes } });
    }
}

impl BlockDevice for Traced {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<Moved> {
        self.device.read(offset, into, cause)
    }

    fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> Result<Moved> {
        if self.is_traced {
            self.note(offset, bytes.len() as u64, cause);
        }
        self.device.write(offset, bytes, cause)
    }

    fn flush(&self, cause: Cause) -> Result<Moved> {
        self.device.flush(cause)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<Moved> {
        self.device.discard(offset, bytes)
    }

    fn reset_zone(&self, start: u64) -> Result<Moved> {
        self.device.reset_zone(start)
    }

    fn finish_zone(&self, start: u64) -> Result<()> {
        self.device.finish_zone(start)
    }

    fn zone(&self, offset: u64) -> Result<Option<Zone>> {
        self.device.zone(offset)
    }

    fn lock(&self) -> Result<DeviceLock> {
        self.device.lock()
    }

    fn describe(&self) -> String {
        self.device.describe()
    }
}
