//! What outlives a killed process: a file by which the sockets that it has changed get back what they had.
//!
//! It is a pinned BPF iterator, `weir/cgroup_ID/undo` in the BPF file system. Whoever reads it has the kernel
//! put back the sockets of the reader's network namespace, and gets a byte for each. The directory is locked
//! by the process that changes the sockets, so that others know whether it lives.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::CgroupError;
use crate::mounts::FileSystem;
use crate::namespace::NetworkNamespace;

/// Where the BPF file system usually is.
const USUAL_PLACE: &str = "/sys/fs/bpf";
const FOLDER: &str = "weir";
const PREFIX: &str = "cgroup_";
const UNDO: &str = "undo";

/// The time that whoever puts sockets back has for that.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// The locked directory of a control group.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    _lock: File,
}

impl Pins {
    /// Creates the directory of a control group, and locks it. What a killed process has left there is
    /// undone.
    pub(super) fn create(group: u64) -> Result<Self, CgroupError> {
        let directory = file_system()?.join(FOLDER).join(format!("{PREFIX}{group}"));
        let failed = |doing| {
            let path = directory.clone();
            move |source| CgroupError::Pin {
                doing,
                path,
                source,
            }
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let created = std::fs::create_dir_all(&directory);
            let opened = created.and_then(|()| File::open(&directory));
            let lock = match opened {
                Ok(lock) => lock,
                // Another process removes an empty folder at the same time.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && Instant::now() < deadline =>
                {
                    sleep(PAUSE);
                    continue;
                }
                Err(error) => return Err(failed("creating")(error)),
            };
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                // A guardian that was just ending may have removed it.
                Ok(()) if !directory.exists() => {}
                Ok(()) => {
                    let pins = Self {
                        directory,
                        _lock: lock,
                    };
                    pins.undo();
                    return Ok(pins);
                }
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {}
                Err(error) => return Err(failed("locking")(error.into())),
            }
            sleep(PAUSE);
        }
    }

    /// Locks a directory that a process has left; `None` if it lives or the directory is gone.
    pub(super) fn take_over(directory: &Path) -> Option<Self> {
        let lock = File::open(directory).ok()?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        directory.exists().then(|| Self {
            directory: directory.to_owned(),
            _lock: lock,
        })
    }

    /// The directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of the iterator.
    pub(super) fn undo_file(&self) -> PathBuf {
        self.directory.join(UNDO)
    }

    /// Puts back what sockets had, in all network namespaces, and removes the iterator; returns the number
    /// of sockets.
    pub(super) fn undo(&self) -> usize {
        let file = self.undo_file();
        if !file.exists() {
            return 0;
        }
        let spaces = NetworkNamespace::all();
        let sockets = spaces.iter().filter_map(|space| space.run(|| read(&file)));
        let sockets = sockets.sum();
        // Without it nothing can be put back any more: all that could be reached was.
        let _ = std::fs::remove_file(&file);
        sockets
    }

    /// Removes the directory, of which all has been undone.
    pub(super) fn remove(self) {
        // Another control group's may be in the folder above.
        let _ = std::fs::remove_dir(&self.directory);
        if let Some(folder) = self.directory.parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Has the kernel put back the sockets of this thread's network namespace; returns their number.
fn read(file: &Path) -> usize {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|mut file| file.read_to_end(&mut bytes));
    // What was read before an error was put back.
    read.map_or(bytes.len(), |_| bytes.len())
}

/// Returns the directories that processes, alive or dead, have made.
pub(super) fn directories() -> Vec<PathBuf> {
    let Some(place) = FileSystem::Bpf.find() else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(place.path.join(FOLDER))
        .into_iter()
        .flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    paths.filter(is_ours).collect()
}

/// Returns where the BPF file system is mounted; mounts it in the usual place if it is not.
fn file_system() -> Result<PathBuf, CgroupError> {
    if let Some(place) = FileSystem::Bpf.find() {
        return Ok(place.path);
    }
    // SAFETY: all arguments are texts that end with a zero.
    let result = unsafe {
        libc::mount(
            c"bpf".as_ptr(),
            c"/sys/fs/bpf".as_ptr(),
            c"bpf".as_ptr(),
            libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
            c"mode=0700".as_ptr().cast(),
        )
    };
    if result == 0 {
        return Ok(PathBuf::from(USUAL_PLACE));
    }
    Err(CgroupError::Pin {
        doing: "mounting",
        path: PathBuf::from(USUAL_PLACE),
        source: io::Error::last_os_error(),
    })
}
