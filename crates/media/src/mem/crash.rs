//! What power loss leaves: images of a memory store, drawn from the fault model in [`super`].
//!
//! Everything that is not durable is a list of *pieces*: changes of the directory, and writes of
//! files. An image gives each piece a fate. A disk that only drops a suffix would miss most
//! ordering bugs, so subsets, torn writes and stale blocks are drawn too; and every image is a
//! store that can run and crash again.

use super::MemStore;
use super::content::Content;
use super::disk::{Disk, NameChange, Node, NodeRef, Write};
use crate::FileName;
use base::checksum::hash64_seeded;
use base::random::Random;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The unit in which a medium writes whole or not at all, in bytes.
const SECTOR_BYTES: u64 = 512;

/// Draws in a row that may repeat known images before an enumeration ends.
const REPEATS_MAX: u32 = 64;

/// A way to lose power. The numbers are those of the sentences of the fault model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// Everything that may be lost is lost (2, 8, 9).
    LoseUnsynced,
    /// Nothing is lost, as when the process alone dies (3).
    KeepAll,
    /// Each file, and the directory, keeps a prefix of its own changes (4).
    PrefixPerFile,
    /// Each directory change and each sector of each write survives or not (5, 10).
    Subset,
    /// Lengths survive; of the data some sectors are zeros, noise or bytes from elsewhere (6).
    LengthBeforeData,
    /// Data survives; of the directory changes some do (8, 9, 10).
    DirectoryLag,
}

impl Personality {
    /// All of them.
    pub const ALL: [Personality; 6] = [
        Personality::LoseUnsynced,
        Personality::KeepAll,
        Personality::PrefixPerFile,
        Personality::Subset,
        Personality::LengthBeforeData,
        Personality::DirectoryLag,
    ];
}

/// What becomes of a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    /// Some sectors survive; the others are not written.
    Torn,
    /// Some sectors survive; the others are allocated and hold something else.
    Filled(Fill),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fill {
    Zeros,
    Noise,
    Stale,
}

/// What becomes of everything that is not durable.
struct Outcome {
    title: String,
    fates: Vec<Fate>,
    keeps_notes: bool,
}

/// The store at the moment when power is lost. Pieces are numbered: the directory's changes, then
/// the writes of one file after another.
struct Scene {
    durable_names: BTreeMap<FileName, usize>,
    changes: Vec<(FileName, Option<usize>)>,
    files: Vec<SceneFile>,
    root: Option<Arc<[u8]>>,
    notes: BTreeMap<String, Vec<u8>>,
    capacity_bytes: Option<u64>,
}

struct SceneFile {
    content: Content,
    durable: Content,
    pending: Vec<Write>,
    is_ahead: bool,
}

impl Scene {
    fn new(disk: &Disk) -> Scene {
        let mut files = Vec::new();
        let mut known = HashMap::new();
        let mut index = |node: &NodeRef| {
            *known.entry(Arc::as_ptr(node)).or_insert_with(|| {
                let node = node.lock();
                files.push(SceneFile {
                    content: node.content.clone(),
                    durable: node.durable.clone(),
                    pending: node.pending.clone(),
                    is_ahead: node.is_ahead,
                });
                files.len() - 1
            })
        };
        let durable_names =
            disk.durable_names.iter().map(|(name, node)| (*name, index(node))).collect();
        let changes = disk.pending_names.iter().map(|change| match change {
            NameChange::Created(name, node) => (*name, Some(index(node))),
            NameChange::Removed(name) => (*name, None),
        });
        Scene {
            changes: changes.collect(),
            durable_names,
            files,
            root: disk.root.clone(),
            notes: disk.notes.clone(),
            capacity_bytes: disk.capacity_bytes,
        }
    }

    fn pieces(&self) -> usize {
        self.changes.len() + self.files.iter().map(|file| file.pending.len()).sum::<usize>()
    }

    /// Draws the fate of every piece.
    fn draw(&self, personality: Personality, random: &mut Random) -> Outcome {
        use Personality::*;
        let mut fates = Vec::with_capacity(self.pieces());
        let coin = |random: &mut Random| if random.one_in(2) { Fate::Kept } else { Fate::Lost };
        let prefix = |random: &mut Random, count: usize, fates: &mut Vec<Fate>| {
            let kept = random.below(count as u64 + 1) as usize;
            fates.extend((0..count).map(|i| if i < kept { Fate::Kept } else { Fate::Lost }));
        };
        match personality {
            LoseUnsynced => fates.resize(self.changes.len(), Fate::Lost),
            KeepAll | LengthBeforeData => fates.resize(self.changes.len(), Fate::Kept),
            PrefixPerFile => prefix(random, self.changes.len(), &mut fates),
            Subset | DirectoryLag => fates.extend(self.changes.iter().map(|_| coin(random))),
        }
        for file in &self.files {
            let end = fates.len() + file.pending.len();
            match personality {
                LoseUnsynced => fates.resize(end, Fate::Lost),
                KeepAll | DirectoryLag => fates.resize(end, Fate::Kept),
                PrefixPerFile => prefix(random, file.pending.len(), &mut fates),
                Subset => fates.extend(file.pending.iter().map(|_| match random.below(4) {
                    0 => Fate::Kept,
                    1 => Fate::Lost,
                    _ => Fate::Torn,
                })),
                LengthBeforeData => {
                    let fill = [Fill::Zeros, Fill::Noise, Fill::Stale][random.below(3) as usize];
                    fates.resize(end, Fate::Filled(fill));
                }
            }
        }
        let title = format!("memory after power loss ({personality:?})");
        Outcome { title, fates, keeps_notes: personality == KeepAll }
    }

    /// The store in which every piece has met its fate.
    fn image(&self, outcome: &Outcome, random: &mut Random) -> MemStore {
        let (name_fates, mut write_fates) = outcome.fates.split_at(self.changes.len());
        let mut names = self.durable_names.clone();
        for ((name, file), fate) in self.changes.iter().zip(name_fates) {
            match (fate, file) {
                (Fate::Lost, _) => {}
                (_, Some(file)) => drop(names.insert(*name, *file)),
                (_, None) => drop(names.remove(name)),
            }
        }
        let mut nodes = Vec::new();
        for file in &self.files {
            let (mine, others) = write_fates.split_at(file.pending.len());
            write_fates = others;
            let mut content = file.durable.clone();
            // Most images of a write-heavy store touch few sectors of many files: one bias for all
            // sectors of a file makes "nearly all" and "nearly none" as likely as "half".
            let bias = random.below(101);
            for (write, fate) in file.pending.iter().zip(mine) {
                self.apply(&mut content, write, *fate, bias, random);
            }
            if file.is_ahead {
                self.lengthen(&mut content, random);
            }
            nodes.push(Node::of(content));
        }
        let names: BTreeMap<_, _> =
            names.into_iter().map(|(name, file)| (name, nodes[file].clone())).collect();
        let disk = Disk {
            used_bytes: names.values().map(|node| node.lock().content.len()).sum(),
            durable_names: names.clone(),
            names,
            root: self.root.clone(),
            notes: if outcome.keeps_notes { self.notes.clone() } else { BTreeMap::new() },
            capacity_bytes: self.capacity_bytes,
            ..Disk::default()
        };
        let title = outcome.title.as_str().into();
        MemStore { disk: Arc::new(Mutex::new(disk)), ledger: Arc::default(), title }
    }

    /// Puts zeros behind the end (15), as far as the medium has space. Few lengths, so that images
    /// repeat.
    fn lengthen(&self, content: &mut Content, random: &mut Random) {
        let count = [0, 1, 4096][random.below(3) as usize];
        let used_bytes: u64 = self.files.iter().map(|file| file.content.len()).sum();
        let has_space = self.capacity_bytes.is_none_or(|all| all >= used_bytes + count);
        if has_space {
            content.write_at(content.len(), &vec![0; count as usize]);
        }
    }

    /// Applies what is left of one write. `bias` is the percentage of sectors that survive.
    fn apply(
        &self,
        content: &mut Content,
        write: &Write,
        fate: Fate,
        bias: u64,
        random: &mut Random,
    ) {
        let (start, bytes) = match (write, fate) {
            (_, Fate::Lost) => return,
            (Write::Cut(at), Fate::Torn) if random.one_in(2) => return content.truncate(*at),
            (Write::Cut(_), Fate::Torn) => return,
            (Write::Cut(at), _) => return content.truncate(*at),
            (Write::Bytes(offset, bytes), Fate::Kept) => return content.write_at(*offset, bytes),
            (Write::Bytes(offset, bytes), _) => (*offset, bytes),
        };
        let mut done = 0;
        while done < bytes.len() {
            let offset = start + done as u64;
            let count = (SECTOR_BYTES - offset % SECTOR_BYTES) as usize;
            let count = count.min(bytes.len() - done);
            let piece = &bytes[done..done + count];
            if random.below(100) < bias {
                content.write_at(offset, piece);
            } else if let Fate::Filled(fill) = fate {
                content.write_at(offset, &self.fill(fill, count, random));
            }
            done += count;
        }
    }

    /// What an allocated sector holds before its data arrives.
    fn fill(&self, fill: Fill, count: usize, random: &mut Random) -> Vec<u8> {
        let mut bytes = vec![0; count];
        match fill {
            Fill::Zeros => {}
            Fill::Noise => random.fill(&mut bytes),
            Fill::Stale if self.files.is_empty() => {}
            Fill::Stale => {
                let file = &self.files[random.below(self.files.len() as u64) as usize];
                let sectors = file.content.len() / SECTOR_BYTES + 1;
                let from = random.below(sectors) * SECTOR_BYTES;
                let found = (file.content.len() - from).min(count as u64) as usize;
                file.content.read_at(from, &mut bytes[..found]);
            }
        }
        bytes
    }
}

impl MemStore {
    /// A new store as power loss would leave this one, which goes on untouched. The image has a
    /// ledger of its own, all its bytes are durable, and its machine runs.
    pub fn crash_image(&self, random: &mut Random, personality: Personality) -> MemStore {
        let scene = Scene::new(&self.disk.lock());
        let outcome = scene.draw(personality, random);
        scene.image(&outcome, random)
    }

    /// Changes that power loss may undo: directory changes and writes since their last sync.
    pub fn pending_pieces(&self) -> usize {
        Scene::new(&self.disk.lock()).pieces()
    }

    /// The image in which piece `index` alone survived.
    pub fn image_only_one(&self, index: usize) -> MemStore {
        self.image_of(Selection::OnlyOne(index))
    }

    /// The image in which piece `index` alone is missing.
    pub fn image_all_but_one(&self, index: usize) -> MemStore {
        self.image_of(Selection::AllButOne(index))
    }

    fn image_of(&self, selection: Selection) -> MemStore {
        let scene = Scene::new(&self.disk.lock());
        selection.image(&scene)
    }

    /// Up to `limit` images that differ in files, bytes or root. Where `limit` allows, every subset
    /// of the pieces; otherwise the extremes, each piece alone lost and alone kept, and draws of
    /// every personality from `seed`.
    pub fn crash_images(&self, limit: usize, seed: u64) -> CrashImages {
        let scene = Scene::new(&self.disk.lock());
        let selections = Selection::list(scene.pieces(), limit).into_iter();
        CrashImages {
            scene,
            selections,
            seen: HashSet::new(),
            limit,
            random: Random::new(seed),
            draws: 0,
        }
    }

    /// A fingerprint of all files, their bytes, and the root; notes do not count.
    pub fn content_hash(&self) -> u64 {
        let disk = self.disk.lock();
        let root = disk.root.as_deref().unwrap_or(b"\xffnone");
        let mut hash = hash64_seeded(root, 0);
        for (name, node) in &disk.names {
            hash = hash64_seeded(name.to_string().as_bytes(), hash);
            let node = node.lock();
            hash = hash64_seeded(&node.content.len().to_le_bytes(), hash);
            hash = node.content.pieces().fold(hash, |hash, piece| hash64_seeded(piece, hash));
        }
        hash
    }
}

/// A choice of whole pieces that survive.
#[derive(Clone, Copy, Debug)]
enum Selection {
    None,
    All,
    OnlyOne(usize),
    AllButOne(usize),
    Bits(u64),
}

impl Selection {
    /// The selections worth trying before drawing any, at most about `limit`.
    fn list(pieces: usize, limit: usize) -> Vec<Selection> {
        let mut list = vec![Selection::None, Selection::All];
        if pieces < 24 && 1usize << pieces <= limit {
            list.extend((1..(1u64 << pieces).saturating_sub(1)).map(Selection::Bits));
        } else if pieces <= limit / 4 {
            list.extend((0..pieces).map(Selection::AllButOne));
            list.extend((0..pieces).map(Selection::OnlyOne));
        }
        list
    }

    fn keeps(self, piece: usize) -> bool {
        match self {
            Selection::None => false,
            Selection::All => true,
            Selection::OnlyOne(one) => piece == one,
            Selection::AllButOne(one) => piece != one,
            Selection::Bits(bits) => bits >> piece & 1 == 1,
        }
    }

    fn image(self, scene: &Scene) -> MemStore {
        let fate = |piece| if self.keeps(piece) { Fate::Kept } else { Fate::Lost };
        let fates: Vec<Fate> = (0..scene.pieces()).map(fate).collect();
        let outcome = Outcome {
            title: format!("memory after power loss ({self:?})"),
            fates,
            keeps_notes: matches!(self, Selection::All),
        };
        // Whole pieces leave nothing to draw.
        scene.image(&outcome, &mut Random::new(0))
    }
}

/// Distinct images of one crash. See [`MemStore::crash_images`].
pub struct CrashImages {
    scene: Scene,
    selections: std::vec::IntoIter<Selection>,
    seen: HashSet<u64>,
    limit: usize,
    random: Random,
    draws: usize,
}

impl Iterator for CrashImages {
    type Item = MemStore;

    fn next(&mut self) -> Option<MemStore> {
        let mut repeats = 0;
        while self.seen.len() < self.limit && repeats < REPEATS_MAX {
            let image = match self.selections.next() {
                Some(selection) => selection.image(&self.scene),
                None => {
                    // The first two personalities leave nothing to draw: they were selections.
                    let personality = Personality::ALL[2 + self.draws % 4];
                    self.draws += 1;
                    repeats += 1;
                    let outcome = self.scene.draw(personality, &mut self.random);
                    self.scene.image(&outcome, &mut self.random)
                }
            };
            if self.seen.insert(image.content_hash()) {
                return Some(image);
            }
        }
        None
    }
}
