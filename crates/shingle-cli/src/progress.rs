//! Progress bars: on stderr, with rate and time left, only when stderr is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What a bar shows in a terminal of at least this many columns; the widest that fits.
type Templates = [(u16, &'static str); 3];

const BYTES: Templates = [
    (
        76,
        "  {prefix} {wide_bar} {bytes:>10} of {total_bytes:<10} {bytes_per_sec:>12} {eta:>4} left",
    ),
    (42, "  {prefix} {wide_bar} {percent:>3} % {eta:>4} left"),
    (0, "{percent} %"),
];
const OPEN: Templates = [
    (60, "  {prefix} {spinner} {bytes:>10} {bytes_per_sec:>12}  {elapsed}"),
    (42, "  {prefix} {spinner} {bytes:>10} {elapsed:>5}"),
    (0, "{bytes}"),
];
const THINGS: Templates = [
    (60, "  {prefix} {wide_bar} {pos:>9} of {len:<9} {eta:>4} left"),
    (42, "  {prefix} {wide_bar} {percent:>3} % {eta:>4} left"),
    (0, "{percent} %"),
];

fn style(templates: &Templates, columns: u16) -> ProgressStyle {
    let fits = templates.iter().find(|(columns_min, _)| columns >= *columns_min);
    let (_, template) = fits.expect("the last one fits every terminal");
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    style.progress_chars("█▉▊▋▌▍▎▏ ")
}

/// Columns of the terminal.
fn columns() -> u16 {
    const USUAL: u16 = 80;
    terminal_size::terminal_size_of(std::io::stderr()).map_or(USUAL, |(width, _)| width.0)
}

/// A bar over bytes, or things. Vanishes when dropped: figures take its place.
pub struct Bar(ProgressBar);

impl Bar {
    /// `total_bytes` 0: the end is not known. `hidden`: draw nothing.
    pub fn bytes(what: &str, total_bytes: u64, hidden: bool) -> Bar {
        let is_open = total_bytes == 0;
        let templates = if is_open { &OPEN } else { &BYTES };
        Bar::new(what, (!is_open).then_some(total_bytes), templates, target(hidden), columns())
    }

    /// Of things that are counted; their number comes with each.
    pub fn things(what: &str, hidden: bool) -> Bar {
        Bar::new(what, Some(1), &THINGS, target(hidden), columns())
    }

    fn new(
        what: &str,
        length: Option<u64>,
        templates: &Templates,
        target: ProgressDrawTarget,
        columns: u16,
    ) -> Bar {
        let bar = ProgressBar::with_draw_target(length, target);
        bar.set_style(style(templates, columns));
        bar.set_prefix(what.to_string());
        Bar(bar)
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

fn target(hidden: bool) -> ProgressDrawTarget {
    // A target of stderr draws nothing by itself when stderr is no terminal.
    if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use parking_lot::Mutex;
    use std::io::Result;
    use std::sync::Arc;

    /// Keeps the widest text that was drawn.
    #[derive(Clone, Debug)]
    struct Screen {
        columns: u16,
        widest: Arc<Mutex<usize>>,
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.columns
        }
        fn move_cursor_up(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> Result<()> {
            let mut widest = self.widest.lock();
            *widest = (*widest).max(text.trim_end().chars().count());
            Ok(())
        }
        fn clear_line(&self) -> Result<()> {
            Ok(())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bars_fit_narrow_terminals() {
        const TOTAL: u64 = 1023 << 30;
        for columns in [20, 30, 40, 41, 42, 59, 60, 75, 76, 80, 120] {
            for (templates, length) in
                [(&BYTES, Some(TOTAL)), (&OPEN, None), (&THINGS, Some(TOTAL))]
            {
                let screen = Screen { columns, widest: Arc::default() };
                let term = Box::new(screen.clone());
                let target = ProgressDrawTarget::term_like_with_hz(term, 255);
                let bar = Bar::new("fragmented", length, templates, target, columns);
                bar.add(TOTAL - 1);
                bar.0.tick();
                let widest = *screen.widest.lock();
                assert!((1..=usize::from(columns)).contains(&widest), "{columns}: {widest}");
            }
        }
    }
}
