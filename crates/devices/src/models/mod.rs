//! The models, by name.
//!
//! Each is a module with a [`Descriptor`]; [`make`] turns `smr-banded:band=40MiB` into a device.
//! What is common to them: requests are checked against the geometry ([`check`]) before a model
//! changes anything, and every model has sectors of [`SECTOR_BYTES`].

pub mod hdd;
#[cfg(test)]
mod laws;
pub mod parameter;
pub mod raid;
pub mod smr_banded;
pub mod smr_raw;
pub mod ssd;
pub mod zoned;

use crate::model::{Access, Model, Request};
use base::{Error, ErrorKind, Result};
use media::block::Geometry;
pub use parameter::{Kind, Parameter, Settings};

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

/// Every model there is.
pub fn registry() -> &'static [Descriptor] {
    &[
        hdd::DESCRIPTOR,
        smr_banded::DESCRIPTOR,
        smr_raw::DESCRIPTOR,
        zoned::DESCRIPTOR,
        raid::DESCRIPTOR,
        ssd::DESCRIPTOR,
    ]
}

/// The descriptor of this name; an error that lists the names otherwise.
pub fn by_name(name: &str) -> Result<&'static Descriptor> {
    registry().iter().find(|descriptor| descriptor.name == name).ok_or_else(|| {
        let names: Vec<&str> = registry().iter().map(|descriptor| descriptor.name).collect();
        Error::invalid(format!("no model is called `{name}`; there are {}", names.join(", ")))
    })
}

/// The device that `text` describes: `name`, or `name:parameter=value,parameter=value`.
pub fn make(text: &str) -> Result<Box<dyn Model>> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let descriptor = by_name(name)?;
    let made = Settings::parse(descriptor.parameters, parameters)
        .and_then(|settings| (descriptor.make)(&settings));
    made.map_err(|error| Error::new(error.kind(), format!("model {name}: {}", error.message())))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        make(text).err().unwrap().message().to_string()
    }

    #[test]
    fn every_model_is_made_without_parameters_under_its_own_name() {
        for descriptor in registry() {
            let model = make(descriptor.name).unwrap();
            assert_eq!(model.name(), descriptor.name);
            assert!(!descriptor.summary.is_empty() && !descriptor.help.is_empty());
            assert_eq!(model.geometry().capacity_bytes % u64::from(SECTOR_BYTES), 0);
        }
    }

    #[test]
    fn refusals_name_the_models_and_their_parameters() {
        assert!(refusal("hd").contains("there are hdd"));
        let text = refusal("hdd:rmp=7200");
        assert!(text.starts_with("model hdd: there is no parameter `rmp`"), "{text}");
        assert!(text.contains("rpm=7200"), "{text}");
        assert!(refusal("hdd:rpm=12").contains("rpm=12: not a number from"));
    }
}
