//! The lab, on a few experiments that are quick.

use crate::Shell;
use std::path::Path;

const QUICK: [&str; 2] = ["sealdb/set-size", "cascaded/fig03"];

fn run(shell: &Shell, out: &str) -> String {
    let arguments = ["--quiet", "lab", "run", QUICK[0], QUICK[1], "--scale", "smoke", "--out", out];
    shell.run(&arguments).ok()
}

#[test]
fn two_runs_give_the_same_claims() {
    let shell = Shell::new();
    let text = run(&shell, "one");
    assert!(text.contains("sealdb/set-size") && text.contains("claims"), "{text}");
    run(&shell, "two");
    for file in ["claims.json", "claims.csv", "metrics.csv", "report.html"] {
        let read = |folder: &str| std::fs::read(shell.path(folder).join(file)).unwrap();
        assert!(read("one") == read("two"), "{file}");
    }
}

#[test]
fn a_command_that_was_broken_off_goes_on_where_it_was() {
    let shell = Shell::new();
    run(&shell, "whole");
    let journal = shell.path("whole/runs.csv");
    let rows = std::fs::read_to_string(&journal).unwrap();
    let half = rows.match_indices("end,").nth(2).unwrap().0;
    std::fs::create_dir(shell.path("half")).unwrap();
    std::fs::write(shell.path("half/runs.csv"), &rows[..half]).unwrap();
    let again = ["lab", "run", QUICK[0], QUICK[1], "--scale", "smoke", "--out", "half"];
    let timed = |more: &str| {
        let words = shell.run(&[&again[..], &["--times", more]].concat()).err();
        words.lines().filter(|line| line.contains(" s  ")).count()
    };
    let all = rows.matches("end,").count();
    assert_eq!(timed("--resume"), all - 2);
    assert_eq!(timed("--resume"), 0);
    for file in ["claims.json", "metrics.csv", "report.html"] {
        let read = |folder: &str| std::fs::read(shell.path(folder).join(file)).unwrap();
        assert!(read("half") == read("whole"), "{file}");
    }
}

/// A long run was lost whole when it was broken off, and wording a reason took another one.
#[test]
fn parts_that_were_run_apart_are_compared_together() {
    let shell = Shell::new();
    run(&shell, "whole");
    for (experiment, out) in QUICK.iter().zip(["one", "two"]) {
        let scale = ["--scale", "smoke", "--out", out];
        shell.run(&[&["--quiet", "lab", "run", experiment][..], &scale].concat()).ok();
    }
    let compare = ["--quiet", "lab", "compare", "one", "two", "--scale", "smoke", "--out", "both"];
    shell.run(&compare).ok();
    let pages = ["papers/cascaded.md", "papers/sealdb.md"];
    let beside = ["papers/values/sealdb-smoke.csv", "papers/pictures/sealdb-set-size-smoke.svg"];
    let files = ["claims.json", "claims.csv"].into_iter().chain(pages).chain(beside);
    for file in files {
        let read = |folder: &str| std::fs::read(shell.path(folder).join(file)).unwrap();
        assert!(read("both") == read("whole"), "{file}");
    }
    let words = shell.run(&["lab", "compare", "absent"]).fails(1);
    assert!(words.contains("absent/metrics.csv") && words.contains("lab run"), "{words}");
}

/// Runs of the papers' size are not repeated here: their stored results must still be true. After a
/// change of rules or reasons: `lab compare` as here, and `cargo xtask papers again`.
#[test]
fn what_is_kept_of_runs_at_full_size_gives_the_kept_verdicts() {
    let shell = Shell::new();
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers/paper-scale");
    shell.run(&["--quiet", "lab", "compare", kept, "--scale", "paper", "--out", "again"]).ok();
    let kept_claims = std::fs::read_to_string(format!("{kept}/claims.csv")).unwrap();
    let claims = std::fs::read_to_string(shell.path("again/claims.csv")).unwrap();
    assert!(claims.lines().count() > 10 && claims == kept_claims, "{claims}");
}

/// A run at the scale `small` takes most of an hour and is not repeated here. After a change of
/// rules or reasons: `lab compare` as here, and `cargo xtask papers again`.
#[test]
fn what_is_kept_of_runs_at_small_gives_the_kept_pages() {
    let shell = Shell::new();
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers"));
    let kept = docs.join("small-scale");
    let compare = ["--quiet", "lab", "compare", kept.to_str().unwrap(), "--out", "again"];
    shell.run(&[&compare[..], &["--scale", "small"]].concat()).ok();
    let again = shell.path("again/papers");
    let mut pages = 0;
    for file in again.read_dir().unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let old = std::fs::read_to_string(docs.join(file.file_name().unwrap())).unwrap();
        let new = std::fs::read_to_string(&file).unwrap();
        let (head, tail) = new.split_at(new.find("## ").unwrap());
        assert!(old.contains(head) && old.ends_with(tail), "{file:?}: cargo xtask papers");
        pages += 1;
    }
    assert_eq!(pages, 6);
    for folder in ["values", "pictures"] {
        for file in again.join(folder).read_dir().unwrap().map(|file| file.unwrap()) {
            if file.file_name() == "overview.svg" {
                continue;
            }
            let old = std::fs::read_to_string(docs.join(folder).join(file.file_name()));
            let new = std::fs::read_to_string(file.path()).unwrap();
            assert!(old.is_ok_and(|old| old == new), "{:?}: cargo xtask papers", file.file_name());
        }
    }
}

/// The pictures of the papers' pages follow from the values beside them: `cargo xtask papers` draws
/// them again.
#[test]
fn kept_pictures_are_what_the_kept_values_give() {
    let shell = Shell::new();
    let kept = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers"));
    let values: Vec<_> = kept.join("values").read_dir().unwrap().map(|f| f.unwrap()).collect();
    std::fs::create_dir_all(shell.path("again/values")).unwrap();
    for file in &values {
        let copy = shell.path("again/values").join(file.file_name());
        std::fs::copy(file.path(), copy).unwrap();
    }
    shell.run(&["lab", "draw", "again"]).ok();
    let drawn: Vec<_> =
        shell.path("again/pictures").read_dir().unwrap().map(|f| f.unwrap()).collect();
    assert_eq!(drawn.len(), values.len() + 1);
    for file in drawn {
        let old = std::fs::read_to_string(kept.join("pictures").join(file.file_name()));
        let new = std::fs::read_to_string(file.path()).unwrap();
        assert!(old.is_ok_and(|old| old == new), "{:?}: cargo xtask papers", file.file_name());
    }
    let words = shell.run(&["lab", "draw", "absent"]).fails(1);
    assert!(words.contains("absent/values") && words.contains("lab run"), "{words}");
}

#[test]
fn the_results_say_what_the_paper_says_and_need_nothing_else() {
    let shell = Shell::new();
    run(&shell, "out");
    let json = std::fs::read_to_string(shell.path("out/claims.json")).unwrap();
    let claims: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ids: Vec<&str> =
        claims.as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["cascaded/fig3/raw", "sealdb/set-size"]);
    let set = &claims[1];
    assert_eq!(set["paper"]["SSTables per set"], "6.87");
    assert!(set["measured"]["SSTables per set"].as_f64().unwrap() > 1.0);
    assert!(set["verdict"].is_string() && set["reason"].is_string(), "{set}");
    let page = std::fs::read_to_string(shell.path("out/report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for foreign in ["http:", "https:", "src=", "@import", "NaN", "inf\""] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("<svg"));
}

#[test]
fn lists_and_shows_what_there_is() {
    let shell = Shell::new();
    let list = shell.run(&["lab", "list"]).ok();
    assert!(list.contains("lwc/fig11a") && list.contains("cascaded/fig13"), "{list}");
    let shown = shell.run(&["lab", "show", "lwc/fig11a/random-load"]).ok();
    assert!(shown.contains("system LWC-smr") && shown.contains("phase load"), "{shown}");
    let words = shell.run(&["lab", "show", "lwc/fig99"]).fails(1);
    assert!(words.contains("lab list"), "{words}");
}

#[test]
fn an_artifact_gives_its_claims_again_from_its_own_files() {
    let shell = Shell::new();
    run(&shell, "whole");
    let scale = ["--scale", "smoke", "--out"];
    shell.run(&[&["--quiet", "lab", "artifact", "whole"][..], &scale, &["one"]].concat()).ok();
    let read = |file: &str| std::fs::read_to_string(shell.path(file)).unwrap();
    let from = ["--quiet", "lab", "compare", "one", "--data", "one/data"];
    shell.run(&[&from[..], &scale, &["two"]].concat()).ok();
    assert!(read("two/claims.json") == read("whole/claims.json"));
    let ids = format!("lab run {} {} --data data --scale smoke", QUICK[1], QUICK[0]);
    assert!(read("one/README.md").contains(&ids), "{}", read("one/README.md"));
    let references = read("one/references.bib");
    assert!(references.contains("yao2018sealdb") && references.contains("sun2020cascaded"));
    assert!(!references.contains("chan2018hashkv"), "{references}");
    assert!(read("one/CITATION.cff").starts_with("cff-version: "));
}

#[test]
fn seeds_are_held_beside_each_other() {
    let shell = Shell::new();
    let run = ["--quiet", "lab", "run", "sealdb/set-size", "--scale", "smoke"];
    for seed in ["1", "2", "3"] {
        shell.run(&[&run[..], &["--seed", seed, "--out", seed]].concat()).ok();
    }
    let read = |file: &str| std::fs::read_to_string(shell.path(file)).unwrap();
    assert!(read("1/metrics.csv") != read("2/metrics.csv"));
    let spread = ["lab", "spread", "1", "2", "3", "--scale", "smoke", "--out", "all"];
    let text = shell.run(&spread).ok();
    assert!(text.contains("sealdb/set-size") && text.contains("3 seeds"), "{text}");
    let row = read("all/spread.csv").lines().nth(1).unwrap().to_string();
    // Fields may have commas: the ratios are the fourth from the end.
    let ratios = row.rsplit(',').nth(3).unwrap().split(' ');
    let ratios: Vec<f64> = ratios.map(|ratio| ratio.parse().unwrap()).collect();
    assert_eq!(ratios.len(), 3, "{row}");
    assert!(read("all/spread.md").contains("| `sealdb/set-size` |"));
    let words = shell.run(&["lab", "spread", "1", "--scale", "smoke"]).fails(1);
    assert!(words.contains("--out of its own"), "{words}");
}

/// All operations of the trace at full size; at a scale of half the data those on half the keys.
#[test]
fn a_trace_is_a_phase_of_an_experiment() {
    const KEYS: usize = 400;
    let shell = Shell::new();
    let line = |kind: &str, key: usize| format!("-\t{kind}\tkey{key:05}\t100\n");
    let trace: String = (0..3 * KEYS)
        .map(|number| line(if number % 3 == 2 { "get" } else { "put" }, number * 7 % KEYS))
        .collect();
    let head = "# shingle trace 1: time_ns, kind, key, bytes of the value or records\n";
    std::fs::write(shell.path("my.trace"), format!("{head}{trace}")).unwrap();
    let data = shell.path("own");
    std::fs::create_dir_all(data.join("own")).unwrap();
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/data/rules.toml");
    std::fs::copy(rules, data.join("rules.toml")).unwrap();
    std::fs::write(data.join("claims.toml"), "claim = []\n").unwrap();
    let scale = |name: &str, data: f64| {
        format!(
            "[scale.{name}]\nsizes = 1\ndata = {data}\nvalues = 1\nvalue_min = 1\n\
             requests_min = 1\n"
        )
    };
    let paper = format!(
        "title = \"Own\"\n[defaults]\nkey = \"8\"\nvalue = \"100\"\ndata = \"1MB\"\n\
         cache = \"1MB\"\ndevice = \"ssd:capacity=1GB\"\n[null]\n{}{}[system.adaptive]\n\
         about = \"the default\"\nscheme = \"adaptive\"\n",
        scale("whole", 1.0),
        scale("half", 0.5)
    );
    std::fs::write(data.join("own/paper.toml"), paper).unwrap();
    let experiment = "figure = \"Own\"\ntitle = \"A trace\"\nsystems = [\"adaptive\"]\n\
        [[phase]]\nname = \"before\"\ndo = \"replay\"\nload = true\ntrace = \"my.trace\"\n\
        [[phase]]\nname = \"run\"\ndo = \"replay\"\nrate = 1000\ntrace = \"my.trace\"\n\
        [[column]]\nname = \"operations\"\nmetric = \"run.ops\"\n";
    std::fs::write(data.join("own/trace.toml"), experiment).unwrap();
    let metric = |scale: &str, name: &str| -> f64 {
        let run =
            ["--quiet", "lab", "run", "all", "--data", "own", "--scale", scale, "--out", scale];
        shell.run(&run).ok();
        let rows = std::fs::read_to_string(shell.path(scale).join("metrics.csv")).unwrap();
        let row = rows.lines().find(|row| row.contains(&format!(",{name},"))).unwrap();
        row.rsplit(',').next().unwrap().parse().unwrap()
    };
    assert_eq!(metric("whole", "run.ops"), (3 * KEYS) as f64);
    // Each key is first met among the first 400 operations, and every third of these is a get.
    assert_eq!(metric("whole", "before.ops"), (KEYS / 3) as f64);
    assert_eq!(metric("whole", "run.user_bytes"), (2 * KEYS * 108) as f64);
    let seconds = metric("whole", "run.seconds");
    assert!((1.1..1.3).contains(&seconds), "1,200 operations at 1,000 a second: {seconds}");
    let half = metric("half", "run.ops");
    assert!((1.3 * KEYS as f64..1.7 * KEYS as f64).contains(&half), "{half}");
    std::fs::write(shell.path("my.trace"), format!("{head}{trace}nonsense\n")).unwrap();
    let run = ["lab", "run", "all", "--data", "own", "--scale", "whole", "--out", "bad"];
    let text = shell.run(&run).ok();
    let rows = std::fs::read_to_string(shell.path("bad/metrics.csv")).unwrap();
    let bad = format!("the first is line {}", 3 * KEYS + 2);
    assert!(rows.contains(&bad) && !text.is_empty(), "{rows}");
}
