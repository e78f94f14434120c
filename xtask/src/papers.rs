//! Writes the lab's verdicts to `docs/papers`. `shingle lab run --out DIR` leaves them in
//! `DIR/papers`. They replace each page from its claims (or, where no paper claims anything, from
//! its tables) on, and the picture and the counts in its head, so no verdict is typed by hand.
//! Values and pictures become files beside the pages. The pages of papers that were not run stay.
//! The count of all verdicts is made anew, and so are the pictures of all values.
//!
//! Runs at the size of the papers take days and are not repeated for a page. They have pages of
//! their own, and their verdicts and metrics are kept as data.

use crate::release;
use crate::repository::Repository;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const FOLDER: &str = "docs/papers/";
/// The page that is written whole.
const TOTAL: &str = "docs/papers/README.md";
/// Where the results of runs at the size of the papers are kept.
const DATA: &str = "docs/papers/paper-scale/";
/// What stands beside the pages: the values of claims, and the pictures.
const BESIDE: [&str; 2] = ["values", "pictures"];
const DATA_FILES: [&str; 2] = ["claims.csv", "metrics.csv"];
/// What the head of a page has below its introduction.
const PICTURE: &str = "![";
/// As [`counts`] finds it in a page.
const FULL_SIZE: &str = "paper";

/// Writes the pages anew whose papers `results` has, the count of all, and the pictures of values.
pub fn write(repository: &Repository, results: Option<&Path>) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("these texts lie nowhere")?;
    let is_page = |path: &str| {
        let name = path.strip_prefix(FOLDER);
        path != TOTAL && name.is_some_and(|name| !name.contains('/') && name.ends_with(".md"))
    };
    let pages = repository.texts.iter().filter(|(path, _)| is_page(path));
    let mut pages: BTreeMap<String, String> =
        pages.map(|(path, text)| (path.clone(), text.clone())).collect();
    if let Some(results) = results {
        take(&mut pages, root, results)?;
    }
    pages.insert(TOTAL.to_string(), total(&pages));
    for (path, text) in pages {
        fs::write(root.join(&path), text)
            .map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    let draw = ["run", "--quiet", "--package", "shingle-cli", "--", "--quiet", "lab", "draw"];
    release::cargo(repository, &[&draw[..], &[FOLDER]].concat())
}

/// Takes the pages that `results` has, and what stands beside them.
fn take(pages: &mut BTreeMap<String, String>, root: &Path, results: &Path) -> Result<(), String> {
    let new = results_of(pages, results);
    if new.is_empty() {
        let results = results.display();
        return Err(format!("{results}/papers has no page; `shingle lab run` writes them"));
    }
    let is_full_size = new.values().any(|claims| is_full_size(claims));
    for (path, claims) in new {
        let old = pages.get(&path).ok_or(format!("{path} is not there"))?;
        if is_full_size {
            let text = full_size_page(old, &claims);
            pages.insert(path.replace(".md", "-full-size.md"), text);
        } else {
            let text = page(&path, old, &claims)?;
            pages.insert(path, text);
        }
    }
    keep_beside(root, results)?;
    if is_full_size { keep(root, results) } else { Ok(()) }
}

/// Copies what stands beside the pages that `results` has.
fn keep_beside(root: &Path, results: &Path) -> Result<(), String> {
    for folder in BESIDE {
        let (from, to) = (results.join("papers").join(folder), root.join(FOLDER).join(folder));
        let cannot = |error| format!("cannot copy {} to {FOLDER}: {error}", from.display());
        fs::create_dir_all(&to).map_err(cannot)?;
        for file in fs::read_dir(&from).map_err(cannot)? {
            let file = file.map_err(cannot)?;
            fs::copy(file.path(), to.join(file.file_name())).map_err(cannot)?;
        }
    }
    Ok(())
}

/// The claims that `results` has, by the paths of the pages that they belong to.
fn results_of(pages: &BTreeMap<String, String>, results: &Path) -> BTreeMap<String, String> {
    let claims = |path: &String| {
        let name = path.trim_start_matches(FOLDER);
        Some((path.clone(), fs::read_to_string(results.join("papers").join(name)).ok()?))
    };
    pages.keys().filter_map(claims).collect()
}

/// Claims at the size of the papers.
fn is_full_size(claims: &str) -> bool {
    counts(claims).is_some_and(|(scale, _)| scale == FULL_SIZE)
}

/// A page of its own, with the title of the paper's page.
fn full_size_page(old: &str, claims: &str) -> String {
    let title = old.lines().next().unwrap_or_default();
    format!(
        "{title} at full size\n\nThese figures were run at the paper's sizes, with `shingle lab \
         run ID... --scale paper`, which takes days.\nThe verdicts and all metrics are kept in \
         [paper-scale](paper-scale). To make the report from them, run\n`shingle lab compare \
         docs/papers/paper-scale --scale paper`.\n\n{claims}"
    )
}

/// Keeps the results themselves.
fn keep(root: &Path, results: &Path) -> Result<(), String> {
    let folder = root.join(DATA);
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {DATA}: {error}"))?;
    for name in DATA_FILES {
        let copied = fs::copy(results.join(name), folder.join(name));
        copied.map_err(|error| format!("cannot copy {name} to {DATA}: {error}"))?;
    }
    Ok(())
}

/// How many claims of each paper got which verdict, as the pages say themselves.
fn total(pages: &BTreeMap<String, String>) -> String {
    let mut text = "# The papers\n\nHow many claims of five papers are reproduced when the lab \
                    reruns their figures. Each row is the result of one\n`shingle lab run PAPER \
                    --scale SCALE`. At `small` everything is scaled down; at `paper` nothing is.\n\
                    [The manual](../manual/lab.md) defines scales and verdicts, and [the decisions]\
                    (decisions/README.md) explain the\nset-ups.\n\n\
                    | paper | scale | claims | reproduced | reproduced in shape | not reproduced | \
                    cannot be reproduced |\n|---|---|---|---|---|---|---|\n"
        .to_string();
    let mut by_scale: BTreeMap<&str, Vec<(&str, [u32; 5])>> = BTreeMap::new();
    for (path, page) in pages.iter().filter(|(path, _)| *path != TOTAL) {
        let Some((scale, counts)) = counts(page) else { continue };
        by_scale.entry(scale).or_default().push((path.trim_start_matches(FOLDER), counts));
    }
    // `small` first, which has all.
    for (scale, pages) in by_scale.iter().rev() {
        let mut all = [0; 5];
        for (file, counts) in pages {
            let name = file.trim_end_matches(".md").replace('-', " ");
            row(&mut text, &format!("[{name}]({file})"), scale, counts);
            all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
        row(&mut text, "all", scale, &all);
    }
    text += "\nThe picture has a mark for each value that has a ratio to the paper's. On the line \
             at 1 both are equal.\n\n";
    text += "![All values, measured over the papers'](pictures/overview.svg)\n";
    for (path, page) in pages.iter().filter(|(path, page)| *path != TOTAL && counts(page).is_none())
    {
        let title = page.lines().next().unwrap_or_default().trim_start_matches("# ");
        let _ = write!(
            text,
            "\nA comparison that no paper makes: [{title}]({}).\n",
            path.trim_start_matches(FOLDER)
        );
    }
    text
}

fn row(text: &mut String, name: &str, scale: &str, counts: &[u32; 5]) {
    let counts = counts.map(|count| count.to_string()).join(" | ");
    let _ = writeln!(text, "| {name} | `{scale}` | {counts} |");
}

/// The scale of a page's claims, how many they are, and how many got each verdict.
fn counts(page: &str) -> Option<(&str, [u32; 5])> {
    let claims = page.lines().find_map(|line| line.strip_prefix("At `"))?;
    let (scale, counts) = claims.split_once('.')?.0.split_once("`, of ")?;
    let counts: Vec<u32> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
    Some((scale, counts.try_into().ok()?))
}

/// `old` up to the first heading of `new`, and `new` from there. What `new` has above its heading
/// stands in the head of the page, between the introduction and the first heading.
fn page(path: &str, old: &str, new: &str) -> Result<String, String> {
    let start = new.find("## ").ok_or(format!("the new text of {path} has no heading"))?;
    let (head, tail) = new.split_at(start);
    let heading = tail.lines().next().unwrap_or_default();
    let found = old.split_once(&format!("\n{heading}\n"));
    let (before, _) = found.ok_or(format!("{path} has no heading `{heading}`"))?;
    if head.is_empty() {
        return Ok(format!("{before}\n{tail}"));
    }
    let (introduction, rest) = before.split_once("\n## ").unwrap_or((before, ""));
    let introduction = introduction.split_once(PICTURE).map_or(introduction, |(words, _)| words);
    let rest = if rest.is_empty() { String::new() } else { format!("## {rest}\n") };
    Ok(format!("{}\n\n{head}{rest}{tail}", introduction.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::{full_size_page, is_full_size, page, total};
    use std::collections::BTreeMap;

    #[test]
    fn what_is_above_the_claims_stays() {
        let old = "# A\n\nWords.\n\n## Claims\n\n| old |\n\n## What does not hold\n\n- old\n";
        let new = page("a.md", old, "## Claims\n\n| new |\n").unwrap();
        assert_eq!(new, "# A\n\nWords.\n\n## Claims\n\n| new |\n");
        assert_eq!(page("a.md", &new, "## Claims\n\n| new |\n").unwrap(), new);
        assert!(page("a.md", "# A\n", "## Claims\n").is_err());
        let tables = page("a.md", "# A\n\n## Side by side\n\nold\n", "## Side by side\n\nnew\n");
        assert_eq!(tables.unwrap(), "# A\n\n## Side by side\n\nnew\n");
    }

    #[test]
    fn the_picture_and_the_counts_stand_below_the_introduction() {
        let old = "# A\n\nWords.\n\n## Why\n\nMore.\n\n## Claims\n\n| old |\n";
        let new = page("a.md", old, &claims("small", [9, 4, 3, 1, 1])).unwrap();
        let order =
            ["\n\nWords.\n\n![A]", "\n\nAt `small`", "\n\n## Why\n\nMore.\n\n## Claims\n\n| new"];
        let places = order.map(|part| new.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{new}");
        let next = page("a.md", &new, &claims("small", [9, 5, 2, 1, 1])).unwrap();
        assert!(next.contains("claims 5 are") && next.lines().count() == new.lines().count());
    }

    /// Claims as the lab writes them, `counts` being how many there are and got which verdict.
    fn claims(scale: &str, [a, b, c, d, e]: [u32; 5]) -> String {
        format!(
            "![A](pictures/a-{scale}.svg)\n\nAt `{scale}`, of {a} claims {b} are reproduced, {c} \
             in shape, {d} are not reproduced and {e} cannot be reproduced.\n\n## Claims\n\n\
             | new |\n"
        )
    }

    #[test]
    fn verdicts_are_counted_from_the_pages_scale_by_scale() {
        let page = |scale: &str, counts| format!("# A\n\n{}", claims(scale, counts));
        let pages = [
            ("docs/papers/a-full-size.md", page("paper", [1, 1, 0, 0, 0])),
            ("docs/papers/a.md", page("small", [9, 4, 3, 1, 1])),
            ("docs/papers/b.md", "# Tables\n\n## Side by side\n".to_string()),
            ("docs/papers/c.md", page("small", [2, 0, 1, 1, 0])),
        ];
        let pages: BTreeMap<String, String> =
            pages.into_iter().map(|(path, page)| (path.to_string(), page)).collect();
        let text = total(&pages);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains(" | ")).skip(1).collect();
        assert_eq!(
            rows,
            [
                "| [a](a.md) | `small` | 9 | 4 | 3 | 1 | 1 |",
                "| [c](c.md) | `small` | 2 | 0 | 1 | 1 | 0 |",
                "| all | `small` | 11 | 4 | 4 | 2 | 1 |",
                "| [a full size](a-full-size.md) | `paper` | 1 | 1 | 0 | 0 | 0 |",
                "| all | `paper` | 1 | 1 | 0 | 0 | 0 |",
            ]
        );
        assert!(
            text.ends_with("\n\nA comparison that no paper makes: [Tables](b.md).\n"),
            "{text}"
        );
    }

    #[test]
    fn runs_at_full_size_have_a_page_of_their_own() {
        let own = claims("paper", [1, 1, 0, 0, 0]);
        assert!(is_full_size(&own) && !is_full_size(&claims("small", [1, 1, 0, 0, 0])));
        let text = full_size_page("# A\n\nWords.\n", &own);
        assert!(text.starts_with("# A at full size\n\n") && text.ends_with(&own), "{text}");
    }
}
