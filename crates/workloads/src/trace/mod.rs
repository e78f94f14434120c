//! Traces of operations: read in several formats, summarised, and answered with what each scheme,
//! value layout and fan-out would cost under them.
//!
//! Everything streams: memory is bounded by the sample of keys (`sample`), whatever the length of
//! a trace. The same trace gives the same answer. The trees and layouts are the engine's own, on
//! records without bytes (`tree::simulate`, `values::simulate`).

mod advise;
mod answer;
mod device;
mod file;
mod formats;
mod operation;
mod player;
mod read;
mod recorder;
mod replay;
mod sample;
#[cfg(test)]
mod samples;
mod skew;
mod summary;
mod workload;

pub use advise::{Advice, Candidate, Goal, Question, advise};
pub use answer::{Answer, Collected, Extent};
pub use device::{DEVICES, Device, Load};
pub use file::TraceFile;
pub use formats::Format;
pub use operation::{Kind, Operation};
pub use player::{Player, Replay};
pub use read::{BadLine, Reading, read};
pub use recorder::{Recorded, RecordedFactory, Recorder};
pub use replay::{TreeCost, ValueCost};
pub use sample::{Bounds, Event, Sample, SampledKey};
pub use summary::{Collector, Sizes, Summary};
pub use workload::{Scope, Workload};
