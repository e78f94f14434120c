//! A benchmark's database on a model of a device, in virtual time.
//!
//! One simulation for the whole run; a database that begins anew gets a new device in it. Logs
//! gather up to [`LOG_BUFFER_BYTES`] before they write, as they would in a page cache: the rest of
//! them is lost with the process unless it was synced, which is what db_bench measures elsewhere.

use crate::device::map::{Picture, Write};
use crate::failure::Outcome;
use base::env::Runtime;
use devices::{SimulatedDevice, Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, Extent, FormatOptions, placement};
use parking_lot::Mutex;
use shingle::{Ledger, Options, Result};
use std::path::Path;
use std::sync::Arc;
use workloads::shingle_store::ShingleStore;

const LOG_BUFFER_BYTES: usize = 1 << 20;

/// A model, and the time that it is in.
pub struct Simulated {
    simulation: Simulation,
    model: String,
    placement: String,
    is_traced: bool,
    writes: Arc<Mutex<Vec<Write>>>,
    device: Mutex<Arc<SimulatedDevice>>,
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
        let writes = Arc::default();
        let device = watched(simulation.device(made), trace, &writes);
        let simulated = Simulated {
            simulation,
            model: model.to_string(),
            placement,
            is_traced: trace,
            writes,
            device: Mutex::new(device),
        };
        simulated.format()?;
        Ok(simulated)
    }

    /// The clock of the run.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(self.simulation.clone())
    }

    fn format(&self) -> Result<()> {
        let device = self.device.lock().clone();
        let (placement, store) = (self.placement.clone(), self.simulation.random_u64());
        let options = FormatOptions { placement, unit_bytes: 0, store, force: false };
        direct::format(device.clone(), Arc::new(Ledger::default()), &options)?;
        self.writes.lock().clear();
        Ok(())
    }

    /// A new device instead of this one.
    pub fn renew(&self) -> Result<()> {
        let device = self.simulation.device(models::make(&self.model)?);
        *self.device.lock() = watched(device, self.is_traced, &self.writes);
        self.format()
    }

    fn store(&self) -> Result<DirectStore> {
        let options =
            DirectOptions { log_buffer_bytes: LOG_BUFFER_BYTES, ..DirectOptions::default() };
        DirectStore::open(self.device.lock().clone(), Arc::new(Ledger::default()), options)
    }

    /// Opens the database.
    pub fn open(&self, options: Options, disable_wal: bool) -> Result<ShingleStore> {
        let db = options.open_in(Arc::new(self.store()?), self.runtime())?;
        Ok(ShingleStore::new(db, disable_wal)?.in_runtime(self.runtime()))
    }

    /// Draws what lies where, and where each write went.
    pub fn draw(&self, path: &Path) -> Outcome {
        let writes = self.writes.lock().clone();
        let store = self.store()?;
        let layout = store.layout();
        let db = Options::new().read_only(true).open_in(Arc::new(store), self.runtime())?;
        let (title, files) = (self.model.clone(), db.files());
        Picture { title, layout, files }.write(path, &writes)
    }
}

/// The device, with its writes remembered where they are asked for.
fn watched(
    device: SimulatedDevice,
    is_traced: bool,
    writes: &Arc<Mutex<Vec<Write>>>,
) -> Arc<SimulatedDevice> {
    if !is_traced {
        return Arc::new(device);
    }
    let writes = writes.clone();
    Arc::new(device.watched(Box::new(move |write| note(&mut writes.lock(), write))))
}

/// Remembers a write; requests that go on where one of the same cause ended are one write.
fn note(writes: &mut Vec<Write>, write: devices::simulation::Write) {
    let devices::simulation::Write { at_ns, offset, bytes, cause } = write;
    let known = writes.iter_mut().rev().take(8);
    let mut goes_on = known.filter(|last| last.cause == cause && last.extent.end() == offset);
    if let Some(last) = goes_on.next() {
        last.extent.bytes += bytes;
        return;
    }
    writes.push(Write { at_ns, cause, extent: Extent { start: offset, bytes } });
}
