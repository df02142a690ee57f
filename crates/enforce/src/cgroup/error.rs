//! The errors of the plane at sockets.

use std::io;
use std::path::PathBuf;

use crate::bpf::BpfError;

/// The sockets of a control group cannot be controlled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The hierarchy of control groups is not mounted.
    #[error("{0}: mount -t cgroup2 none /sys/fs/cgroup")]
    Mount(#[source] io::Error),
    /// There is no such control group.
    #[error(
        "there is no control group {}: {source}; the path is absolute, or below the root of the \
         cgroup2 hierarchy",
        path.display()
    )]
    Missing {
        /// Its directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process controls its sockets, or those of one above or below it.
    #[error(
        "the sockets of {} are controlled by {} already: stop that first; the rules of one policy can \
         tell control groups apart by `cgroup`",
        path.display(),
        holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The control group of the holder.
        path: PathBuf,
        /// Its process ID, if it is visible from here.
        holder: Option<i32>,
    },
    /// The objects for the undo cannot be kept.
    #[error(
        "{doing} {}: {source}; a BPF file system is needed there, so that sockets get back what they had \
         if weir is killed",
        path.display()
    )]
    Pin {
        /// What failed.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The policy has more rules than the programs take.
    #[error("the policy has {found} rules; the programs take {most}")]
    TooManyRules {
        /// The number of rules.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// Sockets belong to too many rules of former versions of the policy.
    #[error(
        "open sockets belong to rules of so many versions of the policy that there is no room for another: \
         restart weir"
    )]
    NoRoom,
    /// A rule cannot be put in force.
    #[error("line {line}: `{key}`: {problem}; {remedy}")]
    Rule {
        /// Its line in the policy file.
        line: u32,
        /// The key.
        key: &'static str,
        /// What is wrong.
        problem: String,
        /// What would be right.
        remedy: String,
    },
    /// The programs cannot be loaded or attached.
    #[error(transparent)]
    Programs(#[from] BpfError),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}
