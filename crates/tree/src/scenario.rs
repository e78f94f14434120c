//! Scenarios as text: commands and what they must print, in `testdata` files.
//!
//! The form is that of [`base::scenario`]; `edit` takes more lines. With `REWRITE=1` the files are
//! rewritten with what comes out.
//!
//! | command | prints |
//! |---|---|
//! | `tree <levels>` | nothing; begins anew |
//! | `edit` + lines of changes | the tree, or the error |
//! | `pushdown <level> <node> <slices> to <level>` | the changes, then the tree |
//! | `pick <scheme> [at rest] [after <n> reads] [missing <level> <node> <run> <n>]` | the plan |
//! | `covered <range> below <sequence>` | the inputs |
//! | `older <level> <node> <slices> to <level> : <keys>` | the keys that may have older versions |
//!
//! Slices to take are runs, with `[a..c]` behind one where only its slice of these keys is meant.
//!
//! Changes: `run <id> <range> <bytes> @<min>-<max>` (in a file of its number), `node <level> <id>
//! <range> : <slices>`, `push <level> <id> : <slices>`, `remove <level> <id> : <runs>`,
//! `remove-node <level> <id>`, `range <level> <id> <range>`, `narrow <level> <id> <run> :
//! <slices>`, `cursor <level> <key>`. A range is `a..c`, the end exclusive; a slice
//! `<run>[a..c]=<bytes>`.

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::moves::{self, Cutter, OlderData, Proportional};
use crate::plan::{Cut, Input, Move};
use crate::policy::{Busy, Limits, Misses, Observed, View, by_name};
use crate::run_table::RunTable;
use crate::sketch::KnownKeys;
use crate::version::{LEVEL0_NODE, NodeId, ObsoleteFiles, Slice, SliceId, Version};
use base::{FileId, Key, KeyRange, RunId};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Runs every scenario of a file of this crate.
pub(crate) fn run_file(path: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut scene = Scene::new(4);
    let name = path.display().to_string();
    let out = base::scenario::answered(&text, &name, |line, body| scene.command(line, body));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &out).unwrap();
    }
    base::scenario::assert_same(&text, &out, &name);
}

/// Keys whose entries have 100 bytes each, with a bar where a run ends.
fn cuts(mut cutter: Cutter, keys: &[&str]) -> String {
    let mut text = String::new();
    let mut run_bytes = 0;
    for key in keys {
        if cutter.ends_before(key.as_bytes(), run_bytes) {
            text.push_str("| ");
            run_bytes = 0;
        }
        run_bytes += 100;
        let _ = write!(text, "{key} ");
    }
    format!("{}\n", text.trim_end())
}

struct Scene {
    version: Version,
    runs: RunTable,
}

impl Scene {
    fn new(levels: u8) -> Scene {
        let obsolete_files = Arc::new(ObsoleteFiles::default());
        Scene { version: Version::empty(levels), runs: RunTable::new(obsolete_files) }
    }

    fn command(&mut self, line: &str, body: &[&str]) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["tree", levels] => {
                *self = Scene::new(levels.parse().unwrap());
                String::new()
            }
            ["edit"] => self.apply(&body.iter().flat_map(|line| change(line)).collect::<Vec<_>>()),
            ["pushdown", level, node, runs, "to", to] => {
                let input = self.input(level, node, runs);
                match moves::push(&self.version, &input, to.parse().unwrap(), &Proportional) {
                    Ok(changes) => {
                        changes.iter().map(show_change).collect::<String>() + &self.apply(&changes)
                    }
                    Err(error) => format!("{error}\n"),
                }
            }
            ["pick", scheme, ref when @ ..] => self.pick(scheme, &observed(when)),
            ["covered", keys, "below", sequence] => {
                let found = moves::covered(&self.version, &range(keys), sequence.parse().unwrap());
                found.iter().map(|input| format!("{}\n", show_input(input))).collect()
            }
            ["older", level, node, runs, "to", to, ":", ref keys @ ..] => {
                let inputs = [self.input(level, node, runs)];
                let mut older = OlderData::new(&self.version, &inputs, to.parse().unwrap());
                let held = keys.iter().filter(|key| older.may_hold(key.as_bytes()));
                format!("held: {}\n", held.copied().collect::<Vec<_>>().join(" "))
            }
            ["cut", "to", to, "table", table, "overlap", overlap, ":", ref keys @ ..] => {
                let cut = Cut {
                    table_bytes_max: table.parse().unwrap(),
                    overlap_bytes_max: Some(overlap.parse().unwrap()),
                };
                cuts(Cutter::new(&self.version, to.parse().unwrap(), cut), keys)
            }
            _ => panic!("no such command: {line}"),
        }
    }

    /// Slices of a node: all of a run, or the one with these keys, `<run>[a..c]`.
    fn input(&self, level: &str, node: &str, slices: &str) -> Input {
        let (level, node) = (level.parse().unwrap(), NodeId(node.parse().unwrap()));
        let mut input = Input { level, node, slices: Vec::new() };
        for text in slices.split(',') {
            let (run, keys) = text.split_once('[').map_or((text, None), |(run, keys)| {
                (run, Some(range(keys.strip_suffix(']').unwrap())))
            });
            let run = RunId(run.parse().unwrap());
            let known = self.version.node(level, node).map_or(&[][..], |node| &node.slices);
            let mut ids: Vec<SliceId> =
                known.iter().filter(|slice| slice.run.id == run).map(Slice::id).collect();
            ids.retain(|id| keys.as_ref().is_none_or(|keys| id.range == *keys));
            if ids.is_empty() {
                ids.push(SliceId { run, range: keys.unwrap_or_else(KeyRange::all) });
            }
            input.slices.append(&mut ids);
        }
        input
    }

    fn apply(&mut self, changes: &[Change]) -> String {
        match self.version.apply(changes, &mut self.runs) {
            Err(error) => format!("{error}\n"),
            Ok(next) => {
                self.version = next;
                let checked = crate::invariant::check(&self.version, &crate::invariant::Shape::ANY);
                let problem = checked.err().map(|broken| format!("{broken}\n"));
                show(&self.version) + &problem.unwrap_or_default()
            }
        }
    }

    fn pick(&self, scheme: &str, observed: &Observed) -> String {
        let scheme = by_name(scheme).unwrap();
        let limits = Limits {
            level_bytes_base: 1000,
            table_bytes_max: 100,
            overlap_bytes_max: Some(1000),
            expansion_bytes_max: 2500,
            levels: self.version.levels.len() as u8,
            seek_compaction: !observed.misses.is_empty(),
            ..(scheme.limits)(400)
        };
        let view = View {
            version: &self.version,
            busy: &Busy::default(),
            limits: &limits,
            observed,
            oldest_snapshot: base::key::SEQUENCE_MAX,
        };
        let Some(plan) = (scheme.make)().pick(&view) else { return "none\n".to_string() };
        let (inputs, to) = (plan.action.inputs(), plan.action.to_level());
        let name = match plan.action {
            Move::Push { .. } => "push",
            Move::Merge { one_file: true, to_level: 1.., .. } => "set",
            Move::Merge { .. } => "merge",
            Move::Append { .. } => "append",
            Move::Divide { .. } => "divide",
            Move::Balance { .. } => "balance",
            Move::Drop { .. } => "drop",
        };
        let mut out = format!("{name} to {to}: {:?} {:.2}", plan.reason, plan.score);
        let _ = writeln!(out, " writes {}", plan.write_bytes);
        inputs.iter().for_each(|input| _ = writeln!(out, "  {}", show_input(input)));
        for (level, key) in plan.cursors {
            let key = key.as_deref().map_or("end".to_string(), base::key::display_key);
            let _ = writeln!(out, "  cursor {level} {key}");
        }
        out
    }
}

fn observed(when: &[&str]) -> Observed {
    let nothing = Observed::default();
    match *when {
        [] => nothing,
        ["under", "writes"] => Observed { reads_share: Some(0.0), ..nothing },
        ["at", "rest"] => Observed { is_idle: true, ..nothing },
        ["at", "rest", "with", share, "superseded"] => {
            let superseded_share = Some(share.parse().unwrap());
            Observed { is_idle: true, superseded_share, ..nothing }
        }
        ["after", seeks, "seeks"] => {
            let seeks = [((0, LEVEL0_NODE), seeks.parse().unwrap())].into();
            Observed { seeks, ..nothing }
        }
        ["missing", level, node, run, gets] => {
            let misses = Misses {
                level: level.parse().unwrap(),
                node: NodeId(node.parse().unwrap()),
                run: RunId(run.parse().unwrap()),
                gets: gets.parse().unwrap(),
            };
            Observed { misses: vec![misses], ..nothing }
        }
        _ => panic!("no such circumstances: {when:?}"),
    }
}

fn range(text: &str) -> KeyRange {
    let (start, end) = text.split_once("..").unwrap();
    let end = (!end.is_empty()).then(|| Key::from(end.as_bytes()));
    KeyRange::new(start.as_bytes(), end)
}

fn numbers(text: &str) -> Vec<RunId> {
    text.split([',', ' ']).filter(|t| !t.is_empty()).map(|t| RunId(t.parse().unwrap())).collect()
}

fn slice(text: &str) -> SliceRecord {
    let (run, rest) = text.split_once('[').unwrap();
    let (keys, bytes) = rest.split_once("]=").unwrap();
    let (run, bytes) = (RunId(run.parse().unwrap()), bytes.parse().unwrap());
    SliceRecord { run, range: range(keys), bytes }
}

fn change(line: &str) -> Vec<Change> {
    let (head, tail) = line.split_once(" :").unwrap_or((line, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let slices = || tail.split_whitespace().map(slice).collect();
    let level = |text: &str| text.parse().unwrap();
    let node = |text: &str| NodeId(text.parse().unwrap());
    vec![match words[..] {
        ["run", id, keys, bytes, sequences] => return add_run(id, keys, bytes, sequences),
        ["node", l, n, keys] => {
            Change::AddNode { level: level(l), node: node(n), range: range(keys), slices: slices() }
        }
        ["push", l, n] => Change::PushSlices { level: level(l), node: node(n), slices: slices() },
        ["remove", l, n] => {
            Change::RemoveSlices { level: level(l), node: node(n), runs: numbers(tail) }
        }
        ["remove-node", l, n] => Change::RemoveNode { level: level(l), node: node(n) },
        ["range", l, n, keys] => {
            Change::SetRange { level: level(l), node: node(n), range: range(keys) }
        }
        ["narrow", l, n, run] => {
            let run = RunId(run.parse().unwrap());
            Change::NarrowSlice { level: level(l), node: node(n), run, to: slices() }
        }
        ["cursor", l, key] => {
            Change::SetCursor { level: level(l), key: Some(key.as_bytes().into()) }
        }
        _ => panic!("no such change: {line}"),
    }]
}

fn add_run(id: &str, keys: &str, bytes: &str, sequences: &str) -> Vec<Change> {
    let number: u64 = id.parse().unwrap();
    let bytes: u64 = bytes.parse().unwrap();
    let (min, max) = sequences[1..].split_once('-').unwrap();
    let file = FileId(number);
    let run = RunRecord {
        id: RunId(number),
        file,
        offset: 0,
        bytes,
        range: range(keys),
        entries: bytes,
        deletes: 0,
        range_deletes: 0,
        sequence_min: min.parse().unwrap(),
        sequence_max: max.parse().unwrap(),
        expiry: None,
        keys: KnownKeys::default(),
    };
    vec![Change::File { file, bytes }, Change::AddRun(run)]
}

fn show_range(range: &KeyRange) -> String {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    format!("{}..{}", text(&range.start), range.end.as_deref().map_or(String::new(), text))
}

fn show_slices(slices: &[SliceRecord]) -> String {
    let show = |s: &SliceRecord| format!(" {}[{}]={}", s.run, show_range(&s.range), s.bytes);
    slices.iter().map(show).collect()
}

fn show_input(input: &Input) -> String {
    let runs: Vec<String> = input.runs().map(|run| run.to_string()).collect();
    format!("level {} node {} runs {}", input.level, input.node.0, runs.join(" "))
}

fn show_change(change: &Change) -> String {
    let text = match change {
        Change::AddNode { level, node, range, slices } => {
            format!("node {level} {} {} :{}", node.0, show_range(range), show_slices(slices))
        }
        Change::PushSlices { level, node, slices } => {
            format!("push {level} {} :{}", node.0, show_slices(slices))
        }
        Change::RemoveSlices { level, node, runs } => {
            let runs: String = runs.iter().map(|run| format!(" {run}")).collect();
            format!("remove {level} {} :{runs}", node.0)
        }
        Change::RemoveNode { level, node } => format!("remove-node {level} {}", node.0),
        Change::SetRange { level, node, range } => {
            format!("range {level} {} {}", node.0, show_range(range))
        }
        other => format!("{other:?}"),
    };
    format!("> {text}\n")
}

fn show(version: &Version) -> String {
    let mut out = String::new();
    for (level, nodes) in version.levels.iter().enumerate() {
        for node in nodes.nodes.iter() {
            let records: Vec<SliceRecord> = node.slices.iter().map(|s| s.record()).collect();
            let _ = writeln!(
                out,
                "level {level} node {} {} :{}",
                node.id.0,
                show_range(&node.range),
                show_slices(&records)
            );
        }
    }
    out
}

#[test]
fn edits() {
    run_file("testdata/edits.txt");
}

#[test]
fn moves_on_paper() {
    run_file("testdata/moves.txt");
}
