//! The parameters of the scheme and of the value layout, as options.
//!
//! Each is defined once, in [`tree::policy::LIMIT_FIELDS`] or [`values::LIMIT_FIELDS`], and its
//! scheme or layout lists it. A user sets it by its name there, and a program also in
//! [`Expert`](super::Expert). A parameter that was set by name must be one that the scheme or the
//! layout has; so a parameter of another scheme is an error, and not without effect.

use super::{Expert, Options, TABLE};
use base::{Error, Result};
use tree::policy::Limits;
use values::{ValueLayout, ValueLimits};

/// A parameter of the scheme or of the value layout, as [`Options::parameters`] lists it.
pub struct ParameterEntry {
    /// Its name.
    pub name: &'static str,
    /// What its value counts.
    pub unit: &'static str,
    /// What it is for, in a sentence.
    pub help: &'static str,
    /// Its value, in the form that [`Options::set`] takes.
    pub value: String,
}

/// A capacity must have space for this many GCs.
const COLLECTIONS_MIN: u64 = 4;

/// The entry called `name` in a table of parameters.
macro_rules! find {
    ($table:expr, $name:expr) => {
        $table.iter().find(|field| field.name == $name)
    };
}

impl Expert {
    /// The parameters of all schemes and value layouts: names and units.
    pub fn parameter_units() -> impl Iterator<Item = (&'static str, &'static str)> {
        let of_schemes = tree::policy::LIMIT_FIELDS.iter().map(|field| (field.name, field.unit));
        let of_layouts = values::LIMIT_FIELDS.iter().map(|field| (field.name, field.unit));
        of_schemes.chain(of_layouts)
    }

    /// Sets the parameter called `name`. If the scheme or the layout does not have it, it has no
    /// effect; with [`Options::set`] it is an error.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where no scheme and no layout has a
    /// parameter of that name, or the value is out of bounds.
    pub fn set_parameter(&mut self, name: &str, value: &str) -> Result<()> {
        if let Some(field) = find!(tree::policy::LIMIT_FIELDS, name) {
            return field.set(&mut self.scheme, value);
        }
        if let Some(field) = find!(values::LIMIT_FIELDS, name) {
            return field.set(&mut self.values, value);
        }
        let names: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
        Err(Error::invalid(format!(
            "no option is called `{name}`; there are {}, and the parameters of the scheme and of \
             the value layout, which `shingle options` lists",
            names.join(", ")
        )))
    }
}

impl Options {
    /// Sets the parameter called `name`, and demands that the scheme or the layout has it.
    pub(super) fn set_parameter(&mut self, name: &str, value: &str) -> Result<()> {
        self.expert.set_parameter(name, value)?;
        let known = Expert::parameter_units().map(|(known, _)| known).find(|known| *known == name);
        self.named_parameters.extend(known);
        Ok(())
    }

    /// The parameters that the scheme and the value layout have, with the values that they get at
    /// an opening. Those that [`TABLE`] has are left out.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown scheme or layout, and
    /// for a parameter that neither of them has.
    pub fn parameters(&self) -> Result<Vec<ParameterEntry>> {
        let (scheme, layout) =
            (tree::policy::by_name(&self.scheme)?, values::by_name(&self.values)?);
        let (limits, value_limits) = (self.limits()?, self.value_limits()?);
        let of_scheme = scheme.options.iter().filter_map(|name| {
            let field = find!(tree::policy::LIMIT_FIELDS, *name)?;
            let (unit, help, value) = (field.unit, field.help(), field.value(&limits));
            Some(ParameterEntry { name: field.name, unit, help, value })
        });
        let of_layout = layout.options.iter().filter_map(|name| {
            let field = find!(values::LIMIT_FIELDS, *name)?;
            let (unit, help, value) = (field.unit, field.help(), field.value(&value_limits));
            Some(ParameterEntry { name: field.name, unit, help, value })
        });
        let is_option = |name: &str| TABLE.iter().any(|entry| entry.name == name);
        Ok(of_scheme.chain(of_layout).filter(|entry| !is_option(entry.name)).collect())
    }

    /// Every parameter that is set and that the scheme or the layout has, with its value. Those
    /// that an option of [`TABLE`] sets are left out.
    pub(super) fn chosen_parameters(&self) -> Vec<(&'static str, String)> {
        let scheme = tree::policy::by_name(&self.scheme).map_or(&[][..], |scheme| scheme.options);
        let layout = values::by_name(&self.values).map_or(&[][..], |layout| layout.options);
        let of_scheme = tree::policy::LIMIT_FIELDS
            .iter()
            .filter(|field| scheme.contains(&field.name) && field.name != "table_bytes_max")
            .filter_map(|field| Some((field.name, field.chosen(&self.expert.scheme)?)));
        let of_layout = values::LIMIT_FIELDS
            .iter()
            .filter(|field| layout.contains(&field.name) && field.name != "value_capacity_bytes")
            .filter_map(|field| Some((field.name, field.chosen(&self.expert.values)?)));
        of_scheme.chain(of_layout).collect()
    }

    /// Memtable bytes that are flushed together.
    pub(crate) fn write_buffer(&self) -> u64 {
        let default = (self.preset.numbers().write_buffer_bytes)(self.memory_bytes);
        self.write_buffer_bytes.unwrap_or(default).max(16 << 10)
    }

    /// What the scheme keeps to: its defaults for the write buffer, then what the user set.
    pub(crate) fn limits(&self) -> Result<Limits> {
        let scheme = tree::policy::by_name(&self.scheme)?;
        let layout = values::by_name(&self.values)?;
        for name in &self.named_parameters {
            if !scheme.options.contains(name) && !layout.options.contains(name) {
                return Err(self.refused(name, scheme.options, layout.options));
            }
        }
        let mut limits = (scheme.limits)(self.write_buffer());
        if let Some(table_bytes) = self.expert.scheme.table_bytes_max {
            follow_table_bytes(&mut limits, table_bytes);
        }
        self.expert.scheme.apply_to(&mut limits)?;
        Ok(limits)
    }

    /// The error for a parameter that neither the scheme nor the layout has.
    fn refused(&self, name: &str, of_scheme: &[&str], of_layout: &[&str]) -> Error {
        let is_of_schemes = find!(tree::policy::LIMIT_FIELDS, name).is_some();
        let (kind, owner, options) = match is_of_schemes {
            true => ("scheme", &self.scheme, of_scheme),
            false => ("value layout", &self.values, of_layout),
        };
        let options = if options.is_empty() { "none".into() } else { options.join(", ") };
        Error::invalid(format!("the {kind} `{owner}` has no parameter `{name}`; it has {options}"))
    }

    /// What the value layout keeps to.
    pub(crate) fn value_limits(&self) -> Result<ValueLimits> {
        let mut limits = ValueLimits::default();
        // Segments are small parts of a capacity, unless their size is set.
        if let Some(capacity) = self.expert.values.capacity_bytes.flatten() {
            limits.segment_bytes = limits.segment_bytes.min(capacity / 16).max(1);
            limits.log_segment_bytes = limits.log_segment_bytes.min(capacity / 256).max(1);
        }
        self.expert.values.apply_to(&mut limits)?;
        check_capacity(&limits, &*(values::by_name(&self.values)?.make)())?;
        Ok(limits)
    }
}

/// The sizes that schemes give as a number of tables.
fn follow_table_bytes(limits: &mut Limits, table_bytes: u64) {
    let by = table_bytes as f64 / limits.table_bytes_max.max(1) as f64;
    let follow = |bytes: u64| (bytes as f64 * by) as u64;
    limits.overlap_bytes_max = limits.overlap_bytes_max.map(follow);
    limits.expansion_bytes_max = follow(limits.expansion_bytes_max);
}

/// The capacity, if there is one, has space for garbage collection.
fn check_capacity(limits: &ValueLimits, layout: &dyn ValueLayout) -> Result<()> {
    let min = layout.collection_bytes_max(limits).saturating_mul(COLLECTIONS_MIN);
    match limits.capacity_bytes {
        Some(capacity) if layout.separates() && capacity < min => Err(Error::invalid(format!(
            "value_capacity_bytes is {capacity}: with segments of {} bytes, garbage collection \
             needs at least {min}; raise it, or choose smaller segments",
            limits.segment_bytes
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pairs: &[(&str, &str)]) -> Result<Limits> {
        set(pairs)?.limits()
    }

    fn set(pairs: &[(&str, &str)]) -> Result<Options> {
        pairs.iter().try_fold(Options::new(), |options, (name, value)| options.set(name, value))
    }

    #[test]
    fn every_parameter_of_every_scheme_and_layout_is_an_option() {
        for scheme in tree::policy::registry() {
            for layout in values::registry() {
                let options = set(&[("scheme", scheme.name), ("values", layout.name)]).unwrap();
                for entry in options.parameters().unwrap() {
                    // A deepest level of 0 is a default of some schemes, and no choice of a user.
                    if entry.value == "0" {
                        continue;
                    }
                    let again = options.clone().set(entry.name, &entry.value).unwrap();
                    assert_eq!(again.limits().unwrap(), options.limits().unwrap());
                    assert_eq!(again.value_limits().unwrap(), options.value_limits().unwrap());
                    let line = format!("  {}={}\n", entry.name, entry.value);
                    let name = entry.name;
                    assert!(!options.to_ini().contains(&line), "{name}");
                    assert!(again.to_ini().contains(&line) || name == "table_bytes_max", "{name}");
                }
            }
        }
    }

    #[test]
    fn parameters_of_the_scheme_are_options_and_those_of_others_are_refused() {
        let limits = |scheme, name, value| limits(&[("scheme", scheme), (name, value)]);
        assert_eq!(limits("ldc", "links_max", "3").unwrap().links_max, Some(3));
        assert_eq!(limits("leveled", "fan_out", "8").unwrap().fan_out, 8.0);
        let error = limits("leveled", "links_max", "3").err().unwrap();
        assert!(error.message().contains("scheme `leveled` has no parameter"), "{error}");
        assert!(limits("ldc", "links_max", "x").is_err());
        assert!(limits("ldc", "levels", "31").is_ok() && limits("ldc", "levels", "32").is_err());
        let error = limits("ldc", "memtables", "2").unwrap_err();
        assert!(error.message().contains("no option is called `memtables`"), "{error}");
    }

    #[test]
    fn parameters_of_the_layout_are_options_and_those_of_others_are_refused() {
        let options = set(&[("values", "hashed"), ("value_reserved_ratio", "0.5")]).unwrap();
        assert_eq!(options.value_limits().unwrap().reserved_ratio, 0.5);
        assert!(options.limits().is_ok());
        let error = limits(&[("values", "log"), ("value_hotness", "yes")]).unwrap_err();
        assert!(error.message().contains("value layout `log` has no parameter"), "{error}");
        let error = limits(&[("value_segment_bytes", "1M")]).unwrap_err();
        assert!(error.message().ends_with("it has none"), "{error}");
    }

    #[test]
    fn the_last_value_counts_whether_it_is_set_by_name_or_not() {
        let twice = set(&[("scheme", "leveled"), ("fan_out", "8"), ("fan_out", "9")]).unwrap();
        assert_eq!(twice.limits().unwrap().fan_out, 9.0);
        assert!(twice.to_ini().contains("  fan_out=9\n") && !twice.to_ini().contains("fan_out=8"));
        let typed = twice.expert(|e| e.scheme.fan_out = Some(7.0));
        assert_eq!(typed.limits().unwrap().fan_out, 7.0);
    }

    #[test]
    fn a_parameter_that_the_scheme_does_not_have_has_no_effect_where_a_program_sets_it() {
        let options = set(&[("scheme", "leveled")]).unwrap();
        let options = options.expert(|e| e.scheme.links_max = Some(Some(3)));
        assert!(options.limits().is_ok() && !options.to_ini().contains("links_max"));
    }

    #[test]
    fn smaller_tables_overlap_as_many_tables() {
        for name in ["table_bytes", "table_bytes_max"] {
            let limits = limits(&[("preset", "leveldb"), (name, "64K")]).unwrap();
            assert_eq!(limits.table_bytes_max, 64 << 10);
            assert_eq!(limits.overlap_bytes_max, Some(10 * (64 << 10)));
            assert_eq!(limits.expansion_bytes_max, 25 * (64 << 10));
        }
        let limits = limits(&[
            ("preset", "leveldb"),
            ("overlap_bytes_max", "none"),
            ("table_bytes_max", "64K"),
        ]);
        assert_eq!(limits.unwrap().overlap_bytes_max, None, "what is set does not follow");
    }

    #[test]
    fn segments_are_small_parts_of_a_capacity() {
        let options = set(&[("values", "log"), ("value_capacity_bytes", "1M")]).unwrap();
        assert_eq!(options.value_limits().unwrap().segment_bytes, 64 << 10);
        let error = options.set("value_segment_bytes", "512K").unwrap().value_limits().unwrap_err();
        assert!(error.message().contains("raise it, or choose smaller segments"), "{error}");
    }
}
