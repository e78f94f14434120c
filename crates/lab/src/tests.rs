//! The data files as a whole, and the promise that a run repeats.

use crate::claim::{SHAPE, Stated};
use crate::compare::{self, Findings};
use crate::data::{FILES, Library};
use crate::experiment::{Measure, Phase};
use crate::expression::Expression;
use crate::null::{self, StandIn};
use crate::schedule::Schedule;
use std::collections::BTreeSet;

fn results(ids: &[&str], threads: usize) -> String {
    let library = Library::open().unwrap();
    let ids: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
    let experiments = library.select(&ids).unwrap();
    let pairs: Vec<_> = experiments.iter().map(|e| (*e, library.paper(e).unwrap())).collect();
    let tables = Schedule::new(&pairs, "smoke", 1).unwrap().run(threads, &|_| None, &|_| {});
    let findings: Vec<Findings<'_>> = pairs
        .iter()
        .zip(tables)
        .map(|((experiment, paper), table)| {
            for (run, outcome) in &table {
                assert!(outcome.is_ok(), "{} {run:?}: {outcome:?}", experiment.id);
            }
            let scale = experiment.scale(paper, "smoke").unwrap();
            Findings::new(experiment, scale, table).unwrap()
        })
        .collect();
    for findings in &findings {
        for because in findings.experiment.measures.iter().filter_map(|m| m.because.as_ref()) {
            let filled = compare::fill(because, findings);
            assert!(filled.is_ok(), "{}: {filled:?}", findings.experiment.id);
        }
    }
    let claims = compare::claims(&library, &findings).unwrap();
    serde_json::to_string_pretty(&claims).unwrap()
}

#[test]
fn two_runs_give_the_same_figures_in_either_order() {
    let ids = ["lwc/fig02", "sealdb/set-size", "hashkv/exp05", "ldc/table01", "cascaded/fig03"];
    let first = results(&ids, 2);
    assert!(first == results(&ids, 1));
    assert!(first.contains("lwc/fig2/leveldb-wa"));
}

#[test]
fn every_experiment_runs_and_every_claim_gets_its_row() {
    let claims = results(&["all"], 2);
    let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(claims.as_array().unwrap().len(), Library::open().unwrap().claims.len());
}

#[test]
fn every_file_of_the_data_is_built_in() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let mut found = BTreeSet::new();
    for paper in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        for file in std::fs::read_dir(&paper).into_iter().flatten() {
            let file = file.unwrap().path();
            let name = file.strip_prefix(&folder).unwrap().with_extension("");
            found.insert(name.to_string_lossy().into_owned());
        }
    }
    let built: BTreeSet<String> = FILES.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(built, found);
}

#[test]
fn every_scale_of_every_experiment_makes_runs() {
    let library = Library::open().unwrap();
    for experiment in &library.experiments {
        let paper = library.paper(experiment).unwrap();
        for scale in ["smoke", "small", "paper"] {
            let pairs = [(experiment, paper)];
            let schedule = Schedule::new(&pairs, scale, 1);
            let schedule = schedule.unwrap_or_else(|error| panic!("{}: {error}", experiment.id));
            assert!(schedule.weight() > 0);
        }
    }
}

#[test]
fn a_figure_shrinks_what_it_says_otherwise_than_its_paper() {
    let library = Library::open().unwrap();
    let experiments = library.select(&["sealdb/fig08".to_string()]).unwrap();
    let paper = library.paper(experiments[0]).unwrap();
    let own = experiments[0].scale(paper, "small").unwrap();
    let of_paper = paper.scale("small").unwrap();
    assert_eq!((own.sizes, own.data), (0.25, 0.015625));
    assert_eq!((of_paper.sizes, of_paper.data, of_paper.values), (0.03125, 0.0078125, own.values));
    assert_eq!(experiments[0].scale(paper, "paper").unwrap().sizes, 1.0);
}

/// The price stayed and tables became 32 times smaller: scans merged them at each seek.
#[test]
fn a_seek_has_as_many_bytes_of_a_table_as_in_the_paper_at_every_scale() {
    let library = Library::open().unwrap();
    let experiment = library.select(&["beyond/matrix".to_string()]).unwrap()[0];
    for scale in ["smoke", "small", "paper"] {
        let cell = &experiment.cells(library.paper(experiment).unwrap(), scale).unwrap()[0];
        let whole = tree::policy::SEEK_BYTES as f64;
        let _ = cell.settings.options().unwrap().expert(|expert| {
            let bytes = expert.scheme.seek_bytes.unwrap().unwrap() as f64;
            assert_eq!(bytes, whole * cell.settings.scale().sizes, "{scale}");
        });
    }
}

#[test]
fn the_capacity_of_values_shrinks_as_the_data_that_it_is_for() {
    let library = Library::open().unwrap();
    let experiment = library.select(&["hashkv/exp01".to_string()]).unwrap()[0];
    let cell = &experiment.cells(library.paper(experiment).unwrap(), "small").unwrap()[0];
    let capacity = [("value_capacity_bytes".to_string(), "1.3 x 40GiB".to_string())];
    let settings = cell.settings.with(&capacity.into()).unwrap();
    let _ = settings.options().unwrap().expert(|expert| {
        let bytes = expert.values.capacity_bytes.unwrap().unwrap() as f64;
        let data_bytes = f64::from(40 << 20) * 1024.0 * settings.scale().data;
        assert_eq!(bytes, (1.3 * data_bytes).round());
    });
}

/// The update cache stands before LevelDB and absorbs writes, which are the user's all the same;
/// HashKV's write cache is its memtable.
#[test]
fn write_amplification_counts_the_writes_that_an_update_cache_absorbed() {
    let library = Library::open().unwrap();
    let experiment = library.select(&["hashkv/exp01".to_string()]).unwrap()[0];
    let pairs = [(experiment, library.paper(experiment).unwrap())];
    let table = Schedule::new(&pairs, "smoke", 1).unwrap().run(2, &|_| None, &|_| {}).remove(0);
    let user_bytes =
        |system: &str| table[&(system.to_string(), None)].as_ref().unwrap()["p1.user_bytes"];
    assert_eq!(user_bytes("LevelDB"), user_bytes("HashKV"));
}

#[test]
fn a_load_that_draws_its_keys_says_how_many_differ() {
    let library = Library::open().unwrap();
    let share = |id: &str, phase: &str| {
        let experiment = &library.select(&[id.to_string()]).unwrap()[0];
        let cells = experiment.cells(library.paper(experiment).unwrap(), "small").unwrap();
        let phase = experiment.phases.iter().find(|p| p.name == phase).unwrap();
        let settings = cells[0].settings.with(&phase.settings).unwrap();
        crate::run::distinct_share(&settings).unwrap()
    };
    assert!((share("sealdb/fig08", "load").unwrap() - 0.632).abs() < 0.001);
    assert_eq!(share("sealdb/fig08", "fillseq"), Some(1.0));
    assert_eq!(share("sealdb/fig08", "random"), None);
}

/// Values of HashKV do not shrink: a scan of 1 MiB that did had nine of 4 KiB.
#[test]
fn a_scan_has_as_many_pairs_as_in_the_paper_at_every_scale() {
    let library = Library::open().unwrap();
    let experiment = library.select(&["hashkv/exp05".to_string()]).unwrap()[0];
    for scale in ["smoke", "small", "paper"] {
        let cells = experiment.cells(library.paper(experiment).unwrap(), scale).unwrap();
        let at = |point| cells.iter().find(|c| c.point.as_deref() == Some(point)).unwrap();
        let scan = &experiment.phases.iter().find(|p| p.name == "scan").unwrap().settings;
        let pairs = |point| crate::run::scan_pairs(&at(point).settings.with(scan).unwrap());
        assert_eq!(pairs("4 KiB").unwrap(), 257);
        assert_eq!(pairs("256 B").unwrap(), 4229);
    }
}

#[test]
fn what_measures_name_is_there() {
    let library = Library::open().unwrap();
    for experiment in &library.experiments {
        let phases: Vec<&str> = experiment.phases.iter().map(|p| p.name.as_str()).collect();
        let points: Vec<&str> = experiment.points.iter().map(|p| p.name.as_str()).collect();
        for measure in &experiment.measures {
            let claim = library.claim(&measure.claim).unwrap();
            let known = claim.values.iter().any(|(name, _, _)| *name == measure.value);
            assert!(known, "{}: {} has no {}", experiment.id, claim.id, measure.value);
            assert!(measure.is.is_some() || measure.impossible.is_some(), "{}", claim.id);
            let Some((_, expression)) = &measure.is else { continue };
            expression.names(&mut |system, point, metric| {
                let at = format!("{}: [{system}@{point:?} {metric}]", experiment.id);
                assert!(experiment.systems.iter().any(|s| s == system), "{at}");
                let known = point.is_none_or(|p| p == "*" || points.contains(&p));
                assert!(known && point.is_some() != points.is_empty(), "{at}");
                let (phase, name) = metric.split_once('.').expect(&at);
                assert!(phases.contains(&phase), "{at}");
                assert!(crate::run::CATALOGUE.iter().any(|(known, _, _)| *known == name), "{at}");
            });
        }
    }
}

#[test]
fn what_is_derived_plotted_and_tabled_is_there() {
    let library = Library::open().unwrap();
    for experiment in &library.experiments {
        let id = &experiment.id;
        let mut known = BTreeSet::new();
        for phase in &experiment.phases {
            let names = crate::run::CATALOGUE.iter();
            known.extend(names.map(|(name, ..)| format!("{}.{name}", phase.name)));
        }
        for (name, expression) in &experiment.derived {
            expression.names(&mut |system, point, metric| {
                assert!(system.is_empty() && point.is_none(), "{id}: {name}");
                assert!(known.contains(metric), "{id}: {name} of {metric}");
            });
            assert!(known.insert(name.clone()), "{id}: {name} is a metric already");
        }
        let plotted = experiment.plots.iter().flat_map(|plot| {
            [Some(&plot.y), plot.x.as_ref(), plot.area.as_ref()].into_iter().flatten()
        });
        for metric in plotted.chain(experiment.columns.iter().map(|column| &column.metric)) {
            assert!(known.contains(metric), "{id}: {metric}");
        }
    }
}

/// Every design on every device, or the matrix has holes that go unnoticed.
#[test]
fn the_matrix_has_every_scheme_in_every_layout_on_every_device() {
    let library = Library::open().unwrap();
    let experiment = &library.select(&["beyond/matrix".to_string()]).unwrap()[0];
    let cells = experiment.cells(library.paper(experiment).unwrap(), "small").unwrap();
    let of = |cell: &crate::experiment::Cell, name: &str| cell.settings.get(name).map(String::from);
    let model = |cell| of(cell, "device").map(|text| text.split(':').next().unwrap().to_string());
    let found: BTreeSet<_> = cells
        .iter()
        .map(|cell| {
            (of(cell, "scheme"), of(cell, "layout").unwrap_or("inline".into()), model(cell))
        })
        .collect();
    let designs = tree::policy::registry().len() * values::registry().len();
    assert_eq!(found.len(), cells.len());
    assert_eq!(found.len(), designs * devices::models::registry().len());
}

/// Claims without an experiment are the ones that are missing here.
#[test]
fn every_value_of_every_claim_is_measured_once() {
    let library = Library::open().unwrap();
    let measures = || library.experiments.iter().flat_map(|e| &e.measures);
    let mut missing = Vec::new();
    for claim in library.claims.values() {
        for (name, _, _) in &claim.values {
            let count = measures().filter(|m| m.claim == claim.id && m.value == *name).count();
            if count != 1 {
                missing.push(format!("{} {name}: {count}", claim.id));
            }
        }
    }
    assert!(missing.is_empty(), "{SHAPE}: {missing:#?}");
}

/// A run of hours must not end in an error that its data files show.
#[test]
fn a_claim_that_is_answered_in_part_is_refused_before_anything_runs() {
    let library = |cut: bool| {
        let own = [
            ("claims", include_str!("../data/claims.toml")),
            ("rules", include_str!("../data/rules.toml")),
        ];
        let text = |name: &str, text: &'static str| match text.rsplit_once("[[measure]]") {
            Some((before, _)) if cut && name == "lwc/fig12" => before,
            _ => text,
        };
        let all = own.iter().chain(FILES);
        Library::of(all.map(|(name, file)| (name.to_string(), text(name, file).to_string())))
    };
    assert!(library(false).is_ok());
    let error = library(true).err().unwrap().to_string();
    assert!(error.contains("lwc/fig12") && error.contains("its shape"), "{error}");
}

/// What stands in for what is there, or a null system would be the system itself.
#[test]
fn what_stands_in_without_the_idea_is_there() {
    let library = Library::open().unwrap();
    for experiment in &library.experiments {
        let Some(null) = &experiment.null else { continue };
        let names = |run: &str| {
            let (system, point) = run.split_once('@').unwrap_or((run, "*"));
            let is_point = point == "*" || experiment.points.iter().any(|p| p.name == point);
            experiment.systems.iter().any(|s| s == system) && is_point
        };
        for (name, stand_in) in null {
            let id = &experiment.id;
            match stand_in {
                StandIn::Run(run) => assert!(names(name) && names(run), "{id}: {name} = {run}"),
                StandIn::Number(_) => {
                    let known = crate::run::CATALOGUE.iter().any(|(known, ..)| known == name);
                    assert!(known, "{id}: {name}");
                }
            }
        }
    }
    for paper in library.papers.values() {
        for (name, stand_in) in &paper.null {
            let StandIn::Run(run) = stand_in else { continue };
            let known = [name, run].iter().all(|system| paper.systems.contains_key(*system));
            assert!(known, "{}: {name} = {run}", paper.id);
        }
    }
}

/// A claim of which no value reads anything else without the idea could not fail then.
#[test]
fn every_claim_has_a_value_that_the_idea_can_change() {
    let library = Library::open().unwrap();
    for experiment in &library.experiments {
        let of_paper = &library.paper(experiment).unwrap().null;
        let null = experiment.null.as_ref().unwrap_or(of_paper);
        let changes = |measure: &Measure| {
            let mut changed = measure.null.is_some();
            let Some((_, expression)) = &measure.is else { return false };
            expression.names(&mut |system, point, metric| {
                let points = experiment.points.iter().map(|p| p.name.as_str());
                let points: Vec<&str> =
                    if point == Some("*") { points.collect() } else { point.into_iter().collect() };
                changed |= null::number(null, metric).is_some()
                    || null::run(null, system, None).is_some()
                    || points.iter().any(|p| null::run(null, system, Some(p)).is_some());
            });
            changed
        };
        for claim in experiment.claims() {
            let mut measures = experiment.measures.iter().filter(|m| m.claim == claim);
            assert!(measures.any(changes), "{claim}");
        }
    }
}

#[test]
fn orders_are_of_ranges_and_main_conditions_of_shapes() {
    let library = Library::open().unwrap();
    for measure in library.experiments.iter().flat_map(|e| &e.measures) {
        let claim = library.claim(&measure.claim).unwrap();
        let (name, _, stated) =
            claim.values.iter().find(|(name, ..)| *name == measure.value).unwrap();
        let at = format!("{}: {name}", claim.id);
        assert!(measure.order.is_none() || matches!(stated, Stated::Range(..)), "{at}");
        assert!(measure.main.is_empty() || name == SHAPE, "{at}");
        if let (false, Some((_, Expression::Call(_, conditions)))) =
            (measure.main.is_empty(), &measure.is)
        {
            let known = measure.main.iter().all(|number| (1..=conditions.len()).contains(number));
            assert!(known && conditions.len() > 2, "{at}: {:?}", measure.main);
        }
    }
}

/// An operation here is one of several of the paper, so it comes as much later.
#[test]
fn phases_keep_an_open_rate() {
    let library = Library::open().unwrap();
    let experiment = library.select(&["ldc/fig10a".to_string()]).unwrap()[0];
    let cell = &experiment.cells(library.paper(experiment).unwrap(), "smoke").unwrap()[0];
    let paced = |what: &str, more: [(&str, &str); 2]| {
        let all = [("do", what), ("count", "200000"), ("rate", "500")].into_iter().chain(more);
        let settings = all.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let phase = Phase { name: "run".to_string(), settings };
        let metrics = crate::run::execute(&cell.settings, &[phase]).unwrap();
        metrics["run.seconds"] / metrics["run.ops"] / cell.settings.time_factor().unwrap()
    };
    for seconds in [
        paced("mix", [("reads", "0.0"), ("zipf", "0.99")]),
        paced("ycsb", [("load", "true"), ("reads", "0.0")]),
    ] {
        assert!((seconds - 1.0 / 500.0).abs() < 0.1 / 500.0, "{seconds} s for an operation");
    }
}
