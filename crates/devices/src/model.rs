//! The contract of device models: state machines that say what a request costs.
//!
//! A model knows no clock and holds no content. It is told when a request begins and answers when
//! the device is free again, when the host hears of completion, and what the medium moved. So the
//! same model runs under a virtual clock, in a calibration, and in a test over plain numbers.
//!
//! Invariants:
//! - The same requests at the same times give the same answers, on every machine.
//! - Times never run backwards: `done_ns <= free_ns` is not required (a write cache acknowledges
//!   early, a drive may be busy after), but both are at or after the request's `at_ns`.
//! - What the medium moved is counted once: in the answer of the request that it was moved for, or,
//!   for work of the drive's own (idle cleaning), in the next answer.

use base::Result;
use media::block::{Geometry, Moved, Zone};
use std::ops::Range;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Makes earlier writes durable.
    Flush,
    /// Says that bytes are not needed.
    Discard,
    /// Empties the zone at the offset.
    ResetZone,
    /// Fills up the zone at the offset.
    FinishZone,
}

/// One request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it does.
    pub access: Access,
    /// Its first byte; a multiple of the sector.
    pub offset: u64,
    /// Its bytes; a multiple of the sector.
    pub bytes: u64,
    /// When the device begins with it: not before it was free, nor before the host sent it.
    pub at_ns: u64,
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// When the host hears that it is done.
    pub done_ns: u64,
    /// When the device can begin with the next request.
    pub free_ns: u64,
    /// What the medium moved.
    pub moved: Moved,
    /// Ranges whose content this request destroyed (a raw shingled disk), in bytes.
    pub destroyed: Vec<Range<u64>>,
}

/// A device as a state machine.
pub trait Model: Send {
    /// The registered name: `hdd`, `smr-banded` ...
    fn name(&self) -> &'static str;

    /// What the device is like.
    fn geometry(&self) -> Geometry;

    /// Serves one request. A request that breaks the device's rules is an error that says which,
    /// and changes nothing.
    fn serve(&mut self, request: &Request) -> Result<Served>;

    /// The zone that `offset` lies in; `None` without zones.
    fn zone(&self, offset: u64) -> Option<Zone> {
        let _ = offset;
        None
    }

    /// What it costs a read to reach byte `to` after a read that ended at byte `from`, on average:
    /// a part of what [`Model::serve`] charges. The simulation asks when reads of several actors
    /// meet and are served in another order in time than they were executed in. 0 where nothing
    /// has to move.
    fn positioning_ns(&self, from: u64, to: u64) -> u64 {
        let _ = (from, to);
        0
    }

    /// What there is to say about the device's state, for people and reports: name and value.
    fn facts(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
