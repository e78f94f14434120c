//! `lab trace`: what a recorded workload would cost under each scheme, value layout and fan-out.

mod files;
mod picture;
mod show;

use crate::args::trace::{DeviceName, GoalName, TraceArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use workloads::trace::{
    Advice, Bounds, Collector, DEVICES, Format, Goal, Question, Reading, Scope,
};
use workloads::trace::{Summary, Workload, advise, read};

/// The format is recognised by what fits into the buffer.
const BUFFER_BYTES: usize = 1 << 20;
/// Operations that are simulated for each simulated key, at most.
const EVENTS_PER_KEY: usize = 8;

/// All that there is to say about a trace.
struct Answer {
    reading: Reading,
    summary: Summary,
    advice: Advice,
    question: Question,
}

/// `shingle lab trace`.
pub fn trace(context: &mut Context, args: &TraceArgs) -> Outcome {
    if args.fan_out.iter().any(|fan_out| !(1.5..=10_000.0).contains(fan_out)) {
        return Err(Failure::usage("--fan-out is a number from 1.5 to 10000", "10 is usual"));
    }
    if args.memtable_bytes < 4096 {
        return Err(Failure::usage("--memtable-bytes is at least 4096", "64MiB is usual"));
    }
    let question = question(args);
    let mut collector = Collector::new(Bounds::default())?;
    let reading = collect(context, args, &mut collector)?;
    if reading.operations == 0 {
        let bad = reading.first_bad_lines.first();
        let why = bad.map_or(String::new(), |bad| {
            format!("; line {} is bad, {}: {}", bad.number, bad.reason, bad.text)
        });
        let message = format!("{}: no operation in the trace{why}", args.file.display());
        return Err(Failure::said(message, "name its format with --format"));
    }
    let summary = collector.summary();
    let bounds = Bounds {
        keys: args.sample as usize,
        events: (args.sample as usize).saturating_mul(EVENTS_PER_KEY),
    };
    let scope = Scope {
        memtable_bytes: args.memtable_bytes,
        value_threshold_bytes: args.value_threshold,
        grow: args.grow,
        bounds,
    };
    let workload = Workload::new(&collector.sample, &summary, &scope);
    drop(collector);
    let bar = context.count_bar("simulating");
    let advice = advise(&workload, &question, &|all| bar.step_of(all as u64))?;
    drop(bar);
    let answer = Answer { reading, summary, advice, question };
    if let Some(directory) = &args.out {
        files::write(directory, &answer)?;
    }
    if context.global.json {
        context.json(&answer.json())
    } else {
        show::show(context, args, &answer)
    }
}

fn question(args: &TraceArgs) -> Question {
    let all = || tree::policy::registry().iter().map(|scheme| scheme.name.to_string()).collect();
    let goal = match args.goal {
        GoalName::Write => Goal::Write,
        GoalName::Read => Goal::Read,
        GoalName::Space => Goal::Space,
        GoalName::Time => Goal::Time,
    };
    let device = match args.device {
        DeviceName::Ssd => 0,
        DeviceName::Hdd => 1,
        DeviceName::Smr => 2,
    };
    Question {
        schemes: if args.scheme.is_empty() { all() } else { args.scheme.clone() },
        layouts: args.values.clone(),
        fan_outs: args.fan_out.clone(),
        goal,
        device,
    }
}

fn collect(context: &Context, args: &TraceArgs, collector: &mut Collector) -> Outcome<Reading> {
    let format =
        args.format.as_deref().map(Format::by_name).transpose().map_err(Failure::of_value)?;
    let (mut input, bytes) = open(&args.file)?;
    let bar = context.bar("reading", bytes);
    let mut visit = |operation: &workloads::trace::Operation<'_>| collector.take(operation);
    Ok(read(&mut *input, format, &mut visit, &mut |bytes| bar.add(bytes))?)
}

/// The trace and its bytes, 0 where they are not known.
fn open(path: &Path) -> Outcome<(Box<dyn BufRead>, u64)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, std::io::stdin())), 0));
    }
    let failed = |error| Failure::io(format!("read {}", path.display()), &error);
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok((Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), bytes))
}

impl Answer {
    fn json(&self) -> serde_json::Value {
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
