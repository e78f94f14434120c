//! schemes: the manuals.

use crate::Shell;
use std::collections::BTreeSet;

#[test]
fn every_scheme_and_layout_has_its_manual() {
    let shell = Shell::new();
    for flags in [&["schemes"][..], &["schemes", "--values"]] {
        let listed = shell.run(&[flags, &["--json"]].concat()).json();
        let text = shell.run(flags).ok();
        assert!(listed.len() >= 3 && text.lines().count() == listed.len(), "{text}");
        let columns = listed.iter().zip(text.lines()).map(|(page, line)| {
            let (name, summary) = (page["name"].as_str()?, page["summary"].as_str()?);
            line.strip_prefix(name)?.starts_with("  ").then(|| line.find(summary))?
        });
        let columns: BTreeSet<Option<usize>> = columns.collect();
        assert!(columns.len() == 1 && !columns.contains(&None), "{columns:?} of {text}");
        for page in listed {
            let name = page["name"].as_str().expect("it has a name");
            let manual = shell.run(&[flags, &[name]].concat()).ok();
            assert!(manual.starts_with(&format!("{name}: ")) && manual.len() > 200, "{manual}");
            assert!(manual.lines().all(|line| line.chars().count() <= 110), "{manual}");
            let options = page["options"].as_array().expect("a list");
            assert!(options.iter().all(|o| manual.contains(o["name"].as_str().unwrap_or("?"))));
        }
    }
    assert!(shell.run(&["schemes", "lwc"]).ok().contains("division_parts = 12 (nodes)"));
    assert!(shell.run(&["schemes", "levelled"]).fails(2).contains("leveled, leveldb"));
}
