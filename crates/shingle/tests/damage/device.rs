//! Damage of the bytes of a device with direct storage: copies of the superblock, metadata, frames
//! of logs and manifests, tables, free space. Also golden devices: what a version of the direct
//! format wrote stays readable.

use crate::build::{DEFAULT_SETUP, History, Setup, Writer, content, runtime, schemes, write_under};
use crate::golden::{dump, golden};
use crate::sweep::{Tally, guarded};
use crate::verdict::{Verdict, judge};
use base::random::Random;
use base::{Cause, Ledger};
use devices::{Simulation, SimulationOptions, models};
use direct::{DirectOptions, DirectStore, Extent, FormatOptions, Layout, format};
use media::block::{BlockDevice, SharedDevice};
use media::mem::{MemDevice, PowerLoss};
use media::{FileKind, FileStore};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each placement, with a small model of the medium that it is for.
const PLACEMENTS: [(&str, &str); 4] = [
    ("ext4-like", "hdd:capacity=16MiB"),
    ("band-per-table", "smr-banded:capacity=16MiB,band=64KiB"),
    ("dynamic-bands", "smr-raw:capacity=16MiB,track=8KiB"),
    ("zones", "zoned:capacity=16MiB,zone=256KiB"),
];

/// Number of damaged devices per region, for each scheme and placement, at the usual volume.
const REGIONS: [(&str, usize); 6] =
    [("superblock", 4), ("metadata", 24), ("log", 8), ("manifest", 12), ("table", 24), ("free", 2)];
/// This percentage of them, the last ones, have a whole sector of zeros instead of one flipped bit.
const ZEROED_PERCENT: u64 = 25;
/// Minimum number of detected damages, for each scheme and placement.
const DETECTED_MIN: [(&str, usize); 3] = [("metadata", 4), ("manifest", 4), ("table", 3)];
/// One damaged device in this many is opened for writing.
const WRITABLE_ONE_IN: usize = 8;
const SEED: u64 = 7;

fn format_as(device: SharedDevice, placement: &str) {
    let placement = placement.to_string();
    let options = FormatOptions { placement, unit_bytes: 64 << 10, store: 9, force: false };
    format(device, Arc::default(), &options).unwrap();
}

fn open_on(device: SharedDevice, read_only: bool) -> shingle::Result<DirectStore> {
    let options = DirectOptions { read_only, ..DirectOptions::default() };
    DirectStore::open(device, Arc::new(Ledger::default()), options)
}

fn store(device: &MemDevice, read_only: bool) -> shingle::Result<DirectStore> {
    open_on(Arc::new(device.clone()), read_only)
}

/// The same bytes, as the death of the process leaves them.
fn copy(device: &MemDevice) -> MemDevice {
    device.crash_image(&mut Random::new(0), PowerLoss::KeepAll)
}

/// A database on a device when its process died.
struct Subject {
    setup: Setup,
    device: MemDevice,
    layout: Layout,
    history: History,
}

impl Subject {
    fn new(setup: Setup, placement: &str, model: &str) -> Subject {
        let device = MemDevice::new(models::make(model).unwrap().geometry());
        format_as(Arc::new(device.clone()), placement);
        let opened = Arc::new(store(&device, false).unwrap());
        let writer = write_under(setup, opened, SEED, Writer::fill_a_little);
        let device = copy(&device);
        let layout = store(&device, true).unwrap().layout();
        Subject { setup, device: copy(&device), layout, history: writer.history }
    }

    fn sector_bytes(&self) -> u64 {
        u64::from(self.layout.geometry.sector_bytes)
    }

    /// The sectors of a region that hold data, or may.
    fn sectors(&self, region: &str) -> Vec<u64> {
        let Layout { geometry, metadata, files, free, .. } = &self.layout;
        let sector_bytes = self.sector_bytes();
        let heads = metadata.iter().map(|area| area.start);
        let edges = [0, geometry.capacity_bytes - sector_bytes];
        let is_written = |at: &u64| {
            let sector = self.device.peek(*at, sector_bytes as usize);
            sector.iter().any(|byte| *byte != 0)
        };
        let of_kind = |kind: FileKind| {
            let files = files.iter().filter(move |file| file.name.kind == kind);
            files.flat_map(|file| file.extents.iter().copied()).collect()
        };
        let extents: Vec<Extent> = match region {
            "superblock" => {
                return heads.chain(edges).filter(is_written).collect();
            }
            "metadata" => metadata.to_vec(),
            "log" => of_kind(FileKind::Wal),
            "manifest" => of_kind(FileKind::Manifest),
            "table" => of_kind(FileKind::Table),
            _ => return free.iter().map(|extent| extent.start).collect(),
        };
        let sectors =
            extents.iter().flat_map(|e| (e.start..e.end()).step_by(sector_bytes as usize));
        let is_head = |at: &u64| region == "metadata" && metadata.iter().any(|a| a.start == *at);
        sectors.filter(|at| !is_head(at)).filter(is_written).collect()
    }

    /// The device with a bit of a sector flipped, or the sector lost. The bit is in the used part
    /// of the sector, up to the last byte that is not zero.
    fn damaged(&self, sector: u64, random: &mut Random) -> (MemDevice, String) {
        let device = copy(&self.device);
        let bytes = device.peek(sector, self.sector_bytes() as usize);
        let is_written = bytes.iter().any(|byte| *byte != 0);
        if is_written && random.below(100) < ZEROED_PERCENT {
            device.overwrite(sector, &vec![0; bytes.len()]);
            return (device, format!("sector {sector} is zeros"));
        }
        let (at, bit) = (random.below(bytes.len() as u64), random.below(8));
        let byte = bytes[at as usize] ^ (1 << bit);
        device.overwrite(sector + at, &[byte]);
        (device, format!("bit {bit} of byte {at} of sector {sector}"))
    }

    /// Opens a damaged device and judges it.
    fn judge(&self, device: &MemDevice, region: &str, read_only: bool) -> Result<Verdict, String> {
        let open = || {
            let store = Arc::new(store(device, read_only)?);
            self.setup.options().read_only(read_only).open_in(store, runtime(5))
        };
        let verdict = guarded(|| judge(open(), &self.history, self.history.proven))?;
        match (region, verdict) {
            ("superblock" | "free", Verdict::Harmless) => Ok(verdict),
            ("metadata" | "manifest" | "table", Verdict::Detected | Verdict::Harmless) => {
                Ok(verdict)
            }
            // What a lost last sector of a log leaves is a torn tail.
            ("log", _) => Ok(verdict),
            _ => Err(format!("{verdict:?}")),
        }
    }

    /// Damages every region; returns the counts.
    fn sweep(&self, seed: u64) -> Tally {
        let (mut random, mut tally) = (Random::new(seed), Tally::default());
        for (region, count) in REGIONS {
            let sectors = self.sectors(region);
            assert!(!sectors.is_empty(), "nothing of {region} on the device");
            for turn in 0..count * crate::scale() {
                let sector = sectors[random.below(sectors.len() as u64) as usize];
                let (device, what) = self.damaged(sector, &mut random);
                let what = format!("{}, {:?}: {what}", self.layout.placement, self.setup);
                let read_only = turn % WRITABLE_ONE_IN > 0;
                let verdict = self.judge(&copy(&device), region, read_only);
                tally.note(region, what.clone(), verdict);
                if region == "superblock" {
                    let report = store(&device, true).unwrap().check(&mut |_| {}).unwrap();
                    assert!(!report.problems.is_empty(), "{what}: check of the store is silent");
                }
            }
        }
        tally
    }
}

#[test]
fn damage_of_any_byte_of_a_device_is_detected_or_harmless_under_every_scheme() {
    let setup = |scheme| Setup { scheme, ..DEFAULT_SETUP };
    let cells: Vec<_> =
        schemes().flat_map(|s| PLACEMENTS.map(|(name, model)| (setup(s), name, model))).collect();
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some((setup, placement, model)) = cells.get(index).copied() else { break };
        let mut cell = Subject::new(setup, placement, model).sweep(index as u64);
        for (row, count_min) in DETECTED_MIN {
            let count = cell.count(row, Verdict::Detected);
            if count < count_min * crate::scale() {
                let verdict = Err(format!("only {count} were detected"));
                cell.note(row, format!("{placement}, {setup:?}"), verdict);
            }
        }
        tally.lock().add(cell);
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    tally.into_inner().finish();
}

// ---- Golden devices ----

/// Sectors that hold data, in ascending order: place and bytes; compressed.
fn pack(device: &dyn BlockDevice) -> Vec<u8> {
    let geometry = device.geometry();
    let mut sector = vec![0; geometry.sector_bytes as usize];
    let mut packed = Vec::new();
    for at in (0..geometry.capacity_bytes).step_by(sector.len()) {
        // A sector that a write nearby destroyed, or that is in no zone, cannot be read.
        let is_readable = device.read(at, &mut sector, Cause::Recovery).is_ok();
        // Zones take bytes in their order, zeros too.
        let is_in_zone = device.zone(at).unwrap().is_some_and(|zone| at < zone.write_pointer);
        if is_readable && (is_in_zone || sector.iter().any(|byte| *byte != 0)) {
            packed.extend(at.to_le_bytes());
            packed.extend(&sector);
        }
    }
    lz4_flex::compress_prepend_size(&packed)
}

fn unpack(packed: &[u8], model: &str) -> MemDevice {
    let device = MemDevice::new(models::make(model).unwrap().geometry());
    let bytes = lz4_flex::decompress_size_prepended(packed).unwrap();
    let sector_bytes = device.geometry().sector_bytes as usize;
    for piece in bytes.chunks_exact(8 + sector_bytes) {
        let (at, sector) = piece.split_first_chunk().unwrap();
        device.write(u64::from_le_bytes(*at), sector, Cause::Recovery).unwrap();
    }
    device.flush(Cause::Recovery).unwrap();
    device
}

/// Golden devices, one for each version of the direct format.
const GOLDEN_VERSIONS: [&str; 3] = ["direct-v1", "direct-v2", "direct-v3"];

#[test]
fn golden_devices_stay_readable() {
    for version in GOLDEN_VERSIONS {
        stays_readable(version);
    }
}

fn stays_readable(version: &str) {
    let expected = std::fs::read_to_string(golden(&format!("{version}.dump"))).unwrap();
    for (placement, model) in PLACEMENTS {
        let packed = std::fs::read(golden(version).join(placement)).unwrap();
        assert!(packed.len() < 64 << 10);
        for read_only in [true, false] {
            let device = unpack(&packed, model);
            let opened = store(&device, read_only).unwrap();
            let layout = opened.layout();
            assert_eq!((layout.placement.as_str(), layout.store), (placement, 9));
            for kind in [FileKind::Table, FileKind::Wal, FileKind::Manifest] {
                assert!(layout.files.iter().any(|file| file.name.kind == kind), "{kind:?}");
            }
            let report = opened.check(&mut |_| {}).unwrap();
            assert!(report.problems.is_empty(), "{placement}: {:?}", report.problems);
            let options = DEFAULT_SETUP.options().read_only(read_only).create(false);
            let db = options.clone().open_in(Arc::new(opened), runtime(5)).unwrap();
            assert!(dump(&content(&db).unwrap()) == expected, "{placement}");
            let report = db.check(&mut |_| {}).unwrap();
            assert!(report.is_clean(), "{placement}: {:?}", report.problems);
            if !read_only {
                db.compact().unwrap();
                assert!(dump(&content(&db).unwrap()) == expected, "{placement}, compacted");
                drop(db);
                let again = Arc::new(store(&device, false).unwrap());
                let db = options.open_in(again, runtime(5)).unwrap();
                assert!(dump(&content(&db).unwrap()) == expected, "{placement}, opened again");
            }
        }
    }
}

/// Run by hand, and only when a new version of the format gets devices of its own.
#[test]
#[ignore = "writes the golden devices"]
fn write_golden_devices() {
    let version = GOLDEN_VERSIONS.last().unwrap();
    std::fs::create_dir_all(golden(version)).unwrap();
    for (placement, model) in PLACEMENTS {
        let simulation = Simulation::new(SimulationOptions::default());
        let device: SharedDevice = Arc::new(simulation.device(models::make(model).unwrap()));
        format_as(device.clone(), placement);
        let opened: Arc<dyn FileStore> = Arc::new(open_on(device.clone(), false).unwrap());
        let writer = write_under(DEFAULT_SETUP, opened, SEED, Writer::fill_a_little);
        std::fs::write(golden(version).join(placement), pack(&*device)).unwrap();
        std::fs::write(golden(&format!("{version}.dump")), dump(writer.history.last())).unwrap();
    }
}
