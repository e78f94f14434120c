//! Writes the lab's verdicts to `docs/papers`. `shingle lab run --out DIR` leaves them in
//! `DIR/papers`. They replace each page from its claims (or, where no paper claims anything, from
//! its tables) on, and the picture and the counts in its head, so no verdict is typed by hand.
//! Values and pictures become files beside the pages. The pages of papers that were not run stay.
//! The count of all verdicts is made anew, here and in `README.md`, and so are the pictures of all
//! values.
//!
//! What verdicts follow from is kept as data, so that they can be made again without a run: of the
//! scale `small` the metrics that anything reads, of runs at the size of the papers, which take
//! days, all of them. The latter have pages of their own.

use crate::release;
use crate::repository::Repository;
use std::collections::{BTreeMap, BTreeSet};
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
/// Where the metrics of the scale `small` are kept.
const SMALL_DATA: &str = "docs/papers/small-scale/";
/// What the head of a page has below its introduction.
const PICTURE: &str = "![";
/// As [`counts`] finds it in a page.
const FULL_SIZE: &str = "paper";
const SMALL: &str = "small";
/// What `README.md` says of all papers stands between these.
const OVERVIEW: (&str, &str) = ("At the scale `small`, ", " | [the lab](docs/manual/lab.md)");

/// Writes the pages anew whose papers `results` has, the count of all, and the pictures of values.
pub fn write(repository: &Repository, results: Option<&Path>) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("these texts lie nowhere")?;
    let mut pages = pages(repository);
    if let Some(results) = results {
        take(&mut pages, root, results)?;
    }
    let mut texts = vec![(TOTAL.to_string(), total(&pages))];
    let readme = repository.text("README.md").ok_or("there is no README.md")?;
    texts.push(("README.md".to_string(), overview(readme, &pages)?));
    for (path, text) in pages.into_iter().chain(texts) {
        fs::write(root.join(&path), text)
            .map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    let draw = ["run", "--quiet", "--package", "shingle-cli", "--", "--quiet", "lab", "draw"];
    release::cargo(repository, &[&draw[..], &[FOLDER]].concat())
}

/// The pages of papers by their paths.
fn pages(repository: &Repository) -> BTreeMap<String, String> {
    let is_page = |path: &str| {
        let name = path.strip_prefix(FOLDER);
        path != TOTAL && name.is_some_and(|name| !name.contains('/') && name.ends_with(".md"))
    };
    let pages = repository.texts.iter().filter(|(path, _)| is_page(path));
    pages.map(|(path, text)| (path.clone(), text.clone())).collect()
}

/// Takes the pages that `results` has, and what stands beside them.
fn take(pages: &mut BTreeMap<String, String>, root: &Path, results: &Path) -> Result<(), String> {
    let new = results_of(pages, results);
    if new.is_empty() {
        let results = results.display();
        return Err(format!("{results}/papers has no page; `shingle lab run` writes them"));
    }
    let scale_is = |scale| new.values().any(|claims| is_of_scale(claims, scale));
    let (is_full_size, is_small) = (scale_is(FULL_SIZE), scale_is(SMALL));
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
    if is_small {
        keep_small(root, results)?;
    }
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

fn is_of_scale(claims: &str, scale: &str) -> bool {
    counts(claims).is_some_and(|(found, _)| found == scale)
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

/// Keeps the metrics of the papers that `results` has beside those of the others.
fn keep_small(root: &Path, results: &Path) -> Result<(), String> {
    let cannot = |error| format!("cannot keep metrics in {SMALL_DATA}: {error}");
    let new = fs::read_to_string(results.join("papers/metrics.csv")).map_err(cannot)?;
    let path = root.join(SMALL_DATA).join("metrics.csv");
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::create_dir_all(root.join(SMALL_DATA)).map_err(cannot)?;
    fs::write(path, merged(&old, &new)).map_err(cannot)
}

/// The rows of `new`, and those of `old` of other papers; experiments begin with their paper.
fn merged(old: &str, new: &str) -> String {
    let paper = |row: &str| row.split('/').next().unwrap_or_default().to_string();
    let of_new: BTreeSet<String> = new.lines().map(paper).collect();
    let kept = old.lines().skip(1).filter(|row| !of_new.contains(&paper(row)));
    let mut rows: Vec<&str> = new.lines().skip(1).chain(kept).collect();
    // Papers in one order, whichever came first; the rows of a paper stay in theirs.
    rows.sort_by_key(|row| paper(row));
    let header = new.lines().next().unwrap_or_default();
    std::iter::once(header).chain(rows).map(|row| format!("{row}\n")).collect()
}

/// How many claims of each paper got which verdict, as the pages say themselves.
fn total(pages: &BTreeMap<String, String>) -> String {
    let mut text = "# The papers\n\nHow many claims of five papers are reproduced when the lab \
                    reruns their figures. Each row is the result of one\n`shingle lab run PAPER \
                    --scale SCALE`. At `small` everything is scaled down; at `paper` nothing is.\n\
                    [The manual](../manual/lab.md) defines scales and verdicts, and [the decisions]\
                    (decisions/README.md) explain the\nset-ups.\n\n\
                    | paper | scale | claims | reproduced | reproduced in shape | also pass \
                    without the idea | not reproduced | cannot be reproduced |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_string();
    table(&mut text, pages, counts);
    text += "\nA claim that *also passes without the idea* passes with the paper's system replaced \
             by its baseline, so\nit says nothing about the system. Each page lists these claims \
             by name.\n\n## How far values are from the papers'\n\nValues by the measured gain \
             over the paper's. The gain is the distance from no effect: of a ratio between \
             systems\nfrom 1.\n\n\
             | paper | scale | values with a ratio | within 1.25x | within 1.5x | within 2x | \
             beyond |\n|---|---|---|---|---|---|---|\n";
    table(&mut text, pages, factors);
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

/// Finds the scale of a page, and counts.
type CountsOf<const N: usize> = fn(&str) -> Option<(&str, [u32; N])>;

/// A row for each page that has counts, and one for all pages of a scale.
fn table<const N: usize>(text: &mut String, pages: &BTreeMap<String, String>, counts: CountsOf<N>) {
    let mut by_scale: BTreeMap<&str, Vec<(&str, [u32; N])>> = BTreeMap::new();
    for (path, page) in pages.iter().filter(|(path, _)| *path != TOTAL) {
        let Some((scale, counts)) = counts(page) else { continue };
        by_scale.entry(scale).or_default().push((path.trim_start_matches(FOLDER), counts));
    }
    // `small` first, which has all.
    for (scale, pages) in by_scale.iter().rev() {
        let mut all = [0; N];
        for (file, counts) in pages {
            let name = file.trim_end_matches(".md").replace('-', " ");
            row(text, &format!("[{name}]({file})"), scale, counts);
            all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
        }
        row(text, "all", scale, &all);
    }
}

fn row(text: &mut String, name: &str, scale: &str, counts: &[u32]) {
    let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
    let _ = writeln!(text, "| {name} | `{scale}` | {} |", counts.join(" | "));
}

/// `readme` with the counts of the pages of `small`.
fn overview(readme: &str, pages: &BTreeMap<String, String>) -> Result<String, String> {
    let (before, rest) = readme.split_once(OVERVIEW.0).ok_or("README.md has no overview")?;
    let (_, after) = rest.split_once(OVERVIEW.1).ok_or("README.md's overview has no end")?;
    let found =
        pages.iter().filter(|(path, _)| *path != TOTAL).filter_map(|(_, page)| counts(page));
    let mut all = [0; 6];
    for (_, counts) in found.filter(|(scale, _)| *scale == SMALL) {
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    let [claims, hold, shape, without, not, _] = all;
    Ok(format!(
        "{before}{}{hold} of {claims} claims are [reproduced](docs/papers/README.md), {shape} in \
         shape (the same direction, and a gain within 2 times the paper's, by [fixed \
         rules](docs/manual/lab.md#verdicts)); {without} would pass without the paper's idea too, \
         and {not} are not reproduced{}{after}",
        OVERVIEW.0, OVERVIEW.1
    ))
}

/// The paragraph of a page that begins so, in one line.
fn paragraph(page: &str, start: &str) -> Option<String> {
    let at = page.find(&format!("\n\n{start}"))?;
    Some(page[at + 2..].split("\n\n").next()?.replace('\n', " "))
}

/// The numbers of a sentence, without those that say within what.
fn numbers(sentence: &str) -> Vec<u32> {
    let words: Vec<&str> = sentence.split(' ').collect();
    let after = words.windows(2).filter(|pair| pair[0] != "within");
    after.filter_map(|pair| pair[1].parse().ok()).collect()
}

/// The scale of a page's claims, how many they are, and how many got each verdict.
fn counts(page: &str) -> Option<(&str, [u32; 6])> {
    let scale = page.split_once("\n\nAt `")?.1.split_once('`')?.0;
    let counts = numbers(&paragraph(page, "At `")?);
    Some((scale, counts.try_into().ok()?))
}

/// The scale, how many values have a ratio, and how many are near how much.
fn factors(page: &str) -> Option<(&str, [u32; 5])> {
    let (scale, _) = counts(page)?;
    let counts = numbers(&paragraph(page, "Of ")?);
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
    use super::{TOTAL, full_size_page, is_of_scale, merged, overview, page, pages, total};
    use crate::repository::Repository;
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
        let new = page("a.md", old, &claims("small", [9, 4, 3, 0, 1, 1])).unwrap();
        let order =
            ["\n\nWords.\n\n![A]", "\n\nAt `small`", "\n\n## Why\n\nMore.\n\n## Claims\n\n| new"];
        let places = order.map(|part| new.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{new}");
        let next = page("a.md", &new, &claims("small", [9, 5, 2, 0, 1, 1])).unwrap();
        assert!(next.contains("claims 5 are") && next.lines().count() == new.lines().count());
    }

    /// Claims as the lab writes them, `counts` being how many there are and got which verdict.
    fn claims(scale: &str, [a, b, c, d, e, f]: [u32; 6]) -> String {
        format!(
            "![A](pictures/a-{scale}.svg)\n\nAt `{scale}`, of {a} claims {b} are reproduced, {c} \
             in shape, {d} also pass\nwithout the idea, {e} are not reproduced and {f} cannot be \
             reproduced.\n\nOf 20 values with a ratio {b} are within 1.25 times the paper's, 7 \
             within 1.5 times, 10\nwithin 2 times and {e} beyond.\n\n## Claims\n\n| new |\n"
        )
    }

    #[test]
    fn verdicts_are_counted_from_the_pages_scale_by_scale() {
        let page = |scale: &str, counts| format!("# A\n\n{}", claims(scale, counts));
        let pages = [
            ("docs/papers/a-full-size.md", page("paper", [1, 1, 0, 0, 0, 0])),
            ("docs/papers/a.md", page("small", [9, 4, 3, 0, 1, 1])),
            ("docs/papers/b.md", "# Tables\n\n## Side by side\n".to_string()),
            ("docs/papers/c.md", page("small", [2, 0, 0, 1, 1, 0])),
        ];
        let pages: BTreeMap<String, String> =
            pages.into_iter().map(|(path, page)| (path.to_string(), page)).collect();
        let text = total(&pages);
        let is_row = |line: &&str| line.contains(" | ") && !line.starts_with("| paper |");
        let rows: Vec<&str> = text.lines().filter(is_row).collect();
        assert_eq!(
            rows,
            [
                "| [a](a.md) | `small` | 9 | 4 | 3 | 0 | 1 | 1 |",
                "| [c](c.md) | `small` | 2 | 0 | 0 | 1 | 1 | 0 |",
                "| all | `small` | 11 | 4 | 3 | 1 | 2 | 1 |",
                "| [a full size](a-full-size.md) | `paper` | 1 | 1 | 0 | 0 | 0 | 0 |",
                "| all | `paper` | 1 | 1 | 0 | 0 | 0 | 0 |",
                "| [a](a.md) | `small` | 20 | 4 | 7 | 10 | 1 |",
                "| [c](c.md) | `small` | 20 | 0 | 7 | 10 | 1 |",
                "| all | `small` | 40 | 4 | 14 | 20 | 2 |",
                "| [a full size](a-full-size.md) | `paper` | 20 | 1 | 7 | 10 | 0 |",
                "| all | `paper` | 20 | 1 | 7 | 10 | 0 |",
            ]
        );
        assert!(
            text.ends_with("\n\nA comparison that no paper makes: [Tables](b.md).\n"),
            "{text}"
        );
        let readme = "| rerun. At the scale `small`, 9 of them | [the lab](docs/manual/lab.md) |";
        let text = overview(readme, &pages).unwrap();
        assert!(
            text.contains("small`, 4 of 11 claims are") && text.contains("; 1 would"),
            "{text}"
        );
        assert_eq!(overview(&text, &pages).unwrap(), text);
        assert!(overview("# Shingle\n", &pages).is_err());
    }

    #[test]
    fn what_is_said_of_all_papers_is_what_their_pages_say() {
        let repository = Repository::load().expect("the repository is readable");
        let pages = pages(&repository);
        let text = total(&pages);
        assert_eq!(repository.text(TOTAL), Some(text.as_str()), "cargo xtask papers");
        let readme = repository.text("README.md").unwrap();
        assert_eq!(overview(readme, &pages).as_deref(), Ok(readme), "cargo xtask papers");
    }

    #[test]
    fn kept_metrics_of_other_papers_stay() {
        let old = "experiment,system\na/fig1,x\na/fig2,x\nb/fig1,x\n";
        let new = "experiment,system\nb/fig1,y\n";
        assert_eq!(merged(old, new), "experiment,system\na/fig1,x\na/fig2,x\nb/fig1,y\n");
        assert_eq!(merged("", new), new);
    }

    #[test]
    fn runs_at_full_size_have_a_page_of_their_own() {
        let own = claims("paper", [1, 1, 0, 0, 0, 0]);
        assert!(is_of_scale(&own, "paper") && !is_of_scale(&own, "small"));
        let text = full_size_page("# A\n\nWords.\n", &own);
        assert!(text.starts_with("# A at full size\n\n") && text.ends_with(&own), "{text}");
    }
}
