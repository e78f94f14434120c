//! Spans of `tracing` for background jobs and long calls. Without the feature `tracing` a span has
//! no size, and its calls do nothing.
//!
//! A job runs in steps, on one thread after another, and each step is in the job's span.

/// A period of work.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    #[cfg(feature = "tracing")]
    pub traced: tracing::Span,
}

impl Span {
    /// Does `work` inside the span.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.traced.enter();
        work()
    }
}

/// A span with a name and fields, which begins inside the current one.
macro_rules! span {
    ($name:literal $(, $($field:tt)*)?) => {
        $crate::span::Span {
            #[cfg(feature = "tracing")]
            traced: tracing::info_span!(target: "shingle", $name $(, $($field)*)?),
        }
    };
}

pub(crate) use span;
