//! What is written reads back.

use crate::database::sample;
use crate::parser::parse;
use shingle_metrics::{Kind, Unit, Value, definitions, families, text, with_label};
use std::collections::BTreeSet;

#[test]
fn both_formats_read_back_with_every_number() {
    let sample = sample();
    let mut all = families(&sample.stats());
    with_label(&mut all, "db", "a b");
    for is_openmetrics in [false, true] {
        let text = match is_openmetrics {
            true => text::openmetrics(&all),
            false => text::prometheus(&all),
        };
        let parsed = parse(&text, is_openmetrics);
        let mut series = 0;
        for family in &all {
            let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
            for sample in &family.samples {
                let labels =
                    sample.labels.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
                let read = |end: &str| {
                    let key = (format!("{}{suffix}{end}", family.name), labels);
                    parsed.values.get(&key).copied().unwrap_or_else(|| panic!("{key:?}\n{text}"))
                };
                match &sample.value {
                    Value::Whole(number) => assert_eq!(read(""), *number as f64),
                    Value::Real(number) => assert_eq!(read(""), *number),
                    Value::Buckets(buckets) => {
                        assert_eq!(read("_sum"), buckets.sum_seconds);
                        series += buckets.up_to.len() + 2;
                    }
                    other => panic!("{other:?}"),
                }
                series += 1;
            }
        }
        assert_eq!(parsed.values.len(), series, "nothing else is there");
        assert!(text.contains("o\\\"t\\\\h\\ner"), "the name of a keyspace is escaped");
    }
}

#[test]
fn openmetrics_has_units_and_both_have_help() {
    let all = families(&sample().stats());
    let (old, new) = (parse(&text::prometheus(&all), false), parse(&text::openmetrics(&all), true));
    assert!(old.units.is_empty());
    assert_eq!(new.units["shingle_wal_sync_seconds"], "seconds");
    assert_eq!(new.units["shingle_space_bytes"], "bytes");
    assert_eq!(old.types["shingle_io_written_bytes_total"], "counter");
    assert_eq!(new.types["shingle_io_written_bytes"], "counter");
    assert_eq!(old.helps.len(), old.types.len());
    assert_eq!(new.helps.len(), old.types.len());
}

#[test]
fn names_follow_the_conventions() {
    let mut names = BTreeSet::new();
    for definition in definitions() {
        let name = definition.name;
        assert!(names.insert(name), "{name} twice");
        assert!(name.starts_with("shingle_"), "{name}");
        let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(is_plain(name) && definition.labels.iter().all(|label| is_plain(label)), "{name}");
        let reserved = ["_total", "_count", "_sum", "_bucket", "_info", "_created"];
        assert!(reserved.iter().all(|end| !name.ends_with(end)), "{name}");
        let has = |unit: &str| name.ends_with(unit);
        assert_eq!(has("_bytes"), definition.unit == Unit::Bytes, "{name}");
        assert_eq!(has("_seconds"), definition.unit == Unit::Seconds, "{name}");
        let foreign = ["_ms", "_us", "_ns", "_micros", "_percent", "_kb", "_mb"];
        assert!(foreign.iter().all(|unit| !has(unit)), "{name}: base units only");
        assert!(definition.help.ends_with('.'), "{name}: {}", definition.help);
    }
}

#[test]
fn samples_have_the_labels_of_their_definition() {
    for (definition, family) in definitions().iter().zip(families(&sample().stats())) {
        assert!(!family.samples.is_empty(), "{} has nothing in the sample", family.name);
        for sample in &family.samples {
            let labels: Vec<&str> = sample.labels.iter().map(|(name, _)| *name).collect();
            assert_eq!(labels, definition.labels, "{}", family.name);
        }
    }
}
