//! Verdicts of the lab in `docs/papers`: what `shingle lab run all --out DIR` wrote to `DIR/papers`
//! takes the place of all that a page has from its claims on, so that no verdict is typed by hand.

use crate::repository::Repository;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/papers/";
/// The page that is written whole.
const TOTAL: &str = "docs/papers/README.md";
const HEADING: &str = "\n## Claims\n";

/// Writes every page of `docs/papers` anew from the results of one run.
pub fn write(repository: &Repository, results: &Path) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("these texts lie nowhere")?;
    let pages = repository.texts.iter().filter(|(path, _)| path.starts_with(FOLDER));
    let mut written = Vec::new();
    for (path, old) in pages.filter(|(path, _)| *path != TOTAL) {
        written.push((path.as_str(), page(path, old, &read(results, path)?)?));
    }
    written.push((TOTAL, read(results, TOTAL)?));
    for (path, text) in written {
        fs::write(root.join(path), text)
            .map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    Ok(())
}

fn read(results: &Path, page: &str) -> Result<String, String> {
    let path = results.join("papers").join(page.trim_start_matches(FOLDER));
    fs::read_to_string(&path).map_err(|error| {
        let path = path.display();
        format!("cannot read {path}: {error}; it is a result of `shingle lab run all`")
    })
}

/// `old` up to its claims, and `claims` behind it.
fn page(path: &str, old: &str, claims: &str) -> Result<String, String> {
    let (before, _) = old.split_once(HEADING).ok_or(format!("{path} has no heading `Claims`"))?;
    Ok(format!("{before}\n{claims}"))
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn what_is_above_the_claims_stays() {
        let old = "# A\n\nWords.\n\n## Claims\n\n| old |\n\n## What does not hold\n\n- old\n";
        let new = page("a.md", old, "## Claims\n\n| new |\n").unwrap();
        assert_eq!(new, "# A\n\nWords.\n\n## Claims\n\n| new |\n");
        assert_eq!(page("a.md", &new, "## Claims\n\n| new |\n").unwrap(), new);
        assert!(page("a.md", "# A\n", "").is_err());
    }
}
