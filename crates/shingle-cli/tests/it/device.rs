//! device, databases on a file without a file system, and benchmarks in simulation.

use crate::{Ran, Shell, write};

fn shingle(shell: &Shell, arguments: &[&str]) -> Ran {
    Ran(shell.command().args(arguments).output().expect("it runs"))
}

#[test]
fn every_command_works_on_a_formatted_file() {
    let shell = Shell::new();
    let format = ["device", "format", "my.db", "--size", "64MiB"];
    let text = shingle(&shell, &format).ok();
    assert!(text.contains("placement ext4-like"), "{text}");
    for (key, value) in [("apple", "red"), ("pear", "green"), ("plum", "blue")] {
        shell.run(&["put", key, value]).ok();
    }
    assert_eq!(shell.run(&["get", "apple"]).ok(), "red\n");
    shell.run(&["delete", "pear", "--sync"]).ok();
    shell.run(&["compact"]).ok();
    assert_eq!(shell.run(&["scan"]).ok(), "apple : red\nplum : blue\n");
    assert!(shell.run(&["check"]).ok().contains("everything is as it was written"));
    assert!(shell.run(&["dump", "manifest"]).ok().len() > 10);
    shell.run(&["stat"]).ok();
    for command in [["checkpoint", "copy"], ["salvage", "saved"]] {
        shell.run(&command).ok();
        let text = shingle(&shell, &["--db", command[1], "scan"]).ok();
        assert_eq!(text, "apple : red\nplum : blue\n", "{}", command[0]);
    }
    let facts = &shingle(&shell, &["--json", "device", "info", "my.db"]).json()[0];
    assert_eq!(facts["store"]["placement"], "ext4-like");
    assert!(facts["store"]["files"].as_u64() > Some(1));
    assert!(shingle(&shell, &["device", "check", "my.db"]).ok().contains("files"));
    shingle(&shell, &["device", "map", "my.db", "--svg", "my.svg"]).ok();
    let picture = std::fs::read_to_string(shell.path("my.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("class=\"manifest\""), "{picture}");
    // The compaction is in the event log, with its place.
    assert!(picture.contains("write addresses") && picture.contains("flush, "), "{picture}");
}

#[test]
fn a_damaged_sector_is_found() {
    let shell = Shell::new();
    shingle(&shell, &["device", "format", "my.db", "--size", "16MiB"]).ok();
    shell.run(&["put", "apple", "red", "--sync"]).ok();
    shell.run(&["compact"]).ok();
    let mut bytes = std::fs::read(shell.path("my.db")).unwrap();
    let at = bytes.windows(5).rposition(|window| window == b"apple").expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(shell.path("my.db"), bytes).unwrap();
    let ran = shell.run(&["check"]);
    assert!(ran.out().contains("damage: "), "{}{}", ran.out(), ran.err());
    ran.fails(1);
}

#[test]
fn what_is_on_a_file_is_not_lost_unasked() {
    let shell = Shell::new();
    write(&shell.path("mine"), &[7; 1 << 20]);
    assert!(shingle(&shell, &["device", "format", "mine"]).fails(1).contains("not empty"));
    assert!(shingle(&shell, &["--db", "mine", "scan"]).fails(1).contains("superblock"));
    shingle(&shell, &["device", "format", "absent"]).fails(1);
    shingle(&shell, &["device", "format", "my.db", "--size", "16MiB"]).ok();
    shell.run(&["put", "apple", "red"]).ok();
    shingle(&shell, &["device", "format", "my.db"]).fails(1);
    let bench = ["--db", "my.db", "bench", "db", "--benchmarks=fillseq", "--num=10"];
    assert!(shingle(&shell, &bench).fails(1).contains("--use_existing_db"));
    assert_eq!(shell.run(&["get", "apple"]).ok(), "red\n");
    shingle(&shell, &["device", "format", "my.db", "--force"]).ok();
    assert_eq!(shell.run(&["keyspace", "list"]).code(), 1, "the database is gone");
    shingle(&shell, &bench).ok();
}

#[test]
fn models_and_placements_explain_themselves() {
    let shell = Shell::new();
    let text = shingle(&shell, &["device", "list"]).ok();
    assert!(text.contains("model smr-raw: ") && text.contains("placement zones: "), "{text}");
    let text = shingle(&shell, &["device", "info", "smr-banded"]).ok();
    assert!(text.contains("media-cache") && text.contains("40MiB"), "{text}");
    assert!(shingle(&shell, &["device", "info", "hdd:rpm=1"]).fails(2).contains("rpm"));
    let rates = shingle(&shell, &["--json", "device", "bench", "hdd", "--count", "2000"]).json();
    assert_eq!(rates.len(), 4);
    let megabytes = rates[0]["megabytes"].as_f64().unwrap();
    assert!((megabytes - 169.0).abs() < 1.0, "the calibrated figure: {megabytes}");
    write(&shell.path("disk"), &[0; 1 << 21]);
    let rates = shingle(&shell, &["device", "bench", "disk", "--count", "10", "--overwrite"]).ok();
    assert_eq!(rates.lines().count(), 4, "{rates}");
}

/// A line of the benchmark, without what belongs to this machine.
fn simulated(shell: &Shell, arguments: &[&str]) -> Vec<serde_json::Value> {
    let all = [&["--json", "bench"], arguments].concat();
    let mut records = shingle(shell, &all).json();
    for record in &mut records {
        record["peak_rss_bytes"] = serde_json::Value::Null;
    }
    records
}

#[test]
fn benchmarks_run_in_simulation_the_same_each_time() {
    let shell = Shell::new();
    let model = "smr-raw:capacity=1GiB,track=64KiB";
    let flags = ["--benchmarks=fillrandom,fillseq,readrandom,readseq,compact", "--num=20000"];
    let device = ["--device", model, "--scheme", "sets", "--map", "map.svg", "db"];
    let first = simulated(&shell, &[&device[..], &flags].concat());
    assert_eq!(first, simulated(&shell, &[&device[..], &flags].concat()));
    for record in &first {
        let number = |name: &str| record[name].as_f64().unwrap();
        assert_eq!(record["is_simulated"], true);
        assert!(number("seconds") > 0.0, "{record}");
        if number("host_write_bytes") > 0.0 {
            assert_eq!(number("media_write_bytes"), number("host_write_bytes"), "{record}");
            assert_eq!(number("awa"), 1.0);
        }
    }
    assert!(first[0]["mwa"].as_f64() >= first[0]["wa_without_wal"].as_f64());
    let picture = std::fs::read_to_string(shell.path("map.svg")).unwrap();
    assert!(picture.contains("write addresses") && picture.contains("class=\"l0\""));
    let words = shingle(&shell, &[&["bench"], &device[..4], &["db", "--threads=2"]].concat());
    assert!(words.fails(1).contains("one thread"));
    let ycsb = ["--device", "hdd", "ycsb", "-P", "workloada", "-p", "recordcount=500"];
    assert_eq!(simulated(&shell, &ycsb).len(), 2);
    shingle(&shell, &["bench", "--device", "hdd:rpm=1", "db", "--num=10"]).fails(2);
    shingle(&shell, &["bench", "--device", "floppy", "db", "--num=10"]).fails(2);
}

/// The sum of a number over the parts of causes.
fn sum(causes: &serde_json::Value, name: &str) -> f64 {
    let parts = causes.as_array().into_iter().flatten();
    parts.map(|part| part[name].as_f64().unwrap_or(0.0)).sum()
}

#[test]
fn factors_of_intervals_add_up_to_those_of_the_benchmark() {
    let shell = Shell::new();
    let flags = [
        "--device=smr-banded:capacity=2GiB,band=8MiB,media-cache=none",
        "db",
        "--benchmarks=fillrandom",
        "--num=150000",
        "--write_buffer_size=1048576",
        "--target_file_size_base=1048576",
        "--report_file=rows.json",
        "--report_interval_seconds=1",
    ];
    let record = &simulated(&shell, &flags)[0];
    let rows = std::fs::read_to_string(shell.path("rows.json")).unwrap();
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 2, "{record}");
    let (mut host, mut media) = (0.0, 0.0);
    for row in &rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        let causes = &row["interval_causes"];
        assert!((sum(causes, "wa") - number("interval_wa")).abs() < 1e-9, "{row}");
        assert!((sum(causes, "mwa") - number("interval_mwa")).abs() < 1e-9, "{row}");
        host += sum(causes, "write_bytes");
        media += sum(causes, "media_write_bytes");
        assert!((media / host - number("awa")).abs() < 1e-9, "{row}");
    }
    assert!(rows.windows(2).any(|pair| pair[0]["interval_awa"] != pair[1]["interval_awa"]));
    let number = |name: &str| record[name].as_f64().unwrap();
    assert!(host <= number("host_write_bytes") && media <= number("media_write_bytes"));
    assert_eq!(sum(&record["causes"], "write_bytes"), number("host_write_bytes"));
    assert_eq!(sum(&record["causes"], "media_write_bytes"), number("media_write_bytes"));
    assert!(number("awa") > 1.1, "bands are rewritten: {record}");
    assert!((number("wa") * number("awa") - number("mwa")).abs() < 1e-9, "{record}");
    assert!((number("merge_ra") * number("ara") - number("mra")).abs() < 1e-9, "{record}");
}

/// Left edges of what the chart of a picture shows of one kind.
fn charted(picture: &str, kind: &str) -> Vec<f64> {
    let document = roxmltree::Document::parse(picture).expect("the picture is XML");
    let titles = document.descendants().filter(|node| node.has_tag_name("title"));
    let wanted = titles.filter(|title| title.text().is_some_and(|text| text.starts_with(kind)));
    let shapes = wanted.filter_map(|title| title.parent());
    let charted = shapes.filter(|shape| shape.attribute("width") == Some("1.2"));
    charted.filter_map(|shape| shape.attribute("x")?.parse().ok()).collect()
}

#[test]
fn an_existing_database_tells_where_and_how_much_it_wrote_over_time() {
    let shell = Shell::new();
    shingle(&shell, &["device", "format", "my.db", "--size", "64MiB"]).ok();
    let sizes = ["--write_buffer_size=65536", "--target_file_size_base=65536"];
    // Few enough that the event log, which is short in tests, keeps both benchmarks.
    let bench = ["--db", "my.db", "bench", "db", "--num=2000"];
    let mut ends = Vec::new();
    for more in [
        &["--benchmarks=fillrandom,compact"][..],
        &["--benchmarks=overwrite,compact", "--use_existing_db=1"],
    ] {
        shingle(&shell, &[&bench[..], &sizes, more].concat()).ok();
        let stat = &shingle(&shell, &["--json", "--db", "my.db", "stat"]).json()[0];
        let history = &stat["history"];
        let intervals = history["intervals"].as_array().unwrap();
        let all = &history["recorded"];
        let user: u64 = intervals.iter().filter_map(|of| of["user_write_bytes"].as_u64()).sum();
        assert_eq!(all["user_write_bytes"], user);
        assert!(all["wa"].as_f64() > all["wa_without_wal"].as_f64(), "{history}");
        assert!(all["wa_without_wal"].as_f64() > Some(1.0), "{history}");
        assert!((sum(&all["causes"], "wa") - all["wa"].as_f64().unwrap()).abs() < 1e-9);
        assert!(all["awa"].is_null(), "the medium of a file is not counted: {history}");
        ends.push((intervals.len(), user));
    }
    // One for each benchmark, whose bytes are all there.
    assert_eq!(ends, [(1, 2000 * 116), (2, 2 * 2000 * 116)]);
    let text = shingle(&shell, &["--db", "my.db", "stat"]).ok();
    let (_, table) = text.split_once("Amplification by interval").expect("there is history");
    let names = table.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.skip(1).collect();
    assert_eq!((names[0], names[3], names[4]), ("until", "all", "Writes"), "{text}");
    shingle(&shell, &["device", "map", "my.db", "--svg", "my.svg"]).ok();
    let picture = std::fs::read_to_string(shell.path("my.svg")).unwrap();
    let (flushes, merges) = (charted(&picture, "flush, "), charted(&picture, "compaction-L"));
    assert!(flushes.len() > 2 && merges.len() >= 2, "{flushes:?} {merges:?}");
    let mut columns: Vec<i64> = merges.iter().map(|x| *x as i64).collect();
    columns.dedup();
    assert!(columns.is_sorted() && columns.len() > 1, "they come one after another: {merges:?}");
}

/// A program that stands for smartctl: it prints `sample`, with this many blocks written.
#[cfg(unix)]
fn smartctl(shell: &Shell, name: &str, sample: &str, blocks: u64) {
    use std::os::unix::fs::PermissionsExt;
    // At each call there are `blocks` more.
    let script = format!(
        "#!/bin/sh\nn=$(cat {name}.calls 2>/dev/null || echo 0)\necho $((n + 1)) > {name}.calls\n\
         sed \"s/61503210496/$((61503210496 + n * {blocks}))/\" <<'END'\n{sample}\nEND\n"
    );
    let path = shell.path(name);
    std::fs::write(&path, script).expect("it can be written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
}

#[test]
#[cfg(unix)]
fn counters_of_a_drive_stand_beside_the_ledger() {
    let shell = Shell::new();
    smartctl(&shell, "smartctl", include_str!("../smart/sata-241-lbas.json"), 100_000);
    let run = |words: &[&str]| {
        let program = shell.path("smartctl");
        let mut command = shell.command();
        Ran(command.env("SHINGLE_SMARTCTL", program).args(words).output().expect("it runs"))
    };
    shingle(&shell, &["device", "format", "my.db", "--size", "16MiB"]).ok();
    let text = run(&["device", "info", "my.db", "--smart", "/dev/sda"]).ok();
    assert!(text.contains("hosts wrote 31.5 TB (241 Total_LBAs_Written)"), "{text}");
    assert!(text.contains("no WA2"), "{text}");
    let flags = ["db", "--benchmarks=fillrandom", "--num=20000"];
    let bench = [&["bench", "--smart", "/dev/sda"], &flags[..]].concat();
    let text = run(&bench).ok();
    assert!(text.contains("hosts wrote 51.2 MB, this run"), "{text}");
    assert!(text.contains("others wrote to the drive too"), "{text}");
    let facts = run(&[&["--json"], &bench[..]].concat()).json();
    let (load, smart) = (&facts[0], &facts[1]);
    let own = smart["own_write_bytes"].as_u64().unwrap();
    assert!(own >= load["host_write_bytes"].as_u64().unwrap(), "{facts:?}");
    assert_eq!(smart["drive_host_write_bytes"], 51_200_000);
    assert_eq!(smart["other_write_bytes"].as_u64().unwrap() + own, 51_200_000);
    // Without access to them, the error says why, and what to do.
    smartctl(&shell, "smartctl", include_str!("../smart/denied.json"), 0);
    let words = run(&bench).fails(1);
    assert!(words.contains("Permission denied") && words.contains("root"), "{words}");
    let mut absent = shell.command();
    absent.env("SHINGLE_SMARTCTL", "/nowhere/smartctl").args(&bench);
    assert!(Ran(absent.output().expect("it runs")).fails(1).contains("smartmontools"));
    let model = [&["bench", "--smart", "/dev/sda", "--device", "hdd"], &flags[..]].concat();
    run(&model).fails(2);
}

#[test]
fn a_file_that_is_no_store_is_called_that() {
    let shell = Shell::new();
    for bytes in [&b""[..], b"root:x:0:0\n", &[b'x'; 10_000]] {
        write(&shell.path("passwd"), bytes);
        let words = shingle(&shell, &["--db", "passwd", "get", "root"]).fails(1);
        assert!(words.contains("passwd") && words.contains("not formatted"), "{words}");
        assert_eq!(std::fs::read(shell.path("passwd")).unwrap(), bytes);
    }
}
