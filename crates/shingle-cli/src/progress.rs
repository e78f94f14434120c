//! Progress bars: on stderr, with rate and time left, only when stderr is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

// Each fits a terminal of 80 columns with a bar of some width.
const TEMPLATE: &str =
    "  {prefix} {wide_bar} {bytes:>10} of {total_bytes:<10} {bytes_per_sec:>12} {eta:>4} left";
const TEMPLATE_OPEN: &str = "  {prefix} {spinner} {bytes:>10} {bytes_per_sec:>12}  {elapsed}";
const TEMPLATE_COUNT: &str = "  {prefix} {wide_bar} {pos:>9} of {len:<9} {eta:>4} left";

/// A bar over bytes, or things. Vanishes when dropped, so that figures stand in its place.
pub struct Bar(ProgressBar);

impl Bar {
    /// `total_bytes` 0: the end is not known. `hidden`: draw nothing.
    pub fn bytes(what: &str, total_bytes: u64, hidden: bool) -> Bar {
        // A target of stderr draws nothing by itself when stderr is no terminal.
        let target =
            if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let open = total_bytes == 0;
        let bar = ProgressBar::with_draw_target((!open).then_some(total_bytes), target);
        let template = if open { TEMPLATE_OPEN } else { TEMPLATE };
        let style = ProgressStyle::with_template(template).expect("the template is well-formed");
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        bar.set_prefix(what.to_string());
        Bar(bar)
    }

    /// Of things that are counted; how many there are comes with each.
    pub fn things(what: &str, hidden: bool) -> Bar {
        let bar = Bar::bytes(what, 1, hidden);
        let style = ProgressStyle::with_template(TEMPLATE_COUNT).expect("the template is fine");
        bar.0.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        bar
    }

    /// One more of `all` things is done.
    pub fn step_of(&self, all: u64) {
        self.0.set_length(all);
        self.0.inc(1);
    }

    /// `bytes` more are done.
    pub fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Progress as the engine reports it.
    pub fn show(&self, progress: &shingle::Progress) {
        if self.0.length() != Some(progress.total_bytes) {
            self.0.set_length(progress.total_bytes);
        }
        self.0.set_position(progress.done_bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
