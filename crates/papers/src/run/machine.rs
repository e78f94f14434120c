//! The device, the store and the engine of a run.

use super::probe::{Bands, Probe};
use crate::settings::Settings;
use base::Result;
use base::env::Runtime;
use devices::{SimulatedDevice, Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, FormatOptions, Layout, format, placement};
use lab::VirtualClock;
use lab::shingle_store::ShingleStore;
use lab::watched::Watched;
use media::block::BlockDevice;
use shingle::{Db, Ledger, Stats};
use std::sync::Arc;

/// Bytes that logs gather before they write, as in a page cache.
const LOG_BUFFER_BYTES: u64 = 1 << 20;
/// Bytes that tables gather before they write, where `table_buffer` is not set.
const TABLE_BUFFER_BYTES: u64 = 1 << 20;

/// What there is to see of a machine at one moment.
pub struct Moment {
    /// When.
    pub now_ns: u64,
    /// The engine.
    pub stats: Stats,
    /// Bands that merges wrote into, over all merges.
    pub bands: u64,
    /// Where files lie.
    pub layout: Layout,
}

/// An engine on a device.
pub struct Machine {
    simulation: Simulation,
    device: Arc<SimulatedDevice>,
    bands: Arc<Bands>,
    /// None only while it is opened again.
    store: Option<DirectStore>,
    settings: Settings,
    open: Option<Open>,
}

/// A database that is open, and the view of it that workloads run on.
struct Open {
    db: Db,
    store: Watched<Probe>,
}

fn simulation_options(settings: &Settings) -> Result<SimulationOptions> {
    let paper = SimulationOptions::default();
    let factor = settings.time_factor()?;
    Ok(SimulationOptions {
        seed: settings.number("seed", 1.0)? as u64,
        operation_ns: (paper.operation_ns as f64 * factor) as u64,
        background_ns_per_byte: paper.background_ns_per_byte / settings.scale().sizes,
        ..paper
    })
}

/// A new device of the settings.
pub fn device(settings: &Settings) -> Result<(Simulation, SimulatedDevice)> {
    let simulation = Simulation::new(simulation_options(settings)?);
    let device = simulation.device(models::make(&settings.device()?)?);
    Ok((simulation, device))
}

impl Machine {
    /// A formatted device with an empty database.
    pub fn new(settings: &Settings) -> Result<Machine> {
        let (simulation, device) = device(settings)?;
        let band = match settings.get("band") {
            Some(_) => settings.bytes("band")? * settings.scale().sizes,
            None => device.geometry().band_bytes as f64,
        };
        let bands = Arc::new(Bands::new(band as u64));
        let watching = bands.clone();
        let device = Arc::new(device.watched(Box::new(move |write| watching.note(write))));
        let suited = placement::suited(&device.geometry());
        let options = FormatOptions {
            placement: settings.get("placement").unwrap_or(suited).to_string(),
            unit_bytes: settings.unit_bytes()?,
            store: simulation.random_u64(),
            force: false,
        };
        format(device.clone(), Arc::new(Ledger::default()), &options)?;
        let store = Some(open_store(&device, settings)?);
        let mut machine =
            Machine { simulation, device, bands, store, settings: settings.clone(), open: None };
        machine.open_database()?;
        Ok(machine)
    }

    fn open_database(&mut self) -> Result<()> {
        let runtime: Arc<dyn Runtime> = Arc::new(self.simulation.clone());
        let options = self.settings.options()?;
        let db = options.open_in(Arc::new(self.store().clone()), runtime.clone())?;
        let disable_wal = self.settings.is_on("no_wal");
        let store = ShingleStore::new(db.clone(), disable_wal)?.in_runtime(runtime.clone());
        let probe = Probe::new(VirtualClock(runtime));
        self.open = Some(Open { db, store: Watched::new(Box::new(store), probe) });
        Ok(())
    }

    /// Closes the database and opens it again, with cold caches.
    pub fn reopen(&mut self) -> Result<()> {
        self.close_database()?;
        self.store = None;
        self.store = Some(open_store(&self.device, &self.settings)?);
        self.open_database()
    }

    /// A new device with an empty database, as at the beginning; time goes on from zero.
    pub fn renew(&mut self) -> Result<()> {
        self.close_database()?;
        *self = Machine::new(&self.settings)?;
        Ok(())
    }

    fn close_database(&mut self) -> Result<()> {
        let Some(Open { db, store }) = self.open.take() else { return Ok(()) };
        drop(store);
        db.close()
    }

    /// The end.
    pub fn close(mut self) -> Result<()> {
        self.close_database()
    }

    /// The store under measurement.
    pub fn watched(&self) -> &Watched<Probe> {
        &self.open().store
    }

    fn open(&self) -> &Open {
        self.open.as_ref().expect("the database is open between calls")
    }

    fn store(&self) -> &DirectStore {
        self.store.as_ref().expect("the store is open between calls")
    }

    fn db(&self) -> &Db {
        &self.open().db
    }

    /// The clock.
    pub fn clock(&self) -> VirtualClock {
        VirtualClock(Arc::new(self.simulation.clone()))
    }

    /// Tables of the database.
    pub fn tables(&self) -> usize {
        self.db().files().len()
    }

    /// What there is to see now.
    pub fn look(&self) -> Moment {
        Moment {
            now_ns: self.simulation.now_ns(),
            stats: self.db().stats(),
            bands: self.bands.count(),
            layout: self.store().layout(),
        }
    }
}

fn open_store(device: &Arc<SimulatedDevice>, settings: &Settings) -> Result<DirectStore> {
    let table_buffer = settings.size("table_buffer")?;
    let table_buffer = table_buffer.unwrap_or_else(|| settings.by_size(TABLE_BUFFER_BYTES));
    let options = DirectOptions {
        log_buffer_bytes: settings.by_size(LOG_BUFFER_BYTES) as usize,
        background_buffer_bytes: table_buffer as usize,
        ..DirectOptions::default()
    };
    let device: Arc<dyn BlockDevice> = device.clone();
    DirectStore::open(device, Arc::new(Ledger::default()), options)
}
