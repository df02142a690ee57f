//! A control group, and the right to control its sockets, which one process at a time has.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::CgroupError;
use crate::mounts::{Mount, cgroup_root};

/// The time that a killed holder has for its end.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);

/// A control group of the cgroup2 hierarchy.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    /// Its directory.
    directory: PathBuf,
    /// Where the hierarchy is mounted.
    root: PathBuf,
    file: File,
    id: u64,
}

impl ControlGroup {
    /// Opens a control group, whose path is absolute or below the root of the hierarchy.
    ///
    /// # Errors
    /// [`CgroupError::Mount`], [`CgroupError::Missing`].
    pub(crate) fn open(path: &Path) -> Result<Self, CgroupError> {
        let mount = cgroup_root().map_err(CgroupError::Mount)?;
        let directory = place(&mount, path);
        let root = mount.path;
        let missing = |source| CgroupError::Missing {
            path: directory.clone(),
            source,
        };
        let file = File::open(&directory).map_err(missing)?;
        let about = file.metadata().map_err(missing)?;
        if !about.is_dir() {
            return Err(missing(io::ErrorKind::NotADirectory.into()));
        }
        let id = about.ino();
        Ok(Self {
            directory,
            root,
            file,
            id,
        })
    }

    /// Its number, as the kernel's programs know it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether it exists still.
    pub(crate) fn exists(&self) -> bool {
        id_of(&self.directory) == Some(self.id)
    }

    /// Returns the number of a control group by its path below the root; `None` if there is none.
    pub(crate) fn find(&self, path: &str) -> Option<u64> {
        id_of(&self.root.join(path.trim_start_matches('/')))
    }

    /// Claims the control group, until the value is dropped or the process ends: locks its directory. Those
    /// above and below it must have no other holder.
    ///
    /// # Errors
    /// [`CgroupError::Held`], [`CgroupError::System`].
    pub(crate) fn claim(&self) -> Result<(), CgroupError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => return Err(held(&self.directory)),
                Err(error) => {
                    return Err(CgroupError::System {
                        doing: "locking the control group",
                        source: error.into(),
                    });
                }
            }
        }
        let above = self.directory.ancestors().skip(1);
        for other in above.take_while(|other| other.starts_with(&self.root)) {
            refuse_if_held(other)?;
        }
        refuse_if_held_below(&self.directory)
    }
}

impl AsFd for ControlGroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns the directory of a control group.
fn place(mount: &Mount, path: &Path) -> PathBuf {
    let whole = normalized(path);
    let below = whole.strip_prefix(&mount.point);
    let below = below.or_else(|_| whole.strip_prefix("/"));
    mount.path.join(below.unwrap_or(&whole))
}

/// Returns a path without `.` and `..`; there are no links in the hierarchy.
fn normalized(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

fn id_of(directory: &Path) -> Option<u64> {
    Some(std::fs::metadata(directory).ok()?.ino())
}

fn refuse_if_held(directory: &Path) -> Result<(), CgroupError> {
    // It may be gone already.
    let Ok(file) = File::open(directory) else {
        return Ok(());
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Err(held(directory)),
        _ => Ok(()),
    }
}

fn refuse_if_held_below(directory: &Path) -> Result<(), CgroupError> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_directory =
        |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    for below in entries.filter(is_directory) {
        refuse_if_held(&below.path())?;
        refuse_if_held_below(&below.path())?;
    }
    Ok(())
}

fn held(directory: &Path) -> CgroupError {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let about = std::fs::metadata(directory).ok();
    let holder = about.and_then(|about| holder(&locks, about.dev(), about.ino()));
    CgroupError::Held {
        path: directory.to_owned(),
        holder,
    }
}

/// Returns the process that has locked a file, from the kernel's list (proc_locks(5)).
fn holder(locks: &str, device: u64, inode: u64) -> Option<i32> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let wanted = format!("{major:02x}:{minor:02x}:{inode}");
    let of = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields[..] else {
            return None;
        };
        (file == wanted).then(|| pid.parse().ok()).flatten()
    };
    locks.lines().find_map(of).filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_in_the_kernels_list_of_locks() {
        let locks = "1: FLOCK  ADVISORY  WRITE 712 00:1b:4242 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 713 00:1b:4243 0 EOF\n\
                     3: FLOCK  ADVISORY  READ  714 00:1b:4243 0 EOF\n";
        let device = libc::makedev(0, 0x1b);
        assert_eq!(holder(locks, device, 4242), Some(712));
        assert_eq!(holder(locks, device, 4243), None);
        assert_eq!(holder(locks, libc::makedev(0, 0x1c), 4242), None);
        assert_eq!(holder("nonsense", device, 1), None);
    }

    #[test]
    fn paths_are_absolute_or_below_the_root() {
        let mount = Mount {
            point: PathBuf::from("/sys/fs/cgroup"),
            path: PathBuf::from("/proc/1/root/sys/fs/cgroup"),
        };
        for path in ["a/b", "/a/b", "/sys/fs/cgroup/a/b", "/a/c/../b", "./a/b"] {
            let expected = Path::new("/proc/1/root/sys/fs/cgroup/a/b");
            assert_eq!(place(&mount, Path::new(path)), expected, "{path}");
        }
        for path in ["/", "..", "/sys/fs/cgroup"] {
            assert_eq!(place(&mount, Path::new(path)), mount.path, "{path}");
        }
    }
}
