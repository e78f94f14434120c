//! `shingle shell`: from a pipe, and on a terminal.

use crate::{Ran, Shell};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

fn script(shell: &Shell, lines: &str) -> Ran {
    shell.feed(&["shell"], lines.as_bytes())
}

#[test]
fn lines_are_the_commands() {
    let shell = Shell::new();
    let out = script(
        &shell,
        "# a comment\n\nput apple red\nput \"two words\" 'it is'\nput --hex 0xFF 0x01\nget apple\n\
         scan\nscan --reverse --limit 1 --json\ndelete apple\ncount\nexists\n",
    );
    assert!(out.fails(1).contains("line 11: unrecognized subcommand 'exists'"), "{}", out.err());
    let expected = "red\napple : red\ntwo words : it is\n\\xFF : \\x01\n\
                    {\"key_base64\":\"/w==\",\"value\":\"\\u0001\"}\n2\n";
    assert_eq!(out.out(), expected);
    assert_eq!(shell.run(&["count"]).ok(), "2\n");
    // What scan prints is read back.
    assert_eq!(script(&shell, "get \"two words\"\nget \\xFF\n").ok(), "it is\n\u{1}\n");
}

#[test]
fn a_script_ends_at_the_first_line_that_fails() {
    let shell = Shell::new();
    for (lines, number, words) in [
        ("put a 1\nget b\nput c 3\n", 2, "no such key: b"),
        ("put a 1\n\nput a\n", 3, "required arguments"),
        ("put a 'b\n", 1, "without its end"),
        ("put a 1\nuse nowhere\n", 2, "no keyspace nowhere"),
        ("commit\n", 1, "no batch has begun"),
        ("put a --value-file -\n1\n", 1, "stdin has the commands"),
        ("import - --format tsv\n", 1, "stdin has the commands"),
    ] {
        let message = script(&shell, lines).fails(1);
        assert!(message.starts_with(&format!("shingle: line {number}: ")), "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(shell.run(&["scan"]).ok(), "a : 1\n");
    let error = shell.feed(&["--json", "shell"], b"get b\n").fails_as_json(1);
    assert_eq!(error["kind"], "NoSuchKey");
    script(&shell, "put d 4\nquit\nput e 5\n").ok();
    assert_eq!(shell.run(&["scan", "--keys-only"]).ok(), "a\nd\n");
}

#[test]
fn reading_creates_nothing() {
    let shell = Shell::new();
    assert!(script(&shell, "get a\n").fails(1).contains("line 1: there is no database"));
    script(&shell, "# nothing\n").ok();
    assert!(!shell.path("my.db").exists());
    let none = Ran(shell.command().arg("shell").output().expect("it runs"));
    assert!(none.fails(2).contains("which database?"));
}

#[test]
fn keyspaces_are_used_and_named_by_a_line() {
    let shell = Shell::new();
    let out = script(
        &shell,
        "put a 1\nkeyspace create users\nkeyspace use users\nput b 2\nscan\n\
         scan --keyspace default\nuse default\nscan\nkeyspace list\nkeyspace drop users\n\
         keyspace list\n",
    );
    assert_eq!(out.ok(), "b : 2\na : 1\na : 1\ndefault\nusers\ndefault\n");
}

#[test]
fn a_batch_is_written_whole_or_not_at_all() {
    let shell = Shell::new();
    script(&shell, "keyspace create users\nkeyspace create log --merge-operator append\n").ok();
    let lines = "begin\nput a 1\nput --keyspace users b 2\nmerge --keyspace log c x\n\
                 merge --keyspace log c y\ncount\ncommit --sync\ncount\nget --keyspace log c\n";
    let out = script(&shell, lines);
    assert_eq!(out.ok(), "0\n1\nxy\n");
    assert!(out.err().contains("committed 4 operations"), "{}", out.err());
    // Nothing of these is written.
    for (lines, words) in [
        ("begin\nput z 1\n", "it had 1 operation"),
        ("begin\nput z 1\nquit\n", "was discarded"),
        ("begin\nput z 1\nget nothing\ncommit\n", "no such key"),
        ("begin\nput z 1 --sync\n", "commit --sync"),
        ("begin\nbegin\n", "begun already"),
        ("begin\nput z 1\nimport x.tsv\n", "batches of its own"),
        ("begin\nput z 1\ndelete-range --from a\n", "name the end"),
    ] {
        let message = script(&shell, lines).fails(1);
        assert!(message.contains(words), "{lines}: {message}");
    }
    script(&shell, "begin\nput z 1\ndiscard\nbegin\ndelete-range --prefix a\ncommit\n").ok();
    assert_eq!(shell.run(&["count"]).ok(), "0\n");
    assert_eq!(shell.run(&["--keyspace", "users", "scan"]).ok(), "b : 2\n");
}

#[test]
fn a_shell_runs_everything_on_one_open_database() {
    let shell = Shell::new();
    std::fs::write(shell.path("in.tsv"), "a\t1\nb\t2\n").unwrap();
    let out = script(
        &shell,
        "import in.tsv --verify\nflush\ncompact\ncheck\nstat --property rocksdb.estimate-num-keys\n\
         checkpoint copy.db\nexport out.jsonl\ncompact --all\nhelp\nhelp scan\nget a\n",
    );
    let text = out.out();
    assert!(text.contains("everything is as it was written"), "{text}{}", out.err());
    assert!(
        text.contains("Usage: scan [OPTIONS]") && text.contains("\n  scan --prefix lib"),
        "{text}"
    );
    assert!(!text.contains("shingle --db"), "{text}");
    assert!(out.ok().ends_with("\n1\n"), "{text}");
    let copied = Ran(shell.command().args(["--db", "copy.db", "count"]).output().unwrap());
    assert_eq!(copied.ok(), "2\n");
    assert!(shell.path("out.jsonl").exists());
}

/// A shell whose lines are given one at a time.
struct Dialogue {
    child: Child,
}

impl Dialogue {
    fn new(shell: &Shell, arguments: &[&str]) -> Dialogue {
        let mut command = shell.command();
        command.args(["--db", "my.db"]).args(arguments).stdin(Stdio::piped());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        Dialogue { child }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().expect("the terminal works"), "{line}")
            .expect("it reads");
    }

    /// One line of the answer.
    fn hear(&mut self) -> String {
        let out = self.child.stdout.as_mut().expect("the terminal works");
        let mut line = Vec::new();
        let mut byte = [0];
        while out.read(&mut byte).expect("it can be read") == 1 && byte != [b'\n'] {
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("it is text")
    }

    fn end(mut self) -> Ran {
        drop(self.child.stdin.take());
        Ran(self.child.wait_with_output().expect("it ends"))
    }
}

#[test]
fn beside_a_writer_each_line_sees_the_newest_state() {
    let shell = Shell::new();
    let mut writer = Dialogue::new(&shell, &["shell"]);
    writer.say("put a 1");
    writer.say("get a");
    assert_eq!(writer.hear(), "1");
    let mut reader = Dialogue::new(&shell, &["shell"]);
    for value in ["1", "2", "3"] {
        writer.say(&format!("put a {value}"));
        writer.say("get a");
        assert_eq!(writer.hear(), value);
        reader.say("get a");
        assert_eq!(reader.hear(), value);
    }
    reader.say("check");
    assert!(reader.hear().starts_with("checked "));
    assert_eq!(reader.hear(), "everything is as it was written");
    // When the writer is gone, the same shell writes.
    writer.end().ok();
    reader.say("put b 4");
    reader.say("get b");
    assert_eq!(reader.hear(), "4");
    let ended = reader.end();
    ended.ok();
    assert!(ended.err().contains("is opened by process"), "{}", ended.err());
    // A line that writes fails beside a writer.
    let mut writer = Dialogue::new(&shell, &["shell"]);
    writer.say("get a");
    assert_eq!(writer.hear(), "3");
    let refused = script(&shell, "get a\nput a 9\n");
    assert_eq!(refused.out(), "3\n");
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("shingle: line 2: my.db is opened by"), "{}", refused.err());
    let only = shell.feed(&["shell", "--read-only"], b"get a\nput a 9\n");
    assert_eq!(only.out(), "3\n");
    assert!(only.fails(1).contains("line 2: this shell only reads"), "{}", only.err());
    writer.end().ok();
    assert_eq!(shell.run(&["get", "a"]).ok(), "3\n");
}

/// Runs a shell on a terminal of its own, which `script` makes, and types `keys`; gives all that
/// the terminal showed, or `None` where there is no such program.
fn typed(shell: &Shell, keys: &str) -> Option<String> {
    let line = format!("'{}' --db my.db shell", env!("CARGO_BIN_EXE_shingle"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.current_dir(shell.path("")).env("XDG_STATE_HOME", shell.path("state"));
    command.env("TERM", "xterm").env_remove("SHINGLE_DB");
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.ok()?;
    let mut out = child.stdout.take().expect("the terminal works");
    let mut seen = Vec::new();
    // Keys are typed when the shell asks for a line: before that, the terminal would take Ctrl-C.
    for key in keys.split_inclusive(['\r', '\x03', '\x04']) {
        read_until(&mut out, &mut seen, BEGIN);
        read_until(&mut out, &mut seen, b"> ");
        child
            .stdin
            .as_mut()
            .expect("the terminal works")
            .write_all(key.as_bytes())
            .expect("the terminal works");
    }
    out.read_to_end(&mut seen).expect("the terminal works");
    let status = child.wait().expect("the terminal works");
    let text = String::from_utf8_lossy(&seen).into_owned();
    assert!(status.success(), "{text}");
    Some(text)
}

/// The editor begins a line: it asks the terminal to mark what is pasted.
const BEGIN: &[u8] = b"\x1b[?2004h";

/// Reads on to the end of these bytes.
fn read_until(out: &mut impl Read, seen: &mut Vec<u8>, end: &[u8]) {
    let mut byte = [0];
    let begin = seen.len();
    while !seen[begin..].ends_with(end) {
        assert_eq!(
            out.read(&mut byte).expect("the terminal works"),
            1,
            "{}",
            String::from_utf8_lossy(seen)
        );
        seen.push(byte[0]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_there_are_a_prompt_a_history_and_no_end_at_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let shell = Shell::new();
    shell.run(&["put", "a", "1"]).ok();
    shell.run(&["keyspace", "create", "users"]).ok();
    let keys = "get nothing\rput lost \x03get a\ruse us\t\rbegin\rput b 2\rcommit\r secret\r\x04";
    let Some(text) = typed(&shell, keys) else { return };
    assert!(text.contains("no such key: nothing"), "{text}");
    for prompt in ["default> ", "users> ", "users (batch of 0)> ", "users (batch of 1)> "] {
        assert!(text.contains(prompt), "{prompt}: {text}");
    }
    assert!(text.contains("committed 1 operation"), "{text}");
    assert_eq!(shell.run(&["--keyspace", "users", "scan"]).ok(), "b : 2\n");
    assert_eq!(shell.run(&["scan"]).ok(), "a : 1\n");
    let history = shell.path("state/shingle/history");
    let mode = std::fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let lines = std::fs::read_to_string(&history).unwrap();
    assert!(lines.contains("get a\n") && lines.contains("begin\n"), "{lines}");
    assert!(!lines.contains("secret") && !lines.contains("lost"), "{lines}");
    // The line before the last, from the history of the shell before.
    let again = typed(&shell, "\x1b[A\x1b[A\r\x04").unwrap();
    assert!(again.contains("put b 2"), "{again}");
    assert_eq!(shell.run(&["get", "b"]).ok(), "2\n");
}
