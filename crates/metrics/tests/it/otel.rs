//! Instruments of OpenTelemetry, with a meter that calls them as an SDK does.

use crate::database::sample;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{
    AsyncInstrument, AsyncInstrumentBuilder, Callback, InstrumentProvider, Meter,
    ObservableCounter, ObservableGauge,
};
use parking_lot::Mutex;
use shingle_metrics::{Kind, Value, definitions, families};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Instrument {
    name: String,
    unit: String,
    is_counter: bool,
    callbacks: Vec<Callback<f64>>,
}

#[derive(Default)]
struct Provider(Mutex<Vec<Instrument>>);

impl Provider {
    fn add<I>(&self, builder: AsyncInstrumentBuilder<'_, I, f64>, is_counter: bool) {
        self.0.lock().push(Instrument {
            name: builder.name.to_string(),
            unit: builder.unit.unwrap_or_default().to_string(),
            is_counter,
            callbacks: builder.callbacks,
        });
    }
}

impl InstrumentProvider for Provider {
    fn f64_observable_counter(
        &self,
        builder: AsyncInstrumentBuilder<'_, ObservableCounter<f64>, f64>,
    ) -> ObservableCounter<f64> {
        self.add(builder, true);
        ObservableCounter::new()
    }

    fn f64_observable_gauge(
        &self,
        builder: AsyncInstrumentBuilder<'_, ObservableGauge<f64>, f64>,
    ) -> ObservableGauge<f64> {
        self.add(builder, false);
        ObservableGauge::new()
    }
}

type Measured = Vec<(BTreeMap<String, String>, f64)>;

#[derive(Default)]
struct Observed(Mutex<Measured>);

impl AsyncInstrument<f64> for Observed {
    fn observe(&self, measurement: f64, attributes: &[KeyValue]) {
        let attributes = attributes.iter();
        let attributes = attributes.map(|a| (a.key.to_string(), a.value.to_string())).collect();
        self.0.lock().push((attributes, measurement));
    }
}

/// Reads all instruments once.
fn collect(provider: &Provider) -> BTreeMap<String, Measured> {
    let instruments = provider.0.lock();
    let measured = instruments.iter().map(|instrument| {
        let observed = Observed::default();
        instrument.callbacks.iter().for_each(|callback| callback(&observed));
        (instrument.name.clone(), observed.0.into_inner())
    });
    measured.collect()
}

#[test]
fn a_meter_sees_every_metric_with_one_look_at_the_database() {
    let sample = sample();
    let stats = sample.stats();
    let (provider, calls) = (Arc::new(Provider::default()), Arc::new(AtomicU64::new(0)));
    let meter = Meter::new(provider.clone());
    let (shown, counted) = (stats.clone(), calls.clone());
    shingle_metrics::otel::observe(&meter, vec![KeyValue::new("db", "fruit")], move || {
        counted.fetch_add(1, Relaxed);
        Some(shown.clone())
    });
    let first = collect(&provider);
    assert_eq!(calls.load(Relaxed), 1, "one look at the database serves all instruments");
    assert_eq!(collect(&provider), first);
    assert_eq!(calls.load(Relaxed), 2);

    for (definition, family) in definitions().iter().zip(families(&stats)) {
        let unit = ["_bytes", "_seconds"].iter().find_map(|u| definition.name.strip_suffix(u));
        let name = unit.unwrap_or(definition.name).replacen('_', ".", 1);
        for sample in &family.samples {
            let labels = sample.labels.iter().map(|(k, v)| (k.to_string(), v.clone()));
            let labels: BTreeMap<_, _> =
                labels.chain([("db".to_string(), "fruit".to_string())]).collect();
            let has = |name: &str, wanted: f64| {
                let found = first[name].iter().find(|(attributes, _)| *attributes == labels);
                assert_eq!(found.map(|found| found.1), Some(wanted), "{name}");
            };
            match &sample.value {
                Value::Whole(number) => has(&name, *number as f64),
                Value::Real(number) => has(&name, *number),
                Value::Buckets(buckets) => {
                    has(&format!("{name}.count"), buckets.count as f64);
                    has(&format!("{name}.sum"), buckets.sum_seconds);
                    let shown = first[&format!("{name}.bucket")].len();
                    assert_eq!(shown, buckets.up_to.len() + 1);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let histograms = definitions().iter().filter(|d| d.kind == Kind::Histogram).count();
    assert_eq!(first.len(), definitions().len() + 2 * histograms);
    let instruments = provider.0.lock();
    let written = instruments.iter().find(|i| i.name == "shingle.io_written").unwrap();
    assert!(written.is_counter && written.unit == "By");
}

#[test]
fn a_closed_database_observes_nothing() {
    let provider = Arc::new(Provider::default());
    shingle_metrics::otel::observe(&Meter::new(provider.clone()), Vec::new(), || None);
    assert!(collect(&provider).values().all(Vec::is_empty));
}
