//! A comparison as one page of HTML that needs nothing else: bars first, numbers beside them.

use crate::compare::{Compared, Row};
use crate::table::verdict;
use std::fmt::Write;

const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:2em;max-width:110em}\
 table{border-collapse:collapse}td,th{padding:4px 10px;text-align:left;vertical-align:top;\
 border-top:1px solid #ccc}code{font-size:12px;color:#555}.bad{color:#b00;font-weight:bold}\
 svg text{font:11px system-ui,sans-serif}i{display:inline-block;width:1em;height:1em;\
 margin:0 .3em 0 1em;vertical-align:-2px}";

/// One for each engine, distinguishable by readers with colour blindness too.
pub const COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999"];

const BAR_HEIGHT: usize = 14;
const BAR_WIDTH: f64 = 110.0;
const CELL_WIDTH: usize = 215;

/// The page. `engines` in their order; the first is what the others are compared with.
pub fn html(title: &str, engines: &[String], cases: &[Compared]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1><p>",
        title = escaped(title)
    );
    for (index, engine) in engines.iter().enumerate() {
        let _ = write!(page, "<i style=\"background:{}\"></i>{}", colour(index), escaped(engine));
    }
    page.push_str(
        "</p><p>Bars are medians of the rounds, thin lines reach from the least to the largest. \
         Behind a number: how many times what the first engine measured in the same round, \
         median. More is better for ops/s; less is better for all else.</p>\n",
    );
    for compared in cases {
        case(&mut page, engines, compared);
    }
    page.push_str("</html>\n");
    page
}

fn case(page: &mut String, engines: &[String], compared: &Compared) {
    let flags = escaped(&compared.case.flags.join(" "));
    let _ = write!(page, "<h2>{}</h2><p><code>{flags}</code></p>", escaped(&compared.case.name));
    for failure in &compared.failures {
        let message = escaped(&failure.message);
        let _ = write!(page, "<p class=\"bad\">Failed in round {}: {message}</p>", failure.round);
    }
    let class = if compared.same_content == Some(false) { "bad" } else { "" };
    let _ = write!(page, "<p class=\"{class}\">{}</p>", verdict(compared));
    let metrics = distinct(compared.rows.iter().map(|row| row.metric));
    page.push_str("<table><tr><th></th>");
    metrics.iter().for_each(|metric| page.push_str(&format!("<th>{metric}</th>")));
    page.push_str("</tr>");
    for phase in distinct(compared.rows.iter().map(|row| row.phase.as_str())) {
        let _ = write!(page, "<tr><th>{}</th>", escaped(phase));
        for metric in &metrics {
            let is_here = |row: &&Row| row.phase == phase && row.metric == *metric;
            let rows: Vec<&Row> = compared.rows.iter().filter(is_here).collect();
            let _ = write!(page, "<td>{}</td>", bars(engines, &rows));
        }
        page.push_str("</tr>");
    }
    page.push_str("</table>\n");
}

/// A bar for each engine that measured something.
fn bars(engines: &[String], rows: &[&Row]) -> String {
    let Some(most) = rows.iter().map(|row| row.value.max).max_by(f64::total_cmp) else {
        return String::new();
    };
    let scale = BAR_WIDTH / most.max(f64::MIN_POSITIVE);
    let height = rows.len() * BAR_HEIGHT;
    let mut svg = format!("<svg width=\"{CELL_WIDTH}\" height=\"{height}\">");
    for (place, row) in rows.iter().enumerate() {
        let index = engines.iter().position(|engine| *engine == row.engine).unwrap_or(0);
        let (top, middle) = (place * BAR_HEIGHT, place * BAR_HEIGHT + BAR_HEIGHT / 2);
        let value = row.value;
        let [from, to] = [value.min, value.max].map(|number| number * scale);
        let ratio = row.ratio.map_or(String::new(), |ratio| format!(" ({:.2}x)", ratio.median));
        let _ = write!(
            svg,
            "<g><title>{}: {} to {}</title><rect y=\"{}\" width=\"{:.1}\" height=\"{}\" \
             fill=\"{}\"/><path d=\"M{from:.1} {middle}H{to:.1}\" stroke=\"#000\"/>\
             <text x=\"{:.0}\" y=\"{}\">{}{ratio}</text></g>",
            escaped(&row.engine),
            number(value.min),
            number(value.max),
            top + 2,
            (value.median * scale).max(1.0),
            BAR_HEIGHT - 4,
            colour(index),
            BAR_WIDTH + 5.0,
            top + BAR_HEIGHT - 3,
            number(value.median),
        );
    }
    svg + "</svg>"
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Three digits that matter.
pub fn number(value: f64) -> String {
    match value.abs() {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The items without repetition, in order of appearance.
pub fn distinct<'a>(items: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::compared;
    use base::{Error, ErrorKind};

    #[test]
    fn the_page_shows_bars_ratios_and_failures() {
        let died = Err(Error::new(ErrorKind::Io, "b: <gone>"));
        let cases = [compared(vec![Ok(2e6), Ok(1e6), died, Ok(2e6)])];
        let engines = ["a".to_string(), "b".to_string()];
        let page = html("a & b", &engines, &cases);
        assert!(page.contains("<h1>a &amp; b</h1>"), "{page}");
        assert!(page.contains("Failed in round 2: b: &lt;gone&gt;"), "{page}");
        assert!(page.contains(">1.00 M (0.50x)</text>"), "{page}");
        assert_eq!(page.matches("<rect").count(), 4); // with settling too
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn numbers_have_three_digits() {
        let written = [0.5, 12.34, 345.6, 9999.0, 12345.0, 2.5e6].map(number);
        assert_eq!(written, ["0.50", "12.3", "346", "9999", "12 k", "2.50 M"]);
    }
}
