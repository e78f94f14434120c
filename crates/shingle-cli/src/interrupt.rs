//! Ctrl-C: long work ends at a whole step and reports what it did. The second Ctrl-C ends the
//! process at once.
//!
//! The handlers are installed once. They act only while an [`Interrupt`] is held; at other times
//! the signals do what they do by default. A shell listens for each command anew.

use crate::failure::{Failure, Outcome};
use parking_lot::Mutex;
use shingle::Db;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use signal_hook::{SigId, flag};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];
/// Of a process that was asked to end.
const EXIT_CODE: i32 = 130;

/// What the handlers share with the program.
struct State {
    /// A signal came.
    asked: Arc<AtomicBool>,
    /// Nothing listens: a signal does what it does by default.
    is_deaf: Arc<AtomicBool>,
    /// How many listen.
    listeners: Mutex<usize>,
}

static STATE: OnceLock<State> = OnceLock::new();

/// Installs the handlers at the first call. The caller is about to listen.
fn state() -> Outcome<&'static State> {
    if let Some(state) = STATE.get() {
        return Ok(state);
    }
    let (asked, is_deaf) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in SIGNALS {
        // In this order: only a second signal finds the flag set.
        flag::register_conditional_default(signal, is_deaf.clone())
            .and_then(|_| flag::register_conditional_shutdown(signal, EXIT_CODE, asked.clone()))
            .and_then(|_| flag::register(signal, asked.clone()))
            .map_err(failed)?;
    }
    Ok(STATE.get_or_init(|| State { asked, is_deaf, listeners: Mutex::new(0) }))
}

fn failed(error: std::io::Error) -> Failure {
    Failure::io("listen to signals", &error)
}

/// Tells whether the process was asked to end, as long as it is held.
pub struct Interrupt(&'static State);

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> Outcome<Interrupt> {
        let state = state()?;
        let mut listeners = state.listeners.lock();
        if *listeners == 0 {
            state.asked.store(false, Ordering::SeqCst);
            state.is_deaf.store(false, Ordering::SeqCst);
        }
        *listeners += 1;
        drop(listeners);
        Ok(Interrupt(state))
    }

    /// It was asked to end.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Fails when it was asked to end; `done` says what was done until then.
    pub fn check(&self, done: impl FnOnce() -> String) -> Outcome {
        if self.is_asked() { Err(interrupted(&done(), "nothing was changed")) } else { Ok(()) }
    }

    /// The flag itself, for code that knows nothing of signals.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.asked.clone()
    }

    /// Closes `db` when the process is asked to end: a long call of the engine then ends at a whole
    /// step with an error.
    pub fn closes(&self, db: &Db) -> Outcome<Watch> {
        let db = db.clone();
        // The call that it ends reports an error of its own.
        self.watch(move || drop(db.close()))
    }

    /// Ends the process when it is asked to end, with the failure that `last` makes: for work that
    /// can be left at any moment.
    pub fn exits(
        &self,
        as_json: bool,
        last: impl FnOnce() -> Failure + Send + 'static,
    ) -> Outcome<Watch> {
        self.watch(move || {
            let _ = last().report(as_json);
            std::process::exit(EXIT_CODE);
        })
    }

    fn watch(&self, then: impl FnOnce() + Send + 'static) -> Outcome<Watch> {
        let (mut reader, writer) = UnixStream::pair().map_err(failed)?;
        let mut ids = Vec::new();
        for signal in SIGNALS {
            let writer = writer.try_clone().map_err(failed)?;
            ids.push(pipe::register(signal, writer).map_err(failed)?);
        }
        let asked = self.0.asked.clone();
        let wait = move || {
            // One byte: a signal, or the end of the watch. A signal may have come before.
            let is_asked = || asked.load(Ordering::Relaxed);
            if is_asked() || reader.read_exact(&mut [0]).is_ok() && is_asked() {
                then();
            }
        };
        Ok(Watch { ids, writer, thread: Some(std::thread::spawn(wait)) })
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        let mut listeners = self.0.listeners.lock();
        *listeners -= 1;
        if *listeners == 0 {
            self.0.is_deaf.store(true, Ordering::SeqCst);
        }
    }
}

/// Something that is done on a signal, until this is dropped.
pub struct Watch {
    ids: Vec<SigId>,
    writer: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            unregister(id);
        }
        let _ = self.writer.write_all(&[0]);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The end of a command that was asked to end.
pub fn interrupted(done: &str, help: impl Into<String>) -> Failure {
    Failure::Interrupted { message: format!("interrupted: {done}"), help: help.into() }
}
