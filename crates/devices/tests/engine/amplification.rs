//! What media add to what is written to them, beside the figures of the papers.
//!
//! Everything that has a size is a sixteenth of the papers': tables and write buffers of 256 KiB,
//! a first level of 640 KiB, block groups of 8 MiB, tracks of 64 KiB, bands, zones. Amplification
//! is a ratio of sizes, so it stays; a test that is run by hand compares with whole sizes.

use crate::setup::Setup;
use base::Cause;
use base::env::Runtime;
use base::ledger::LedgerSnapshot;
use base::random::Random;
use direct::{DirectOptions, DirectStore, Extent, Layout};
use media::FileKind;
use shingle::{Compression, Options, Preset};
use std::sync::Arc;

const SCALE: u64 = 16;

/// What a load did, or a part of it.
#[derive(Debug)]
struct Written {
    user: u64,
    host: u64,
    media: u64,
}

impl Written {
    fn of(ledger: &LedgerSnapshot) -> Written {
        let host = ledger.host();
        let user = ledger.user_write_bytes;
        Written { user, host: host.write_bytes, media: host.media_write_bytes }
    }

    /// Auxiliary write amplification: of the medium over the host's.
    fn awa(&self) -> f64 {
        self.media as f64 / self.host as f64
    }
}

/// What is written, with everything that has a size divided by `scale`.
#[derive(Clone, Copy)]
struct Load {
    scheme: &'static str,
    scale: u64,
    puts: u64,
    value_bytes: usize,
    seed: u64,
}

/// 25 MB of small values.
fn small(scheme: &'static str) -> Load {
    Load { scheme, scale: SCALE, puts: 100_000, value_bytes: 240, seed: 3 }
}

/// LevelDB's sizes, scaled, with this scheme.
fn options(scheme: &str, scale: u64) -> Options {
    let table_bytes = (4 << 20) / scale;
    Options::new()
        .preset(Preset::LevelDb)
        .scheme(scheme)
        .compression(Compression::None)
        .write_buffer_bytes(table_bytes)
        .expert(|expert| {
            expert.scheme.table_bytes_max = Some(table_bytes);
            expert.memtable_bytes = Some(table_bytes);
            expert.scheme.level_bytes_base = Some((10 << 20) / scale);
        })
}

/// Random keys, each drawn from as many as there are puts; values of noise, long ones of as much of
/// it as makes each another. The ledger after each of `parts` equal parts, when `look` has been
/// shown the store; the last one is idle and closed.
fn load_in_parts(
    setup: &Setup,
    load: Load,
    parts: u64,
    look: &mut dyn FnMut(&DirectStore),
) -> Vec<LedgerSnapshot> {
    let Load { scheme, scale, puts, value_bytes, seed } = load;
    let direct = DirectOptions {
        // As late as a file system that delays allocation: a table goes out in one piece.
        background_buffer_bytes: (16 << 20) / scale as usize,
        log_buffer_bytes: (1 << 20) / scale as usize,
        ..DirectOptions::default()
    };
    let store = DirectStore::open(setup.device.clone(), setup.ledger.clone(), direct).unwrap();
    let runtime = Arc::new(setup.simulation.clone());
    let db = options(scheme, scale).open_in(Arc::new(store.clone()), runtime).unwrap();
    let mut random = Random::new(seed);
    let mut value = vec![7; value_bytes];
    let mut ledgers = Vec::new();
    for part in 0..parts {
        for _ in puts * part / parts..puts * (part + 1) / parts {
            random.fill(&mut value[..240]);
            db.put(format!("{:016}", random.below(puts)), &value).unwrap();
        }
        ledgers.push(setup.ledger.snapshot());
        look(&store);
    }
    db.wait_idle().unwrap();
    db.close().unwrap();
    setup.simulation.stop();
    ledgers.pop();
    ledgers.push(setup.ledger.snapshot());
    ledgers
}

fn load(setup: &Setup, load: Load) -> Written {
    Written::of(&load_in_parts(setup, load, 1, &mut |_| {})[0])
}

/// The emulated drive of the papers with tables where ext4 places them.
fn banded(band_mb: u64, scale: u64, capacity: u64) -> Setup {
    let stream = (512 << 10) / scale;
    let band = band_mb * 1_000_000 / scale / 4096 * 4096;
    let cache = format!("media-cache=set-associative,stream={stream}");
    let setup = Setup::new(&format!("smr-banded:capacity={capacity},band={band},{cache}"), 1);
    setup.format(Some("ext4-like"), (128 << 20) / scale);
    setup
}

/// On the emulated drive of the papers, which have 0.13 times the band in MB: 2.59 for 20 MB, 5.38
/// for 40, 7.77 for 60 (LWC-tree Fig. 15). Which band a table shares with others is left to the
/// history, so 40 % are allowed either way.
#[test]
fn tables_as_a_file_system_places_them_cost_rewrites_of_bands() {
    let mut before = 0.0;
    for band_mb in [20, 40, 60] {
        let each = small("leveldb");
        let written = load(&banded(band_mb, each.scale, 1 << 30), each);
        let (awa, paper) = (written.awa(), 0.13 * band_mb as f64);
        println!("band {band_mb} MB: AWA {awa:.2}, the papers' {paper:.2}; {written:?}");
        assert!((paper / 1.4..paper * 1.4).contains(&awa), "{band_mb} MB: {awa}");
        assert!(awa > before, "a larger band costs more");
        before = awa;
    }
}

/// By hand, in release: what is left of the difference when nothing is scaled, and when as much is
/// written for the size of a band; by gigabyte, and for which cause the medium wrote. The drive has
/// 25 times the capacity of the data, as in the papers, or three times.
#[test]
#[ignore = "writes terabytes in simulation"]
fn whole_bands_beside_scaled_ones() {
    let gigabytes = 6;
    for (seed, rooms) in [(3, 25), (4, 25), (5, 25), (3, 3)] {
        let puts = gigabytes * 250_000;
        let whole = Load { scheme: "leveldb", scale: 1, puts, value_bytes: 4080, seed };
        let scaled = Load { scale: SCALE, value_bytes: 240, ..whole };
        for band_mb in [20, 40, 60] {
            for each in [whole, scaled] {
                let capacity = rooms * (puts * 4096 / each.scale).next_multiple_of(1 << 28);
                let setup = banded(band_mb, each.scale, capacity);
                let ledgers = load_in_parts(&setup, each, gigabytes, &mut |_| {});
                let (scale, report) = (each.scale, report(&ledgers));
                println!("{band_mb} MB, seed {seed}, room {rooms}, 1/{scale}: {report}");
            }
        }
    }
}

/// AWA of everything and of each part, and what the medium wrote for each cause.
fn report(ledgers: &[LedgerSnapshot]) -> String {
    let all = &ledgers[ledgers.len() - 1];
    let parts = ledgers.windows(2).map(|pair| pair[1].since(&pair[0]));
    let parts = std::iter::once(ledgers[0].clone()).chain(parts);
    let parts: Vec<f64> = parts.map(|part| Written::of(&part).awa()).collect();
    let written = Written::of(all);
    let mut text = format!("AWA {:.2}, by part {parts:.2?}, {written:?}", written.awa());
    for (cause, moved) in all.causes().filter(|(_, moved)| moved.write_bytes > 0) {
        let (host, media) = (moved.write_bytes, moved.media_write_bytes);
        let share = media as f64 / written.media as f64;
        text += &format!("\n  {}: {host} -> {media} bytes, share {share:.3}", cause.name());
    }
    text
}

/// What is a fragment at one moment may be none at the next: their share is one over the load.
#[test]
fn dynamic_bands_add_nothing_and_damage_nothing() {
    let run = |placement: &str| {
        let setup = Setup::new("smr-raw:capacity=1GiB,track=64KiB", 1);
        setup.format(Some(placement), (4 << 20) / SCALE);
        let (mut lost, mut all) = (0, 0);
        let mut look = |store: &DirectStore| {
            let (lost_now, all_now) = fragments(&store.layout());
            (lost, all) = (lost + lost_now, all + all_now);
        };
        let ledgers = load_in_parts(&setup, small("sets"), 20, &mut look);
        let share = lost as f64 / all as f64;
        let written = Written::of(ledgers.last().unwrap());
        assert_eq!(written.media, written.host);
        assert!(written.host > 3 * written.user, "{written:?}");
        assert_eq!((setup.fact("violations"), setup.fact("destroyed bytes")), (0.0, 0.0));
        let moved = setup.ledger.snapshot().cause(Cause::Reclaim).write_bytes as f64;
        println!("{placement}: {written:?}, fragments {share:.4}, moved {moved}");
        (share, moved / written.host as f64)
    };
    // The paper has 9.3 % after 40 GB, and none that are moved.
    let (left, moved) = run("dynamic-bands");
    assert!(left < 0.1 && moved == 0.0, "{left}, {moved} moved");
    let (kept, moved) = run("dynamic-bands:fragments=0.02");
    assert!(kept < 0.9 * left && moved < 0.4, "{kept} of {left}, {moved} moved");
}

/// Bytes of free space in pieces smaller than the mean file of tables, as the paper counts it, and
/// of all up to the last live byte.
fn fragments(layout: &Layout) -> (u64, u64) {
    let tables = layout.files.iter().filter(|file| file.name.kind == FileKind::Table);
    let (count, bytes) =
        tables.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.bytes));
    let end = layout.files.iter().flat_map(|file| &file.extents).map(Extent::end).max().unwrap();
    let is_fragment = |free: &&Extent| free.end() < end && free.bytes * count < bytes;
    let lost: u64 = layout.free.iter().filter(is_fragment).map(|free| free.bytes).sum();
    (lost, end - layout.data.start)
}

/// A request that breaks a rule of zones is refused, and the load would have ended with it.
#[test]
fn zones_add_nothing() {
    let setup = Setup::new("zoned:capacity=1GiB,zone=16MiB", 1);
    setup.format(Some("zones"), 0);
    let written = load(&setup, small("leveldb"));
    println!("{written:?}");
    assert_eq!(written.media, written.host);
    assert!(written.host > 3 * written.user, "{written:?}");
}
