//! How write amplification grows with the data: a picture of the cases of the suite `growth`.

use crate::compare::{Compared, Row};
use crate::page::{COLOURS, distinct};
use base::{Error, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// One panel, in pixels.
const PANEL: (u32, u32) = (460, 380);

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line of a panel: gigabytes and write amplification.
type Line = Vec<(f64, f64)>;

/// The picture, as SVG: a panel for each phase, in it a line for each engine.
pub fn svg(engines: &[String], cases: &[Compared]) -> Result<String> {
    let rows: Vec<(f64, &Row)> = cases
        .iter()
        .filter_map(|compared| Some((gigabytes(&compared.case.name)?, compared)))
        .flat_map(|(size, compared)| compared.rows.iter().map(move |row| (size, row)))
        .filter(|(_, row)| row.metric == "WA")
        .collect();
    let phases = distinct(rows.iter().map(|(_, row)| row.phase.as_str()));
    let most = rows.iter().map(|(_, row)| row.value.median).fold(1.0, f64::max);
    let sizes = rows.iter().map(|(size, _)| *size);
    let span = (sizes.clone().fold(f64::MAX, f64::min), sizes.fold(f64::MIN, f64::max));
    if phases.is_empty() || span.0 >= span.1 {
        return Err(Error::invalid("a growth needs cases of two sizes: see the suite 'growth'"));
    }
    let mut text = String::new();
    {
        let size = (PANEL.0 * phases.len() as u32, PANEL.1);
        let panels = SVGBackend::with_string(&mut text, size).into_drawing_area();
        panels.fill(&WHITE).map_err(undrawn)?;
        for (panel, phase) in panels.split_evenly((1, phases.len())).iter().zip(&phases) {
            let line = |engine: &String| -> Line {
                let own = rows.iter().filter(|(_, row)| row.phase == *phase);
                let own = own.filter(|(_, row)| row.engine == *engine);
                own.map(|(size, row)| (*size, row.value.median)).collect()
            };
            let lines: Vec<(&str, Line)> =
                engines.iter().map(|engine| (engine.as_str(), line(engine))).collect();
            draw(panel, phase, &lines, span, most).map_err(undrawn)?;
        }
        panels.present().map_err(undrawn)?;
    }
    Ok(text)
}

/// The size that the name of a case begins with: "16 GB, ...".
fn gigabytes(name: &str) -> Option<f64> {
    name.split_once(" GB")?.0.parse().ok()
}

/// The colour that `#rrggbb` is; black where it is not of this form.
fn rgb(hex: &str) -> RGBColor {
    let number = u32::from_str_radix(hex.trim_start_matches('#'), 16).unwrap_or_default();
    let [_, red, green, blue] = number.to_be_bytes();
    RGBColor(red, green, blue)
}

fn undrawn(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the picture cannot be drawn: {error}"))
}

fn draw(
    panel: &Panel<'_>,
    title: &str,
    lines: &[(&str, Line)],
    span: (f64, f64),
    most: f64,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let room = 1.6; // behind the last point, for the names of the lines
    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(44)
        .build_cartesian_2d((span.0..span.1 * room).log_scale().base(2.0), 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc("GB of writes in each phase")
        .y_desc("write amplification")
        .x_label_formatter(&|size| format!("{size:.0}"))
        .draw()?;
    for (index, (engine, line)) in lines.iter().enumerate() {
        let colour = rgb(COLOURS[index % COLOURS.len()]);
        chart.draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)))?;
        let point = |&(size, wa): &(f64, f64)| Circle::new((size, wa), 3, colour.filled());
        chart.draw_series(line.iter().map(point))?;
        if let Some(&(size, wa)) = line.last() {
            let left = Pos::new(HPos::Left, VPos::Center);
            let style = ("sans-serif", 13).into_font().color(&colour).pos(left);
            chart.draw_series([Text::new(engine.to_string(), (size * 1.06, wa), style)])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::compared;

    #[test]
    fn each_engine_has_a_point_for_each_size() {
        let cases: Vec<Compared> = [1, 2, 4]
            .map(|size| {
                let mut case = compared(vec![Ok(2e6), Ok(1e6)]);
                case.case.name = format!("{size} GB, entries");
                case.rows.retain(|row| row.metric == "ops/s");
                case.rows.iter_mut().for_each(|row| row.metric = "WA");
                case
            })
            .into();
        let engines = ["a".to_string(), "b".to_string()];
        let picture = svg(&engines, &cases).unwrap();
        assert_eq!(picture.matches("<circle").count(), 6);
        assert!(picture.contains("write amplification") && picture.contains("</svg>"));
        assert!(svg(&engines, &cases[..1]).is_err());
    }
}
