//! The models: what they have in common, and their registry.
//!
//! Each is a module with a [`Descriptor`] and a line in [`registry()`]; [`make`] turns
//! `smr-banded:band=40MiB` into a device. Requests are checked against the geometry ([`check`])
//! before a model changes anything, and every model has sectors of [`SECTOR_BYTES`].

pub mod hdd;
#[cfg(test)]
mod laws;
pub mod parameter;
pub mod raid;
mod registry;
pub mod smr_banded;
pub mod smr_raw;
pub mod ssd;
pub mod zoned;

use crate::model::{Access, Model, Request};
use base::{Error, ErrorKind, Result};
use media::block::Geometry;
pub use parameter::{Kind, Parameter, Settings};
pub use registry::{by_name, make, registry};

/// Bytes of a sector: that of drives with physical sectors of 4 KiB, and a page of an SSD.
pub const SECTOR_BYTES: u32 = 4096;

/// A model as people find it.
pub struct Descriptor {
    /// Its name.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// The manual: what is modelled, what is not, and where the figures are from.
    pub help: &'static str,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    /// Makes one, with everything as it leaves the factory unless a parameter says otherwise.
    pub make: fn(&Settings) -> Result<Box<dyn Model>>,
}

/// Whether `request` lies on a device of this geometry, and in whole sectors.
pub fn check(request: &Request, geometry: &Geometry) -> Result<()> {
    let Request { access, offset, bytes, .. } = *request;
    let sector = u64::from(geometry.sector_bytes);
    let is_range = matches!(access, Access::Read | Access::Write | Access::Discard);
    if offset % sector != 0 || bytes % sector != 0 || is_range && bytes == 0 {
        return Err(Error::invalid(format!(
            "a request of {bytes} bytes at byte {offset} is not of whole sectors of {sector} bytes"
        )));
    }
    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= geometry.capacity_bytes);
    if !is_inside {
        let capacity = geometry.capacity_bytes;
        return Err(Error::invalid(format!(
            "a request of {bytes} bytes at byte {offset} reaches past the end, {capacity}"
        )));
    }
    Ok(())
}

/// The answer to a request that only zoned devices know.
pub fn without_zones() -> Error {
    Error::new(ErrorKind::Unsupported, "the device has no zones")
}
