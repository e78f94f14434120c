//! Parameters: numbers that a user sets by name.
//!
//! [`parameters!`](crate::parameters) defines each of them once. From its line come a field of the
//! struct that the code reads, a field of the struct of those that a user set, and an entry of a
//! table with its name, unit and help. Options, the command line, manuals and experiments read the
//! table.

use crate::{Error, Result, size};

/// The entry of a parameter: `All` has every parameter, `Chosen` those that a user set.
pub struct Parameter<All, Chosen> {
    /// Its name in options, reports and manuals.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    #[doc(hidden)]
    pub doc: &'static str,
    #[doc(hidden)]
    pub show: fn(&All) -> String,
    #[doc(hidden)]
    pub show_chosen: fn(&Chosen) -> Option<String>,
    #[doc(hidden)]
    pub parse: fn(&mut Chosen, &str) -> Option<()>,
    #[doc(hidden)]
    pub is_sound: fn(&Chosen) -> bool,
    #[doc(hidden)]
    pub apply: fn(&Chosen, &mut All),
}

impl<All, Chosen: Clone> Parameter<All, Chosen> {
    /// One sentence of help.
    pub fn help(&self) -> &'static str {
        self.doc.trim()
    }

    /// Sets it in `chosen` from text, such as `64M` for bytes; `none` where it may be absent.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for text that is none of its values;
    /// `chosen` is then unchanged.
    pub fn set(&self, chosen: &mut Chosen, text: &str) -> Result<()> {
        let mut changed = chosen.clone();
        if (self.parse)(&mut changed, text.trim()).is_none() {
            return Err(self.refused(text));
        }
        self.check(&changed)?;
        *chosen = changed;
        Ok(())
    }

    /// Checks the value in `chosen`, which a program may have set without text.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a value that is out of bounds.
    pub fn check(&self, chosen: &Chosen) -> Result<()> {
        match (self.is_sound)(chosen) {
            true => Ok(()),
            false => Err(self.refused(&(self.show_chosen)(chosen).unwrap_or_default())),
        }
    }

    /// Writes the value in `chosen`, if there is one, to `all`.
    pub fn apply(&self, chosen: &Chosen, all: &mut All) {
        (self.apply)(chosen, all);
    }

    fn refused(&self, text: &str) -> Error {
        let Parameter { name, unit, .. } = self;
        let form = if *unit == "bytes" { size::FORM } else { unit };
        let help = self.help();
        Error::invalid(format!("{name} cannot be `{text}`: its unit is {form}. {help}"))
    }

    /// The value in `chosen`, as [`Parameter::set`] takes it. None: it is not set.
    pub fn chosen(&self, chosen: &Chosen) -> Option<String> {
        (self.show_chosen)(chosen)
    }

    /// The value in `all`, as [`Parameter::set`] takes it.
    pub fn value(&self, all: &All) -> String {
        (self.show)(all)
    }

    /// The value in `all`, for people: `64 MiB`, `yes`, `not set`.
    pub fn text(&self, all: &All) -> String {
        let value = self.value(all);
        match (self.unit, value.parse::<u64>()) {
            (_, Err(_)) if value == "none" => "not set".into(),
            ("bytes", Ok(bytes)) if bytes > 0 && bytes % (1 << 20) == 0 => {
                format!("{} MiB", bytes >> 20)
            }
            _ => value,
        }
    }
}

/// A type of parameters, as text.
pub trait Value: Sized {
    /// The value that `text` spells.
    fn parse(text: &str) -> Option<Self>;

    /// The text that [`Value::parse`] takes.
    fn show(&self) -> String;
}

/// Numbers of things: at least one.
macro_rules! counts {
    ($($kind:ty),*) => {
        $(impl Value for $kind {
            fn parse(text: &str) -> Option<$kind> {
                text.parse().ok().filter(|&count| count > 0)
            }

            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

counts!(u8, u32, usize);

/// Bytes, or other numbers that may be large: at least one.
impl Value for u64 {
    fn parse(text: &str) -> Option<u64> {
        size::parse(text).filter(|&bytes| bytes > 0)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Shares and factors.
impl Value for f64 {
    fn parse(text: &str) -> Option<f64> {
        text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn parse(text: &str) -> Option<bool> {
        match text {
            "yes" | "true" => Some(true),
            "no" | "false" => Some(false),
            _ => None,
        }
    }

    fn show(&self) -> String {
        if *self { "yes" } else { "no" }.into()
    }
}

/// A parameter that may be absent: `none`.
impl<V: Value> Value for Option<V> {
    fn parse(text: &str) -> Option<Option<V>> {
        if text == "none" { Some(None) } else { V::parse(text).map(Some) }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "none".into(), V::show)
    }
}

/// Defines parameters, each by its documentation, name, type and unit, and its bounds where the
/// type has none:
///
/// ```
/// base::parameters! {
///     /// What the code reads.
///     all Limits;
///     /// What a user set.
///     chosen Parameters;
///     /// Every parameter.
///     table FIELDS, "tree_";
///     beside {
///         /// A number that is derived, and cannot be set.
///         pub memtable_bytes: u64,
///     }
///     /// Levels of the tree.
///     levels: u8, "levels", |levels| levels > 1;
///     /// Bytes of a table.
///     table_bytes: Option<u64>, "bytes";
/// }
///
/// let mut chosen = Parameters::default();
/// FIELDS[0].set(&mut chosen, "3").unwrap();
/// assert!(FIELDS[0].set(&mut chosen, "1").is_err());
/// let mut limits = Limits { memtable_bytes: 1, levels: 7, table_bytes: None };
/// chosen.apply_to(&mut limits).unwrap();
/// assert_eq!((FIELDS[0].name, limits.levels), ("tree_levels", 3));
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$all_doc:meta])*
        all $all:ident;
        $(#[$chosen_doc:meta])*
        chosen $chosen:ident;
        $(#[$table_doc:meta])*
        table $table:ident, $prefix:literal;
        beside { $($beside:tt)* }
        $(
            $(#[doc = $help:literal])+
            $name:ident: $type:ty, $unit:literal $(, $check:expr)?;
        )*
    ) => {
        $(#[$all_doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $all {
            $($beside)*
            $($(#[doc = $help])+ pub $name: $type,)*
        }

        $(#[$chosen_doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $chosen {
            $($(#[doc = $help])+ pub $name: Option<$type>,)*
        }

        impl $chosen {
            /// Writes what is set to `all`.
            ///
            /// # Errors
            ///
            /// `InvalidArgument` for the first value that is out of bounds.
            pub fn apply_to(&self, all: &mut $all) -> $crate::Result<()> {
                for parameter in $table {
                    parameter.check(self)?;
                    parameter.apply(self, all);
                }
                Ok(())
            }
        }

        $(#[$table_doc])*
        pub static $table: &[$crate::parameter::Parameter<$all, $chosen>] = &[
            $($crate::parameter::Parameter {
                name: concat!($prefix, stringify!($name)),
                unit: $unit,
                doc: concat!($($help),+),
                show: |all| $crate::parameter::Value::show(&all.$name),
                show_chosen: |chosen| {
                    chosen.$name.as_ref().map($crate::parameter::Value::show)
                },
                parse: |chosen, text| {
                    chosen.$name = Some($crate::parameter::Value::parse(text)?);
                    Some(())
                },
                is_sound: |_chosen| true $(&& _chosen.$name.is_none_or($check))?,
                apply: |chosen, all| {
                    if let Some(value) = chosen.$name.clone() {
                        all.$name = value;
                    }
                },
            },)*
        ];
    };
}

#[cfg(test)]
mod tests {
    use crate::ErrorKind;

    crate::parameters! {
        /// All.
        all All;
        /// Chosen.
        chosen Chosen;
        /// Fields.
        table FIELDS, "";
        beside {}
        /// Stages,
        /// from the top.
        stages: u8, "stages", |stages| stages > 1;
        /// Growth.
        growth: f64, "times", |growth| growth > 1.0;
        /// Space.
        space: Option<u64>, "bytes";
        /// Careful.
        careful: bool, "yes or no";
    }

    const ALL: All = All { stages: 7, growth: 10.0, space: Some(3 << 20), careful: false };

    fn set(name: &str, text: &str) -> crate::Result<All> {
        let field = FIELDS.iter().find(|field| field.name == name).unwrap();
        let mut chosen = Chosen::default();
        field.set(&mut chosen, text)?;
        let mut all = ALL;
        chosen.apply_to(&mut all)?;
        Ok(all)
    }

    #[test]
    fn a_parameter_is_set_by_its_name() {
        assert_eq!(set("stages", " 3 ").unwrap(), All { stages: 3, ..ALL });
        assert_eq!(set("growth", "1.5").unwrap(), All { growth: 1.5, ..ALL });
        assert_eq!(set("space", "2M").unwrap(), All { space: Some(2 << 20), ..ALL });
        assert_eq!(set("space", "none").unwrap(), All { space: None, ..ALL });
        assert_eq!(set("careful", "yes").unwrap(), All { careful: true, ..ALL });
    }

    #[test]
    fn a_value_out_of_bounds_is_refused_with_name_unit_and_help() {
        for (name, text) in [
            ("stages", "1"),
            ("stages", "300"),
            ("stages", "none"),
            ("growth", "1"),
            ("growth", "inf"),
            ("growth", "NaN"),
            ("space", "0"),
            ("space", "8X"),
            ("careful", "2"),
        ] {
            let error = set(name, text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name} {text}");
            assert!(error.message().contains(name) && error.message().contains(text), "{error}");
        }
        let error = set("stages", "x").unwrap_err();
        assert!(error.message().ends_with("its unit is stages. Stages, from the top."), "{error}");
    }

    #[test]
    fn a_refused_value_changes_nothing() {
        let mut chosen = Chosen { stages: Some(4), ..Chosen::default() };
        assert!(FIELDS[0].set(&mut chosen, "1").is_err());
        assert_eq!(chosen, Chosen { stages: Some(4), ..Chosen::default() });
    }

    #[test]
    fn a_value_that_a_program_set_is_checked_when_it_is_applied() {
        let chosen = Chosen { growth: Some(0.5), ..Chosen::default() };
        let error = chosen.apply_to(&mut ALL.clone()).unwrap_err();
        assert!(error.message().contains("growth cannot be `0.5`"), "{error}");
    }

    #[test]
    fn every_parameter_takes_what_it_shows() {
        for field in FIELDS {
            for all in [ALL, All { space: None, careful: true, ..ALL }] {
                let mut chosen = Chosen::default();
                assert_eq!(field.chosen(&chosen), None);
                field.set(&mut chosen, &field.value(&all)).unwrap();
                assert_eq!(field.chosen(&chosen), Some(field.value(&all)));
                let mut again = all.clone();
                chosen.apply_to(&mut again).unwrap();
                assert_eq!(again, all, "{}", field.name);
            }
        }
        let texts = FIELDS.iter().map(|field| field.text(&ALL)).collect::<Vec<_>>();
        assert_eq!(texts, ["7", "10", "3 MiB", "no"]);
        assert_eq!(FIELDS[2].text(&All { space: None, ..ALL }), "not set");
    }
}
