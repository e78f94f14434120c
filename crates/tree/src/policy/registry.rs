//! The policies, by name.

use super::{
    Descriptor, adaptive, fragmented, lazy_leveling, ldc, leveled, lwc, sets, smrdb, tiered,
};
use base::Result;

/// Every policy there is.
pub fn registry() -> &'static [Descriptor] {
    &[
        leveled::MODERN,
        leveled::LEVELDB,
        ldc::LDC,
        lwc::LWC,
        sets::SETS,
        smrdb::SMRDB,
        tiered::TIERED,
        fragmented::FRAGMENTED,
        lazy_leveling::LAZY_LEVELING,
        adaptive::ADAPTIVE,
    ]
}

/// The policy of this name; an error that lists the names otherwise.
pub fn by_name(name: &str) -> Result<&'static Descriptor> {
    registry().iter().find(|descriptor| descriptor.name == name).ok_or_else(|| {
        let names: Vec<&str> = registry().iter().map(|descriptor| descriptor.name).collect();
        base::Error::invalid(format!("no scheme is called {name}; there are {}", names.join(", ")))
    })
}
