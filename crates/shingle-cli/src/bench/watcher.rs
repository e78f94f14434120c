//! Live news of a benchmark: a progress bar on a terminal, notes on stderr.

use crate::context::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use workloads::{Observer, Progress};

const TEMPLATE: &str = "  {prefix:<24} {bar:28} {human_pos:>12} {per_sec:>16}  {eta} left";

/// Shows how far a benchmark is.
pub struct Watcher {
    bar: ProgressBar,
    quiet: bool,
}

impl Watcher {
    /// Silent where the flags or a missing terminal say so. Without `threads`, a simulation,
    /// no thread draws a bar.
    pub fn new(context: &Context, threads: bool) -> Watcher {
        let quiet = context.global.quiet || context.global.json;
        let target = if quiet || !threads {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let style = ProgressStyle::with_template(TEMPLATE).expect("the template is well-formed");
        Watcher { bar: ProgressBar::with_draw_target(None, target).with_style(style), quiet }
    }
}

impl Observer for Watcher {
    fn wants_progress(&self) -> bool {
        !self.bar.is_hidden()
    }

    fn progress(&self, progress: &Progress<'_>) {
        if self.bar.prefix() != progress.benchmark {
            self.bar.reset();
            self.bar.set_prefix(progress.benchmark.to_string());
        }
        if let Some(total) = progress.total {
            self.bar.set_length(total);
        }
        self.bar.set_position(progress.done);
        if progress.total == Some(progress.done) {
            self.bar.finish_and_clear();
        }
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            // Nothing can be done when stderr is gone.
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
