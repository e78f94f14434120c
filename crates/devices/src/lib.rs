//! time in which the engine itself runs on them.
//!
//! A [`Model`] is a state machine without content: what a request costs, and what the medium moves
//! for it. Content and the clock are held apart from it, so that a calibration runs without bytes.

pub mod calibration;
pub mod model;
pub mod models;
pub mod simulation;

pub use model::{Access, Model, Request, Served};
pub use simulation::{SimulatedDevice, Simulation, SimulationOptions};
