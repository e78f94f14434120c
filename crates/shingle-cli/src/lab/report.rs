//! The report as one self-contained HTML page.
//!
//! The table of claims sorts by its columns; without scripts it is in the order of the papers. On a
//! phone a row of a table of values is a card, and each cell says what it is.

use super::terminal::{counts, measured, passes};
use super::{Account, matrix, plot};
use lab::compare::spell;
use lab::experiment::Phase;
use lab::run::distinct_share;
use lab::{ClaimResult, Findings, ValueResult, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: [&str; 2] = [include_str!("../page.css"), include_str!("report.css")];
const SORT: &str = include_str!("sort.js");

/// The page.
pub fn render(account: &Account<'_>) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Shingle: the papers, rerun" }
                style { @for style in STYLE { (PreEscaped(style)) } }
            }
            body {
                h1 { "The papers, rerun" }
                (introduction(account))
                (tiles(account))
                (contents(account))
                h2 id="claims" { "Claims" }
                p.soft {
                    "A claim is as good as its worst value. A ratio is that of gains: the measured "
                    "distance from no effect over the paper's. Without: whether the value would "
                    "pass with the baseline in place of the proposed system. Headings sort."
                }
                (claims(account))
                @for (id, paper) in &account.library.papers {
                    @let of_paper = || account.findings.iter().filter(|f| {
                        f.experiment.id.split('/').next() == Some(id)
                    });
                    @if of_paper().next().is_some() {
                        h2 id=(id) { (paper.title) }
                        @for findings in of_paper() { (section(account, findings)) }
                    }
                }
                script { (PreEscaped(SORT)) }
            }
        }
    }
    .into_string()
}

fn introduction(account: &Account<'_>) -> Markup {
    let scale = account.scale;
    html! {
        p {
            "Figures and tables of the papers behind Shingle's schemes, on the engine itself and "
            "on models of the papers' devices, in virtual time: " code {
                "shingle lab run all --scale " (scale)
            } " gives the same figures on every machine. Verdicts follow rules that were fixed "
            "before the runs; nothing is tuned to meet a claim."
        }
        div.scroll { table {
            tr { th { "paper" } th { "scale " (scale) } }
            @for paper in account.library.papers.values() {
                @if let Some(scale) = paper.scales.get(scale) {
                    tr { td { (paper.title) } td { (scale.describe()) } }
                }
            }
        } }
        p.soft {
            "All runs: no compression, YCSB-C's Zipf, the log, where there is one, counted apart "
            "from WA, seek compaction off but where a figure is about it. db_bench's random loads "
            "draw keys with repetition: 63 % of them differ. Rates of devices shrink with sizes, "
            "so that a table takes as long as in the paper. A black line in a plot is the paper's "
            "value."
        }
    }
}

fn rank(verdict: Verdict) -> usize {
    Verdict::ALL.iter().position(|other| *other == verdict).unwrap_or(0)
}

fn badge(verdict: Verdict) -> Markup {
    html! { span class=(format!("verdict v{}", rank(verdict))) { (verdict.name()) } }
}

fn tiles(account: &Account<'_>) -> Markup {
    html! {
        ul.tiles {
            @for (verdict, claims, values) in counts(&account.claims) {
                li {
                    strong class=(format!("v{}", rank(verdict))) { (claims) }
                    span {
                        "claims: " (verdict.name())
                        @if verdict != Verdict::WithoutIdea { ", and " (values) " values" }
                    }
                }
            }
        }
    }
}

fn contents(account: &Account<'_>) -> Markup {
    html! {
        nav {
            @for findings in &account.findings {
                a href=(format!("#{}", findings.experiment.id)) {
                    (findings.experiment.id) ": " (findings.experiment.title)
                }
            }
        }
    }
}

fn claims(account: &Account<'_>) -> Markup {
    let headings = ["claim", "where", "value", "paper", "measured", "ratio", "verdict", "without"];
    html! {
        div.scroll { table.sortable.cards {
            thead { tr {
                @for heading in headings { th { button type="button" { (heading) } } }
            } }
            tbody {
                @for claim in &account.claims {
                    @for value in &claim.values { (row(claim, value)) }
                }
            }
        } }
    }
}

fn row(claim: &ClaimResult, value: &ValueResult) -> Markup {
    let first = value.measured.first().copied().unwrap_or(-1.0);
    html! {
        tr {
            td.ids { a href=(format!("#{}", claim.experiment)) { (claim.id) } }
            td.words data-is="where" { (claim.place) }
            td.words data-is="value" { (value.name) }
            td.words data-is="paper" { (value.paper) }
            td.number data-is="measured" data-sort=(first) { (measured(value)) }
            td.number data-is="ratio" data-sort=(value.ratio.unwrap_or(-1.0)) { (ratio(value)) }
            td data-is="verdict" data-sort=(rank(value.verdict)) { (badge(value.verdict)) }
            td.words data-is="without" { (passes(value.without)) }
        }
    }
}

fn ratio(value: &ValueResult) -> String {
    value.ratio.map_or("-".into(), spell)
}

fn section(account: &Account<'_>, findings: &Findings<'_>) -> Markup {
    let experiment = findings.experiment;
    let of_here = account.claims.iter().filter(|claim| claim.experiment == experiment.id);
    html! {
        section id=(experiment.id) {
            h3 { (experiment.figure) ": " (experiment.title) }
            p.soft {
                code { "shingle lab run " (experiment.id) " --scale " (account.scale) } ": "
                (findings.scale.describe())
            }
            @if !experiment.deviation.is_empty() {
                p { "Otherwise than in the paper: " (experiment.deviation) }
            }
            div.plots { @for one in &experiment.plots { (plot::draw(findings, one)) } }
            @if !experiment.columns.is_empty() { (matrix::tables(findings)) }
            @for claim in of_here { (compared(claim)) }
            (runs(account, findings))
        }
    }
}

fn compared(claim: &ClaimResult) -> Markup {
    html! {
        h4 { (claim.id) ": " (badge(claim.verdict)) }
        div.scroll { table.cards {
            tr.head {
                th { "value" } th { "paper" } th { "measured" } th { "ratio" } th { "verdict" }
                th { "without" } th { "why" }
            }
            @for value in &claim.values {
                tr {
                    td.words { (value.name) }
                    td.words data-is="paper" { (value.paper) }
                    td.number data-is="measured" { (measured(value)) }
                    td.number data-is="ratio" { (ratio(value)) }
                    td data-is="verdict" { (badge(value.verdict)) }
                    td.words data-is="without" { (passes(value.without)) }
                    td.why data-is="why" { (value.reason) }
                }
            }
        } }
    }
}

/// What was run: each system with a word about it, the phases, and what every result must say.
fn runs(account: &Account<'_>, findings: &Findings<'_>) -> Markup {
    let experiment = findings.experiment;
    let paper = account.library.paper(experiment).ok();
    let cells = paper.and_then(|paper| experiment.cells(paper, account.scale).ok());
    let first = cells.as_ref().and_then(|cells| Some(&cells.first()?.settings));
    let stated = first.and_then(|settings| settings.stated().ok());
    let distinct = |phase: &Phase| distinct_share(&first?.with(&phase.settings).ok()?).ok()?;
    html! {
        details {
            summary { "What was run" }
            ul {
                @for name in &experiment.systems {
                    @let system = paper.and_then(|paper| paper.systems.get(name));
                    li { strong { (name) } ": " (system.map_or("", |system| &system.about)) }
                }
                @for phase in &experiment.phases {
                    @let settings = phase.settings.iter().map(|(n, v)| format!("{n} = {v}"));
                    li {
                        "phase " strong { (phase.name) } ": "
                        (settings.collect::<Vec<_>>().join(", "))
                        @if let Some(share) = distinct(phase) {
                            "; " (format!("{:.0}", 100.0 * share)) " % of its keys differ"
                        }
                    }
                }
                li { @for (name, value) in stated.into_iter().flatten() {
                    (name.replace('_', " ")) ": " (value) "; "
                } }
                @for ((system, point), outcome) in &findings.table {
                    @if let Err(why) = outcome {
                        li.bad { (system) " " (point.as_deref().unwrap_or("")) " failed: " (why) }
                    }
                }
            }
        }
    }
}
