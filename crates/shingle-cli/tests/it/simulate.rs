//! simulate: what-if questions.

use crate::Shell;

#[test]
fn schemes_are_compared_without_data() {
    let shell = Shell::new();
    let flags =
        ["simulate", "--scheme", "leveldb,ldc", "--writes", "400000", "--value-size", "1024"];
    let flags = [&flags[..], &["--memtable-bytes", "4194304", "--table-bytes", "2097152"]].concat();
    let results = shell.run(&[&flags[..], &["--json"]].concat()).json();
    let amplification =
        |i: usize| results[i]["write_amplification"].as_f64().expect("it has a figure");
    assert_eq!(results.len(), 2);
    assert!(amplification(0) > 1.5 * amplification(1) && amplification(1) > 1.0, "{results:?}");
    let text = shell.run(&flags).ok();
    assert!(text.contains("leveldb") && text.contains("a second") && text.contains("L2"), "{text}");
    assert!(!shell.path("my.db").exists());
}

#[test]
fn value_layouts_cost_what_their_closed_form_says() {
    let shell = Shell::new();
    let flags = ["simulate", "--json", "--values", "hashed,log", "--reserved-ratio", "0.2,0.5"];
    let sizes = ["--writes", "4000000", "--keys-count", "1000000", "--value-size", "1024"];
    let results = shell.run(&[&flags[..], &sizes].concat()).json();
    assert_eq!(results.len(), 4);
    for result in results.iter().filter(|result| result["values"] == "hashed") {
        let of = |name: &str| result[name].as_f64().expect("it has a figure");
        let form = 1.0 + 1.0 / (2.0 * of("reserved_ratio"));
        assert!((of("write_amplification") / form - 1.0).abs() < 0.15, "{result}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let shell = Shell::new();
    shell.run(&["simulate", "--reads-share", "1.5"]).fails(2);
    shell.run(&["simulate", "--fan-out", "0"]).fails(2);
    shell.run(&["simulate", "--values", "inline"]).fails(2);
    shell.run(&["simulate", "--scheme", "nothing"]).fails(2);
}
