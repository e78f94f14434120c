//! Errors, sorted by what the user does about them.
//!
//! An [`Error`] says what happened, where (file, offset), and, through its [`ErrorKind`], what to
//! do. It is cheap to clone, because a poisoned database repeats its cause to every later caller.

use crate::key::{Key, display_key};
use std::fmt;
use std::sync::Arc;

/// The result of everything in Shingle that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller can do about an error.
///
/// A new version may add kinds, so a `match` needs a last arm for the others.
///
/// ```
/// # extern crate base as shingle;
/// use shingle::{Error, ErrorKind};
///
/// fn is_worth_another_try(error: &Error) -> bool {
///     matches!(error.kind(), ErrorKind::WouldWait | ErrorKind::NoSpace | ErrorKind::Locked)
/// }
/// # assert!(!is_worth_another_try(&Error::invalid("a wrong call")));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The call is wrong: a limit is exceeded, a name is unknown. Fix the call.
    InvalidArgument,
    /// The thing asked for does not exist. Nothing was changed.
    NotFound,
    /// The thing to be created exists. Nothing was changed.
    AlreadyExists,
    /// Stored bytes are not what was written. Restore from a checkpoint, or salvage.
    Corruption,
    /// The operating system or device refused. Look at the source.
    Io,
    /// The medium is full. Free space and go on; nothing was lost.
    NoSpace,
    /// An earlier failure left an unknown outcome on the medium. Close and reopen.
    Poisoned,
    /// The write would have to wait, and the caller asked not to. Try later.
    WouldWait,
    /// Another process, or this one, has the database open.
    Locked,
    /// The files are foreign, or written by a newer version. Nothing was touched.
    Incompatible,
    /// The database was closed or the keyspace dropped.
    Closed,
    /// This store or configuration cannot do what was asked.
    Unsupported,
    /// The work was cancelled by shutdown; its inputs are untouched.
    Cancelled,
    /// The file has names in other directories, so that it takes no more bytes. The engine goes on
    /// with another file.
    Shared,
    /// Another write changed what the transaction has read, or holds a lock that it needs. Begin
    /// the transaction again.
    Conflict,
    /// What was asked for was kept for a time, and is gone. Read everything again.
    TooLate,
}

impl ErrorKind {
    /// The number of this kind, from 1. A kind keeps its number in every later version, so that
    /// scripts, metrics and bindings of other languages can rely on it.
    pub fn code(self) -> u16 {
        match self {
            ErrorKind::InvalidArgument => 1,
            ErrorKind::NotFound => 2,
            ErrorKind::AlreadyExists => 3,
            ErrorKind::Corruption => 4,
            ErrorKind::Io => 5,
            ErrorKind::NoSpace => 6,
            ErrorKind::Poisoned => 7,
            ErrorKind::WouldWait => 8,
            ErrorKind::Locked => 9,
            ErrorKind::Incompatible => 10,
            ErrorKind::Closed => 11,
            ErrorKind::Unsupported => 12,
            ErrorKind::Cancelled => 13,
            ErrorKind::Shared => 14,
            ErrorKind::Conflict => 15,
            ErrorKind::TooLate => 16,
        }
    }

    /// One sentence for a person who meets this kind of error.
    pub fn remedy(self) -> &'static str {
        match self {
            ErrorKind::InvalidArgument => "correct the call",
            ErrorKind::NotFound => "check the name",
            ErrorKind::AlreadyExists => "choose another name",
            ErrorKind::Corruption => {
                "run `shingle check`; restore from a checkpoint, or keep the files and run \
                 `shingle salvage`"
            }
            ErrorKind::Io => "look at the system's message and at the medium",
            ErrorKind::NoSpace => "free space on the medium; the database goes on by itself",
            ErrorKind::Poisoned => {
                "close and reopen the database; reopening decides what was stored"
            }
            ErrorKind::WouldWait => "try again later, or use a waiting call",
            ErrorKind::Locked => "wait until the other process closes the database, or end it",
            ErrorKind::Incompatible => {
                "open it with the version that wrote it; nothing was touched"
            }
            ErrorKind::Closed => "open it again",
            ErrorKind::Unsupported => "choose another store or option",
            ErrorKind::Cancelled => "nothing to do",
            ErrorKind::Shared => "write another file",
            ErrorKind::Conflict => "begin the transaction again",
            ErrorKind::TooLate => "read everything again, and raise the retention",
        }
    }
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    file: Option<String>,
    offset: Option<u64>,
    /// The keyspace and the key that the error is about.
    key: Option<(String, Key)>,
    source: Option<std::io::Error>,
    cause: Option<Error>,
}

/// What went wrong, where, and what to do about it. Cheap to clone.
///
/// ```
/// # extern crate base as shingle;
/// # fn get() -> shingle::Result<()> {
/// #     Err(shingle::Error::corruption("000007.table", 4096, "a block has another checksum"))
/// # }
/// if let Err(error) = get() {
///     eprintln!("{error}");
///     if let (Some(file), Some(offset)) = (error.file(), error.offset()) {
///         eprintln!("look at byte {offset} of {file}");
///     }
///     eprintln!("{}", error.kind().remedy());
/// }
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

impl Error {
    /// An error of `kind`; `message` says what happened, in words that a user understands.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Arc::new(Inner {
            kind,
            message: message.into(),
            file: None,
            offset: None,
            key: None,
            source: None,
            cause: None,
        }))
    }

    /// A wrong call.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// Damage in `file` at byte `offset`; `message` says what was expected and what was found.
    pub fn corruption(file: impl Into<String>, offset: u64, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corruption, message).in_file(file).at(offset)
    }

    /// A failed system call; `doing` says what was tried. A full medium becomes `NoSpace`.
    pub fn io(doing: impl Into<String>, source: std::io::Error) -> Error {
        let kind = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                ErrorKind::NoSpace
            }
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let mut error = Error::new(kind, doing);
        error.inner_mut().source = Some(source);
        error
    }

    /// The process, or the system, has no descriptor left for a file: nothing was done, and a later
    /// try may find one.
    pub fn lacks_descriptors(&self) -> bool {
        // EMFILE and ENFILE, wherever we run.
        let number = self.0.source.as_ref().and_then(std::io::Error::raw_os_error);
        matches!(number, Some(24 | 23))
    }

    /// There was no space, or no descriptor: nothing was done, and a later try may succeed.
    pub fn is_lack(&self) -> bool {
        self.kind() == ErrorKind::NoSpace || self.lacks_descriptors()
    }

    /// The state after `cause`: writes are refused until the database is reopened.
    pub fn poisoned(cause: Error) -> Error {
        let mut error =
            Error::new(ErrorKind::Poisoned, "writes are refused after an earlier failure");
        error.inner_mut().cause = Some(cause);
        error
    }

    /// Adds the file that the error is about.
    pub fn in_file(mut self, file: impl Into<String>) -> Error {
        self.inner_mut().file = Some(file.into());
        self
    }

    /// Adds the byte offset in the file.
    pub fn at(mut self, offset: u64) -> Error {
        self.inner_mut().offset = Some(offset);
        self
    }

    /// Another write has changed `key`, or holds it: `message` says which.
    pub fn conflict(
        message: impl Into<String>,
        keyspace: impl Into<String>,
        key: impl Into<Key>,
    ) -> Error {
        let mut error = Error::new(ErrorKind::Conflict, message);
        error.inner_mut().key = Some((keyspace.into(), key.into()));
        error
    }

    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, without place and remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file that the error is about.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`Error::file`].
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The key that a conflict is about.
    pub fn key(&self) -> Option<&[u8]> {
        self.0.key.as_ref().map(|(_, key)| &**key)
    }

    /// The name of the keyspace of [`Error::key`].
    pub fn keyspace(&self) -> Option<&str> {
        self.0.key.as_ref().map(|(keyspace, _)| keyspace.as_str())
    }

    fn inner_mut(&mut self) -> &mut Inner {
        if Arc::get_mut(&mut self.0).is_none() {
            self.0 = Arc::new(self.0.copy());
        }
        Arc::get_mut(&mut self.0).expect("a fresh Arc has one owner")
    }
}

impl Inner {
    fn copy(&self) -> Inner {
        Inner {
            kind: self.kind,
            message: self.message.clone(),
            file: self.file.clone(),
            offset: self.offset,
            key: self.key.clone(),
            source: self.source.as_ref().map(|s| match s.raw_os_error() {
                Some(code) => std::io::Error::from_raw_os_error(code),
                None => std::io::Error::new(s.kind(), s.to_string()),
            }),
            cause: self.cause.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(file) = &self.0.file {
            write!(f, " ({file}")?;
            if let Some(offset) = self.0.offset {
                write!(f, " at byte {offset}")?;
            }
            f.write_str(")")?;
        }
        if let Some((keyspace, key)) = &self.0.key {
            write!(f, " (key {} of keyspace `{keyspace}`)", display_key(key))?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        if let Some(cause) = &self.0.cause {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| s as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_says_what_where_and_why() {
        let error = Error::corruption("000007.table", 4096, "block checksum: expected 1, found 2");
        assert_eq!(
            error.to_string(),
            "block checksum: expected 1, found 2 (000007.table at byte 4096)"
        );
        let poisoned = Error::poisoned(error);
        assert_eq!(poisoned.kind(), ErrorKind::Poisoned);
        assert!(poisoned.to_string().contains("000007.table"));
    }

    #[test]
    fn kinds_of_errors_keep_their_numbers() {
        let kinds = [
            ErrorKind::InvalidArgument,
            ErrorKind::NotFound,
            ErrorKind::AlreadyExists,
            ErrorKind::Corruption,
            ErrorKind::Io,
            ErrorKind::NoSpace,
            ErrorKind::Poisoned,
            ErrorKind::WouldWait,
            ErrorKind::Locked,
            ErrorKind::Incompatible,
            ErrorKind::Closed,
            ErrorKind::Unsupported,
            ErrorKind::Cancelled,
            ErrorKind::Shared,
            ErrorKind::Conflict,
            ErrorKind::TooLate,
        ];
        let codes: Vec<u16> = kinds.iter().map(|kind| kind.code()).collect();
        assert_eq!(codes, (1..=16).collect::<Vec<u16>>());
    }

    #[test]
    fn a_full_medium_has_its_own_kind() {
        let full = std::io::Error::from_raw_os_error(28);
        assert_eq!(Error::io("write 000001.wal", full).kind(), ErrorKind::NoSpace);
    }

    #[test]
    fn a_shared_error_can_still_be_given_a_place() {
        let error = Error::invalid("x");
        let copy = error.clone().in_file("f");
        assert_eq!(error.file(), None);
        assert_eq!(copy.file(), Some("f"));
    }
}
