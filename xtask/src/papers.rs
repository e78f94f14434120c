//! Verdicts of the lab in `docs/papers`: what `shingle lab run --out DIR` wrote to `DIR/papers`
//! takes the place of all that a page has from its claims on, so that no verdict is typed by hand.
//! The pages of papers that were not run stay; what all pages say is counted.

use crate::repository::Repository;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/papers/";
/// The page that is written whole.
const TOTAL: &str = "docs/papers/README.md";
const HEADING: &str = "\n## Claims\n";

/// Writes the pages anew whose papers `results` has, and the count of all.
pub fn write(repository: &Repository, results: &Path) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("these texts lie nowhere")?;
    let mut pages = Vec::new();
    let mut is_any_new = false;
    for (path, old) in repository.texts.iter().filter(|(path, _)| path.starts_with(FOLDER)) {
        let name = path.trim_start_matches(FOLDER);
        let claims = fs::read_to_string(results.join("papers").join(name)).ok();
        is_any_new |= claims.is_some();
        if path != TOTAL {
            let page = claims.map_or(Ok(old.clone()), |claims| page(path, old, &claims))?;
            pages.push((path.as_str(), page));
        }
    }
    if !is_any_new {
        let results = results.display();
        return Err(format!("{results}/papers has no page; `shingle lab run` writes them"));
    }
    pages.push((TOTAL, total(&pages)));
    for (path, text) in pages {
        fs::write(root.join(path), text)
            .map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    Ok(())
}

/// How many claims of each paper got which verdict, as the pages say themselves.
fn total(pages: &[(&str, String)]) -> String {
    let mut text = "# The papers\n\nWhat the lab says of the papers' claims, each by \
                    `shingle lab run PAPER --scale SCALE` ([the manual](../manual/lab.md)).\n\n\
                    | paper | scale | claims | hold | hold in shape | do not hold | cannot be \
                    reproduced |\n|---|---|---|---|---|---|---|\n"
        .to_string();
    let mut row = |name: &str, scale: &str, counts: &[u32]| {
        let counts = counts.iter().map(u32::to_string).chain(std::iter::repeat(String::new()));
        let counts: Vec<String> = counts.take(5).collect();
        let _ = writeln!(text, "| {name} | {scale} | {} |", counts.join(" | "));
    };
    let mut all = [0; 5];
    for (path, page) in pages {
        let file = path.trim_start_matches(FOLDER);
        let name = format!("[{}]({file})", file.trim_end_matches(".md"));
        match counts(page) {
            Some((scale, counts)) => {
                row(&name, scale, &counts);
                all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
            }
            None => row(&name, "not counted", &[]),
        }
    }
    row("all", "", &all);
    text
}

/// The scale of a page's claims, how many they are, and how many got each verdict.
fn counts(page: &str) -> Option<(&str, [u32; 5])> {
    let claims = page.split_once(HEADING)?.1.trim_start().strip_prefix("At ")?;
    let (scale, counts) = claims.split_once('.')?.0.split_once(", of ")?;
    let counts: Vec<u32> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
    Some((scale, counts.try_into().ok()?))
}

/// `old` up to its claims, and `claims` behind it.
fn page(path: &str, old: &str, claims: &str) -> Result<String, String> {
    let (before, _) = old.split_once(HEADING).ok_or(format!("{path} has no heading `Claims`"))?;
    Ok(format!("{before}\n{claims}"))
}

#[cfg(test)]
mod tests {
    use super::{page, total};

    #[test]
    fn what_is_above_the_claims_stays() {
        let old = "# A\n\nWords.\n\n## Claims\n\n| old |\n\n## What does not hold\n\n- old\n";
        let new = page("a.md", old, "## Claims\n\n| new |\n").unwrap();
        assert_eq!(new, "# A\n\nWords.\n\n## Claims\n\n| new |\n");
        assert_eq!(page("a.md", &new, "## Claims\n\n| new |\n").unwrap(), new);
        assert!(page("a.md", "# A\n", "").is_err());
    }

    #[test]
    fn verdicts_are_counted_from_the_pages() {
        let page = |[a, b, c, d, e]: [u32; 5]| {
            format!(
                "# A\n\n## Claims\n\nAt `small`, of {a} claims {b} hold, {c} hold in shape, {d} do \
                 not hold and {e} cannot be reproduced.\n"
            )
        };
        let pages = [
            ("docs/papers/a.md", page([9, 4, 3, 1, 1])),
            ("docs/papers/b.md", "# B\n\nAt sea.\n\n## Claims\n\n| claim |\n".into()),
            ("docs/papers/c.md", page([2, 0, 1, 1, 0])),
        ];
        let text = total(&pages);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(" | ")).skip(1).collect();
        assert_eq!(
            rows,
            [
                "| [a](a.md) | `small` | 9 | 4 | 3 | 1 | 1 |",
                "| [b](b.md) | not counted |  |  |  |  |  |",
                "| [c](c.md) | `small` | 2 | 0 | 1 | 1 | 0 |",
                "| all |  | 11 | 4 | 4 | 2 | 1 |",
            ]
        );
    }
}
