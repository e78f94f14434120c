//! A comparison as text: tables for people, and lines for programs.

use crate::compare::{Compared, Row, Spread};
use crate::page::{distinct, number};
use std::fmt::Write;

/// The cases as tables.
pub fn text(cases: &[Compared]) -> String {
    let mut text = String::new();
    for compared in cases {
        let _ = writeln!(text, "\n{}\n{}", compared.case.name, compared.case.flags.join(" "));
        text.push_str(&rows(compared));
        for failure in &compared.failures {
            let _ = writeln!(text, "FAILED in round {}: {}", failure.round, failure.message);
        }
        let _ = writeln!(text, "{}", verdict(compared));
    }
    text
}

fn rows(compared: &Compared) -> String {
    let width = compared.rows.iter().map(|row| row.engine.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:<28} {:<15} {:<width$} {:>12}   ratio to the first: {:>6} {:>8} {:>8}\n",
        "phase", "metric", "engine", "median", "min", "median", "max"
    );
    let mut last = "";
    for row in &compared.rows {
        if row.phase != last {
            text.push('\n');
            last = &row.phase;
        }
        let (metric, value) = (row.metric, row.value.median);
        let _ = write!(text, "{:<28} {metric:<15} {:<width$} {value:>12.2}", row.phase, row.engine);
        if let Some(Spread { min, median, max }) = row.ratio {
            let _ = write!(text, "   {:19} {min:>6.2} {median:>8.2} {max:>8.2}", "");
        }
        text.push('\n');
    }
    text
}

/// What is known of the content, as a sentence.
pub fn verdict(compared: &Compared) -> &'static str {
    match compared.same_content {
        Some(true) => "All runs left the same content.",
        Some(false) => "THE ENGINES HOLD DIFFERENT CONTENT: at least one is wrong.",
        None => "Content not compared: this work leaves different content every time.",
    }
}

/// The medians as Markdown: a table for each metric, a row for each phase, a column for each
/// engine.
pub fn markdown(cases: &[Compared]) -> String {
    let rows = || cases.iter().flat_map(|c| c.rows.iter().map(|row| (&c.case.name, row)));
    let metrics = distinct(rows().map(|(_, row)| row.metric));
    let engines = distinct(rows().map(|(_, row)| row.engine.as_str()));
    let mut text = String::new();
    for metric in metrics {
        let _ = writeln!(text, "## {metric}\n\n| work | {} |", engines.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(engines.len()));
        let mut last = None;
        for (case, row) in rows().filter(|(_, row)| row.metric == metric) {
            let phase = (case, &row.phase);
            if last.replace(phase) == Some(phase) {
                continue;
            }
            let of = |engine: &&str| {
                let same = |(c, r): &(&String, &Row)| {
                    (*c, &r.phase) == phase && r.metric == metric && r.engine == **engine
                };
                rows().find(same).map_or("-".into(), |(_, row)| number(row.value.median))
            };
            let cells: Vec<String> = engines.iter().map(of).collect();
            let _ = writeln!(text, "| {case}: {} | {} |", row.phase, cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

/// Every measurement as comma-separated values.
pub fn csv(cases: &[Compared]) -> String {
    let mut text =
        String::from("case,phase,metric,engine,min,median,max,ratio_min,ratio_median,ratio_max\n");
    for compared in cases {
        for row in &compared.rows {
            let Spread { min, median, max } = row.value;
            let (case, phase) = (&compared.case.name, &row.phase);
            let _ = write!(
                text,
                "\"{case}\",{phase},{},{},{min},{median},{max}",
                row.metric, row.engine
            );
            match row.ratio {
                Some(Spread { min, median, max }) => writeln!(text, ",{min},{median},{max}"),
                None => writeln!(text, ",,,"),
            }
            .unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::compared;
    use base::{Error, ErrorKind};

    #[test]
    fn tables_show_ratios_and_failures() {
        let died = Err(Error::new(ErrorKind::Io, "b: the run failed"));
        let cases = [compared(vec![Ok(100.0), Ok(50.0), died, Ok(10.0)])];
        let text = text(&cases);
        assert!(text.contains("FAILED in round 2: b: the run failed"), "{text}");
        assert!(text.contains("All runs left the same content."), "{text}");
        let csv = csv(&cases);
        assert!(csv.contains("\"fill\",1 fillseq,ops/s,b,50,50,50,0.5,0.5,0.5\n"), "{csv}");
        let markdown = markdown(&cases);
        assert!(markdown.contains("## ops/s\n\n| work | a | b |\n|---|---:|---:|\n"), "{markdown}");
        assert!(markdown.contains("| fill: 1 fillseq | 55.0 | 50.0 |\n"), "{markdown}");
        let columns = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| columns(line) == 10), "{csv}");
    }
}
