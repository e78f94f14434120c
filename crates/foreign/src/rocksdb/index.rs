//! The index of a table: the places of its blocks of entries, in the order of their keys.
//!
//! A partitioned index is an index of indexes; one of these is in memory at a time. The part of a
//! hash index that finds keys by their hash is not needed.

use super::blocks::Blocks;
use super::footer::{TRAILER_BYTES, place};
use super::properties::IndexForm;
use crate::coding::Input;
use crate::file::Place;
use base::Result;

/// Places that were not given yet.
pub struct Index {
    form: IndexForm,
    /// Of indexes.
    partitions: std::vec::IntoIter<Place>,
    /// Of blocks of entries.
    places: std::vec::IntoIter<Place>,
}

impl Index {
    pub fn read(blocks: &Blocks, at: Place, form: IndexForm) -> Result<Index> {
        let (mut partitions, mut places) = (Vec::new(), Vec::new());
        match form.is_partitioned {
            true => partitions = listed(blocks, at, form)?,
            false => places = listed(blocks, at, form)?,
        }
        Ok(Index { form, partitions: partitions.into_iter(), places: places.into_iter() })
    }

    pub fn next(&mut self, blocks: &Blocks) -> Result<Option<Place>> {
        loop {
            if let Some(place) = self.places.next() {
                return Ok(Some(place));
            }
            let Some(partition) = self.partitions.next() else { return Ok(None) };
            self.places = listed(blocks, partition, self.form)?.into_iter();
        }
    }
}

/// The places that a block of an index has.
fn listed(blocks: &Blocks, at: Place, form: IndexForm) -> Result<Vec<Place>> {
    let mut block = blocks.block(at)?;
    let mut places: Vec<Place> = Vec::new();
    loop {
        let mut found = None;
        let advanced = match form.is_short {
            true => block.advance_by(|value, shares| {
                let before = if shares { Some(*places.last()?) } else { None };
                let (place, bytes) = entry(value, before, form)?;
                found = Some(place);
                Some(bytes)
            }),
            false => block.advance().inspect(|_| {
                found = entry(block.value(), None, form).map(|(place, _)| place);
            }),
        };
        match (advanced, found) {
            (Some(false), _) => return Ok(places),
            (Some(true), Some(place)) => places.push(place),
            _ => return Err(blocks.damaged(&block, "an entry of the index")),
        }
    }
}

/// The place that an entry has, and how many bytes it takes. With a place `before`, it has only
/// the difference of the lengths.
fn entry(value: &[u8], before: Option<Place>, form: IndexForm) -> Option<(Place, usize)> {
    let mut input = Input::new(value);
    let place = match before {
        None => place(&mut input)?,
        Some(before) => Place {
            offset: before.offset.checked_add(before.bytes)?.checked_add(TRAILER_BYTES)?,
            bytes: before.bytes.checked_add_signed(input.varint_signed()?)?,
        },
    };
    if form.has_first_keys {
        input.slice()?;
    }
    Some((place, value.len() - input.len()))
}
