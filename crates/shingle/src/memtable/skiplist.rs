//! An ordered list of entries in an arena: one writer, any number of readers without locks.
//!
//! A skip list (Pugh, 1990) whose links carry eight bytes of the key they lead to: the first that
//! follow what most keys begin with ([`CommonStart`]). A search passes a node by, or turns down a
//! level, on that prefix alone; it touches a node only to walk on from it, and reads a key only
//! where prefixes are equal.
//!
//! A node is one allocation; its address is that of its lowest link:
//!
//! ```text
//! link[height-1] .. link[1] link[0] | value bytes u32 | user key bytes u16 | user key | trailer |
//!                           value ^ node
//! ```
//!
//! Invariants:
//! - Only the [`Inserter`] writes, and a list has one. Nodes are never changed but for their links,
//!   never unlinked, and freed only with the whole list.
//! - A node is complete before a link leads to it (Release), and readers follow links with Acquire.
//! - Along a level, keys rise strictly; each level is a subsequence of the one below.
//! - A link's target only ever moves to smaller keys. The writer stores the node first and the
//!   prefix after it; readers load the prefix first. So the prefix a reader holds is never newer
//!   than the node it then loads, which means never smaller than that node's own prefix: walking on
//!   when the prefix is below the target's is always right, and turning down early costs only
//!   an entry whose insertion had not returned yet.

#![allow(unsafe_code)] // Nodes of variable size that readers reach while a writer adds to them.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use base::key::{CommonStart, TRAILER_BYTES, split_internal_key};
use base::random::Random;
use base::{Error, Result};
use table::batch::Operation;

use super::arena::{Arena, Bump};
use super::chunks::{ALIGN, ChunkPool};

/// Levels of the tallest node: enough for 4^12 = 16 million entries.
const HEIGHT_MAX: usize = 12;

/// One node in 2^this reaches the next higher level.
const HEIGHT_ODDS_BITS: u32 = 2;

/// The prefix of a link that leads to no node.
const PREFIX_NONE: u64 = u64::MAX;

const LINK_BYTES: usize = size_of::<Link>();
const VALUE_LENGTH_OFFSET: usize = LINK_BYTES;
const KEY_LENGTH_OFFSET: usize = VALUE_LENGTH_OFFSET + size_of::<u32>();
const KEY_OFFSET: usize = KEY_LENGTH_OFFSET + size_of::<u16>();

/// A step to the next node of a level, with that node's prefix.
#[repr(C)]
struct Link {
    prefix: AtomicU64,
    node: AtomicPtr<u8>,
}

/// The address of a node, or null. A holder of the address also holds the list, which keeps it
/// valid.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node(*mut u8);

impl Node {
    const NONE: Node = Node(ptr::null_mut());

    fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// # Safety
    /// The node is in a list that outlives `'a`, and taller than `level`.
    #[inline]
    unsafe fn link<'a>(self, level: usize) -> &'a Link {
        // SAFETY: the links of a node lie downwards from its address, initialised and aligned
        // (`Inserter::write_node`), and are only changed through their atomics.
        unsafe { &*self.0.cast::<Link>().sub(level) }
    }

    /// # Safety
    /// The node is in a list that outlives `'a`, and is not its head.
    #[inline]
    unsafe fn internal_key<'a>(self) -> &'a [u8] {
        // SAFETY: the length and that many bytes plus the trailer were written by `write_node`
        // before the node was published, and never change.
        unsafe {
            let user_key_bytes = usize::from(self.0.add(KEY_LENGTH_OFFSET).cast::<u16>().read());
            let start = self.0.add(KEY_OFFSET);
            std::slice::from_raw_parts(start, user_key_bytes + TRAILER_BYTES)
        }
    }

    /// # Safety
    /// The node is in a list that outlives `'a`, and is not its head.
    #[inline]
    unsafe fn value<'a>(self) -> &'a [u8] {
        // SAFETY: as for `internal_key`; the value follows the internal key.
        unsafe {
            let value_bytes = self.0.add(VALUE_LENGTH_OFFSET).cast::<u32>().read() as usize;
            let start = self.0.add(KEY_OFFSET + self.internal_key().len());
            std::slice::from_raw_parts(start, value_bytes)
        }
    }
}

/// An internal key to search for, with its prefix.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    prefix: u64,
    user_key: &'a [u8],
    trailer: u64,
}

impl Target<'_> {
    /// How `node` compares with this target.
    ///
    /// # Safety
    /// The node is in a live list, and is not its head.
    #[inline]
    unsafe fn compare(&self, node: Node) -> Ordering {
        // SAFETY: the caller's promise.
        let key = unsafe { node.internal_key() };
        let (user_key, trailer) = split_internal_key(key).expect("a node's key has a trailer");
        user_key.cmp(self.user_key).then_with(|| self.trailer.cmp(&trailer))
    }

    /// `node`, known by a link with `prefix`, stands before this target. None stands after all.
    ///
    /// # Safety
    /// The node is none, or in a live list and not its head.
    #[inline]
    unsafe fn is_after(&self, prefix: u64, node: Node) -> bool {
        if prefix != self.prefix {
            return prefix < self.prefix;
        }
        // SAFETY: the caller's promise, and the node is some.
        !node.is_none() && unsafe { self.compare(node) }.is_lt()
    }
}

/// The number that a key has in a list whose keys mostly begin with `start`: the eight bytes after
/// it, short keys padded with zeros. All keys before those that begin with the start have the
/// smallest number, all keys after them the largest. Where two numbers differ, the keys have the
/// same order; where they are equal, the order is unknown.
#[inline]
fn prefix_of(start: &CommonStart, user_key: &[u8]) -> u64 {
    let outside = || if *user_key < *start.bytes() { 0 } else { u64::MAX };
    start.prefix_after(user_key).unwrap_or_else(outside)
}

/// The list as its readers see it.
pub(super) struct SkipList {
    head: Node,
    /// The expected common start of most keys. Keys tend to share their start, "user" or zeros.
    /// With that start included, many keys would have the same prefix.
    start: CommonStart,
    /// Levels in use. A reader may see an old, smaller number; its search is then only slower.
    height: AtomicUsize,
    used_bytes: AtomicU64,
    arena: Arena,
}

// SAFETY: `head` points into the arena that the list owns; readers only load atomics and read bytes
// that were written before a Release store led to them; the one writer is `Inserter`.
unsafe impl Send for SkipList {}
// SAFETY: as above.
unsafe impl Sync for SkipList {}

impl SkipList {
    /// An empty list with memory of `pool`, most of whose keys will begin with `start`, and its one
    /// writer.
    pub(super) fn new(
        pool: &Arc<ChunkPool>,
        start: CommonStart,
    ) -> Result<(Arc<SkipList>, Inserter)> {
        let arena = Arena::new(pool);
        let mut bump = Bump::new();
        let head_bytes = HEIGHT_MAX * LINK_BYTES;
        let links = bump.allocate(&arena, head_bytes)?.cast::<Link>();
        for index in 0..HEIGHT_MAX {
            let link = Link { prefix: PREFIX_NONE.into(), node: ptr::null_mut::<u8>().into() };
            // SAFETY: the allocation has space for `HEIGHT_MAX` links and is aligned for them.
            unsafe { links.add(index).write(link) };
        }
        // SAFETY: the last link is inside the allocation.
        let head = Node(unsafe { links.add(HEIGHT_MAX - 1) }.as_ptr().cast());
        let used_bytes = AtomicU64::new(head_bytes as u64);
        let list =
            Arc::new(SkipList { head, start, height: AtomicUsize::new(1), used_bytes, arena });
        let place =
            Place { before: head, before_prefix: 0, at: Node::NONE, at_prefix: PREFIX_NONE };
        let inserter = Inserter {
            list: Arc::clone(&list),
            bump,
            splice: [place; HEIGHT_MAX],
            random: Random::new(0),
        };
        Ok((list, inserter))
    }

    /// Bytes of the nodes, including the head.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Bytes taken from the global allocator.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.arena.reserved_bytes()
    }

    /// The target of a search for the first entry at or after this internal key.
    #[inline]
    pub(super) fn target<'k>(&self, user_key: &'k [u8], trailer: u64) -> Target<'k> {
        Target { prefix: prefix_of(&self.start, user_key), user_key, trailer }
    }

    /// Trailers and values of the entries with `target`'s user key that are not before it.
    #[inline]
    pub(super) fn versions<'l, 'k>(&'l self, target: Target<'k>) -> Versions<'l, 'k> {
        let (_, node, prefix) = self.find(target);
        // A node with a prefix smaller than the link's was inserted after the search passed.
        let node = if prefix == target.prefix { node } else { Node::NONE };
        Versions { node, user_key: target.user_key, list: PhantomData }
    }

    /// The last node before `target` (or the head), and the content of its lowest link.
    #[inline]
    fn find(&self, target: Target<'_>) -> (Node, Node, u64) {
        let mut level = self.height.load(Relaxed);
        let mut before = self.head;
        loop {
            level -= 1;
            // SAFETY: `before` is the head, or a node reached over a link of this or a higher
            // level.
            let place = unsafe { walk(Place::from(before), level, target) };
            if level == 0 {
                return (place.before, place.at, place.at_prefix);
            }
            before = place.before;
        }
    }

    /// The first node that is not before `target`, and the last one that is (or the head).
    fn seek(&self, target: Target<'_>) -> (Node, Node) {
        let (mut before, mut at, _) = self.find(target);
        // The node may be newer than the prefix on which the search stopped: compare its key.
        // SAFETY: both are nodes of this list, and every node has a lowest link.
        while !at.is_none() && unsafe { target.compare(at) }.is_lt() {
            before = at;
            // SAFETY: as above.
            at = unsafe { at.link(0) }.next();
        }
        (before, at)
    }

    /// The first node, or none.
    fn first(&self) -> Node {
        // SAFETY: the head has every level.
        unsafe { self.head.link(0) }.next()
    }

    /// The last node, or the head.
    fn last(&self) -> Node {
        let mut node = self.head;
        for level in (0..self.height.load(Relaxed)).rev() {
            loop {
                // SAFETY: `node` is the head or was reached over a link of this or a higher level.
                let next = unsafe { node.link(level) }.next();
                if next.is_none() {
                    break;
                }
                node = next;
            }
        }
        node
    }
}

impl Link {
    #[inline]
    fn next(&self) -> Node {
        Node(self.node.load(Acquire))
    }
}

/// The place of a key on one level: between `before` and `at`. Both with their prefixes.
#[derive(Clone, Copy)]
struct Place {
    before: Node,
    before_prefix: u64,
    at: Node,
    at_prefix: u64,
}

impl From<Node> for Place {
    #[inline]
    fn from(before: Node) -> Place {
        Place { before, before_prefix: 0, at: Node::NONE, at_prefix: PREFIX_NONE }
    }
}

/// Walks along `level` from `place.before`, which stands before `target`, to the place of `target`.
///
/// # Safety
/// `place.before` is a node of a live list, and taller than `level`.
#[inline(always)]
unsafe fn walk(mut place: Place, level: usize, target: Target<'_>) -> Place {
    loop {
        // SAFETY: the caller's promise for the first round; a node reached on a level has that
        // level.
        let link = unsafe { place.before.link(level) };
        place.at_prefix = link.prefix.load(Acquire);
        place.at = link.next();
        // SAFETY: a link leads to none or to a node of the list, never to the head.
        if !unsafe { target.is_after(place.at_prefix, place.at) } {
            return place;
        }
        place.before = place.at;
        place.before_prefix = place.at_prefix;
    }
}

/// The writer of a list.
pub(super) struct Inserter {
    list: Arc<SkipList>,
    bump: Bump,
    /// The place of the last key inserted, level by level; the next key may belong to the same
    /// place.
    splice: [Place; HEIGHT_MAX],
    random: Random,
}

#[cold]
fn exists_already(entry: Target<'_>) -> Error {
    Error::invalid(format!(
        "the memtable already has an entry for {} with sequence number {} and this kind; give \
         every operation its own sequence number",
        base::key::display_key(entry.user_key),
        base::key::trailer_sequence(entry.trailer),
    ))
}

// SAFETY: the nodes in `splice` belong to `list`, which the inserter keeps.
unsafe impl Send for Inserter {}

impl Inserter {
    /// Adds an entry of key and value of `operation`. Fails, and adds nothing, when the internal
    /// key exists or memory is short.
    #[inline]
    pub(super) fn insert(&mut self, operation: &Operation<'_>, trailer: u64) -> Result<()> {
        // Within the limits: the lengths fit their fields.
        let (user_key, value) = (operation.key(), operation.value());
        let target = self.list.target(user_key, trailer);
        self.move_splice(target);
        let place = self.splice[0];
        // SAFETY: a place's `at` is none or a node of the list.
        let exists = place.at_prefix == target.prefix
            && !place.at.is_none()
            && unsafe { target.compare(place.at) }.is_eq();
        if exists {
            return Err(exists_already(target));
        }
        let height = self.random_height();
        let node = self.write_node(height, target, value)?;
        if height > self.list.height.load(Relaxed) {
            self.list.height.store(height, Relaxed);
        }
        for (level, place) in self.splice[..height].iter_mut().enumerate() {
            // SAFETY: `place.before` was found on this level, so it has it.
            let link = unsafe { place.before.link(level) };
            link.node.store(node.0, Release);
            link.prefix.store(target.prefix, Release);
            place.before = node;
            place.before_prefix = target.prefix;
        }
        Ok(())
    }

    /// Moves the splice to `target`: up from the old place to the first level where it still holds,
    /// and down again. A key that follows the last one needs no search.
    #[inline]
    fn move_splice(&mut self, target: Target<'_>) {
        let height = self.list.height.load(Relaxed);
        let mut level = 0;
        while level < height && !self.holds(&self.splice[level], target) {
            level += 1;
        }
        let mut start = match self.splice.get(level) {
            Some(place) => *place,
            None => Place::from(self.list.head),
        };
        while level > 0 {
            level -= 1;
            // SAFETY: `start.before` was found on a level above, so it has this one.
            start = unsafe { walk(start, level, target) };
            self.splice[level] = start;
        }
    }

    /// `target` belongs to `place`, on its level.
    #[inline]
    fn holds(&self, place: &Place, target: Target<'_>) -> bool {
        // SAFETY: places hold nodes of the list; the head's key is not read.
        unsafe {
            (place.before == self.list.head || target.is_after(place.before_prefix, place.before))
                && !target.is_after(place.at_prefix, place.at)
        }
    }

    /// A new node for the splice's place, complete but for the links that will lead to it.
    fn write_node(&mut self, height: usize, key: Target<'_>, value: &[u8]) -> Result<Node> {
        let tower_bytes = (height - 1) * LINK_BYTES;
        let entry_bytes = KEY_OFFSET + key.user_key.len() + TRAILER_BYTES + value.len();
        let bytes = (tower_bytes + entry_bytes).next_multiple_of(ALIGN);
        let start = self.bump.allocate(&self.list.arena, bytes)?.as_ptr();
        let used_bytes = self.list.used_bytes.load(Relaxed) + bytes as u64;
        self.list.used_bytes.store(used_bytes, Relaxed);
        // SAFETY: the allocation is new, holds `height` links, the two lengths, the key with its
        // trailer and the value, in this order, and is aligned for links; the lengths are at
        // multiples of their sizes. The sources cannot overlap memory that no other code has seen
        // yet.
        unsafe {
            let node = start.add(tower_bytes);
            for (level, place) in self.splice[..height].iter().enumerate() {
                let link = Link { prefix: place.at_prefix.into(), node: place.at.0.into() };
                node.cast::<Link>().sub(level).write(link);
            }
            node.add(VALUE_LENGTH_OFFSET).cast::<u32>().write(value.len() as u32);
            node.add(KEY_LENGTH_OFFSET).cast::<u16>().write(key.user_key.len() as u16);
            let key_start = node.add(KEY_OFFSET);
            key_start.copy_from_nonoverlapping(key.user_key.as_ptr(), key.user_key.len());
            let trailer_start = key_start.add(key.user_key.len());
            trailer_start.cast::<[u8; TRAILER_BYTES]>().write(key.trailer.to_le_bytes());
            let value_start = trailer_start.add(TRAILER_BYTES);
            value_start.copy_from_nonoverlapping(value.as_ptr(), value.len());
            Ok(Node(node))
        }
    }

    fn random_height(&mut self) -> usize {
        let ups = self.random.next_u64().trailing_zeros() / HEIGHT_ODDS_BITS;
        (1 + ups as usize).min(HEIGHT_MAX)
    }
}

/// The versions of one user key, newest first: trailer and value.
pub(super) struct Versions<'l, 'k> {
    node: Node,
    user_key: &'k [u8],
    list: PhantomData<&'l SkipList>,
}

impl<'l> Iterator for Versions<'l, '_> {
    type Item = (u64, &'l [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u64, &'l [u8])> {
        let node = self.node;
        if node.is_none() {
            return None;
        }
        // SAFETY: a node of the list, which is borrowed for `'l`, and not its head.
        let (key, value, link) = unsafe { (node.internal_key(), node.value(), node.link(0)) };
        let (user_key, trailer) = split_internal_key(key).expect("a node's key has a trailer");
        if user_key != self.user_key {
            self.node = Node::NONE;
            return None;
        }
        self.node = link.next();
        Some((trailer, value))
    }
}

/// A cursor over the entries of a memtable, in internal key order. It is owned, and keeps the
/// memory that it shows even after the memtable is dropped.
///
/// It shows entries that were inserted after it was made; the caller skips those that its snapshot
/// does not see. A backward step costs a search.
pub struct MemIter {
    list: Arc<SkipList>,
    node: Node,
}

// SAFETY: `node` belongs to `list`, which the cursor keeps and which is Send and Sync.
unsafe impl Send for MemIter {}
// SAFETY: as above; shared, a cursor is only read.
unsafe impl Sync for MemIter {}

impl MemIter {
    /// A cursor at no entry.
    pub(super) fn new(list: Arc<SkipList>) -> MemIter {
        MemIter { list, node: Node::NONE }
    }

    /// The cursor is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        !self.node.is_none()
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self) {
        self.node = self.list.first();
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self) {
        self.go_back_to(self.list.last());
    }

    /// Goes to the first entry at or after `internal_key`. Fails when the key is too short to be an
    /// internal key.
    pub fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        self.node = self.list.seek(self.target(internal_key)?).1;
        Ok(())
    }

    /// Goes to the last entry at or before `internal_key`. Fails as [`MemIter::seek`] does.
    pub fn seek_for_prev(&mut self, internal_key: &[u8]) -> Result<()> {
        let target = self.target(internal_key)?;
        let (before, at) = self.list.seek(target);
        // SAFETY: `at`, where it is some, is a node of the list.
        if !at.is_none() && unsafe { target.compare(at) }.is_eq() {
            self.node = at;
        } else {
            self.go_back_to(before);
        }
        Ok(())
    }

    /// Goes to the next entry; does nothing on a cursor at no entry.
    #[inline]
    pub fn next(&mut self) {
        if self.valid() {
            // SAFETY: the cursor keeps the list, and every node has a lowest link.
            self.node = unsafe { self.node.link(0) }.next();
        }
    }

    /// Goes to the entry before; does nothing on a cursor at no entry.
    pub fn prev(&mut self) {
        if self.valid() {
            let target = self.target(self.key()).expect("a node's key has a trailer");
            let before = self.list.seek(target).0;
            self.go_back_to(before);
        }
    }

    /// The internal key of the entry; empty on a cursor at no entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if !self.valid() {
            return &[];
        }
        // SAFETY: the cursor keeps the list, and is never at the head.
        unsafe { self.node.internal_key() }
    }

    /// The value of the entry; empty on a cursor at no entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        if !self.valid() {
            return &[];
        }
        // SAFETY: as for `key`.
        unsafe { self.node.value() }
    }

    fn go_back_to(&mut self, node: Node) {
        self.node = if node == self.list.head { Node::NONE } else { node };
    }

    fn target<'k>(&self, internal_key: &'k [u8]) -> Result<Target<'k>> {
        let (user_key, trailer) = split_internal_key(internal_key).ok_or_else(|| {
            Error::invalid(format!(
                "an internal key has at least {TRAILER_BYTES} bytes, this one has {}",
                internal_key.len()
            ))
        })?;
        Ok(self.list.target(user_key, trailer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader may see the new node under the old prefix while a link changes.
    #[test]
    fn reads_are_right_between_the_two_stores_of_a_link() {
        let (list, mut inserter) =
            SkipList::new(&ChunkPool::new(0, 0, Arc::default()), CommonStart::default())
                .expect("a little memory");
        let put = |key: &'static [u8]| {
            Operation::new(base::KeyspaceId(0), base::EntryKind::Put, key, b"").expect("short")
        };
        inserter.insert(&put(b"a"), 1).expect("new");
        inserter.insert(&put(b"z"), 2).expect("new");
        let target = list.target(b"m", 3);
        inserter.move_splice(target);
        let node = inserter.write_node(1, target, b"").expect("a little memory");
        // SAFETY: every node has a lowest link.
        unsafe { inserter.splice[0].before.link(0) }.node.store(node.0, Release);
        let mut cursor = MemIter::new(Arc::clone(&list));
        for (user_key, found, before) in
            [(b"b", b"m", b"a"), (b"n", b"z", b"m"), (b"z", b"z", b"m")]
        {
            let versions = list.versions(list.target(user_key, 9)).count();
            assert_eq!(versions, usize::from(user_key == b"z"));
            let key = [&user_key[..], &9u64.to_le_bytes()].concat();
            cursor.seek(&key).expect("whole");
            assert_eq!(cursor.key()[0], found[0]);
            cursor.seek_for_prev(&key).expect("whole");
            assert_eq!(cursor.key()[0], before[0]);
        }
    }
}
