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
use workloads::trace::{Collected, Extent, Format, Goal, Question};

/// The format is recognised by what fits into the buffer.
const BUFFER_BYTES: usize = 1 << 20;
/// `shingle lab trace`.
pub fn trace(context: &mut Context, args: &TraceArgs) -> Outcome {
    let question = question(args);
    let extent = Extent {
        memtable_bytes: args.memtable_bytes,
        value_threshold_bytes: args.value_threshold,
        grow: args.grow,
        sample_keys: args.sample as usize,
    };
    // Before the trace is read, which may take long.
    question.check().and_then(|()| extent.check()).map_err(Failure::of_value)?;
    let collected = collect(context, args)?;
    let bar = context.count_bar("simulating");
    let answer = collected.answer(question, &extent, &|all| bar.step_of(all as u64))?;
    drop(bar);
    if let Some(directory) = &args.out {
        files::write(directory, &answer)?;
    }
    if context.global.json {
        context.json(&answer.to_json())
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

fn collect(context: &Context, args: &TraceArgs) -> Outcome<Collected> {
    let format =
        args.format.as_deref().map(Format::by_name).transpose().map_err(Failure::of_value)?;
    let (mut input, bytes) = open(&args.file)?;
    let bar = context.bar("reading", bytes);
    Collected::read(&mut *input, format, &mut |bytes| bar.add(bytes)).map_err(|error| {
        match error.kind() {
            base::ErrorKind::InvalidArgument => {
                let message = format!("{}: {}", args.file.display(), error.message());
                Failure::said(message, "name its format with --format")
            }
            _ => error.into(),
        }
    })
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
