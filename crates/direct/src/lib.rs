//! Files placed directly on a block device, without a file system: superblock, journaled
//! allocation, placements.
