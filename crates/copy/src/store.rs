//! The directory of a server.
//!
//! A file is written to `.NAME.weir-part` and renamed when it is complete and verified. Names are looked
//! up one by one, without following symbolic links, so that nothing outside the directory is touched
//! even if somebody changes the tree meanwhile.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, fallocate, fchmod, flock,
    fstat, fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use weir_units::ByteSize;

use crate::Sha256Digest;
use crate::error::Error;
use crate::path::{RelativePath, partial_name};
use crate::protocol::{FileHeader, Offer};

/// Bytes hashed at once.
const BLOCK: usize = 256 * 1024;

/// How long a connection may take to give a file up, and the time between two looks.
const HANDOVER: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A directory into which files are copied.
#[derive(Debug)]
pub(crate) struct Store {
    root: OwnedFd,
    /// The connections that write a file, to be told when another one wants it.
    writers: Mutex<HashMap<RelativePath, Arc<Notify>>>,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty()).map_err(|error| Error::Directory {
            path: path.to_owned(),
            source: error.into(),
        })?;
        Ok(Self {
            root,
            writers: Mutex::default(),
        })
    }

    /// Opens a directory below the root, and creates what is missing of it.
    fn directory(&self, names: &[String]) -> Result<OwnedFd, Error> {
        let mut directory = self
            .root
            .try_clone()
            .map_err(Error::target(names.join("/")))?;
        for (index, name) in names.iter().enumerate() {
            let path = || names.get(..=index).unwrap_or(names).join("/");
            match mkdirat(&directory, name.as_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::target(path())(error.into())),
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            let opened = openat(&directory, name.as_str(), flags, Mode::empty());
            directory = opened.map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => Error::Link { name: path() },
                error => Error::target(path())(error.into()),
            })?;
        }
        Ok(directory)
    }

    /// Creates a directory below the root.
    pub(crate) fn enter(&self, path: &RelativePath) -> Result<(), Error> {
        self.directory(path.names()).map(drop)
    }

    /// Opens and locks a partial file. A connection of this server that writes it is told to give it up:
    /// its client may have been killed and started again.
    fn take(
        &self,
        path: &RelativePath,
        writer: &Arc<Notify>,
        lock: impl Fn() -> Result<File, Error>,
    ) -> Result<File, Error> {
        let since = Instant::now();
        loop {
            match lock() {
                Err(Error::Locked { .. }) if since.elapsed() < HANDOVER => {
                    let writers = self.writers.lock();
                    let writers = writers.unwrap_or_else(PoisonError::into_inner);
                    if let Some(other) = writers.get(path) {
                        other.notify_one();
                    }
                    drop(writers);
                    sleep(LOOK_AGAIN);
                }
                locked => {
                    let writers = self.writers.lock();
                    let mut writers = writers.unwrap_or_else(PoisonError::into_inner);
                    writers.retain(|_, other| Arc::strong_count(other) > 1);
                    writers.insert(path.clone(), writer.clone());
                    return locked;
                }
            }
        }
    }

    /// Opens the partial file of `header`, and locks it. Returns it with what there is of the file.
    /// `writer` is told when another connection wants the file.
    pub(crate) fn look(
        &self,
        header: FileHeader,
        writer: &Arc<Notify>,
    ) -> Result<(PartialFile, Offer), Error> {
        let shown = header.path.to_string();
        let kind = || Error::TargetKind {
            name: shown.clone(),
        };
        let size = header.size;
        let (directories, name) = header.path.split().ok_or_else(kind)?;
        let directory = self.directory(directories)?;
        let existing = existing(&directory, name, &shown)?;
        let mut partial = PartialFile {
            file: self.take(&header.path, writer, || {
                lock(&directory, &partial_name(name), &shown)
            })?,
            directory,
            name: name.to_owned(),
            shown: shown.clone(),
            header,
            length: 0,
            digest: Sha256::new(),
        };
        let fail = || Error::target(&shown);
        let length = partial.file.metadata().map_err(fail())?.len();
        if (1..=size).contains(&length) {
            partial.digest = hash(&mut partial.file).map_err(fail())?;
            partial.length = length;
            let digest = finish(partial.digest.clone());
            return Ok((partial, Offer::Partial { length, digest }));
        }
        let offer = match existing {
            Some(mut file) if file.metadata().map_err(fail())?.len() == size => {
                Offer::Complete(finish(hash(&mut file).map_err(fail())?))
            }
            _ => Offer::Nothing,
        };
        Ok((partial, offer))
    }
}

/// Returns the regular file under a name, if there is one.
fn existing(directory: &OwnedFd, name: &str, shown: &str) -> Result<Option<File>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let name_of = || shown.to_owned();
    match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => {
            let status = fstat(&file).map_err(|error| Error::target(shown)(error.into()))?;
            if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile {
                Ok(Some(file.into()))
            } else {
                Err(Error::TargetKind { name: name_of() })
            }
        }
        Err(Errno::NOENT) => Ok(None),
        // A file that may not be read is replaced, as far as the directory may be written.
        Err(Errno::ACCESS) => Ok(None),
        Err(Errno::LOOP) => Err(Error::Link { name: name_of() }),
        Err(error) => Err(Error::target(shown)(error.into())),
    }
}

/// Opens and locks a partial file.
fn lock(directory: &OwnedFd, partial: &str, shown: &str) -> Result<File, Error> {
    let fail = |error: Errno| Error::target(shown)(error.into());
    loop {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, partial, flags, Mode::from_raw_mode(0o600));
        let file = file.map_err(|error| match error {
            Errno::LOOP => Error::Link {
                name: shown.to_owned(),
            },
            error => fail(error),
        })?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::AGAIN => Error::Locked {
                name: shown.to_owned(),
            },
            error => fail(error),
        })?;
        // Another copy may have renamed it between the two calls.
        let locked = fstat(&file).map_err(fail)?;
        match statat(directory, partial, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) if (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino) => {
                return Ok(file.into());
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(fail(error)),
        }
    }
}

/// Hashes a file from its beginning to its end, where the position is left.
fn hash(file: &mut File) -> io::Result<Sha256> {
    file.seek(SeekFrom::Start(0))?;
    let mut digest = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(digest),
            count => digest.update(block.get(..count).unwrap_or_default()),
        }
    }
}

pub(crate) fn finish(digest: Sha256) -> Sha256Digest {
    Sha256Digest(digest.finalize().into())
}

/// A file that is being written. Dropping it leaves what has arrived, for the next try.
#[derive(Debug)]
pub(crate) struct PartialFile {
    directory: OwnedFd,
    file: File,
    name: String,
    /// The path in messages.
    shown: String,
    pub(crate) header: FileHeader,
    /// Bytes written, and their digest.
    length: u64,
    digest: Sha256,
}

impl PartialFile {
    /// Goes on at `offset`: 0, or the length that was offered. Reserves the room for the rest.
    pub(crate) fn start(&mut self, offset: u64) -> Result<(), Error> {
        if offset == 0 {
            self.file.set_len(0).map_err(Error::target(&self.shown))?;
            self.file.rewind().map_err(Error::target(&self.shown))?;
            (self.length, self.digest) = (0, Sha256::new());
        }
        let missing = self.header.size - self.length;
        if missing == 0 {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.length, missing) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                // What was reserved is given back.
                self.file
                    .set_len(self.length)
                    .map_err(Error::target(&self.shown))?;
                Err(self.failed(error.into()))
            }
            // Not every file system can reserve.
            _ => Ok(()),
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full {
                name: self.shown.clone(),
                missing: ByteSize::from_bytes(self.header.size.saturating_sub(self.length)),
            },
            _ => Error::target(&self.shown)(error),
        }
    }

    pub(crate) fn append(&mut self, data: &[u8]) -> Result<(), Error> {
        self.file
            .write_all(data)
            .map_err(|error| self.failed(error))?;
        self.digest.update(data);
        self.length += data.len() as u64;
        Ok(())
    }

    /// Verifies the file and gives it its name.
    pub(crate) fn finish(&self, expected: Sha256Digest) -> Result<(), Error> {
        let partial = partial_name(&self.name);
        if finish(self.digest.clone()) != expected {
            self.remove()?;
            return Err(Error::Digest {
                name: self.shown.clone(),
            });
        }
        let fail = |error: Errno| Error::target(&self.shown)(error.into());
        fchmod(&self.file, Mode::from_raw_mode(self.header.mode.into())).map_err(fail)?;
        self.file.sync_all().map_err(|error| self.failed(error))?;
        renameat(
            &self.directory,
            partial.as_str(),
            &self.directory,
            self.name.as_str(),
        )
        .map_err(fail)?;
        fsync(self.directory.as_fd()).map_err(fail)
    }

    /// Removes the partial file.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let partial = partial_name(&self.name);
        unlinkat(&self.directory, partial.as_str(), AtFlags::empty())
            .map_err(|error| Error::target(&self.shown)(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn header(path: &str, size: u64) -> FileHeader {
        FileHeader {
            path: RelativePath::parse(path).unwrap(),
            size,
            mode: 0o640,
        }
    }

    fn digest(data: &[u8]) -> Sha256Digest {
        finish(Sha256::new_with_prefix(data))
    }

    fn look(store: &Store, header: FileHeader) -> Result<(PartialFile, Offer), Error> {
        store.look(header, &Arc::default())
    }

    #[test]
    fn a_file_is_handed_over_to_the_connection_that_comes_later() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let first = Arc::new(Notify::new());
        let (mut partial, _) = store.look(header("f", 3), &first).unwrap();
        partial.start(0).unwrap();
        partial.append(b"ab").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                runtime.unwrap().block_on(first.notified());
                drop(partial);
            });
            let (_, offer) = look(&store, header("f", 3)).unwrap();
            let expected = Offer::Partial {
                length: 2,
                digest: digest(b"ab"),
            };
            assert_eq!(offer, expected);
        });
    }

    #[test]
    fn a_file_gets_its_name_only_when_it_is_complete_and_goes_on_after_an_interruption() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let header = header("a/b.bin", 10);
        let (mut partial, offer) = look(&store, header.clone()).unwrap();
        assert_eq!(offer, Offer::Nothing);
        partial.start(0).unwrap();
        partial.append(b"01234").unwrap();
        let other = Store::open(root.path()).unwrap();
        assert!(matches!(
            look(&other, header.clone()),
            Err(Error::Locked { .. })
        ));
        drop(partial);
        assert!(!root.path().join("a/b.bin").exists());

        let (mut partial, offer) = look(&store, header.clone()).unwrap();
        let length = 5;
        let expected = digest(b"01234");
        assert_eq!(
            offer,
            Offer::Partial {
                length,
                digest: expected
            }
        );
        partial.start(5).unwrap();
        partial.append(b"56789").unwrap();
        partial.finish(digest(b"0123456789")).unwrap();
        let path = root.path().join("a/b.bin");
        assert_eq!(fs::read(&path).unwrap(), b"0123456789");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(!root.path().join("a/.b.bin.weir-part").exists());

        let (partial, offer) = look(&store, header.clone()).unwrap();
        assert_eq!(offer, Offer::Complete(digest(b"0123456789")));
        partial.remove().unwrap();
        assert_eq!(fs::read_dir(root.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_what_was_sent_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let (mut partial, _) = look(&store, header("b", 1)).unwrap();
        partial.start(0).unwrap();
        partial.append(b"x").unwrap();
        assert!(matches!(
            partial.finish(digest(b"y")),
            Err(Error::Digest { .. })
        ));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_and_special_files_are_refused() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("out")).unwrap();
        symlink(outside.path().join("f"), root.path().join("link")).unwrap();
        symlink(outside.path().join("f"), root.path().join(".x.weir-part")).unwrap();
        fs::create_dir(root.path().join("directory")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let store = Store::open(root.path()).unwrap();
        for path in ["out/f", "link", "x", "file/f"] {
            let refused = look(&store, header(path, 1)).unwrap_err();
            assert!(matches!(refused, Error::Link { .. }), "{path}: {refused}");
        }
        let refused = look(&store, header("directory", 1)).unwrap_err();
        assert!(matches!(refused, Error::TargetKind { .. }), "{refused}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_partial_file_of_another_length_is_no_offer() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".f.weir-part"), "too long").unwrap();
        let store = Store::open(root.path()).unwrap();
        let (mut partial, offer) = look(&store, header("f", 3)).unwrap();
        assert_eq!(offer, Offer::Nothing);
        partial.start(0).unwrap();
        partial.append(b"abc").unwrap();
        partial.finish(digest(b"abc")).unwrap();
        assert_eq!(fs::read(root.path().join("f")).unwrap(), b"abc");
    }
}
