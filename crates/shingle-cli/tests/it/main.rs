//! The built command, run as a user runs it.

mod bench;
mod changes;
mod color;
mod completions;
mod data;
mod demo;
mod device;
mod dump;
mod expiry;
mod interrupt;
mod lab;
mod maintenance;
mod man;
mod operators;
mod ranges;
mod schemes;
mod shell;
mod simulate;
mod trace;
mod transfer;
mod usage;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary directory with a database in it, and the command.
struct Shell {
    directory: tempfile::TempDir,
}

impl Shell {
    fn new() -> Shell {
        Shell { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The command without any arguments yet.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shingle"));
        command.current_dir(&self.directory).env_remove("SHINGLE_DB").env("TMPDIR", self.path(""));
        // The history of a shell is here, and no variable of the caller brings colours.
        command.env("XDG_STATE_HOME", self.path("state"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs with `--db my.db` in front of `arguments`.
    fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command().args(["--db", "my.db"]).args(arguments).output().expect("it runs"))
    }

    /// The same, with `input` on stdin.
    fn feed(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command()
            .args(["--db", "my.db"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdin = child.stdin.take().expect("stdin was asked for");
        // A command that fails before it reads does not take all of it.
        if let Err(error) = stdin.write_all(input) {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "it reads its input");
        }
        drop(stdin);
        Ran(child.wait_with_output().expect("it ends"))
    }
}

/// A command that ended.
struct Ran(Output);

impl Ran {
    fn code(&self) -> i32 {
        self.0.status.code().expect("it was not killed")
    }

    fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).expect("the output is text")
    }

    fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).expect("messages are text")
    }

    /// It succeeded; gives its output.
    #[track_caller]
    fn ok(&self) -> String {
        assert_eq!(self.code(), 0, "{}{}", self.out(), self.err());
        self.out()
    }

    /// It failed with `code`, in words, with a remedy; gives the words.
    #[track_caller]
    fn fails(&self, code: i32) -> String {
        assert_eq!(self.code(), code, "{}{}", self.out(), self.err());
        let words = self.err();
        assert!(words.starts_with("shingle: ") && words.contains("\n  help: "), "{words}");
        words
    }

    /// It failed with `code` under `--json`; gives the object `error`.
    #[track_caller]
    fn fails_as_json(&self, code: i32) -> serde_json::Value {
        assert_eq!(self.code(), code, "{}{}", self.out(), self.err());
        let report: serde_json::Value =
            serde_json::from_str(&self.err()).expect("the error is JSON");
        let error = &report["error"];
        assert!(error["code"] == code && error["help"].is_string(), "{error}");
        error.clone()
    }

    /// It succeeded, and every line of its output is JSON.
    #[track_caller]
    fn json(&self) -> Vec<serde_json::Value> {
        let parse = |line: &str| serde_json::from_str(line).expect("the line is JSON");
        self.ok().lines().map(parse).collect()
    }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a file has a directory"))
        .expect("it can be made");
    std::fs::write(path, bytes).expect("it can be written");
}
