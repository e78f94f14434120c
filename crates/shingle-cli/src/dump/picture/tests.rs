//! Pictures of every scheme's tree, made by simulation.

use super::*;
use roxmltree::Document;
use tree::policy::registry;
use tree::simulate::{Entry, Store};

const KIB: u64 = 1 << 10;

/// A tree of a few levels under a scheme.
fn grown(scheme: &tree::policy::Descriptor) -> Version {
    let mut limits = (scheme.limits)(4 * KIB);
    limits.level_bytes_base = 16 * KIB;
    limits.fan_out = 4.0;
    limits.table_bytes_max = 4 * KIB;
    limits.overlap_bytes_max = limits.overlap_bytes_max.map(|_| 40 * KIB);
    limits.expansion_bytes_max = 50 * KIB;
    let mut store = Store::new((scheme.make)(), limits, 100);
    let mut random = base::random::Random::new(9);
    let mut sequence = 0;
    for _ in 0..130 {
        let mut keys: Vec<u32> = (0..40).map(|_| random.next_u64() as u32).collect();
        keys.sort_unstable();
        keys.dedup();
        let entry = |key| {
            sequence += 1;
            Entry { key, sequence, is_delete: false }
        };
        store.flush(&keys.into_iter().map(entry).collect::<Vec<_>>()).unwrap();
        while store.step().unwrap() {}
    }
    store.version
}

/// The picture, parsed. With `PICTURES` set to a directory, it is left there as well.
fn drawn(version: &Version, title: &str) -> String {
    let text = svg(version, title);
    if let Some(directory) = std::env::var_os("PICTURES") {
        std::fs::write(std::path::Path::new(&directory).join(format!("{title}.svg")), &text)
            .unwrap();
    }
    text
}

fn count(document: &Document<'_>, class: &str) -> usize {
    let has = |names: &str| names.split(' ').any(|name| name == class);
    document.descendants().filter(|node| node.attribute("class").is_some_and(has)).count()
}

#[test]
fn every_schemes_tree_is_drawn_whole_and_within_the_page() {
    for scheme in registry() {
        let version = grown(scheme);
        let text = drawn(&version, scheme.name);
        let document = Document::parse(&text).unwrap();
        let nodes: usize = version.levels.iter().map(|level| level.nodes.len()).sum();
        assert!(nodes > 3, "{}: {nodes}", scheme.name);
        assert_eq!(count(&document, "node"), nodes, "{}", scheme.name);
        let legend = Kind::ALL.len();
        assert_eq!(count(&document, "slice"), version.slices().count() + legend, "{}", scheme.name);
        assert_eq!(count(&document, "live"), version.files().len() + 1, "{}", scheme.name);
        for mark in document.descendants().filter(|node| node.has_tag_name("rect")) {
            let number = |name| mark.attribute(name).map_or(0.0, |v| v.parse::<f64>().unwrap());
            let (x, width) = (number("x"), number("width"));
            assert!(x >= 0.0 && width > 0.0 && x + width <= WIDTH, "{}: {mark:?}", scheme.name);
        }
    }
}

#[test]
fn nodes_of_a_level_stand_beside_each_other_as_wide_as_their_bytes() {
    let version = grown(&tree::policy::leveled::LEVELDB);
    let axis = Axis::of(&version, 0.0, 1000.0);
    let (level, bytes) =
        (version.levels.iter().max_by_key(|l| l.bytes()).unwrap(), version.bytes());
    let mut right = 0.0;
    for node in level.nodes.iter() {
        let (from, to) = (axis.of_start(&node.range), axis.of_end(&node.range));
        assert!(from >= right && to > from, "{from} {to} after {right}");
        right = to;
        // All other levels have a part of these keys too.
        let own = node.bytes() as f64 / bytes as f64 * 1000.0;
        assert!(to - from >= own * 0.99, "{} for {own}", to - from);
    }
}

#[test]
fn links_segments_and_sets_are_told_apart() {
    let has = |scheme: &tree::policy::Descriptor, kind| {
        let version = grown(scheme);
        let owners = Owners::of(&version);
        version.slices().any(|slice| owners.kind(slice) == kind)
    };
    use tree::policy::{ldc::LDC, leveled::LEVELDB, lwc::LWC, sets::SETS};
    assert!(has(&LDC, Kind::Link) && has(&LWC, Kind::Segment) && has(&SETS, Kind::Set));
    assert!(has(&LEVELDB, Kind::Whole) && !has(&LEVELDB, Kind::Link) && !has(&LEVELDB, Kind::Set));
}

#[test]
fn an_empty_tree_and_strange_names_are_well_formed() {
    let text = svg(&Version::empty(7), "<a> & \"b\" \u{FFFF} ]]>");
    assert!(Document::parse(&text).is_ok(), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"));
}
