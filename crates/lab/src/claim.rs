//! What the papers say: one claim for each figure, table or sentence with numbers in it.

use base::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;

/// The name of the value that stands for a claim's trend.
pub const SHAPE: &str = "shape";

/// One value of a claim, as the paper has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Stated {
    /// A number.
    Number(f64),
    /// From the first to the second.
    Range(f64, f64),
    /// One number for each point of a sweep.
    Points(Vec<f64>),
    /// "about 1".
    About(f64),
    /// "above 1".
    Above(f64),
    /// A trend, in words.
    Trend(String),
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stated::Number(number) => write!(f, "{number}"),
            Stated::Range(low, high) => write!(f, "{low} to {high}"),
            Stated::Points(points) => {
                let points: Vec<String> = points.iter().map(f64::to_string).collect();
                f.write_str(&points.join(", "))
            }
            Stated::About(number) => write!(f, "about {number}"),
            Stated::Above(number) => write!(f, "above {number}"),
            Stated::Trend(words) => f.write_str(words),
        }
    }
}

/// What a text says that [`Stated`] spelled: words that are no numbers are a trend.
impl From<&str> for Stated {
    fn from(text: &str) -> Stated {
        let after = |word: &str| text.strip_prefix(word)?.parse::<f64>().ok();
        let ends = || text.split_once(" to ").map(|(low, high)| (low.parse(), high.parse()));
        let points =
            text.split(", ").map(str::parse::<f64>).collect::<std::result::Result<Vec<f64>, _>>();
        match (points.as_deref(), ends()) {
            (Ok([number]), _) => Stated::Number(*number),
            (Ok(points), _) => Stated::Points(points.to_vec()),
            (_, Some((Ok(low), Ok(high)))) => Stated::Range(low, high),
            _ => after("about ")
                .map(Stated::About)
                .or_else(|| after("above ").map(Stated::Above))
                .unwrap_or_else(|| Stated::Trend(text.to_string())),
        }
    }
}

/// Whether a value is a ratio between systems, or a figure of the authors' machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Must carry over to another machine.
    Ratio,
    /// A figure in the metric's unit.
    Figure,
    /// How a curve behaves.
    Shape,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// `paper/figure/name`.
    pub id: String,
    /// Figure, table or section.
    pub place: String,
    /// What was run.
    pub setup: String,
    /// What was measured.
    pub metric: String,
    /// Its values by name.
    pub values: Vec<(String, Sort, Stated)>,
}

fn broken(id: &str, what: &str) -> Error {
    Error::invalid(format!("claim {id}: {what}"))
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn stated(sort: Sort, value: &toml::Value) -> Option<Stated> {
    if let Some(words) = value.as_str() {
        let stated = Stated::from(words);
        return matches!(stated, Stated::About(_) | Stated::Above(_)).then_some(stated);
    }
    if let Some(list) = value.as_array() {
        let list = list.iter().map(number).collect::<Option<Vec<f64>>>()?;
        return match (sort, list.as_slice()) {
            (Sort::Ratio, &[low, high]) => Some(Stated::Range(low, high)),
            _ => Some(Stated::Points(list)),
        };
    }
    number(value).map(Stated::Number)
}

impl Claim {
    fn read(table: &toml::Table) -> Result<Claim> {
        let text = |key: &str| {
            let value = table.get(key).and_then(toml::Value::as_str);
            value.unwrap_or_default().to_string()
        };
        let id = text("id");
        let mut values = Vec::new();
        for (key, sort) in [("values", Sort::Figure), ("ratio", Sort::Ratio)] {
            for (name, value) in
                table.get(key).and_then(toml::Value::as_table).into_iter().flatten()
            {
                let stated =
                    stated(sort, value).ok_or_else(|| broken(&id, &format!("{name}: what?")))?;
                values.push((name.clone(), sort, stated));
            }
        }
        if let Some(words) = table.get(SHAPE).and_then(toml::Value::as_str) {
            values.push((SHAPE.into(), Sort::Shape, Stated::Trend(words.into())));
        }
        if id.is_empty() || values.is_empty() {
            return Err(broken(&id, "it has no id or no value"));
        }
        let (place, setup, metric) = (text("where"), text("setup"), text("metric"));
        Ok(Claim { id, place, setup, metric, values })
    }

    /// The paper's short name.
    pub fn paper(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }
}

/// All claims of a text, by id.
pub fn read(text: &str) -> Result<BTreeMap<String, Claim>> {
    let table: toml::Table = text.parse().map_err(|error| broken("", &format!("{error}")))?;
    let claims = table.get("claim").and_then(toml::Value::as_array).into_iter().flatten();
    let mut found = BTreeMap::new();
    for claim in claims.filter_map(toml::Value::as_table) {
        let claim = Claim::read(claim)?;
        if let Some(twice) = found.insert(claim.id.clone(), claim) {
            return Err(broken(&twice.id, "it stands there twice"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spelled_is_read_again() {
        let all = [
            Stated::Number(-0.161),
            Stated::Range(11.17, 45.8),
            Stated::Points(vec![8.18, 52.5, 136.83]),
            Stated::About(1.0),
            Stated::Above(1.0),
            Stated::Trend("WA1 grows to 3, WA2 does not".into()),
        ];
        for stated in all {
            assert_eq!(Stated::from(stated.to_string().as_str()), stated);
        }
    }
}
