//! Scenarios of placement, as text: what is written and deleted, and where it lies then.
//!
//! The form is that of [`base::scenario`]. With `REWRITE=1` the file is rewritten with what comes
//! out. Everything is counted in units of one sector; units are numbered from the start of the data
//! region.
//!
//! | command | prints |
//! |---|---|
//! | `device PLACEMENT units N` | nothing; begins anew |
//! | `do` + lines | the device after each line |
//! | `free` | units that can be written, and those that any file finds without moving others |
//! | `victims` | what can be moved to reclaim space, and the live units in it |
//!
//! | line of `do` | does |
//! |---|---|
//! | `write a 4` | writes a file, or goes on with one, and closes it |
//! | `open a 4` | takes space for a file; it stays open |
//! | `close a 3` | its writer is done and has used 3 units of what it took |
//! | `delete a` | the file goes |
//! | `adopt a 3..7` | recovery finds a file there |
//!
//! Behind `device`: `guard N`, `band N`, `zones N open N`, and `show N`, the units of the picture.
//! Behind `write` and `open`: `log`, `group N`, `least N`, `moved` (to reclaim space), `avoid
//! A..B`; `of 9` says that the file is expected to have 9 units.
//!
//! The device is a row of units: `.` is free, a letter is a file, the capital is what its writer
//! holds open, and `-` can be written by no one else: garbage, a guard, the end of a band. A bar
//! stands between bands, zones or groups. Each line is also checked against a plain list:
//! nothing overlaps, guards are kept, zones are written at their write pointers.

use super::{Oracle, SECTOR};
use crate::extent::Extent;
use crate::placement::{Ground, Placement, Request, ZoneCommand, find};
use media::Geometry;
use media::block::{Overwrite, ZoneGeometry};
use std::collections::BTreeMap;
use std::path::Path;

struct File {
    extents: Vec<Extent>,
    open: Option<Extent>,
}

struct Scene {
    oracle: Oracle,
    placement: Box<dyn Placement>,
    files: BTreeMap<char, File>,
    /// Units of a band, zone or group.
    unit: u64,
    shown: u64,
    /// What the device was told by the line.
    told: String,
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

impl Scene {
    fn new(name: &str, words: &[&str]) -> Scene {
        let value = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            Some(number(words[at + 1]))
        };
        let units = value("units").unwrap();
        let unit = value("band").or(value("zones")).unwrap_or(1);
        let zones = value("zones").map(|units| ZoneGeometry {
            zone_bytes: units * SECTOR,
            conventional_zones: 1,
            open_zones_max: value("open").unwrap_or(4) as u32,
        });
        let overwrite = match value("guard") {
            Some(guard) => Overwrite::DestroysDownstream { damage_bytes: guard * SECTOR },
            None if zones.is_some() => Overwrite::AtWritePointer,
            None => Overwrite::InPlace,
        };
        // Metadata takes the first band or zone.
        let data = Extent { start: unit * SECTOR, bytes: units * SECTOR };
        let geometry = Geometry {
            sector_bytes: SECTOR as u32,
            atomic_bytes: SECTOR as u32,
            capacity_bytes: data.end(),
            overwrite,
            band_bytes: 0,
            zones,
        };
        let unit_bytes = unit * SECTOR;
        let placement = find(name, &geometry).unwrap().make(geometry, data, unit_bytes);
        let ground = Ground { geometry, data, unit_bytes, fragment_share_max: None };
        let write_pointers = (0..=units / unit).map(|zone| zone * unit * SECTOR).collect();
        let oracle = Oracle { ground, used: Vec::new(), write_pointers };
        let shown = value("show").unwrap_or(units);
        Scene { oracle, placement, files: BTreeMap::new(), unit, shown, told: String::new() }
    }

    fn command(&mut self, line: &str, body: &[&str]) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["device", name, ref words @ ..] => {
                *self = Scene::new(name, words);
                String::new()
            }
            ["do"] => body.iter().map(|line| self.act(line)).collect(),
            ["free"] => {
                let (free, spare) = (self.placement.free_bytes(), self.placement.spare_bytes());
                format!("{} units, {} without moving others\n", free / SECTOR, spare / SECTOR)
            }
            ["victims"] => {
                let victims = self.placement.victims();
                let show = |(range, live): &(Extent, u64)| {
                    format!("{}: {} live\n", self.range(*range), live / SECTOR)
                };
                let text: String = victims.iter().map(show).collect();
                let is_fragmented = self.placement.is_fragmented();
                text + if is_fragmented { "fragmented\n" } else { "not fragmented\n" }
            }
            _ => panic!("no such command: {line}"),
        }
    }

    fn start(&self) -> u64 {
        self.oracle.ground.data.start
    }

    fn range(&self, extent: Extent) -> String {
        let unit = |at: u64| (at - self.start()) / SECTOR;
        format!("{}..{}", unit(extent.start), unit(extent.end()))
    }

    fn extent(&self, text: &str) -> Extent {
        let (from, to) = text.split_once("..").unwrap();
        let at = |text: &str| self.start() + number(text) * SECTOR;
        Extent::between(at(from), at(to))
    }

    /// Does what `line` says, checks the placement, and shows the device.
    fn act(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words[1].chars().next().unwrap();
        let note = match words[0] {
            "write" => self.write(name, number(words[2]), &words[3..]),
            "open" => self.open(name, number(words[2]), &words[3..]),
            "close" => {
                self.close(name, number(words[2]) * SECTOR);
                String::new()
            }
            "delete" => {
                self.delete(name);
                String::new()
            }
            "adopt" => self.adopt(name, words[2]),
            _ => panic!("no such line: {line}"),
        };
        self.obey();
        self.oracle.check_guards();
        format!("{} {line}{note}{}\n", self.row(), std::mem::take(&mut self.told))
    }

    /// Tells the device what it has to be told.
    fn obey(&mut self) {
        let commands = self.placement.commands();
        self.oracle.obey(&commands);
        let zone = |at: u64| (at - self.start()) / SECTOR / self.unit;
        let show = |command: &ZoneCommand| match *command {
            ZoneCommand::Reset(at) => format!("; zone {} is reset", zone(at)),
            ZoneCommand::Finish(at) => format!("; zone {} is finished", zone(at)),
        };
        let told: String = commands.iter().map(show).collect();
        self.told.push_str(&told);
    }

    fn allocate(&mut self, name: char, units: u64, words: &[&str]) -> Option<Extent> {
        let value = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            Some(words[at + 1])
        };
        let file = self.files.entry(name).or_insert(File { extents: Vec::new(), open: None });
        let before_bytes: u64 = file.extents.iter().map(|extent| extent.bytes).sum();
        let goal = file.extents.last().map(Extent::end);
        let wanted_bytes = value("of").map_or(units * SECTOR, |all| {
            (number(all) * SECTOR).saturating_sub(before_bytes).max(units * SECTOR)
        });
        let request = Request {
            wanted_bytes,
            now_bytes: units * SECTOR,
            least_bytes: value("least").map_or(1, number) * SECTOR,
            before_bytes,
            goal,
            group: value("group").map(number),
            is_log: words.contains(&"log"),
            is_reclaim: words.contains(&"moved"),
            avoid: value("avoid").map_or(Extent::default(), |text| self.extent(text)),
        };
        let extent = self.placement.allocate(&request)?;
        // A zone may have to be emptied first.
        self.obey();
        self.oracle.check_new(extent);
        self.oracle.used.push((extent, true));
        Some(extent)
    }

    fn open(&mut self, name: char, units: u64, words: &[&str]) -> String {
        let found = self.allocate(name, units, words);
        self.files.get_mut(&name).unwrap().open = found;
        if found.is_none() { "; no space".into() } else { String::new() }
    }

    fn write(&mut self, name: char, units: u64, words: &[&str]) -> String {
        let mut left = units;
        while left > 0 {
            let note = self.open(name, left, words);
            if !note.is_empty() {
                return format!("; no space for {left}");
            }
            self.oracle.check_guards();
            let open = self.files[&name].open.unwrap();
            let units = left.min(open.bytes / SECTOR);
            self.close(name, units * SECTOR);
            left -= units;
        }
        String::new()
    }

    fn close(&mut self, name: char, used_bytes: u64) {
        let file = self.files.get_mut(&name).unwrap();
        let extent = file.open.take().unwrap();
        assert!(used_bytes <= extent.bytes, "{name} has {} units", extent.bytes / SECTOR);
        if used_bytes > 0 {
            file.extents.push(Extent { start: extent.start, bytes: used_bytes });
        }
        self.oracle.close(extent, used_bytes);
        self.placement.close(extent, used_bytes);
    }

    fn delete(&mut self, name: char) {
        if self.files[&name].open.is_some() {
            self.close(name, 0);
        }
        for extent in self.files.remove(&name).unwrap().extents {
            self.oracle.used.retain(|(used, _)| *used != extent);
            self.placement.free(extent);
        }
    }

    fn adopt(&mut self, name: char, range: &str) -> String {
        let extent = self.extent(range);
        if !self.placement.adopt(extent) {
            return "; refused".into();
        }
        self.oracle.used.push((extent, false));
        if let Some(zones) = self.oracle.ground.geometry.zones {
            let zone = (extent.start / zones.zone_bytes) as usize;
            let write_pointer = &mut self.oracle.write_pointers[zone];
            *write_pointer = extent.end().max(*write_pointer);
        }
        self.files.insert(name, File { extents: vec![extent], open: None });
        String::new()
    }

    fn row(&self) -> String {
        let free = self.placement.free_extents();
        let mut row = String::new();
        for unit in 0..self.shown {
            let place = Extent { start: self.start() + unit * SECTOR, bytes: SECTOR };
            let owner = self.files.iter().find_map(|(name, file)| {
                let is_open = file.open.is_some_and(|open| open.contains(place));
                let is_closed = file.extents.iter().any(|extent| extent.contains(place));
                is_open.then(|| name.to_ascii_uppercase()).or(is_closed.then_some(*name))
            });
            let is_free = free.iter().any(|free| free.contains(place));
            if unit > 0 && self.unit > 1 && unit % self.unit == 0 {
                row.push('|');
            }
            row.push(owner.unwrap_or(if is_free { '.' } else { '-' }));
        }
        row
    }
}

#[test]
fn placements() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/placement/testdata/placement.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut scene = Scene::new("ext4-like", &["units", "8"]);
    let name = path.display().to_string();
    let out = base::scenario::answered(&text, &name, |line, body| scene.command(line, body));
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &out).unwrap();
    }
    base::scenario::assert_same(&text, &out, &name);
}
