//! The placements, by name.

use super::{Descriptor, Ground, Placement, band_per_table, dynamic_bands, ext4_like, zones};
use crate::extent::Extent;
use base::{Error, ErrorKind, Result};
use media::Geometry;
use media::block::Overwrite;

/// Every placement.
pub fn registry() -> &'static [Descriptor] {
    &[
        ext4_like::DESCRIPTOR,
        band_per_table::DESCRIPTOR,
        dynamic_bands::DESCRIPTOR,
        zones::DESCRIPTOR,
    ]
}

/// The placement that `text` asks for, if it works on such a medium: a registered name, and for
/// `dynamic-bands` the share that fragments may have, from 0 to 1, as in
/// `dynamic-bands:fragments=0.05`.
pub fn find(text: &str, geometry: &Geometry) -> Result<Chosen> {
    let (name, parameter) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
    let descriptor = descriptor(name, geometry)?;
    let fragment_share_max = parameter.map(|parameter| share(name, parameter)).transpose()?;
    Ok(Chosen { descriptor, fragment_share_max })
}

/// A placement with its parameter.
#[derive(Clone, Copy)]
pub struct Chosen {
    descriptor: &'static Descriptor,
    fragment_share_max: Option<f64>,
}

impl Chosen {
    /// The placement on an empty device.
    pub fn make(&self, geometry: Geometry, data: Extent, unit_bytes: u64) -> Box<dyn Placement> {
        let fragment_share_max = self.fragment_share_max;
        (self.descriptor.make)(&Ground { geometry, data, unit_bytes, fragment_share_max })
    }
}

fn share(name: &str, parameter: &str) -> Result<f64> {
    let share = parameter.strip_prefix("fragments=").and_then(|share| share.parse().ok());
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    let takes_it = name == dynamic_bands::DESCRIPTOR.name;
    share.filter(|_| takes_it).ok_or_else(|| {
        let message = format!(
            "placement {name} has no parameter {parameter:?}; `dynamic-bands:fragments=0.05` moves \
             live bytes where fragments are more than 5 %"
        );
        Error::invalid(message)
    })
}

fn descriptor(name: &str, geometry: &Geometry) -> Result<&'static Descriptor> {
    let Some(found) = registry().iter().find(|descriptor| descriptor.name == name) else {
        let names: Vec<&str> = registry().iter().map(|descriptor| descriptor.name).collect();
        let message = format!("there is no placement {name:?}; there are {}", names.join(", "));
        return Err(Error::invalid(message));
    };
    match (found.refuses)(geometry) {
        None => Ok(found),
        Some(reason) => {
            let message = format!("placement {name} cannot work on this device: {reason}");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

/// The default placement for such a medium.
pub fn suited(geometry: &Geometry) -> &'static str {
    match geometry.overwrite {
        Overwrite::InPlace => ext4_like::DESCRIPTOR.name,
        Overwrite::DestroysDownstream { .. } => dynamic_bands::DESCRIPTOR.name,
        Overwrite::AtWritePointer => zones::DESCRIPTOR.name,
    }
}
