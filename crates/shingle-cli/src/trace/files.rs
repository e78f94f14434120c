//! The answer as files: a table for other programs, and a picture.

use super::picture;
use crate::failure::{Failure, Outcome};
use std::path::Path;
use workloads::trace::{Answer, Candidate, DEVICES};

/// Writes `candidates.csv` and `candidates.svg` to a directory, which is made where there is none.
pub(super) fn write(directory: &Path, answer: &Answer) -> Outcome {
    let failed = |error| Failure::io(format!("write to {}", directory.display()), &error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let candidates = &answer.advice.candidates;
    let csv = csv(candidates).map_err(|error| Failure::said(format!("write CSV: {error}"), ""))?;
    std::fs::write(directory.join("candidates.csv"), csv).map_err(failed)?;
    let svg = picture::front(candidates).into_string();
    std::fs::write(directory.join("candidates.svg"), svg).map_err(failed)?;
    Ok(())
}

fn csv(candidates: &[Candidate]) -> Result<Vec<u8>, csv::Error> {
    let mut bytes = Vec::new();
    let mut writer = csv::Writer::from_writer(&mut bytes);
    let names = ["scheme", "values", "fan_out", "write_amplification", "read_amplification"];
    let mut header: Vec<String> = names.map(String::from).to_vec();
    header.extend(["space_amplification", "is_on_front"].map(String::from));
    header.extend(DEVICES.iter().map(|device| format!("{}_busy_seconds", device.name)));
    writer.write_record(&header)?;
    for candidate in candidates {
        let fan_out = candidate.fan_out.map_or_else(String::new, |fan_out| fan_out.to_string());
        let mut row = vec![candidate.scheme.into(), candidate.values.into(), fan_out];
        let figures = [
            candidate.write_amplification,
            candidate.read_amplification,
            candidate.space_amplification,
        ];
        row.extend(figures.map(|figure| format!("{figure:.4}")));
        row.push(candidate.is_on_front.to_string());
        row.extend(candidate.busy_seconds.map(|seconds| format!("{seconds:.6}")));
        writer.write_record(&row)?;
    }
    writer.flush()?;
    drop(writer);
    Ok(bytes)
}
