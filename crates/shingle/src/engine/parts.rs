//! Collects the results of the parts of a move: one state under one lock.
//!
//! Parts run in parallel, and each ends once, with its output or with a failure. The part that ends
//! last gets the verdict on the whole move. If all parts succeeded, the outputs are installed; if
//! one failed, they are given back. No other code counts parts or checks failures to decide this.
//!
//! A part that is dropped without an end (its step panicked) leaves the move undecided. The move is
//! neither installed nor given back, and the next opening removes its files.

use base::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};

struct State<T> {
    /// Parts that have not ended.
    remaining: usize,
    /// In the order of the parts.
    outputs: Vec<T>,
    /// The error of the first part that failed; failures of others follow from it.
    failure: Option<Error>,
}

/// The parts of a move, each with an output of type `T`.
pub(crate) struct Parts<T>(Mutex<State<T>>);

/// The decision on a move, told to the part that ends last.
#[derive(Debug)]
pub(crate) enum Verdict<T> {
    /// Other parts have not ended.
    Pending,
    /// Every part succeeded. Outputs in the order of the parts.
    Install(Vec<T>),
    /// A part failed; the error is the first one. The outputs of the others are to be removed.
    GiveBack(Vec<T>, Error),
}

impl<T: Clone + Default> Parts<T> {
    pub(crate) fn new(count: usize) -> Parts<T> {
        let outputs = vec![T::default(); count];
        Parts(Mutex::new(State { remaining: count, outputs, failure: None }))
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock()
    }

    /// Ends the part `index`. Each part ends once.
    pub(crate) fn end(&self, index: usize, ended: Result<T>) -> Verdict<T> {
        let mut state = self.lock();
        match ended {
            Ok(output) => state.outputs[index] = output,
            Err(error) => {
                state.failure.get_or_insert(error);
            }
        }
        state.remaining -= 1;
        if state.remaining > 0 {
            return Verdict::Pending;
        }
        let outputs = std::mem::take(&mut state.outputs);
        match state.failure.clone() {
            None => Verdict::Install(outputs),
            Some(error) => Verdict::GiveBack(outputs, error),
        }
    }

    /// `Cancelled` after a failure: the output of the other parts is not used.
    pub(crate) fn check(&self) -> Result<()> {
        match self.lock().failure {
            None => Ok(()),
            Some(_) => {
                let message = "another part of the compaction failed";
                Err(Error::new(ErrorKind::Cancelled, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three parts that end in every order, each with success or failure: only the last gets the
    /// verdict on the move.
    #[test]
    fn the_part_that_ends_last_decides_by_all_ends() {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        for order in orders {
            for failing in 0..8 {
                let parts = Parts::new(3);
                let fails = |part: &usize| failing >> part & 1 == 1;
                let error = |part: usize| Error::new(ErrorKind::NoSpace, format!("part {part}"));
                let mut verdicts = order.iter().map(|part| match fails(part) {
                    true => parts.end(*part, Err(error(*part))),
                    false => parts.end(*part, Ok(part + 1)),
                });
                assert!(matches!(verdicts.next(), Some(Verdict::Pending)));
                assert!(matches!(verdicts.next(), Some(Verdict::Pending)));
                let outputs = (0..3).map(|part| if fails(&part) { 0 } else { part + 1 }).collect();
                let expected = match order.iter().find(|part| fails(part)) {
                    None => Verdict::Install(outputs),
                    Some(first) => Verdict::GiveBack(outputs, error(*first)),
                };
                let shown = format!("{:?}", verdicts.next());
                assert_eq!(shown, format!("{:?}", Some(expected)), "{order:?}, {failing:b}");
            }
        }
    }

    #[test]
    fn a_failure_stops_the_other_parts() {
        let parts = Parts::<()>::new(2);
        assert!(parts.check().is_ok());
        parts.end(1, Err(Error::new(ErrorKind::NoSpace, "full")));
        assert_eq!(parts.check().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
