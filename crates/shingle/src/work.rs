//! Counts steps through entries and range deletions. Only tests count, and they assert how work
//! grows.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline]
pub(crate) fn add(_steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + _steps);
}

/// Steps of this thread since the last call.
#[cfg(test)]
pub(crate) fn take() -> usize {
    STEPS.replace(0)
}
