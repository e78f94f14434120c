//! A writer in a process of its own is killed with SIGKILL at a random moment, and the state that a
//! new opening finds is held against what the writer was told.
//!
//! Batch `n` puts a few records under `batch/n/`, replaces `latest` by `n`, and moves the one key
//! under `moving/` to `moving/n`. So the whole keyspace is a function of the number of batches, and
//! a state that is no prefix, or holds half a batch, shows itself.

use super::account::Crash;
use crate::args::CrashWriterArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::open::Access;
use base::random::Random;
use shingle::{Db, Durability, Keyspace, KeyspaceOptions, WriteBatch, WriteOptions};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The keyspace of the writer.
pub const KEYSPACE: &str = "crash";
/// One batch in this many is synced.
const SYNCED_EVERY: u64 = 8;
const VALUE_BYTES_SPREAD: u64 = 600;
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

fn records(seed: u64, batch: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut random = Random::new(seed ^ batch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let count = 1 + random.below(6);
    let record = |i| {
        let mut value = vec![0; 20 + random.below(VALUE_BYTES_SPREAD) as usize];
        random.fill(&mut value);
        (format!("batch/{batch:010}/{i}").into_bytes(), value)
    };
    (0..count).map(record).collect()
}

fn moving(batch: u64) -> Vec<u8> {
    format!("moving/{batch:010}").into_bytes()
}

/// The hidden command: writes batch after batch, and says so on stdout after each.
pub fn write_until_killed(context: &mut Context, args: CrashWriterArgs) -> Outcome {
    let db = context.open(Access::Change)?;
    let keyspace = context.keyspace(&db, Access::Create)?;
    for n in args.first.. {
        let mut batch = WriteBatch::new();
        for (key, value) in records(args.seed, n) {
            batch.put_in(&keyspace, key, value)?;
        }
        batch.put_in(&keyspace, b"latest", n.to_string())?;
        if n > 0 {
            batch.delete_in(&keyspace, moving(n - 1))?;
        }
        batch.put_in(&keyspace, moving(n), b"")?;
        let durability =
            if n % SYNCED_EVERY == 0 { Durability::Synced } else { Durability::Buffered };
        db.write(batch, &WriteOptions { durability: Some(durability), wait: true })?;
        let word = if durability == Durability::Synced { "synced" } else { "buffered" };
        writeln!(context.out, "{n} {word}")?;
        context.out.flush()?;
    }
    Ok(())
}

/// What the writer said: batch, and whether it was synced.
type Answer = (u64, bool);

fn spawn(context: &Context, path: &Path, seed: u64, first: u64) -> Outcome<Child> {
    let failed = |error| Failure::io("start the writer process", &error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.arg("--db").arg(path).args(["--keyspace", KEYSPACE]);
    for option in &context.global.option {
        command.args(["--option", option]);
    }
    command.arg("crash-writer");
    command.args(["--seed", &seed.to_string(), "--first", &first.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)
}

/// Reads the writer's answers to the end of the pipe, which the kill brings about.
fn listen(child: &mut Child) -> (Receiver<Answer>, std::thread::JoinHandle<()>) {
    let (sender, receiver) = channel();
    let output = child.stdout.take().expect("stdout was asked for");
    let thread = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let answer = line.split_once(' ');
            let Some((Ok(n), word)) = answer.map(|(n, word)| (n.parse(), word)) else { return };
            if sender.send((n, word == "synced")).is_err() {
                return;
            }
        }
    });
    (receiver, thread)
}

/// One kill. The database must be closed; it is open again afterwards.
pub fn kill_a_writer(
    context: &Context,
    path: &Path,
    seed: u64,
    first: u64,
    random: &mut Random,
) -> Outcome<(Db, Crash)> {
    let mut child = spawn(context, path, seed, first)?;
    let (receiver, thread) = listen(&mut child);
    let mut answers: Vec<Answer> =
        receiver.recv_timeout(FIRST_ANSWER_TIMEOUT).into_iter().collect();
    let start = Instant::now();
    if !answers.is_empty() {
        std::thread::sleep(Duration::from_micros(50_000 + random.below(700_000)));
    }
    let killed_after_ns = start.elapsed().as_nanos() as u64;
    let killed = child.kill();
    let waited = child.wait();
    let ended = thread.join().is_ok();
    killed.and(waited).map_err(|error| Failure::io("kill the writer process", &error))?;
    answers.extend(receiver.try_iter());
    if answers.is_empty() || !ended {
        return Err(Failure::said(
            "the writer process acknowledged nothing",
            "its own message, if any, stands above",
        ));
    }
    let opening = Instant::now();
    let db = context.open_at(path, Access::Change)?;
    let open_ns = opening.elapsed().as_nanos() as u64;
    let keyspace = match db.keyspace(KEYSPACE) {
        Ok(keyspace) => keyspace,
        Err(_) => db.create_keyspace(KEYSPACE, KeyspaceOptions::default())?,
    };
    let mut crash = judge(&keyspace, seed, first, &answers)?;
    crash.killed_after_ns = killed_after_ns;
    crash.open_ns = open_ns;
    Ok((db, crash))
}

fn judge(keyspace: &Keyspace, seed: u64, first: u64, answers: &[Answer]) -> Outcome<Crash> {
    let last_answered = answers.last().map_or(first, |(n, _)| n + 1);
    let found_total = match keyspace.get(b"latest")? {
        Some(n) => 1 + std::str::from_utf8(&n).ok().and_then(|n| n.parse().ok()).unwrap_or(0),
        None => 0,
    };
    let of_batch =
        |n| records(seed, n).iter().map(|(k, v)| (k.len() + v.len()) as u64).sum::<u64>();
    let latest_bytes = |n: u64| ("latest".len() + n.to_string().len() + moving(n).len()) as u64;
    let written = |n| of_batch(n) + latest_bytes(n);
    Ok(Crash {
        user_write_bytes: (first..found_total).map(written).sum(),
        live_bytes: (0..found_total).map(of_batch).sum(),
        acknowledged: answers.len() as u64,
        synced: answers.iter().filter(|(_, synced)| *synced).count() as u64,
        found_total,
        lost: last_answered.saturating_sub(found_total),
        unanswered_kept: found_total.saturating_sub(last_answered),
        wrong: differs_from_prefix(keyspace, seed, found_total)?,
        ..Crash::default()
    })
}

/// Holds the whole keyspace against what exactly `batches` batches make of it.
fn differs_from_prefix(keyspace: &Keyspace, seed: u64, batches: u64) -> Outcome<Option<String>> {
    let mut stored = keyspace.iter();
    let mut next = || stored.next().transpose();
    for n in 0..batches {
        for expected in records(seed, n) {
            let name = String::from_utf8_lossy(&expected.0).into_owned();
            match next()? {
                Some((key, value)) if key[..] == expected.0 && value[..] == expected.1 => {}
                Some((key, _)) if key[..] == expected.0 => {
                    return Ok(Some(format!("{name}: another value")));
                }
                _ => return Ok(Some(format!("{name}: missing"))),
            }
        }
    }
    let Some(last) = batches.checked_sub(1) else {
        return Ok(next()?.map(|(key, _)| format!("{}: too much", crate::text::brief(&key))));
    };
    for (name, expected) in [(b"latest".to_vec(), last.to_string()), (moving(last), String::new())]
    {
        match next()? {
            Some((key, value)) if key[..] == name && value[..] == *expected.as_bytes() => {}
            _ => {
                return Ok(Some(format!(
                    "{}: not as batch {last} left it",
                    crate::text::brief(&name)
                )));
            }
        }
    }
    Ok(next()?.map(|(key, _)| format!("{}: too much", crate::text::brief(&key))))
}
