//! The queue of events for the program's listener.
//!
//! Invariants:
//! - One thread at a time calls the listener, so events arrive in their order.
//! - An event that was added before a call of [`Delivery::deliver`] began has been delivered when
//!   that call returns, or another thread is delivering.
//! - No lock but `turn` is held during a call of the listener.

use crate::event::{EVENTS_PENDING_MAX, Event, EventListener};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Events between the engine and the listener.
pub(super) struct Delivery {
    listener: Arc<dyn EventListener>,
    queue: Mutex<Queue>,
    /// Held by the thread that calls the listener.
    turn: Mutex<()>,
    /// The listener panicked.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<(Event, u64)>,
    /// Events that were dropped because the queue was full, and the time of the last one.
    lost: (u64, u64),
}

impl Queue {
    fn pop(&mut self) -> Option<(Event, u64)> {
        if let Some(next) = self.events.pop_front() {
            return Some(next);
        }
        let (count, micros) = std::mem::take(&mut self.lost);
        (count > 0).then_some((Event::EventsLost { count }, micros))
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.lost.0 == 0
    }
}

impl Delivery {
    pub(super) fn new(listener: Arc<dyn EventListener>) -> Delivery {
        let (queue, turn) = (Mutex::default(), Mutex::default());
        Delivery { listener, queue, turn, has_failed: AtomicBool::new(false) }
    }

    pub(super) fn push(&self, event: Event, micros: u64) {
        if self.has_failed.load(Relaxed) {
            return;
        }
        let mut queue = self.queue.lock();
        // After a loss nothing is added until the listener has seen the gap.
        if queue.events.len() < EVENTS_PENDING_MAX && queue.lost.0 == 0 {
            queue.events.push_back((event, micros));
        } else {
            queue.lost = (queue.lost.0 + 1, micros);
        }
    }

    /// Calls the listener with everything in the queue. An error is the message of its panic.
    pub(super) fn deliver(&self) -> Result<(), String> {
        // An event that comes between the last look at the queue and the end of the turn is seen by
        // the next round.
        while !self.queue.lock().is_empty() {
            let Some(_turn) = self.turn.try_lock() else { return Ok(()) };
            loop {
                let next = self.queue.lock().pop();
                let Some((event, micros)) = next else { break };
                let call = AssertUnwindSafe(|| self.listener.on_event(&event, micros));
                if let Err(panic) = catch_unwind(call) {
                    self.has_failed.store(true, Relaxed);
                    *self.queue.lock() = Queue::default();
                    return Err(panic_message(&*panic));
                }
            }
        }
        Ok(())
    }
}

/// The text of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<(&'static str, u64)>>);

    impl EventListener for Seen {
        fn on_event(&self, event: &Event, time_micros: u64) {
            assert!(time_micros != 13, "thirteen");
            let number = match event {
                Event::EventsLost { count } => *count,
                _ => time_micros,
            };
            self.0.lock().push((event.name(), number));
        }
    }

    fn event() -> Event {
        Event::TableFileDeletion { file_number: 1 }
    }

    #[test]
    fn a_slow_listener_learns_how_many_events_it_lost_and_where() {
        let seen = Arc::new(Seen::default());
        let delivery = Delivery::new(seen.clone());
        let begin = 100;
        let end = begin + EVENTS_PENDING_MAX as u64 + 5;
        (begin..end).for_each(|micros| delivery.push(event(), micros));
        delivery.deliver().unwrap();
        delivery.push(event(), end);
        delivery.deliver().unwrap();
        let seen = seen.0.lock();
        assert_eq!(seen.len(), EVENTS_PENDING_MAX + 2);
        assert_eq!(seen[EVENTS_PENDING_MAX], ("events_lost", 5));
        assert_eq!(seen.last(), Some(&("table_file_deletion", end)));
    }

    #[test]
    fn a_listener_that_panics_is_not_called_again() {
        let seen = Arc::new(Seen::default());
        let delivery = Delivery::new(seen.clone());
        [1, 13, 2].iter().for_each(|&micros| delivery.push(event(), micros));
        assert_eq!(delivery.deliver(), Err("thirteen".to_string()));
        delivery.push(event(), 3);
        delivery.deliver().unwrap();
        assert_eq!(seen.0.lock().len(), 1);
    }

    #[test]
    fn a_listener_that_is_called_inside_itself_leaves_the_rest_to_the_outer_call() {
        struct Inner(Mutex<Option<Arc<Delivery>>>, Mutex<u64>);
        impl EventListener for Inner {
            fn on_event(&self, _: &Event, _: u64) {
                *self.1.lock() += 1;
                if let Some(delivery) = self.0.lock().take() {
                    delivery.push(event(), 2);
                    delivery.deliver().unwrap();
                    assert_eq!(*self.1.lock(), 1, "the second event waits for the outer call");
                }
            }
        }
        let inner = Arc::new(Inner(Mutex::default(), Mutex::default()));
        let delivery = Arc::new(Delivery::new(inner.clone()));
        *inner.0.lock() = Some(delivery.clone());
        delivery.push(event(), 1);
        delivery.deliver().unwrap();
        assert_eq!(*inner.1.lock(), 2);
    }
}
