//! One run in a process of its own, which may hang or die without taking the comparison with it.

use crate::run::Run;
use base::{Error, ErrorKind, Result};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs `engine` with `flags` below `dir`, and removes what it leaves.
pub fn run(engine: &str, flags: &[String], dir: &Path, timeout: Duration) -> Result<Run> {
    let dir = dir.join(engine);
    let broken = |doing: &str, error| Error::io(format!("{engine}: {doing}"), error);
    let program = std::env::current_exe().map_err(|error| broken("find this program", error))?;
    let child = Command::new(program)
        .args(["run", "--engine", engine, "--dir"])
        .arg(&dir)
        .arg("--")
        .args(flags)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| broken("start a process", error))?;
    let output = wait(child, engine, timeout);
    // Whatever happened, the next run needs the space.
    let removed = match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let output = output?;
    removed.map_err(|error| broken("remove the store", error))?;
    serde_json::from_str(&output).map_err(|error| {
        Error::new(ErrorKind::Io, format!("{engine}: its result is not understood: {error}"))
    })
}

/// The output of `child`, which is ended when it takes longer than `timeout`.
fn wait(mut child: Child, engine: &str, timeout: Duration) -> Result<String> {
    let broken = |error| Error::io(format!("{engine}: wait for its process"), error);
    let mut pipe = child.stdout.take().ok_or_else(|| Error::invalid("a run without output"))?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(broken)? {
            break status;
        }
        if start.elapsed() > timeout {
            child.kill().and_then(|()| child.wait()).map_err(broken)?;
            let seconds = timeout.as_secs();
            let message = format!("{engine}: not done after {seconds} seconds, and ended");
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if !status.success() {
        return Err(Error::new(ErrorKind::Io, format!("{engine}: the run failed ({status})")));
    }
    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_run_that_hangs_or_fails_is_an_error() {
        let brief = Duration::from_millis(100);
        let error = wait(child("exec sleep 60"), "x", brief).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        let minute = Duration::from_secs(60);
        assert!(wait(child("exit 3"), "x", minute).is_err());
        assert!(wait(child("kill -9 $$"), "x", minute).is_err());
        assert_eq!(wait(child("echo done"), "x", minute).unwrap(), "done\n");
    }
}
