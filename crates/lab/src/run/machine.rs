//! The device, the store and the engine of a run.

use super::probe::{Bands, GetWaits, Probe};
use crate::settings::Settings;
use base::env::Runtime;
use base::{Cause, Error, ErrorKind, Result};
use devices::simulation::Processor;
use devices::{SimulatedDevice, Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, FormatOptions, Layout, format, placement};
use media::block::BlockDevice;
use shingle::{Db, Ledger, Stats};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use workloads::shingle_store::ShingleStore;
use workloads::update_cache::UpdateCache;
use workloads::watched::Watched;
use workloads::{Store, VirtualClock};

/// Bytes that logs gather before they write, as in a page cache.
const LOG_BUFFER_BYTES: u64 = 1 << 20;
/// Bytes that tables gather before they write, where `table_buffer` is not set.
const TABLE_BUFFER_BYTES: u64 = 1 << 20;

const SECTOR_BYTES: u64 = models::SECTOR_BYTES as u64;

/// What there is to see of a machine at one moment.
pub struct Moment {
    /// When.
    pub now_ns: u64,
    /// Processor time.
    pub processor: Processor,
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
    bands: Arc<Bands>,
    store: DirectStore,
    settings: Settings,
    db: Db,
    /// Bytes that the user wrote and the database did not get.
    absorbed_bytes: Arc<AtomicU64>,
    /// The view of the database that workloads run on.
    watched: Watched<Probe>,
}

fn simulation_options(settings: &Settings) -> Result<SimulationOptions> {
    let paper = SimulationOptions::default();
    let factor = settings.time_factor()?;
    Ok(SimulationOptions {
        seed: settings.seed()?,
        operation_ns: (paper.operation_ns as f64 * factor) as u64,
        background_ns_per_byte: paper.background_ns_per_byte / settings.scale().sizes,
        writes_behind: true,
        page_cache_bytes: page_cache_bytes(settings)?,
        ..paper
    })
}

/// Bytes of the page cache, shrunk as data; none where it is not set.
fn page_cache_bytes(settings: &Settings) -> Result<u64> {
    match settings.get("page_cache") {
        None => Ok(0),
        Some(_) => Ok((settings.bytes("page_cache")? * settings.scale().data) as u64),
    }
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
        let store = open_store(&device, settings)?;
        let (db, view, absorbed_bytes) = open_database(&simulation, &store, settings)?;
        let get_waits =
            GetWaits { factor: settings.time_factor()?, ns_per_byte: read_ns_per_byte(settings)? };
        let watched = Watched::new(view, Probe::new(simulation.clone(), get_waits));
        let settings = settings.clone();
        Ok(Machine { simulation, bands, store, settings, db, absorbed_bytes, watched })
    }

    /// A new device with an empty database, as at the beginning; time goes on from zero.
    pub fn renew(&mut self) -> Result<()> {
        let new = Machine::new(&self.settings)?;
        std::mem::replace(self, new).close()
    }

    /// The end.
    pub fn close(self) -> Result<()> {
        let Machine { db, watched, .. } = self;
        drop(watched);
        db.close()
    }

    /// The store under measurement.
    pub fn watched(&self) -> &Watched<Probe> {
        &self.watched
    }

    /// The clock.
    pub fn clock(&self) -> VirtualClock {
        VirtualClock(Arc::new(self.simulation.clone()))
    }

    /// Tables of the database.
    pub fn tables(&self) -> usize {
        self.db.files().len()
    }

    /// Bytes of tables that are not data. Everything is read and verified for it.
    pub fn metadata_bytes(&self) -> Result<u64> {
        let report = self.db.check(&mut |_| {})?;
        match report.problems.first() {
            None => Ok(report.metadata_bytes),
            Some(problem) => Err(Error::new(ErrorKind::Corruption, problem.clone())),
        }
    }

    /// What there is to see now.
    pub fn look(&self) -> Moment {
        let mut stats = self.db.stats();
        stats.ledger.user_write_bytes += self.absorbed_bytes.load(Relaxed);
        Moment {
            now_ns: self.simulation.now_ns(),
            processor: self.simulation.processor(),
            stats,
            bands: self.bands.count(),
            layout: self.store.layout(),
        }
    }
}

/// The database, what workloads see of it, and the bytes that do not come to it.
fn open_database(
    simulation: &Simulation,
    store: &DirectStore,
    settings: &Settings,
) -> Result<(Db, Box<dyn Store>, Arc<AtomicU64>)> {
    let runtime: Arc<dyn Runtime> = Arc::new(simulation.clone());
    let db = settings.options()?.open_in(Arc::new(store.clone()), runtime.clone())?;
    let disable_wal = settings.is_on("no_wal");
    let view = Box::new(ShingleStore::new(db.clone(), disable_wal)?.in_runtime(runtime.clone()));
    let Some(bytes) = settings.size("update_cache")? else {
        return Ok((db, view, Arc::default()));
    };
    let cache = UpdateCache::new(view, bytes).in_runtime(runtime);
    let absorbed_bytes = cache.absorbed_bytes();
    Ok((db, Box::new(cache), absorbed_bytes))
}

/// How long a byte takes in a stream of reads from a new device of the settings.
fn read_ns_per_byte(settings: &Settings) -> Result<f64> {
    let (simulation, device) = device(settings)?;
    let piece = vec![0; settings.by_size(1 << 20).next_multiple_of(SECTOR_BYTES) as usize];
    let places = || (0..16).map(|number| number * piece.len() as u64);
    for place in places() {
        device.write(place, &piece, Cause::Flush)?;
    }
    device.flush(Cause::Flush)?;
    let start_ns = simulation.now_ns();
    let mut buffer = piece.clone();
    for place in places() {
        device.read(place, &mut buffer, Cause::Get)?;
    }
    Ok((simulation.now_ns() - start_ns) as f64 / (16 * piece.len()) as f64)
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
