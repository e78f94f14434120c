//! Formatting: an empty store on a device.

use crate::journal::Journal;
use crate::placement;
use crate::port::Port;
use crate::record::Catalogue;
use crate::superblock::{self, Places, Superblock};
use base::{Cause, Error, ErrorKind, Ledger, Result};
use media::block::{BlockDevice, ZoneState};
use std::sync::Arc;

/// What a device becomes.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The registered name of a placement.
    pub placement: String,
    /// Bytes of a block group, band or size class, where the placement has one and the device does
    /// not say; 0 takes the placement's own.
    pub unit_bytes: u64,
    /// A number that no other store has; drawn by the caller.
    pub store: u64,
    /// Format although a store is on the device, or may be. It is lost.
    pub force: bool,
}

/// Makes an empty store on `device`. `AlreadyExists` if there is one, even one that this program
/// cannot open, and [`FormatOptions::force`] is off; `Unsupported` if the placement cannot work on
/// such a device.
pub fn format(
    device: Arc<dyn BlockDevice>,
    ledger: Arc<Ledger>,
    options: &FormatOptions,
) -> Result<()> {
    format_as(device, ledger, options, superblock::VERSION)
}

/// [`format`], as a program of an earlier version did it.
pub(super) fn format_as(
    device: Arc<dyn BlockDevice>,
    ledger: Arc<Ledger>,
    options: &FormatOptions,
    version: u32,
) -> Result<()> {
    let _lock = device.lock()?;
    let geometry = device.geometry();
    placement::find(&options.placement, &geometry)?;
    let places = Places::of(&geometry, version)?;
    let port = Port::new(device, ledger, false);
    if !options.force {
        check_holds_none(&port)?;
    }
    let superblock = Superblock {
        version,
        store: options.store,
        placement: options.placement.clone(),
        unit_bytes: options.unit_bytes,
        sector_bytes: geometry.sector_bytes,
        capacity_bytes: geometry.capacity_bytes,
    };
    let sector = superblock.encode();
    // Upwards: on a shingled medium a write destroys what follows.
    let mut copies = superblock::copies(&places);
    copies.sort_unstable();
    for place in copies {
        let mut bytes = sector.clone();
        if places.areas.iter().any(|area| area.start == place) {
            let zone = port.zone(place)?;
            if zone.is_some_and(|zone| zone.state != ZoneState::Conventional) {
                port.reset_zone(place)?;
            } else {
                // The first block of an older store's area must not be taken for one of this.
                bytes.extend(vec![0; sector.len()]);
            }
        }
        port.write(place, &bytes, Cause::StoreMetadata)?;
    }
    port.flush(Cause::StoreMetadata)?;
    let mut catalogue = Catalogue::default();
    // Generation 0 stands for none.
    catalogue.take_number();
    Journal::new(superblock, &places).write(&port, &catalogue, &[])
}

/// Refuses a device that holds a store, or of which that cannot be told.
fn check_holds_none(port: &Port) -> Result<()> {
    let loses = "formatting it loses what is on it, and takes `force`";
    let (kind, message) = match superblock::search(port) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => {
            (ErrorKind::AlreadyExists, format!("the device is formatted already; {loses}"))
        }
        // The device was not read, so nothing is known of it.
        Err(error) if error.kind() == ErrorKind::Io => {
            (ErrorKind::Io, format!("the device may hold a store; {loses}: {error}"))
        }
        Err(error) => {
            let message = format!("the device holds a store that does not open; {loses}: {error}");
            (ErrorKind::AlreadyExists, message)
        }
    };
    Err(Error::new(kind, message).in_file(port.describe()))
}
