//! The feature `tracing`: jobs are spans, and events are events inside them.
//!
//! A program of its own: which callsites are of interest is a property of the process, and other
//! tests have no subscriber.

#![allow(clippy::unwrap_used, missing_docs)]

use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{Event, EventListener, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// An event as a subscriber sees it.
#[derive(Clone, Debug)]
struct Traced {
    name: &'static str,
    level: tracing::Level,
    /// The spans around it, the innermost first.
    spans: Vec<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

#[derive(Clone, Default)]
struct Collect(Arc<Mutex<Vec<Traced>>>);

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name(), value.to_string());
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collect {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        assert_eq!(metadata.target(), "shingle");
        let mut fields = Fields::default();
        event.record(&mut fields);
        let spans = context.event_scope(event).into_iter().flatten();
        self.0.lock().push(Traced {
            name: metadata.name(),
            level: *metadata.level(),
            spans: spans.map(|span| span.name()).collect(),
            fields: fields.0,
        });
    }
}

#[derive(Default)]
struct Names(Mutex<Vec<&'static str>>);

impl EventListener for Names {
    fn on_event(&self, event: &Event, _: u64) {
        self.0.lock().push(event.name());
    }
}

#[test]
fn events_are_traced_in_the_spans_of_their_jobs() {
    let (collect, names) = (Collect::default(), Arc::new(Names::default()));
    let subscriber = tracing_subscriber::registry().with(collect.clone());
    tracing::subscriber::with_default(subscriber, || {
        let store = Arc::new(MemStore::new(Arc::default()));
        let options = Options::new().values("log").event_listener(names.clone());
        // All steps run on this thread, whose subscriber it is.
        let db = options.open_in(store, Arc::new(Stepped::new(1, u64::MAX))).unwrap();
        for round in 0..4u8 {
            for n in 0..300u64 {
                db.put(n.to_be_bytes(), [round; 2000]).unwrap();
            }
            db.flush().unwrap();
        }
        db.compact().unwrap();
        db.wait_idle().unwrap();
        db.checkpoint_to(&MemStore::new(Arc::default())).unwrap();
        db.close().unwrap();
    });
    let traced = collect.0.lock().clone();
    let told: Vec<&str> = traced.iter().map(|event| event.name).collect();
    assert_eq!(told, *names.0.lock());
    let spans_of = |name: &str| {
        let of = traced.iter().filter(|event| event.name == name);
        of.map(|event| event.spans.clone()).collect::<BTreeSet<_>>()
    };
    let is = |spans: &[&'static str]| BTreeSet::from([spans.to_vec()]);
    assert_eq!(spans_of("recovery_finished"), is(&["open"]));
    assert_eq!(spans_of("flush_started"), is(&["flush"]));
    assert_eq!(spans_of("flush_finished"), is(&["flush"]));
    assert_eq!(spans_of("compaction_finished"), is(&["compaction"]));
    assert_eq!(spans_of("value_collection_finished"), is(&["value_collection"]));
    assert_eq!(spans_of("checkpoint_finished"), is(&["checkpoint"]));
    let flushed = traced.iter().find(|event| event.name == "flush_finished").unwrap();
    assert_eq!(flushed.level, tracing::Level::INFO);
    assert_eq!(flushed.fields["keyspace"], "default");
    assert_eq!(flushed.fields["entries_in"], "300");
    assert_eq!(flushed.fields["message"], "flush_finished");
}
