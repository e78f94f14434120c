//! The same metrics as observable instruments of OpenTelemetry.
//!
//! Names begin with `shingle.` and have no unit, because the unit is a property of the instrument:
//! `shingle_io_written_bytes` is `shingle.io_written` with the unit `By`. A translation to
//! Prometheus gives the names of [`text`](crate::text) again. OpenTelemetry has no observable
//! histogram: a distribution is three counters, `.bucket` with the attribute `le`, `.sum` and
//! `.count`.

use crate::family::{Buckets, Family, Kind, Sample, Unit, Value};
use crate::{Definition, definitions, families};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use parking_lot::Mutex;
use shingle::Stats;
use std::sync::Arc;

/// Makes an instrument of `meter` for each metric. `stats` is called once each time that the
/// instruments are read; where it has nothing, perhaps because the database is closed, nothing is
/// observed. Every measurement
/// has `attributes`, such as the name of the database.
///
/// The instruments live as long as the provider of the meter, and `stats` with them. A function
/// that holds a [`Db`](shingle::Db) keeps the database open, until
/// [`Db::close`](shingle::Db::close).
///
/// ```no_run
/// # fn main() -> shingle::Result<()> {
/// use opentelemetry::{KeyValue, global};
///
/// let db = shingle::Options::new().open("fruit.db")?;
/// let seen = db.clone();
/// let name = vec![KeyValue::new("db", "fruit")];
/// shingle_metrics::otel::observe(&global::meter("shingle"), name, move || Some(seen.stats()));
/// # Ok(())
/// # }
/// ```
pub fn observe(
    meter: &Meter,
    attributes: Vec<KeyValue>,
    stats: impl Fn() -> Option<Stats> + Send + Sync + 'static,
) {
    let source = Arc::new(Source { stats: Box::new(stats), attributes, reading: Mutex::default() });
    let mut asker = 0;
    for (index, definition) in definitions().iter().enumerate() {
        for part in Part::of(definition.kind) {
            build(meter, definition, *part, Asker { source: source.clone(), number: asker, index });
            asker += 1;
        }
    }
}

/// What an instrument shows of a metric.
#[derive(Clone, Copy)]
enum Part {
    Number,
    Bucket,
    Sum,
    Count,
}

impl Part {
    fn of(kind: Kind) -> &'static [Part] {
        match kind {
            Kind::Counter | Kind::Gauge => &[Part::Number],
            Kind::Histogram => &[Part::Bucket, Part::Sum, Part::Count],
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Part::Number => "",
            Part::Bucket => ".bucket",
            Part::Sum => ".sum",
            Part::Count => ".count",
        }
    }

    fn unit(self, unit: Unit) -> &'static str {
        match (self, unit) {
            (Part::Bucket | Part::Count, _) | (_, Unit::Count) => "1",
            (_, Unit::Bytes) => "By",
            (_, Unit::Seconds) => "s",
        }
    }
}

/// `shingle_io_written_bytes` as `shingle.io_written`.
fn instrument_name(definition: &Definition, part: Part) -> String {
    let name = definition.name;
    let name = match definition.unit {
        Unit::Bytes => name.strip_suffix("_bytes").unwrap_or(name),
        Unit::Seconds => name.strip_suffix("_seconds").unwrap_or(name),
        Unit::Count => name,
    };
    format!("{}{}", name.replacen('_', ".", 1), part.suffix())
}

fn build(meter: &Meter, definition: &'static Definition, part: Part, asker: Asker) {
    let name = instrument_name(definition, part);
    let observe = move |to: &dyn AsyncInstrument<f64>| asker.observe(part, to);
    match definition.kind {
        Kind::Gauge => drop(
            meter
                .f64_observable_gauge(name)
                .with_description(definition.help)
                .with_unit(part.unit(definition.unit))
                .with_callback(observe)
                .build(),
        ),
        Kind::Counter | Kind::Histogram => drop(
            meter
                .f64_observable_counter(name)
                .with_description(definition.help)
                .with_unit(part.unit(definition.unit))
                .with_callback(observe)
                .build(),
        ),
    }
}

/// Where the instruments of one database get their numbers.
struct Source {
    stats: Box<dyn Fn() -> Option<Stats> + Send + Sync>,
    attributes: Vec<KeyValue>,
    reading: Mutex<Reading>,
}

/// The numbers of one reading of all instruments. Each asks once, so an instrument that asks again
/// begins the next reading.
#[derive(Default)]
struct Reading {
    families: Option<Arc<Vec<Family>>>,
    has_asked: Vec<bool>,
}

impl Source {
    fn families(&self, asker: usize) -> Option<Arc<Vec<Family>>> {
        let mut reading = self.reading.lock();
        let asked = reading.has_asked.get(asker).copied().unwrap_or(true);
        if asked {
            let count: usize = definitions().iter().map(|d| Part::of(d.kind).len()).sum();
            reading.has_asked = vec![false; count];
            reading.families = (self.stats)().map(|stats| Arc::new(families(&stats)));
        }
        reading.has_asked[asker] = true;
        reading.families.clone()
    }
}

/// An instrument: its number among all, and the metric that it shows.
struct Asker {
    source: Arc<Source>,
    number: usize,
    index: usize,
}

impl Asker {
    fn observe(&self, part: Part, to: &dyn AsyncInstrument<f64>) {
        let Some(families) = self.source.families(self.number) else { return };
        let Some(family) = families.get(self.index) else { return };
        for sample in &family.samples {
            let attributes = self.attributes(sample);
            match (part, &sample.value) {
                (Part::Bucket, Value::Buckets(buckets)) => {
                    observe_buckets(buckets, &attributes, to);
                }
                (_, value) => to.observe(number(part, value), &attributes),
            }
        }
    }

    fn attributes(&self, sample: &Sample) -> Vec<KeyValue> {
        let labels = sample.labels.iter();
        let labels = labels.map(|(name, value)| KeyValue::new(*name, value.clone()));
        self.source.attributes.iter().cloned().chain(labels).collect()
    }
}

fn number(part: Part, value: &Value) -> f64 {
    match (part, value) {
        (_, Value::Whole(number)) => *number as f64,
        (_, Value::Real(number)) => *number,
        (Part::Sum, Value::Buckets(buckets)) => buckets.sum_seconds,
        (_, Value::Buckets(buckets)) => buckets.count as f64,
    }
}

fn observe_buckets(buckets: &Buckets, attributes: &[KeyValue], to: &dyn AsyncInstrument<f64>) {
    let bounds = buckets.up_to.iter().map(|(bound, count)| (format!("{bound:?}"), *count));
    for (bound, count) in bounds.chain([("+Inf".to_string(), buckets.count)]) {
        let attributes = [attributes, &[KeyValue::new("le", bound)]].concat();
        to.observe(count as f64, &attributes);
    }
}
