//! The translation layer: where each logical page lies, and how space is reclaimed.
//!
//! Physical pages are numbered through superblocks of equal size: from 1 on the main ones, then
//! those of the SLC cache. There is no superblock 0, so that 0 in a map is no place, and a fresh
//! drive takes no memory. A logical page is current where both maps agree, so a page that was
//! overwritten, or erased, needs no mark.
//!
//! Invariants:
//! - `valid` of a superblock is the number of its pages on which both maps agree.
//! - Before a host page is placed, a spare superblock is free for each stream that garbage
//!   collection writes to. The main superblocks hold all logical pages and two superblocks more
//!   (three with a stream of its own), so that a victim with a dead page exists when one is needed.

use super::SsdOptions;
use super::victim::{Candidates, Superblocks};
use std::collections::VecDeque;

/// No place.
const NOWHERE: u32 = 0;

/// What was done since the drive was made, or since [`Flash::forget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Pages that the host wrote.
    pub host_pages: u64,
    /// Pages programmed in main superblocks.
    pub main_pages: u64,
    /// Pages programmed in the SLC cache.
    pub slc_pages: u64,
    /// Pages read to be moved.
    pub moved_pages: u64,
    /// Of these, pages that left the SLC cache.
    pub folded_pages: u64,
    /// Superblocks erased.
    pub erases: u64,
}

impl Counts {
    pub(super) fn since(&self, before: &Counts) -> Counts {
        Counts {
            host_pages: self.host_pages - before.host_pages,
            main_pages: self.main_pages - before.main_pages,
            slc_pages: self.slc_pages - before.slc_pages,
            moved_pages: self.moved_pages - before.moved_pages,
            folded_pages: self.folded_pages - before.folded_pages,
            erases: self.erases - before.erases,
        }
    }

    /// Pages programmed anywhere.
    pub(super) fn programmed_pages(&self) -> u64 {
        self.main_pages + self.slc_pages
    }
}

/// The writer of an open superblock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Main,
    Moved,
    Slc,
}

/// A superblock that takes pages.
#[derive(Clone, Copy)]
struct Open {
    superblock: u32,
    used: u32,
}

pub(super) struct Flash {
    place_of: Vec<u32>,
    page_at: Vec<u32>,
    superblocks: Superblocks,
    erases: Vec<u32>,
    candidates: Candidates,
    main_superblocks: u32,
    free: VecDeque<u32>,
    slc_free: VecDeque<u32>,
    slc_closed: VecDeque<u32>,
    /// By stream. `None`, or with space for at least one page.
    open: [Option<Open>; 3],
    moved_stream: Stream,
    has_slc: bool,
    /// Pages programmed ever: the time by which superblocks age.
    programmed: u64,
    pub counts: Counts,
}

impl Flash {
    /// A drive on which nothing was written. `options` were checked.
    pub(super) fn new(options: &SsdOptions) -> Flash {
        let pages = options.pages_per_superblock();
        let main = options.main_superblocks();
        let slc = options.slc_superblocks();
        let all = 1 + (main + slc) as usize;
        Flash {
            place_of: vec![NOWHERE; options.logical_pages() as usize],
            page_at: vec![0; all * pages as usize],
            superblocks: Superblocks { pages, valid: vec![0; all], closed_at: vec![0; all] },
            erases: vec![0; all],
            candidates: Candidates::new(options.victim, options.seed, all, pages),
            main_superblocks: main,
            free: (1..=main).collect(),
            slc_free: (main + 1..=main + slc).collect(),
            slc_closed: VecDeque::new(),
            open: [None; 3],
            moved_stream: if options.gc_stream { Stream::Moved } else { Stream::Main },
            has_slc: slc > 0,
            programmed: 0,
            counts: Counts::default(),
        }
    }

    /// The host writes a page.
    pub(super) fn write(&mut self, page: u32) {
        self.unmap(page);
        self.counts.host_pages += 1;
        let stream = if self.has_slc { Stream::Slc } else { Stream::Main };
        self.make_room(stream);
        self.program(page, stream);
    }

    /// The page has no content any more.
    pub(super) fn unmap(&mut self, page: u32) {
        let place = std::mem::replace(&mut self.place_of[page as usize], NOWHERE);
        if place != NOWHERE {
            let superblock = place / self.superblocks.pages;
            let valid = &mut self.superblocks.valid[superblock as usize];
            *valid -= 1;
            self.candidates.lost_page(superblock, *valid);
        }
    }

    pub(super) fn is_mapped(&self, page: u32) -> bool {
        self.place_of[page as usize] != NOWHERE
    }

    /// Host pages that can be written before space has to be reclaimed.
    pub(super) fn room_pages(&self) -> u64 {
        let (stream, free, spare) = match self.has_slc {
            true => (Stream::Slc, self.slc_free.len(), 0),
            false => (Stream::Main, self.free.len(), self.spare()),
        };
        let open = self.open[stream as usize].map_or(0, |open| self.superblocks.pages - open.used);
        u64::from(open) + free.saturating_sub(spare) as u64 * u64::from(self.superblocks.pages)
    }

    /// Valid pages of the superblock that the SLC cache empties next.
    pub(super) fn next_fold_pages(&self) -> Option<u32> {
        let &superblock = self.slc_closed.front()?;
        Some(self.superblocks.valid[superblock as usize])
    }

    /// Moves the oldest superblock of the SLC cache to the main ones.
    pub(super) fn fold(&mut self) {
        if let Some(superblock) = self.slc_closed.pop_front() {
            self.counts.folded_pages += u64::from(self.superblocks.valid[superblock as usize]);
            self.empty(superblock, Stream::Main);
            self.slc_free.push_back(superblock);
        }
    }

    /// Begins to count anew, erases included; what lies where stays.
    pub(super) fn forget(&mut self) {
        self.counts = Counts::default();
        self.erases.fill(0);
    }

    /// How often main superblocks were erased: each.
    pub(super) fn main_erases(&self) -> &[u32] {
        &self.erases[1..=self.main_superblocks as usize]
    }

    /// How often superblocks of the SLC cache were erased: each.
    pub(super) fn slc_erases(&self) -> &[u32] {
        &self.erases[self.main_superblocks as usize + 1..]
    }

    /// Pages with content.
    pub(super) fn valid_pages(&self) -> u64 {
        self.superblocks.valid.iter().copied().map(u64::from).sum()
    }

    /// Main superblocks that are erased and not open.
    pub(super) fn free_superblocks(&self) -> usize {
        self.free.len()
    }

    /// Superblocks that must be free while the host writes, so that a victim's pages find space.
    fn spare(&self) -> usize {
        if self.moved_stream == Stream::Moved { 2 } else { 1 }
    }

    fn is_open(&self, stream: Stream) -> bool {
        self.open[stream as usize].is_some()
    }

    /// Opens a superblock for `stream` unless it has one, reclaiming as much space as it takes.
    fn make_room(&mut self, stream: Stream) {
        if stream == Stream::Slc {
            if !self.is_open(stream) {
                if self.slc_free.is_empty() {
                    self.fold();
                }
                let superblock = self.slc_free.pop_front();
                self.open[stream as usize] =
                    superblock.map(|superblock| Open { superblock, used: 0 });
            }
            return;
        }
        // What is moved may fill the superblock that was opened for it: then again.
        while !self.is_open(Stream::Main) {
            self.open_main(Stream::Main);
            while self.free.len() < self.spare() && self.collect() {}
        }
    }

    fn open_main(&mut self, stream: Stream) {
        let superblock = self.free.pop_front();
        self.open[stream as usize] = superblock.map(|superblock| Open { superblock, used: 0 });
    }

    /// Empties the next victim. `false`: there is none.
    fn collect(&mut self) -> bool {
        let Some(victim) = self.candidates.take(&self.superblocks, self.programmed) else {
            return false;
        };
        self.empty(victim, self.moved_stream);
        self.free.push_back(victim);
        true
    }

    /// Moves the valid pages of `superblock` to `stream`, and erases it.
    fn empty(&mut self, superblock: u32, stream: Stream) {
        let first = superblock * self.superblocks.pages;
        // Emptying the SLC cache may have to collect, as a write of the host may.
        let is_fold = superblock > self.main_superblocks;
        for place in first..first + self.superblocks.pages {
            if self.superblocks.valid[superblock as usize] == 0 {
                break;
            }
            let page = self.page_at[place as usize];
            if self.place_of[page as usize] != place {
                continue;
            }
            if is_fold {
                self.make_room(stream);
            } else if !self.is_open(stream) {
                self.open_main(stream);
            }
            self.superblocks.valid[superblock as usize] -= 1;
            self.counts.moved_pages += 1;
            self.program(page, stream);
        }
        self.erases[superblock as usize] += 1;
        self.counts.erases += 1;
    }

    /// Puts `page`, which lies nowhere or is moved, into the open superblock of `stream`.
    fn program(&mut self, page: u32, stream: Stream) {
        let Some(open) = &mut self.open[stream as usize] else { return };
        let superblock = open.superblock;
        let place = superblock * self.superblocks.pages + open.used;
        open.used += 1;
        self.programmed += 1;
        let is_full = open.used == self.superblocks.pages;
        self.page_at[place as usize] = page;
        self.place_of[page as usize] = place;
        self.superblocks.valid[superblock as usize] += 1;
        match stream {
            Stream::Slc => self.counts.slc_pages += 1,
            _ => self.counts.main_pages += 1,
        }
        if is_full {
            self.close(superblock, stream);
        }
    }

    fn close(&mut self, superblock: u32, stream: Stream) {
        self.open[stream as usize] = None;
        if stream == Stream::Slc {
            self.slc_closed.push_back(superblock);
            return;
        }
        let index = superblock as usize;
        self.superblocks.closed_at[index] = self.programmed;
        self.candidates.insert(superblock, self.superblocks.valid[index]);
    }
}

#[cfg(test)]
impl Flash {
    /// Compares both maps and the counts of valid pages with `mapped`.
    pub(super) fn check(&self, mapped: &[bool]) {
        let mut valid = vec![0; self.superblocks.valid.len()];
        for (page, &is_mapped) in mapped.iter().enumerate() {
            let place = self.place_of[page];
            assert_eq!(place != NOWHERE, is_mapped, "page {page}");
            if is_mapped {
                assert_eq!(self.page_at[place as usize], page as u32);
                valid[(place / self.superblocks.pages) as usize] += 1;
            }
        }
        assert_eq!(valid, self.superblocks.valid);
    }
}
