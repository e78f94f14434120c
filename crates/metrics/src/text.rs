//! The text formats of Prometheus (0.0.4) and OpenMetrics (1.0).

use crate::family::{Buckets, Family, Kind, Sample, Unit, Value};
use std::fmt::Write;

/// The content type of [`prometheus`], for an answer of HTTP.
pub const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The content type of [`openmetrics`].
pub const OPENMETRICS_CONTENT_TYPE: &str =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The families in the text format of Prometheus, version 0.0.4. Families without samples are left
/// out.
pub fn prometheus(families: &[Family]) -> String {
    write(families, false)
}

/// The families in the text format of OpenMetrics 1.0.
pub fn openmetrics(families: &[Family]) -> String {
    let mut text = write(families, true);
    text.push_str("# EOF\n");
    text
}

fn write(families: &[Family], is_openmetrics: bool) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        // Writing to a String cannot fail.
        let _ = write_family(&mut text, family, is_openmetrics);
    }
    text
}

fn write_family(text: &mut String, family: &Family, is_openmetrics: bool) -> std::fmt::Result {
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    // OpenMetrics gives the suffix of a counter to its samples alone, Prometheus to all lines.
    let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
    let name = match is_openmetrics {
        true => family.name.to_string(),
        false => format!("{}{suffix}", family.name),
    };
    if !is_openmetrics {
        writeln!(text, "# HELP {name} {}", escape(family.help, false))?;
    }
    writeln!(text, "# TYPE {name} {kind}")?;
    if is_openmetrics {
        match family.unit {
            Unit::Bytes => writeln!(text, "# UNIT {name} bytes")?,
            Unit::Seconds => writeln!(text, "# UNIT {name} seconds")?,
            Unit::Count => {}
        }
        writeln!(text, "# HELP {name} {}", escape(family.help, true))?;
    }
    for sample in &family.samples {
        match &sample.value {
            Value::Buckets(buckets) => write_buckets(text, family.name, sample, buckets)?,
            value => write_line(text, &format!("{}{suffix}", family.name), sample, &[], value)?,
        }
    }
    Ok(())
}

fn write_buckets(
    text: &mut String,
    name: &str,
    sample: &Sample,
    buckets: &Buckets,
) -> std::fmt::Result {
    let bucket = format!("{name}_bucket");
    let bounds = buckets.up_to.iter().map(|(bound, count)| (float(*bound), *count));
    for (bound, count) in bounds.chain([("+Inf".to_string(), buckets.count)]) {
        write_line(text, &bucket, sample, &[("le", &bound)], &Value::Whole(count))?;
    }
    write_line(text, &format!("{name}_sum"), sample, &[], &Value::Real(buckets.sum_seconds))?;
    write_line(text, &format!("{name}_count"), sample, &[], &Value::Whole(buckets.count))
}

fn write_line(
    text: &mut String,
    name: &str,
    sample: &Sample,
    more: &[(&str, &str)],
    value: &Value,
) -> std::fmt::Result {
    let labels = sample.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let labels: Vec<String> = labels
        .chain(more.iter().copied())
        .map(|(name, value)| format!("{name}=\"{}\"", escape(value, true)))
        .collect();
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let number = match value {
        Value::Whole(number) => number.to_string(),
        Value::Real(number) => float(*number),
        Value::Buckets(buckets) => buckets.count.to_string(),
    };
    writeln!(text, "{name}{labels} {number}")
}

/// The shortest text that reads back as the same number. A whole number has a `.0`, which
/// OpenMetrics wants in bounds.
fn float(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".into(),
        number if number.is_infinite() => if number > 0.0 { "+Inf" } else { "-Inf" }.into(),
        number => format!("{number:?}"),
    }
}

/// Escapes what would end a line, and quotes where `quotes`.
fn escape(text: &str, quotes: bool) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { escaped.replace('"', "\\\"") } else { escaped }
}
