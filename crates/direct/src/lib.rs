//! Files placed directly on a block device, without a file system.
//!
//! [`DirectStore`] is a [`media::FileStore`] on any [`media::BlockDevice`]. Where files lie is the
//! business of a [`placement`]; what is where is written down in a `journal` of metadata, whose
//! places the `superblock` says. A file is a `node` with pieces in extents; a log's sectors are
//! `frame`s, which are found again without metadata about each append. Every request leaves
//! through the `port`, which counts it.
//!
//! The layout on the medium is described in `docs/format/direct.md`, the design in
//! `docs/design/direct.md`. Nothing here knows a model of a device: it sees a geometry.

pub mod extent;
mod frame;
mod journal;
mod node;
pub mod placement;
mod port;
mod record;
mod store;
mod superblock;

pub use extent::Extent;
pub use store::{
    CheckReport, DirectOptions, DirectStore, FileLayout, FormatOptions, Layout, Progress, format,
};
