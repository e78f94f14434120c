//! Writes a table file: the header, then one run after another.

use crate::format::{self, HEADER_BYTES};
use crate::options::TableOptions;
use crate::place::TablePlace;
use crate::range_delete::RangeDeletes;
use crate::run::RunEnd;
use crate::run_builder::RunBuilder;
use crate::sink::{EndedTable, Sink};
use base::{Cause, Error, Result, RunId, SequenceNumber};
use media::{AppendFile, FileName};

/// What a file store gathers before it writes, and blocks under construction, about.
const WRITE_BUFFER_BYTES: u64 = 768 << 10;

/// Writes one table file. After an error from the file every call gives that error again: abandon
/// the file. A wrong call (an entry out of order, say) is refused and changes nothing.
pub struct TableWriter {
    sink: Sink,
    run: Option<Box<RunBuilder>>,
}

impl TableWriter {
    /// Begins a new file with its header.
    pub fn create(
        file: Box<dyn AppendFile>,
        place: TablePlace,
        cause: Cause,
    ) -> Result<TableWriter> {
        if !file.is_empty() {
            return Err(Error::invalid("a table file must be empty before its header is written")
                .in_file(FileName::table(place.file).to_string()));
        }
        let mut writer = TableWriter::over(file, place, cause);
        writer.sink.write(&format::header(place))?;
        Ok(writer)
    }

    /// Goes on in a file that has a header and whole runs.
    pub fn extend(
        file: Box<dyn AppendFile>,
        place: TablePlace,
        cause: Cause,
    ) -> Result<TableWriter> {
        if file.len() < HEADER_BYTES {
            return Err(Error::invalid("a table file to be extended must have its header")
                .in_file(FileName::table(place.file).to_string()));
        }
        Ok(TableWriter::over(file, place, cause))
    }

    fn over(file: Box<dyn AppendFile>, place: TablePlace, cause: Cause) -> TableWriter {
        TableWriter { sink: Sink::new(file, place, cause), run: None }
    }

    /// Begins a run at the end of the file.
    pub fn begin_run(&mut self, run: RunId, options: &TableOptions) -> Result<()> {
        self.sink.check()?;
        if self.run.is_some() {
            return Err(Error::invalid("finish the run before another begins"));
        }
        self.run = Some(Box::new(RunBuilder::new(run, self.sink.offset(), options)?));
        Ok(())
    }

    /// Adds an entry to the run; ascending internal keys. Refused: keys out of order, longer than
    /// keys may be, or of a kind that is no point entry.
    #[inline]
    pub fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        self.sink.check()?;
        match &mut self.run {
            Some(run) => run.add(&mut self.sink, internal_key, value),
            None => Err(no_run()),
        }
    }

    /// Adds the tombstone of all keys from `start` to `end`, exclusive, at `sequence`. In any
    /// order.
    pub fn add_range_delete(
        &mut self,
        start: &[u8],
        end: &[u8],
        sequence: SequenceNumber,
    ) -> Result<()> {
        self.sink.check()?;
        self.run.as_mut().ok_or_else(no_run)?.add_range_delete(start, end, sequence)
    }

    /// Gives the run its range tombstones, all at once.
    pub fn set_range_deletes(&mut self, tombstones: RangeDeletes) -> Result<()> {
        self.sink.check()?;
        self.run.as_mut().ok_or_else(no_run)?.set_range_deletes(tombstones);
        Ok(())
    }

    /// Bytes of the run if it ended now, about; 0 without a run.
    #[inline]
    pub fn run_bytes(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.estimated_bytes(&self.sink))
    }

    /// Bytes of the run that are kept in memory until it ends (index and filters), about, and what
    /// its writing takes besides.
    pub fn memory_bytes(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.memory_bytes()) + WRITE_BUFFER_BYTES
    }

    /// Ends the run: filters, index, tombstones, summary, footer. A run may be empty.
    pub fn finish_run(&mut self) -> Result<RunEnd> {
        self.sink.check()?;
        let run = self.run.take().ok_or_else(no_run)?;
        run.finish(&mut self.sink).map_err(|error| self.sink.fail(error))
    }

    /// Writes what is left and syncs; gives the bytes of the file. Refused while a run is open.
    pub fn finish(self) -> Result<u64> {
        let ended = self.end()?;
        let bytes = ended.bytes();
        ended.sync()?;
        Ok(bytes)
    }

    /// Writes what is left, and leaves the sync to the caller. Refused while a run is open.
    pub fn end(self) -> Result<EndedTable> {
        self.sink.check()?;
        if self.run.is_some() {
            return Err(Error::invalid("finish the run before the file"));
        }
        self.sink.end()
    }
}

fn no_run() -> Error {
    Error::invalid("begin a run before adding to it")
}
