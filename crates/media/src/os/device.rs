//! A block device that is a regular file or a disk of the operating system.
//!
//! Two descriptors of one file: background requests ([`Cause::is_background`]) go past the page
//! cache, all others through it. So an append to a log survives the death of the process without a
//! sync, and what compactions write does not displace what is read. The two paths never have
//! different bytes: the kernel drops a page of the cache when a direct write passes it. Where pages
//! are larger than sectors, the cache would write the old bytes of such a sector again with another
//! one of its page. So a page that a request only has a part of is written through the cache.

use super::calls;
use super::lock;
use super::system;
use crate::block::{BlockDevice, DeviceLock, Geometry, Moved, Overwrite};
use base::{Cause, Error, ErrorKind, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The sector of a plain file: what direct requests have to be multiples of nearly everywhere.
const FILE_SECTOR_BYTES: u32 = 4096;

/// What a disk below a file system writes whole, at least.
const FILE_ATOMIC_BYTES: u32 = 512;

/// Bytes that a direct request moves at a time when its memory has to be aligned first.
const BOUNCE_BYTES: usize = 1 << 20;

/// How a [`FileDevice`] is opened.
#[derive(Clone, Copy, Debug)]
pub struct FileDeviceOptions {
    /// Background requests go past the page cache where the file system can.
    pub direct: bool,
    /// Pass discards on: holes in a file, TRIM on a disk.
    pub discard: bool,
    /// Writes fail, and a disk that others read is not claimed.
    pub read_only: bool,
}

impl Default for FileDeviceOptions {
    fn default() -> FileDeviceOptions {
        FileDeviceOptions { direct: true, discard: true, read_only: false }
    }
}

/// A file or a disk as a range of sectors. Bytes of the medium are those of the host: a disk does
/// not say what it moves.
pub struct FileDevice {
    buffered: OwnedFd,
    direct: Option<OwnedFd>,
    geometry: Geometry,
    path: String,
    /// Bytes of a page of the cache.
    page_bytes: u64,
    /// Leads to the device from wherever the process works.
    absolute: PathBuf,
    discards: AtomicBool,
}

impl FileDevice {
    /// Creates a sparse file of `bytes`, rounded down to sectors. `AlreadyExists` if there is one.
    pub fn create(path: &Path, bytes: u64, options: FileDeviceOptions) -> Result<FileDevice> {
        let text = path.display().to_string();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | calls::SAFE;
        let file = calls::patiently(|| rustix::fs::open(path, flags, calls::FILE_MODE))
            .map_err(|errno| calls::error("create", text.clone(), errno))?;
        rustix::fs::ftruncate(&file, bytes - bytes % u64::from(FILE_SECTOR_BYTES))
            .and_then(|()| system::sync_names(&file))
            .map_err(|errno| calls::error("size", text, errno))?;
        FileDevice::open(path, options)
    }

    /// Opens a regular file, or a disk, which nothing else may have mounted or opened exclusively.
    pub fn open(path: &Path, options: FileDeviceOptions) -> Result<FileDevice> {
        let text = path.display().to_string();
        let failed = |doing: &str, errno| match errno {
            Errno::BUSY => {
                Error::new(ErrorKind::Locked, format!("{text} is in use by the system or mounted"))
            }
            errno => calls::error(doing, text.clone(), errno),
        };
        let open = |flags| {
            let access = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
            let flags = access | OFlags::CLOEXEC | flags;
            calls::patiently(|| rustix::fs::open(path, flags, Mode::empty()))
        };
        let stat = rustix::fs::stat(path).map_err(|errno| failed("look at", errno))?;
        let is_disk = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::BlockDevice => true,
            _ => {
                let message = format!("{text} is neither a regular file nor a block device");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        // The kernel takes EXCL without CREATE as a claim on the disk; on a file it means nothing.
        let claims = is_disk && !options.read_only;
        let exclusive = if claims { OFlags::EXCL } else { OFlags::empty() };
        let buffered = open(exclusive).map_err(|errno| failed("open", errno))?;
        let (sector_bytes, atomic_bytes) = if is_disk {
            let physical = system::sector_bytes(&buffered);
            let physical = physical.map_err(|errno| failed("ask the sector of", errno))?;
            (physical, physical)
        } else {
            (FILE_SECTOR_BYTES, FILE_ATOMIC_BYTES)
        };
        let end = rustix::fs::seek(&buffered, SeekFrom::End(0))
            .map_err(|errno| failed("ask the size of", errno))?;
        let direct = if options.direct { system::open_direct(open).ok() } else { None };
        let geometry = Geometry {
            sector_bytes,
            atomic_bytes,
            capacity_bytes: end - end % u64::from(sector_bytes),
            overwrite: Overwrite::InPlace,
            band_bytes: 0,
            zones: None,
        };
        let discards = AtomicBool::new(options.discard);
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let page_bytes = rustix::param::page_size() as u64;
        Ok(FileDevice { buffered, direct, geometry, path: text, page_bytes, absolute, discards })
    }

    fn error(&self, doing: &str, errno: Errno, offset: u64) -> Error {
        calls::error(doing, self.path.clone(), errno).at(offset)
    }

    fn check_range(&self, offset: u64, bytes: u64) -> Result<()> {
        let sector_bytes = u64::from(self.geometry.sector_bytes);
        let is_whole = offset.is_multiple_of(sector_bytes) && bytes.is_multiple_of(sector_bytes);
        let end = offset.checked_add(bytes);
        if !is_whole || end.is_none_or(|end| end > self.geometry.capacity_bytes) {
            let message = format!(
                "{bytes} bytes are not whole sectors of {sector_bytes} bytes within the {} bytes \
                 of the device",
                self.geometry.capacity_bytes
            );
            return Err(Error::invalid(message).in_file(self.path.clone()).at(offset));
        }
        Ok(())
    }

    fn direct_for(&self, cause: Cause) -> Option<&OwnedFd> {
        self.direct.as_ref().filter(|_| cause.is_background())
    }
}

/// Memory whose address is a multiple of the alignment that direct requests need.
struct Bounce {
    memory: Vec<u8>,
    origin: usize,
}

impl Bounce {
    fn new(bytes: usize, align: usize) -> Bounce {
        let memory = vec![0; bytes + align];
        let address = memory.as_ptr().addr();
        Bounce { origin: address.next_multiple_of(align) - address, memory }
    }

    fn bytes(&mut self, count: usize) -> &mut [u8] {
        &mut self.memory[self.origin..self.origin + count]
    }
}

fn is_aligned(bytes: &[u8], align: usize) -> bool {
    bytes.as_ptr().addr().is_multiple_of(align)
}

/// Of `bytes` from `offset`, how many lie before the first whole page, and how many in whole pages.
fn whole_pages(offset: u64, bytes: usize, page_bytes: u64) -> (usize, usize) {
    let head = (offset.next_multiple_of(page_bytes) - offset).min(bytes as u64);
    let rest = bytes as u64 - head;
    (head as usize, (rest - rest % page_bytes) as usize)
}

/// The longest aligned memory that any request of `bytes` needs.
fn bounce_for(bytes: &[u8], align: usize) -> Option<Bounce> {
    (!is_aligned(bytes, align)).then(|| Bounce::new(bytes.len().min(BOUNCE_BYTES), align))
}

impl BlockDevice for FileDevice {
    /// The system reads ahead into the page cache, which foreground reads go through.
    fn prefetch(&self, offset: u64, bytes: u64) {
        if let Some(bytes) = NonZeroU64::new(bytes) {
            // Advice only: nothing depends on it.
            system::read_ahead(&self.buffered, offset, bytes);
        }
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<Moved> {
        self.check_range(offset, into.len() as u64)?;
        let cached = AtomicBool::new(false);
        let fill = |file: &OwnedFd, piece: &mut [u8], at: u64| -> Result<()> {
            let filled = calls::read_at(file.as_fd(), piece, at, &cached, |_| {})
                .map_err(|errno| self.error("read", errno, at))?;
            if filled < piece.len() {
                let message = "the device ends early: it became shorter while it was open";
                return Err(Error::new(ErrorKind::Io, message).in_file(self.path.clone()).at(at));
            }
            Ok(())
        };
        let align = self.geometry.sector_bytes as usize;
        match self.direct_for(cause).map(|file| (file, bounce_for(into, align))) {
            None => fill(&self.buffered, into, offset)?,
            Some((file, None)) => fill(file, into, offset)?,
            Some((file, Some(mut bounce))) => {
                let mut at = offset;
                for piece in into.chunks_mut(BOUNCE_BYTES) {
                    let aligned = bounce.bytes(piece.len());
                    fill(file, aligned, at)?;
                    piece.copy_from_slice(aligned);
                    at += piece.len() as u64;
                }
            }
        }
        Ok(Moved::default())
    }

    fn write(&self, offset: u64, bytes: &[u8], cause: Cause) -> Result<Moved> {
        self.check_range(offset, bytes.len() as u64)?;
        let put = |file: &OwnedFd, piece: &[u8], at: u64| {
            calls::write_at(file.as_fd(), piece, at, |_| {})
                .map_err(|errno| self.error("write", errno, at))
        };
        let Some(file) = self.direct_for(cause) else {
            put(&self.buffered, bytes, offset)?;
            return Ok(Moved::default());
        };
        let (head_bytes, whole_bytes) = whole_pages(offset, bytes.len(), self.page_bytes);
        let (head, rest) = bytes.split_at(head_bytes);
        let (whole, tail) = rest.split_at(whole_bytes);
        let mut at = offset + head_bytes as u64;
        put(&self.buffered, head, offset)?;
        put(&self.buffered, tail, at + whole_bytes as u64)?;
        match bounce_for(whole, self.geometry.sector_bytes as usize) {
            None => put(file, whole, at)?,
            Some(mut bounce) => {
                for piece in whole.chunks(BOUNCE_BYTES) {
                    let aligned = bounce.bytes(piece.len());
                    aligned.copy_from_slice(piece);
                    put(file, aligned, at)?;
                    at += piece.len() as u64;
                }
            }
        }
        Ok(Moved::default())
    }

    fn flush(&self, _cause: Cause) -> Result<Moved> {
        // Never repeated: after a failed sync a second one may succeed without having written.
        system::sync_data(&self.buffered)
            .map_err(|errno| calls::error("flush", self.path.clone(), errno))?;
        Ok(Moved::default())
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<Moved> {
        self.check_range(offset, bytes)?;
        if bytes > 0 && self.discards.load(Relaxed) {
            match calls::patiently(|| system::discard(&self.buffered, offset, bytes)) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                    self.discards.store(false, Relaxed);
                }
                Err(errno) => return Err(self.error("discard", errno, offset)),
            }
        }
        Ok(Moved::default())
    }

    fn reset_zone(&self, _start: u64) -> Result<Moved> {
        Err(Error::new(ErrorKind::Unsupported, "the device has no zones"))
    }

    fn finish_zone(&self, _start: u64) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "the device has no zones"))
    }

    fn zone(&self, _offset: u64) -> Result<Option<crate::block::Zone>> {
        Ok(None)
    }

    fn lock(&self) -> Result<DeviceLock> {
        Ok(Box::new(lock::of_file(&self.buffered, &self.absolute, false)?))
    }

    fn lock_shared(&self) -> Result<DeviceLock> {
        Ok(Box::new(lock::of_file(&self.buffered, &self.absolute, true)?))
    }

    fn describe(&self) -> String {
        self.path.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(options: FileDeviceOptions) -> (tempfile::TempDir, FileDevice) {
        // The build folder lies on a disk; the temporary one may be memory, which has no direct
        // path.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let device = FileDevice::create(&folder.path().join("disk"), 10_000_000, options).unwrap();
        (folder, device)
    }

    #[test]
    fn both_paths_see_the_same_bytes() {
        for direct in [true, false] {
            let (_folder, device) = device(FileDeviceOptions { direct, ..Default::default() });
            assert_eq!(device.geometry().capacity_bytes, 9_998_336);
            let bytes: Vec<u8> = (0..3 * BOUNCE_BYTES as u32).map(|i| (i % 251) as u8).collect();
            for (offset, cause) in [(0, Cause::Wal), (4096, Cause::Flush), (8192, Cause::Wal)] {
                device.write(offset, &bytes[4096..], cause).unwrap();
                for cause in [Cause::Get, Cause::Check] {
                    // One aligned, one not.
                    for shift in [0, 1] {
                        let mut found = vec![0; bytes.len() - 4096 + shift];
                        device.read(offset, &mut found[shift..], cause).unwrap();
                        assert!(found[shift..] == bytes[4096..], "{offset} {cause:?} {shift}");
                    }
                }
            }
            device.flush(Cause::Wal).unwrap();
            device.discard(0, 8192).unwrap();
            let mut found = vec![1; 4096];
            device.read(8192, &mut found, Cause::Get).unwrap();
            assert_eq!(found, bytes[4096..8192]);
        }
    }

    /// A sector that went past the cache came back as it had been before, when the cache wrote
    /// another one of its page.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_page_that_a_request_has_a_part_of_is_written_through_the_cache() {
        let (_folder, mut device) = device(FileDeviceOptions::default());
        device.geometry.sector_bytes = 512;
        let page_bytes = device.page_bytes as usize;
        for (offset, len) in [(512, 3 * page_bytes), (page_bytes + 512, 512), (0, page_bytes - 512)]
        {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251 + offset) as u8).collect();
            device.write(offset as u64, &bytes, Cause::Flush).unwrap();
            let (first, end) = (offset / page_bytes, (offset + len).div_ceil(page_bytes));
            for page in first..end {
                let start = offset.max(page * page_bytes);
                let part = start..(offset + len).min((page + 1) * page_bytes);
                let mut found = vec![0; part.len()];
                let file = device.buffered.as_fd();
                let cached = system::read_from_memory(file, &mut found, start as u64);
                assert!(part.len() == page_bytes || cached == Ok(part.len()), "{part:?}");
            }
            let mut found = vec![0; len];
            device.read(offset as u64, &mut found, Cause::Get).unwrap();
            assert!(found == bytes, "{offset} {len}");
        }
    }

    #[test]
    fn requests_are_whole_sectors_of_the_device() {
        let (_folder, device) = device(FileDeviceOptions::default());
        for (offset, bytes) in [(512, 4096), (0, 100), (9_998_336, 4096), (u64::MAX - 4095, 4096)] {
            let mut into = vec![0; bytes];
            for error in [
                device.read(offset, &mut into, Cause::Get).unwrap_err(),
                device.write(offset, &into, Cause::Flush).unwrap_err(),
                device.discard(offset, bytes as u64).unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            }
        }
    }

    #[test]
    fn a_second_opener_is_kept_out_however_it_came() {
        let (folder, first) = device(FileDeviceOptions::default());
        let path = folder.path().join("disk");
        let second = FileDevice::open(&path, FileDeviceOptions::default()).unwrap();
        let lock = first.lock().unwrap();
        for device in [&first, &second] {
            assert_eq!(device.lock().err().unwrap().kind(), ErrorKind::Locked);
        }
        drop(lock);
        let lock = second.lock().unwrap();
        // A descriptor of its own stands for another process.
        let other = std::fs::File::open(&path).unwrap();
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        assert!(rustix::fs::flock(&other, exclusive).is_err());
        drop(lock);
        rustix::fs::flock(&other, exclusive).unwrap();
        assert_eq!(first.lock().err().unwrap().kind(), ErrorKind::Locked);
    }

    #[test]
    fn readers_share_a_device_and_keep_writers_out() {
        let (folder, writer) = device(FileDeviceOptions::default());
        let path = folder.path().join("disk");
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        let options = FileDeviceOptions { read_only: true, ..Default::default() };
        let reader = || FileDevice::open(&path, options).unwrap();
        let (first, second) = (reader(), reader());
        assert!(first.write(0, &[0; 4096], Cause::Wal).is_err());
        let locks = [first.lock_shared().unwrap(), second.lock_shared().unwrap()];
        let error = writer.lock().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.message().contains("for reading"), "{error}");
        drop(locks);
        let lock = writer.lock().unwrap();
        assert_eq!(first.lock_shared().err().unwrap().kind(), ErrorKind::Locked);
        drop(lock);
        // Descriptors of their own stand for other processes.
        drop((first.lock_shared().unwrap(), second.lock_shared().unwrap()));
        let other = std::fs::File::open(&path).unwrap();
        let shared = rustix::fs::FlockOperation::NonBlockingLockShared;
        rustix::fs::flock(&other, shared).unwrap();
        assert!(first.lock_shared().is_ok());
        assert!(writer.lock().is_err());
    }

    #[test]
    fn what_is_no_device_is_refused_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let options = FileDeviceOptions::default();
        let kind = |result: Result<FileDevice>| result.err().unwrap().kind();
        assert_eq!(kind(FileDevice::open(folder.path(), options)), ErrorKind::Unsupported);
        assert_eq!(
            kind(FileDevice::open(&folder.path().join("none"), options)),
            ErrorKind::NotFound
        );
        let path = folder.path().join("there");
        std::fs::write(&path, b"foreign").unwrap();
        assert_eq!(kind(FileDevice::create(&path, 1 << 20, options)), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"foreign");
    }
}
