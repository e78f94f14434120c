//! The demonstration as one self-contained HTML page: no script, no network.

use super::account::{Account, Verification};
use crate::chart::{Bar, Line, lines, page_bars};
use crate::commands::ledger;
use crate::units::{bytes, count, per_second, ratio, share, time};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("../page.css");

/// The page.
pub fn render(a: &Account) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Shingle: a demonstration" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Shingle on the data of this machine" }
                p.soft {
                    "One run of " code { "shingle demo" } ", seed " (a.seed) ", " (time(a.ns)) "."
                }
                (tiles(a))
                (data(a))
                (waterfall(a))
                (causes(a))
                (crashes(a))
                (latencies(a))
                (levels(a))
                (space(a))
                (verifications(a))
            }
        }
    }
    .into_string()
}

fn tile(figure: String, what: &str, class: &str) -> Markup {
    html! { li { strong class=(class) { (figure) } span { (what) } } }
}

fn tiles(a: &Account) -> Markup {
    let lost: u64 = a.crashes.iter().map(|crash| crash.lost).sum();
    let host = ledger::host_write_bytes(&a.ledger);
    let user = ledger::user_write_bytes(&a.ledger);
    let good = |is_good: bool| if is_good { "good" } else { "bad" };
    html! {
        ul.tiles {
            (tile(if a.ok { "ok" } else { "not ok" }.into(), "everything as promised", good(a.ok)))
            (tile(count(a.verified_end.values), "values compared with their source at the end",
                good(a.verified_end.wrong == 0)))
            (tile(count(lost), "acknowledged batches lost in the kills", good(lost == 0)))
            (tile(ratio(host, user), "bytes written per byte of the user (WA)", ""))
            (tile(ratio(a.space_bytes, a.live_bytes()), "bytes kept per byte of live data", ""))
        }
    }
}

fn data(a: &Account) -> Markup {
    html! {
        h2 { "What was imported" }
        p {
            (count(a.import_records)) " records, " (bytes(a.import_bytes)) " in "
            (time(a.import_ns)) " (" (bytes(per_second(a.import_bytes, a.import_ns)))
            "/s), an index of words included. Then " (count(a.updated))
            " values were updated, " (count(a.deleted)) " keys deleted one by one, and "
            (count(a.range_deleted_keys)) " files below " code { (a.range_deleted) }
            " removed by one range deletion."
        }
        (page_bars("bytes by origin", &a.origins.iter().map(|origin| Bar::new(
            origin.name.clone(),
            origin.bytes as f64,
            format!("{}, {} records", bytes(origin.bytes), count(origin.records)),
            "c0",
        )).collect::<Vec<_>>()))
    }
}

fn class_of(cause: &str) -> &'static str {
    match cause {
        _ if cause.starts_with("user") => "c0",
        "wal" => "c1",
        "flush" => "c2",
        _ if cause.starts_with("compaction") => "c3",
        _ => "c4",
    }
}

/// Each cause begins where the one before ended: how one byte of the user becomes several.
fn waterfall(a: &Account) -> Markup {
    let user = ledger::user_write_bytes(&a.ledger).max(1) as f64;
    let mut steps = vec![Bar::new("user", 1.0, "1.00".into(), "c0")];
    let mut at = 0.0;
    let written = |row: &&ledger::Row| !row.is_user() && row.write_bytes > 0;
    for row in a.ledger.iter().filter(written) {
        let amount = row.write_bytes as f64 / user;
        let (from, to) = (at, at + amount);
        let text = format!("+{amount:.2}");
        let class = class_of(&row.cause);
        steps.push(Bar { label: row.cause.clone(), from, to, text, class, mark: None });
        at = to;
    }
    steps.push(Bar::new("all", at, format!("{at:.2}"), "c0"));
    html! {
        h2 { "Write amplification, step by step" }
        p.soft {
            "Bytes written per byte of the user. Compression makes steps smaller than the data, "
            "compaction adds steps. Log writes of the killed writers are missing: their counters "
            "died with them. Their records are counted from the recovery on."
        }
        (page_bars("write amplification", &steps))
    }
}

fn causes(a: &Account) -> Markup {
    let host = ledger::host_write_bytes(&a.ledger);
    let user = ledger::user_write_bytes(&a.ledger);
    html! {
        h2 { "Every byte with its cause" }
        div.scroll { table {
            tr { th { "cause" } th { "written" } th { "share" } th { "per user byte" } th { "read" }
                th { "syncs" } }
            @for row in &a.ledger {
                tr {
                    td { (row.cause) }
                    td { (bytes(row.write_bytes)) }
                    td { @if !row.is_user() { (share(row.write_bytes, host)) } }
                    td { (ratio(row.write_bytes, user)) }
                    td { (bytes(row.read_bytes)) }
                    td { @if !row.is_user() { (count(row.sync_ops)) } }
                }
            }
        } }
    }
}

fn crashes(a: &Account) -> Markup {
    html! {
        h2 { "What a kill -9 took" }
        p.soft {
            "A second process wrote batches, every eighth synced, and reported each answer of the "
            "engine over a pipe. It was killed at a random moment. Then the database was opened "
            "and compared with the answers, record by record."
        }
        div.scroll { table {
            tr { th { "killed after" } th { "acknowledged" } th { "synced" } th { "lost" }
                th { "written, not yet answered" } th { "state" } th { "opened in" } }
            @for crash in &a.crashes {
                tr {
                    td { (time(crash.killed_after_ns)) }
                    td { (count(crash.acknowledged)) }
                    td { (count(crash.synced)) }
                    td class=(if crash.lost == 0 { "good" } else { "bad" }) { (count(crash.lost)) }
                    td { (count(crash.unanswered_kept)) }
                    td { (crash.wrong.as_deref().unwrap_or("an exact prefix")) }
                    td { (time(crash.open_ns)) }
                }
            }
        } }
    }
}

fn latencies(a: &Account) -> Markup {
    let mut marks = Vec::new();
    for l in &a.latencies {
        // Quantiles lie decades apart: bars show orders of magnitude, figures the value.
        let decades = |ns: u64| (ns.max(1) as f64).log10() - 2.0;
        let mut mark = |name: &str, ns: u64, class| {
            let label = if name == "p50" { format!("{}  p50", l.what) } else { name.into() };
            marks.push(Bar::new(label, decades(ns).max(0.0), time(ns), class));
        };
        mark("p50", l.p50_ns, "c0");
        mark("p99", l.p99_ns, "c1");
        mark("p99.9", l.p999_ns, "c3");
    }
    html! {
        h2 { "Reads" }
        p.soft { "One thread, after the kills. Bars are logarithmic and begin at 100 ns." }
        (page_bars("latencies", &marks))
        div.scroll { table {
            tr { th { "read" } th { "per second" } th { "found" } th { "p50" } th { "p99" }
                th { "p99.9" } th { "max" } }
            @for l in &a.latencies {
                tr {
                    td { (l.what) } td { (count(per_second(l.ops, l.ns))) }
                    td { (share(l.found, l.ops)) }
                    td { (time(l.p50_ns)) } td { (time(l.p99_ns)) } td { (time(l.p999_ns)) }
                    td { (time(l.max_ns)) }
                }
            }
        } }
    }
}

fn levels(a: &Account) -> Markup {
    let level = |level: &super::account::LevelRow| {
        let text = format!("{}, {} files", bytes(level.bytes), count(level.files));
        Bar::new(format!("L{}", level.level), level.bytes as f64, text, "c3")
    };
    let rows: Vec<Bar> = a.levels.iter().filter(|l| l.files > 0).map(level).collect();
    html! {
        h2 { "The tree at the end" }
        (page_bars("levels", &rows))
    }
}

fn space(a: &Account) -> Markup {
    let points = |value: fn(&super::account::SpaceSample) -> u64| {
        a.space.iter().map(|s| (s.ms as f64 / 1000.0, value(s) as f64)).collect()
    };
    let curves = [
        Line { label: "written by the user", points: points(|s| s.user_write_bytes), class: "c0" },
        Line { label: "on the medium", points: points(|s| s.space_bytes), class: "c1" },
    ];
    html! {
        h2 { "Space over time" }
        p.soft { "Bytes written so far, including those of killed writers and of deleted and "
            "replaced values, and bytes on the medium." }
        (lines("space over time", &curves, |s| format!("{s:.1} s"), |b| bytes(b as u64)))
    }
}

fn verifications(a: &Account) -> Markup {
    let row = |what: &str, v: &Verification| {
        html! {
            tr {
                td { (what) }
                td { (count(v.values)) }
                td { (bytes(v.bytes)) }
                td { (count(v.absent)) }
                td class=(if v.wrong == 0 { "good" } else { "bad" }) { (count(v.wrong)) }
                td { (time(v.ns)) }
            }
        }
    };
    html! {
        h2 { "Compared with the source" }
        div.scroll { table {
            tr { th { "when" } th { "values" } th { "bytes" } th { "deleted, absent" }
                th { "wrong" } th { "time" } }
            (row("after the import", &a.verified_import))
            (row("at the end", &a.verified_end))
        } }
        p {
            "Check of every byte on the medium: " (bytes(a.check_bytes)) " in "
            (time(a.check_ns)) ", " (a.check_problems.len()) " problems."
        }
        @for problem in &a.check_problems { p.bad { (problem) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_else_and_escapes_what_it_shows() {
        let mut account = Account { range_deleted: "<script>".into(), ..Account::default() };
        account.check_problems.push("a < b".into());
        let page = render(&account);
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
        for foreign in ["http", "<script", "src=", "url(", "@import"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert!(page.contains("&lt;script&gt;") && page.contains("a &lt; b"));
    }
}
