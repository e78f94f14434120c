//! All that there is to say about a trace: read, summarised, and answered.

use super::{
    Advice, Bounds, Collector, DEVICES, Format, Operation, Question, Reading, Scope, Summary,
    Workload, advise, read,
};
use base::{Error, ErrorKind, Result};
use std::io::BufRead;

/// Operations that are simulated for each simulated key, at most.
const EVENTS_PER_KEY: usize = 8;

/// How much of a trace is simulated, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Bytes of a memtable, at least 4096.
    pub memtable_bytes: u64,
    /// Values of at least this many bytes are separated.
    pub value_threshold_bytes: u64,
    /// How many times as much data as the trace has.
    pub grow: u64,
    /// Keys that are simulated, at most.
    pub sample_keys: usize,
}

/// A trace as it was read and summarised, before it is answered.
pub struct Collected {
    /// What was read.
    pub reading: Reading,
    collector: Collector,
}

/// A trace with its answer.
#[derive(Debug)]
pub struct Answer {
    /// What was read.
    pub reading: Reading,
    /// What the workload is like.
    pub summary: Summary,
    /// What to take.
    pub advice: Advice,
    /// What was asked.
    pub question: Question,
}

impl Question {
    /// # Errors
    ///
    /// `InvalidArgument`: a number out of its range.
    pub fn check(&self) -> Result<()> {
        let is_fan_out = |fan_out: &f64| (1.5..=10_000.0).contains(fan_out);
        if !self.fan_outs.iter().all(is_fan_out) {
            return Err(Error::invalid("a fan-out is a number from 1.5 to 10000: 10 is usual"));
        }
        match self.device < DEVICES.len() {
            true => Ok(()),
            false => Err(Error::invalid("there is no such device")),
        }
    }
}

impl Extent {
    /// # Errors
    ///
    /// `InvalidArgument`: a number out of its range.
    pub fn check(&self) -> Result<()> {
        match self.memtable_bytes {
            0..4096 => Err(Error::invalid("a memtable has at least 4096 bytes: 64 MiB is usual")),
            _ => Ok(()),
        }
    }
}

impl Collected {
    /// Reads a trace as a stream. The format is recognised by its content where none is given.
    /// `progress` is told of bytes that were read.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: there is no operation in it. Those of the source.
    pub fn read(
        input: &mut dyn BufRead,
        format: Option<Format>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Collected> {
        let mut collector = Collector::new(Bounds::default())?;
        let mut visit = |operation: &Operation<'_>| collector.take(operation);
        let reading = read(input, format, &mut visit, progress)?;
        if reading.operations == 0 {
            let bad = reading.first_bad_lines.first();
            let why = bad.map_or(String::new(), |bad| {
                format!("; line {} is bad, {}: {}", bad.number, bad.reason, bad.text)
            });
            let message = format!("no operation in the trace{why}");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        Ok(Collected { reading, collector })
    }

    /// Answers; `progress` is called after each of the simulations, with how many there are.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: a name or number of the question is none.
    pub fn answer(
        self,
        question: Question,
        extent: &Extent,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Answer> {
        question.check()?;
        extent.check()?;
        let keys = extent.sample_keys;
        let scope = Scope {
            memtable_bytes: extent.memtable_bytes,
            value_threshold_bytes: extent.value_threshold_bytes,
            grow: extent.grow,
            bounds: Bounds { keys, events: keys.saturating_mul(EVENTS_PER_KEY) },
        };
        let summary = self.collector.summary();
        let workload = Workload::new(&self.collector.sample, &summary, &scope);
        drop(self.collector);
        let advice = advise(&workload, &question, progress)?;
        Ok(Answer { reading: self.reading, summary, advice, question })
    }
}

impl Answer {
    /// As one JSON object.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "reading": self.reading,
            "summary": self.summary,
            "goal": self.question.goal.name(),
            "device": DEVICES[self.question.device].name,
            "devices": DEVICES,
            "recommendation": self.advice.recommendation,
            "remarks": self.advice.remarks,
            "candidates": self.advice.candidates,
        })
    }
}
