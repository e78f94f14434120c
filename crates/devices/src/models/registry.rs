//! The models, by name.

use super::{Descriptor, Settings, hdd, raid, smr_banded, smr_raw, ssd, zoned};
use crate::model::Model;
use base::{Error, Result};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::SECTOR_BYTES;

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
