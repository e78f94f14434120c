//! One operation of a trace, whatever format it was written in.

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads one key.
    Get,
    /// Writes one key, new or not.
    Put,
    /// Writes one key that was there before.
    Update,
    /// Removes one key.
    Delete,
    /// Reads keys in order, from one on.
    Scan,
    /// Removes all keys of a range. Counted, and no part of the estimate.
    DeleteRange,
}

impl Kind {
    /// Every kind, in the order of reports.
    pub const ALL: [Kind; 6] =
        [Kind::Get, Kind::Put, Kind::Update, Kind::Delete, Kind::Scan, Kind::DeleteRange];

    /// Its name in reports and in Shingle's own format.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Put => "put",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::Scan => "scan",
            Kind::DeleteRange => "delete-range",
        }
    }

    /// The kind of this name.
    pub fn by_name(name: &[u8]) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// It puts an entry into the tree.
    pub fn is_write(self) -> bool {
        matches!(self, Kind::Put | Kind::Update | Kind::Delete)
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Nanoseconds since some moment that stays the same; `None` where the format has no time.
    pub time_ns: Option<u64>,
    /// What it does.
    pub kind: Kind,
    /// The key; of scans and range deletions the first one.
    pub key: &'a [u8],
    /// Bytes that the key had, where the trace keeps another in its place.
    pub key_bytes: u64,
    /// Bytes of the value that was written, or found; `None` where the format does not say.
    pub value_bytes: Option<u64>,
    /// Records that a scan reads; 1 for all else.
    pub records: u64,
}

impl<'a> Operation<'a> {
    /// An operation on a key that stands as it was.
    pub fn new(time_ns: Option<u64>, kind: Kind, key: &'a [u8]) -> Operation<'a> {
        let key_bytes = key.len() as u64;
        Operation { time_ns, kind, key, key_bytes, value_bytes: None, records: 1 }
    }

    /// As the first operation on its key, it says that the key was there before: it was updated, or
    /// read and not known to be missing.
    pub fn is_of_old_key(&self) -> bool {
        match self.kind {
            Kind::Update => true,
            Kind::Get => self.value_bytes != Some(0),
            _ => false,
        }
    }

    /// The same with a value of `bytes` bytes.
    pub fn value(self, bytes: u64) -> Operation<'a> {
        Operation { value_bytes: Some(bytes), ..self }
    }

    /// The same over `records` records.
    pub fn over(self, records: u64) -> Operation<'a> {
        Operation { records, ..self }
    }
}
