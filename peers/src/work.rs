//! What a run does: steps on one store, each with flags of its own.
//!
//! On the command line, `then:NAME` among the flags begins a step. Its flags are those of the first
//! step with its own behind them; it finds the store as the step before left it, opened anew.

use base::{Error, Result};
use workloads::dbbench::{self, Config};

/// What begins a step, before its name.
const THEN: &str = "then:";
/// Benchmarks that write nothing, or the same whatever else happens at the time.
const READS: [&str; 6] =
    ["readseq", "readreverse", "readrandom", "readmissing", "readhot", "seekrandom"];

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What its results are called, beside the benchmark; the first step has no name.
    pub name: String,
    /// Its benchmarks and their flags.
    pub config: Config,
}

/// The steps of a run, of which there is one at least.
#[derive(Clone, Debug)]
pub struct Work {
    /// What to do first.
    pub first: Step,
    /// What to do then.
    pub others: Vec<Step>,
    /// What the user should know about the flags.
    pub warnings: Vec<String>,
}

impl Work {
    /// The work that `flags` describe.
    pub fn parse(flags: &[String]) -> Result<Work> {
        let mut groups = flags.split(|flag| flag.starts_with(THEN));
        let common = groups.next().unwrap_or_default();
        let names = flags.iter().filter_map(|flag| flag.strip_prefix(THEN));
        let parsed = dbbench::parse(common)?;
        let mut work = Work {
            first: Step { name: String::new(), config: parsed.config },
            others: Vec::new(),
            warnings: parsed.warnings,
        };
        for (name, own) in names.zip(groups) {
            if !own.iter().any(|flag| flag.starts_with("--benchmarks=")) {
                return Err(Error::invalid(format!("step '{name}' needs its own --benchmarks=")));
            }
            let mut config = dbbench::parse(&[common, own].concat())?.config;
            config.use_existing_db = true;
            work.others.push(Step { name: name.to_string(), config });
        }
        Ok(work)
    }

    /// All steps in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Threads that write at the same time, and work that ends by time, leave different content.
    pub fn is_deterministic(&self) -> bool {
        let is_read = |name: &String| READS.contains(&name.as_str());
        self.steps().map(|step| &step.config).all(|config| {
            config.benchmarks.iter().all(is_read)
                || (config.threads == 1
                    && config.duration_seconds == 0
                    && !config.benchmarks.iter().any(|name| name.ends_with("whilewriting")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &str) -> Result<Work> {
        Work::parse(&flags.split_whitespace().map(str::to_string).collect::<Vec<String>>())
    }

    #[test]
    fn later_steps_add_to_the_flags_of_the_first() {
        let work = parse(
            "--benchmarks=fillrandom --num=5 --cache_size=1 \
             then:warm --benchmarks=readrandom --cache_size=9 then:cold --benchmarks=readseq",
        )
        .unwrap();
        let of = |step: &Step| {
            let cache = step.config.engine_number("cache_size").unwrap().unwrap();
            (step.name.clone(), step.config.benchmarks.concat(), step.config.num, cache)
        };
        let steps: Vec<_> = work.steps().map(of).collect();
        assert_eq!(steps[0], (String::new(), "fillrandom".into(), 5, 1));
        assert_eq!(steps[1], ("warm".into(), "readrandom".into(), 5, 9));
        assert_eq!(steps[2], ("cold".into(), "readseq".into(), 5, 1));
        assert!(work.others.iter().all(|step| step.config.use_existing_db));
        assert!(parse("--benchmarks=fillrandom then:x --num=1").is_err());
    }

    #[test]
    fn work_with_several_writers_leaves_other_content_each_time() {
        let is_deterministic = |flags| parse(flags).unwrap().is_deterministic();
        assert!(is_deterministic(
            "--benchmarks=fillrandom then:x --benchmarks=readseq --threads=4"
        ));
        assert!(!is_deterministic("--benchmarks=fillrandom --threads=4"));
        assert!(!is_deterministic("--benchmarks=fillseq then:x --benchmarks=readwhilewriting"));
        assert!(!is_deterministic("--benchmarks=overwrite --duration=1"));
    }
}
