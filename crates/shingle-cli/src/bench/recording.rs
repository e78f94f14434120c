//! `bench --record-trace`: the operations of a run as a trace.

use super::factory::Factory;
use crate::args::BenchArgs;
use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use workloads::StoreFactory;
use workloads::trace::{RecordedFactory, Recorder};

/// A trace that is being written, where one was asked for.
pub struct Recording(Option<Arc<Recorder>>);

impl Recording {
    /// Creates the file.
    pub fn new(args: &BenchArgs, factory: &Factory) -> Outcome<Recording> {
        let Some(path) = &args.record_trace else { return Ok(Recording(None)) };
        let file = File::create(path)
            .map_err(|error| Failure::io(format!("create {}", path.display()), &error))?;
        let out = Box::new(BufWriter::with_capacity(1 << 20, file));
        Ok(Recording(Some(Arc::new(Recorder::new(out, factory.clock())))))
    }

    /// Runs with the factory whose stores are recorded, or with the plain one.
    pub fn factory<T>(&self, plain: &Factory, run: impl FnOnce(&dyn StoreFactory) -> T) -> T {
        match &self.0 {
            Some(recorder) => run(&RecordedFactory::new(plain, recorder.clone())),
            None => run(plain),
        }
    }

    /// Writes what is buffered, and says whether all of it could be written.
    pub fn finish(&self) -> Outcome {
        Ok(self.0.as_ref().map_or(Ok(()), |recorder| recorder.finish())?)
    }
}
