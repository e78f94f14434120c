//! `lab`: the figures of the papers, rerun, compared and shown.
//!
//! Experiments, runs and verdicts are those of the crate `papers`; here are the command line, the
//! progress bar and the files of results.

mod artifact;
mod earlier;
mod files;
mod journal;
mod matrix;
mod pages;
mod plot;
mod report;
mod save;
mod spread;
mod terminal;
mod text;
mod verdicts;

use crate::args::lab::{CompareArgs, LabAction, LabArgs, RunArgs};
use crate::context::Context;
use crate::failure::Outcome;
use crate::interrupt::{Interrupt, interrupted};
use crate::trace;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use journal::Journal;
use lab::schedule::{News, Schedule};
use lab::{ClaimResult, Findings, Library, compare};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// `shingle lab`.
pub fn lab(context: &mut Context, args: LabArgs) -> Outcome {
    let library = || match &args.data {
        None => Ok(Library::open()?),
        Some(folder) => Outcome::Ok(Library::of(files::read(folder)?)?),
    };
    match &args.action {
        LabAction::List => terminal::list(context, &library()?),
        LabAction::Show { id } => terminal::show(context, &library()?, id),
        LabAction::Run(args) => run(context, &library()?, args),
        LabAction::Compare(args) => compare_results(context, &library()?, args),
        LabAction::Artifact(args) => artifact(context, &library()?, args),
        LabAction::Spread(args) => spread::show(context, &library()?, args),
        LabAction::Draw { folder } => verdicts::draw_again(context, folder),
        LabAction::Trace(args) => trace::trace(context, args),
    }
}

/// What was run and found, for all kinds of output.
pub struct Account<'a> {
    /// Claims, papers and experiments.
    pub library: &'a Library,
    /// The name of the scale.
    pub scale: &'a str,
    /// Experiments with their metrics.
    pub findings: Vec<Findings<'a>>,
    /// Claims with their verdicts.
    pub claims: Vec<ClaimResult>,
}

fn run(context: &mut Context, library: &Library, args: &RunArgs) -> Outcome {
    let experiments = library.select(&args.ids)?;
    let pairs = experiments
        .iter()
        .map(|experiment| Ok((*experiment, library.paper(experiment)?)))
        .collect::<Outcome<Vec<_>>>()?;
    let schedule = Schedule::new(&pairs, &args.scale, args.seed)?;
    save::create(&args.out)?;
    let (different, all) = schedule.counts();
    context.remark(&format!("{different} runs for the {all} that the experiments ask for"));
    let interrupt = Interrupt::listen()?;
    let journal = Arc::new(Journal::open(&args.out, args.resume)?);
    let bar = bar(context, schedule.weight());
    let watch = interrupt.exits(context.global.json, {
        let (journal, bar, out) = (journal.clone(), bar.clone(), args.out.clone());
        move || {
            let ended = journal.end();
            bar.finish_and_clear();
            let done = format!("{ended} of {different} runs ended");
            let help = "the same command with --resume goes on with them; they are in";
            interrupted(&done, format!("{help} {}", out.join("runs.csv").display()))
        }
    })?;
    // Nothing can be done when stderr is gone.
    let say = |words: String| {
        bar.suspend(|| drop(writeln!(std::io::stderr().lock(), "{words}  ")));
    };
    let news = |news: News<'_>| {
        bar.inc(news.weight);
        bar.set_message(news.name.to_string());
        let Some(elapsed) = news.elapsed else { return };
        if args.times {
            say(format!("{:9.1} s  {}", elapsed.as_secs_f64(), news.name));
        }
        let kept = news.outcome.as_ref().map(|metrics| journal.keep(news.identity, metrics));
        if let Ok(Err(failure)) = kept {
            say(failure.message());
        }
    };
    let tables = schedule.run(args.threads, &|identity| journal.find(identity), &news);
    drop(watch);
    bar.finish_and_clear();
    let mut findings = Vec::new();
    for ((experiment, paper), table) in pairs.iter().zip(tables) {
        let scale = experiment.scale(paper, &args.scale)?;
        findings.push(Findings::new(experiment, scale, table)?);
    }
    conclude(context, library, &args.scale, findings, &args.out)
}

/// `shingle lab compare`: what `run` says of the same metrics.
fn compare_results(context: &mut Context, library: &Library, args: &CompareArgs) -> Outcome {
    let findings = earlier::findings(library, &args.results, &args.scale)?;
    save::create(&args.out)?;
    conclude(context, library, &args.scale, findings, &args.out)
}

/// `shingle lab artifact`: what `compare` writes, with what others need to check and cite it.
fn artifact(context: &mut Context, library: &Library, args: &CompareArgs) -> Outcome {
    let findings = earlier::findings(library, &args.results, &args.scale)?;
    save::create(&args.out)?;
    artifact::write(library, &findings, &args.scale, &args.out)?;
    conclude(context, library, &args.scale, findings, &args.out)
}

/// Verdicts, in the files and for the terminal.
fn conclude<'a>(
    context: &mut Context,
    library: &'a Library,
    scale: &'a str,
    findings: Vec<Findings<'a>>,
    out: &Path,
) -> Outcome {
    let claims = compare::claims(library, &findings)?;
    let account = Account { library, scale, findings, claims };
    files::write(&account, out)?;
    terminal::results(context, &account)?;
    context.remark(&format!("the report is {}", out.join("report.html").display()));
    Ok(())
}

const TEMPLATE: &str = "  {bar:28} {percent:>3}%  {eta} left  {wide_msg}";

fn bar(context: &Context, weight: u64) -> ProgressBar {
    let is_hidden = context.global.quiet || context.global.json;
    let target =
        if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template(TEMPLATE).expect("the template is well-formed");
    ProgressBar::with_draw_target(Some(weight), target).with_style(style)
}
