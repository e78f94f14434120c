//! A database of the direct store on a model, in a simulation.

use base::Ledger;
use devices::{SimulatedDevice, Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, FormatOptions, format, placement};
use media::block::BlockDevice;
use shingle::{Db, Options};
use std::sync::Arc;

/// A device in a simulation, with everything counted from its formatting on.
pub struct Setup {
    pub simulation: Simulation,
    pub device: Arc<SimulatedDevice>,
    pub ledger: Arc<Ledger>,
}

impl Setup {
    pub fn new(model: &str, seed: u64) -> Setup {
        let simulation = Simulation::new(SimulationOptions { seed, ..Default::default() });
        let device = Arc::new(simulation.device(models::make(model).unwrap()));
        Setup { simulation, device, ledger: Arc::default() }
    }

    /// An empty store with the placement that suits the medium, or another.
    pub fn format(&self, placement: Option<&str>, unit_bytes: u64) {
        let suited = placement::suited(&self.device.geometry());
        let placement = placement.unwrap_or(suited).to_string();
        let options = FormatOptions { placement, unit_bytes, store: 7, force: false };
        format(self.device.clone(), self.ledger.clone(), &options).unwrap();
    }

    /// Opens the database on `device`: ours, or one that stands before it.
    pub fn open_on(&self, device: Arc<dyn BlockDevice>, options: Options, log_buffer: usize) -> Db {
        let direct = DirectOptions { log_buffer_bytes: log_buffer, ..DirectOptions::default() };
        let store = DirectStore::open(device, self.ledger.clone(), direct).unwrap();
        options.open_in(Arc::new(store), Arc::new(self.simulation.clone())).unwrap()
    }

    pub fn open(&self, options: Options, log_buffer: usize) -> Db {
        self.open_on(self.device.clone(), options, log_buffer)
    }

    /// A figure that the model tells.
    pub fn fact(&self, name: &str) -> f64 {
        let facts = self.device.facts();
        facts.iter().find(|fact| fact.0 == name).unwrap().1
    }
}
