//! Fields of events: each type of field knows its form in JSON and in `tracing`.

use crate::json;
use crate::{Stall, StallCondition, StallReason};
use base::{Cause, Error};
use std::ops::Range;

/// Maximum number of extents that one event lists.
const EXTENTS_MAX: usize = 64;

/// The value of one field of an event, for programs that show any event; see
/// [`Event::fields`](super::Event::fields).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Field {
    /// A number.
    Number(u64),
    /// A number that is not whole.
    Real(f64),
    /// A text.
    Text(String),
    /// Numbers.
    Numbers(Vec<u64>),
}

impl Field {
    pub(super) fn to_json(&self) -> String {
        match self {
            Field::Number(number) => number.to_string(),
            Field::Real(number) => json::number(Some(*number)),
            Field::Text(text) => json::string(text),
            Field::Numbers(numbers) => json::array(numbers.iter().map(u64::to_string)),
        }
    }
}

/// The fields of an event, by name.
pub(super) type Fields = Vec<(String, Field)>;

/// A type of field.
pub(super) trait FieldType {
    /// Adds what the field called `name` has to say: usually one field.
    fn add_to(&self, name: &str, fields: &mut Fields);

    /// The field for `tracing`.
    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_;
}

/// Implements [`FieldType`] for a type that is always exactly one field.
macro_rules! one_field {
    ($kind:ty, |$value:ident| $field:expr, $traced:expr) => {
        impl FieldType for $kind {
            fn add_to(&self, name: &str, fields: &mut Fields) {
                let $value = self;
                fields.push((name.into(), $field));
            }

            #[cfg(feature = "tracing")]
            fn traced(&self) -> impl tracing::Value + '_ {
                let $value = self;
                $traced
            }
        }
    };
}

one_field!(u64, |value| Field::Number(*value), *value);
one_field!(f64, |value| Field::Real(*value), *value);
one_field!(String, |value| Field::Text(value.clone()), value.as_str());
one_field!(Error, |value| Field::Text(value.to_string()), tracing::field::display(value));
one_field!(StallCondition, |value| Field::Text(value.name().into()), value.name());
one_field!(StallReason, |value| Field::Text(value.name().into()), value.name());
one_field!(Vec<u64>, |value| Field::Numbers(value.clone()), tracing::field::debug(value));

/// Extents on a device, as start and length in turn; no field where the store does not know them.
/// Extents that touch are joined; if there are too many, the first are listed.
impl FieldType for Vec<Range<u64>> {
    fn add_to(&self, name: &str, fields: &mut Fields) {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for extent in self {
            match joined.last_mut() {
                Some(last) if (last.start..=last.end).contains(&extent.start) => {
                    last.end = last.end.max(extent.end);
                }
                _ => joined.push(extent.clone()),
            }
        }
        if joined.is_empty() {
            return;
        }
        joined.truncate(EXTENTS_MAX);
        let pairs = joined.iter().flat_map(|extent| [extent.start, extent.end - extent.start]);
        fields.push((name.into(), Field::Numbers(pairs.collect())));
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        tracing::field::debug(self)
    }
}

/// Bytes by cause: written, read, written by the medium, read by the medium. In `LOG` each cause is
/// a field by its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CauseBytes(pub(crate) Vec<(Cause, [u64; 4])>);

impl CauseBytes {
    /// The causes that have bytes.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, [u64; 4])> + '_ {
        self.0.iter().copied()
    }
}

/// Waits of writes by reason. In `LOG` each reason with a wait is a field by its name after
/// `stall-`: the number of waits, and nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StallTimes(pub(crate) Vec<Stall>);

impl StallTimes {
    /// The reasons for which a write waited.
    pub fn stalls(&self) -> impl Iterator<Item = Stall> + '_ {
        self.0.iter().copied().filter(|stall| stall.count > 0)
    }
}

impl FieldType for StallTimes {
    fn add_to(&self, _name: &str, fields: &mut Fields) {
        for Stall { reason, count, ns } in self.stalls() {
            fields.push((format!("stall-{}", reason.name()), Field::Numbers(vec![count, ns])));
        }
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        tracing::field::debug(&self.0)
    }
}

impl FieldType for CauseBytes {
    fn add_to(&self, _name: &str, fields: &mut Fields) {
        for (cause, bytes) in &self.0 {
            fields.push((cause.name(), Field::Numbers(bytes.to_vec())));
        }
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        tracing::field::debug(&self.0)
    }
}
