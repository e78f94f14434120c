//! The check: every byte of every live file, and every invariant.

use crate::engine::core::Core;
use crate::progress::{Progress, Reporter};
use crate::read::cursor::{CursorOptions, InternalCursor};
use crate::stats::CheckReport;
use base::{Cause, FileId, KeyRange, Result};
use media::{FileKind, FileName};
use std::collections::BTreeMap;
use std::sync::Arc;
use table::TablePlace;
use table::log::{LogIdentity, LogKind, LogReader};
use table::log_record::LogRecord;
use table::manifest::decode_edit;
use tree::Version;
use tree::invariant::Shape;
use values::segment::SegmentScan;

/// Keys whose values are checked in one step.
const KEYS_PER_STEP: u64 = 1000;

/// The steps of a check, as its caller sees them.
struct Steps<'a> {
    reporter: Reporter<'a>,
    done_bytes: u64,
    total_bytes: u64,
}

impl Steps<'_> {
    /// Reports the next step. False: the caller cancelled the check.
    fn goes_on(&mut self, what: impl ToString) -> bool {
        self.reporter.goes_on(self.done_bytes, self.total_bytes, what.to_string())
    }
}

/// The files and versions to check.
struct Plan {
    versions: Vec<Arc<Version>>,
    manifest: Option<(FileName, LogKind)>,
    /// With the bytes that another log names, if one does.
    logs: BTreeMap<FileId, u64>,
}

impl Core {
    /// Problems go to the report; an error means that the check could not be done.
    pub(crate) fn check(
        self: &Arc<Self>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CheckReport> {
        // The next opening may remove the files that are read here.
        let _inside = self.enter()?;
        let mut report = CheckReport::default();
        let plan = self.check_plan(&mut report);
        report.problems.extend(self.account_errors());
        for version in &plan.versions {
            self.check_files(version, &mut report)?;
        }
        let total_bytes = plan.versions.iter().map(|version| live_bytes(version)).sum();
        let steps = &mut Steps { reporter: Reporter::new(progress), done_bytes: 0, total_bytes };
        let goes_on = self.check_data(&plan.versions, steps, &mut report)?
            && self.check_values(steps, &mut report)?
            && self.check_logs(plan, steps, &mut report);
        report.is_cancelled = !goes_on;
        steps.done_bytes = total_bytes;
        steps.goes_on("done");
        Ok(report)
    }

    /// Checks every run and every segment. False: the check was cancelled, here and below.
    fn check_data(
        &self,
        versions: &[Arc<Version>],
        steps: &mut Steps<'_>,
        report: &mut CheckReport,
    ) -> Result<bool> {
        for version in versions {
            for run in version.runs() {
                if !steps.goes_on(FileName::table(run.file.id)) {
                    return Ok(false);
                }
                self.check_open()?;
                self.check_run(&run, report);
                steps.done_bytes += run.bytes;
            }
            for segment in version.segments.iter() {
                if !steps.goes_on(FileName::value(segment.file.id)) {
                    return Ok(false);
                }
                self.check_open()?;
                let checked = self.check_segment(segment, report);
                report.note(checked);
                steps.done_bytes += segment.bytes;
            }
        }
        Ok(true)
    }

    fn check_logs(&self, plan: Plan, steps: &mut Steps<'_>, report: &mut CheckReport) -> bool {
        let manifest = plan.manifest.map(|(name, kind)| (name, kind, 0));
        let logs =
            plan.logs.into_iter().map(|(log, bytes)| (FileName::wal(log), LogKind::Wal, bytes));
        for (name, kind, bytes_min) in manifest.into_iter().chain(logs) {
            if !steps.goes_on(name) {
                return false;
            }
            let checked = self.check_log(name, kind, bytes_min);
            if checked.is_err() && !self.is_needed(name) {
                continue;
            }
            report.files += 1;
            report.bytes += report_bytes(report, checked);
        }
        true
    }

    /// Collects what to check, and checks the part that needs a fixed state. Versions share files,
    /// and an edit can make a shared file longer than an earlier version counted.
    fn check_plan(&self, report: &mut CheckReport) -> Plan {
        let trees = self.versions.lock();
        let versions =
            trees.keyspaces.values().map(|tree| tree.version.clone()).collect::<Vec<_>>();
        for version in &versions {
            let invariants = tree::invariant::check(version, &Shape::ANY);
            report.note(invariants.map_err(Into::into));
        }
        let manifest = trees.manifest.as_ref();
        let manifest = manifest.map(|m| (FileName::manifest(m.file), LogKind::Manifest));
        let state = self.commits.lock();
        let mut logs: BTreeMap<FileId, u64> = state.logs.iter().map(|log| (log.file, 0)).collect();
        logs.extend(self.changes.iter().flat_map(|changes| changes.ends_from(FileId(0))));
        Plan { versions, manifest, logs }
    }

    /// Logs are created and removed while others write.
    fn is_needed(&self, name: FileName) -> bool {
        let trees = self.versions.lock();
        let is_manifest = trees.manifest.as_ref().is_some_and(|m| m.file == name.id);
        let is_retained = self.changes.as_ref().is_some_and(|changes| changes.holds(name.id));
        let is_log = self.commits.lock().logs.iter().any(|log| log.file == name.id);
        is_manifest || is_retained || is_log
    }

    fn check_files(&self, version: &Version, report: &mut CheckReport) -> Result<()> {
        // In this order: an append changes a file first, and then its size in the tree.
        let files = version.files();
        let listed = self.store.list()?;
        for usage in files {
            let name = FileName::table(usage.file.id);
            report.files += 1;
            match listed.iter().find(|file| file.name == name) {
                // A follower has it open; the writer removed it since.
                None if self.check_header(&usage.file).is_ok() => {}
                None => report.problems.push(format!("{name} is missing")),
                Some(file) if file.bytes < usage.total_bytes => report.problems.push(format!(
                    "{name} has {} bytes, the manifest vouches for {}",
                    file.bytes, usage.total_bytes
                )),
                Some(_) => {
                    report.note(self.check_header(&usage.file));
                }
            }
            if usage.live_bytes > usage.total_bytes {
                report.problems.push(format!("{name} has more live bytes than bytes"));
            }
        }
        Ok(())
    }

    /// No read uses a table's header, so damage there shows only here.
    fn check_header(&self, table: &tree::FileRef) -> Result<()> {
        let file = self.store.open(FileName::table(table.id), true)?;
        let place = TablePlace::of(table, self.database);
        table::format::check_header(&*file, place, Cause::Check)
    }

    fn check_run(&self, run: &tree::Run, report: &mut CheckReport) {
        let opened = self.read.tables.handle(run).open_for_background(Cause::Check);
        let Some(table) = report.note(opened) else { return };
        report.metadata_bytes += run.bytes.saturating_sub(table.summary().data_bytes);
        let Some(found) = report.note(table.verify(&mut |_| {})) else { return };
        report.bytes += found.run.bytes;
        report.entries += found.run.entries;
        // The manifest's range may be wider. The file names its run itself, which opening has
        // compared; a sorted file does not have the manifest's number.
        let (id, range) = (found.run.id, found.run.range.clone());
        let recorded = tree::RunMetadata { id, range, ..run.in_file(()) };
        let agrees = found.run == recorded && run.range.covers(&found.run.range);
        if !agrees {
            report.problems.push(format!(
                "run {} in {} is not the run that the manifest describes",
                run.id,
                FileName::table(run.file.id)
            ));
        }
    }

    /// Checks every record of a segment, up to the bytes that the manifest vouches for.
    fn check_segment(&self, segment: &tree::Segment, report: &mut CheckReport) -> Result<()> {
        report.files += 1;
        let file = self.store.open(FileName::value(segment.file.id), true)?;
        let place = self.read.values.place(segment.file.id);
        let mut scan = SegmentScan::new(&*file, place, segment.bytes, Cause::Check);
        while let Some((record, _)) = scan.next_record()? {
            report.bytes += record.bytes as u64;
        }
        Ok(())
    }

    /// Checks that every pointer that a reader can follow now leads to its value, and that every
    /// operand is valid for its operator, where the operator is known.
    fn check_values(&self, steps: &mut Steps<'_>, report: &mut CheckReport) -> Result<bool> {
        for keyspace in self.keyspaces() {
            let moment = self.moment(&keyspace);
            let operator = keyspace.operator.clone();
            let is_known = operator.as_ref().is_some_and(|operator| operator.known().is_some());
            if moment.view().tree.segments.is_empty() && !is_known {
                continue;
            }
            let options =
                CursorOptions { fill_cache: false, readahead_bytes: 1 << 18, walk_bytes_max: 0 };
            let cursor = InternalCursor::new(moment, operator, options, KeyRange::all());
            let Some(mut cursor) = report.note(cursor) else { continue };
            let mut moved = cursor.seek_to_first();
            for count in 0u64.. {
                if !cursor.valid() || self.is_closing() {
                    break;
                }
                if count.is_multiple_of(KEYS_PER_STEP) && !steps.goes_on(&keyspace.name) {
                    return Ok(false);
                }
                // A valid cursor with an error is at a key whose operands are not merged.
                if is_known {
                    report.note(moved);
                }
                moved = cursor.next();
            }
            report.note(moved);
        }
        self.check_open()?;
        Ok(true)
    }

    fn check_log(&self, name: FileName, kind: LogKind, bytes_min: u64) -> Result<u64> {
        let file = self.store.open(name, true)?;
        let identity = LogIdentity { database: self.database, file: name.id, kind };
        let mut reader = LogReader::open(&*file, identity, bytes_min, Cause::Check)?;
        let has_origins = reader.header().is_some_and(|header| header.has_origins);
        while let Some(record) = reader.next()? {
            if name.kind == FileKind::Manifest {
                decode_edit(record.payload, name, record.offset)?;
            } else {
                LogRecord::parse(record.payload, has_origins)
                    .map_err(|error| error.in_file(name.to_string()).at(record.offset))?;
            }
        }
        Ok(reader.bytes())
    }
}

fn live_bytes(version: &Version) -> u64 {
    let runs: u64 = version.runs().iter().map(|run| run.bytes).sum();
    runs + version.segments.usage().total_bytes
}

fn report_bytes(report: &mut CheckReport, checked: Result<u64>) -> u64 {
    report.note(checked).unwrap_or(0)
}
