//! Network namespaces, and work in them, whichever thread asks for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::mounts::bound_namespaces;

/// A network namespace.
#[derive(Debug)]
pub(crate) struct NetworkNamespace(File);

impl NetworkNamespace {
    /// Returns that of the calling thread.
    #[cfg(bpf_programs)]
    pub(crate) fn of_this_thread() -> std::io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Returns all that processes are in or that are bound to a file, each once. Those that disappear
    /// meanwhile are left out.
    pub(crate) fn all() -> Vec<Self> {
        let mut found = BTreeMap::new();
        let places = of_processes().into_iter().chain(bound_namespaces());
        for place in places {
            // Opened once; the number is known without.
            let Ok(inode) = std::fs::metadata(&place).map(|about| about.ino()) else {
                continue;
            };
            if let std::collections::btree_map::Entry::Vacant(entry) = found.entry(inode)
                && let Ok(file) = File::open(&place)
            {
                entry.insert(Self(file));
            }
        }
        found.into_values().collect()
    }

    /// Runs a closure in it, in a separate thread: this one may be in another namespace, and has to stay
    /// there. Returns `None` if the namespace cannot be entered.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.0.as_fd(), kind).ok()?;
                Some(work())
            });
            thread.join().ok().flatten()
        })
    }
}

fn of_processes() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let processes = processes.filter(|name| is_process(name));
    processes
        .map(|process| Path::new("/proc").join(process).join("ns/net"))
        .collect()
}

impl AsFd for NetworkNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
