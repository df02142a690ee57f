//! The directories of live runs: `/run/weir/lab/PID` of each director. Other processes find its hosts
//! there (`weir lab list`, `nsenter`) and can distinguish the remains of a killed director from a live run.
//!
//! A director holds a lock on a file in its directory as long as it lives, so a reused process ID
//! does not matter.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// The lock file that a director holds.
const LOCK: &str = "lock";
/// The file that describes the run.
const ABOUT: &str = "hosts.json";
/// The prefix of a directory that is not complete yet.
const UNFINISHED: char = '.';

/// The parent directory of all runs.
#[derive(Clone, Debug)]
pub struct RunDirectories {
    root: PathBuf,
}

/// The directory of a run. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    /// Locked while open.
    _lock: File,
}

/// The description of a run in its directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The director's process ID.
    pub director: u32,
    /// The scenario's title.
    pub title: String,
    /// The host processes.
    pub hosts: Vec<HostRecord>,
}

/// A host of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name in the scenario.
    pub name: String,
    /// Its process ID: `nsenter --net --target PID` enters its namespace.
    pub process: u32,
    /// When the process was started, in the kernel's ticks since boot. Process IDs are reused; a process
    /// ID with a start time is unique.
    pub started: u64,
}

/// A run found on this machine.
#[derive(Clone, Debug)]
pub struct FoundRun {
    /// Its description.
    pub record: RunRecord,
    /// Whether its director is alive.
    pub is_alive: bool,
    path: PathBuf,
}

impl RunDirectories {
    /// Returns this machine's: below /run if that is writable, else below `XDG_RUNTIME_DIR` or the
    /// directory of temporary files.
    pub fn of_this_machine() -> Self {
        let system = PathBuf::from("/run/weir/lab");
        if fs::create_dir_all(&system).is_ok() {
            return Self { root: system };
        }
        let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let own = own.unwrap_or_else(std::env::temp_dir);
        Self {
            root: own.join("weir/lab"),
        }
    }

    /// Returns the run directories below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Creates the directory of this process's run.
    ///
    /// # Errors
    /// The system's error; this process has a run already.
    pub(crate) fn create(&self) -> io::Result<RunDirectory> {
        let process = std::process::id();
        let path = self.root.join(process.to_string());
        // Only a dead process had this ID before.
        if path.exists()
            && let Some(left) = self.read(&path)
        {
            left.clean()?;
        }
        let unfinished = self.root.join(format!("{UNFINISHED}{process}"));
        fs::create_dir_all(&unfinished)?;
        let lock = File::create(unfinished.join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let directory = RunDirectory { path, _lock: lock };
        fs::rename(&unfinished, &directory.path)?;
        Ok(directory)
    }

    /// Returns all runs, ordered by the process IDs of their directors.
    ///
    /// # Errors
    /// The system's error. A missing directory is not an error.
    pub fn list(&self) -> io::Result<Vec<FoundRun>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            found.extend(self.read(&entry?.path()));
        }
        found.sort_by_key(|run| run.record.director);
        Ok(found)
    }

    fn read(&self, path: &Path) -> Option<FoundRun> {
        let name = path.file_name()?.to_str()?;
        let process = name.trim_start_matches(UNFINISHED).parse().ok()?;
        let unfinished = name.starts_with(UNFINISHED);
        let is_alive = if unfinished {
            started(process).is_some()
        } else {
            is_locked(&path.join(LOCK))
        };
        let record = fs::read(path.join(ABOUT)).ok();
        let record = record.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Some(FoundRun {
            record: record.unwrap_or_else(|| RunRecord {
                director: process,
                ..RunRecord::default()
            }),
            is_alive,
            path: path.to_owned(),
        })
    }
}

impl RunDirectory {
    /// Writes the description of the run.
    pub(crate) fn describe(&self, record: &RunRecord) -> io::Result<()> {
        fs::write(self.path.join(ABOUT), serde_json::to_vec_pretty(record)?)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // `weir lab clean` finds what could not be removed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl HostRecord {
    /// Returns the record of a running process.
    pub(crate) fn of(name: &str, process: u32) -> Self {
        Self {
            name: name.to_owned(),
            process,
            started: started(process).unwrap_or_default(),
        }
    }

    /// Returns whether the process still runs.
    pub fn is_alive(&self) -> bool {
        started(self.process) == Some(self.started)
    }
}

impl FoundRun {
    /// Removes what is left of a run whose director is dead: its live hosts, with their namespaces and
    /// interfaces, and its directory. Returns the number of hosts killed.
    ///
    /// # Errors
    /// The director is alive; the system's error.
    pub fn clean(&self) -> io::Result<usize> {
        if self.is_alive {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let left: Vec<_> = self
            .record
            .hosts
            .iter()
            .filter(|host| host.is_alive())
            .collect();
        for host in &left {
            if let Some(process) = i32::try_from(host.process).ok().and_then(Pid::from_raw) {
                kill_process(process, Signal::KILL)?;
            }
        }
        // The namespace disappears with the process.
        while left.iter().any(|host| host.is_alive()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::remove_dir_all(&self.path)?;
        Ok(left.len())
    }
}

/// Returns whether another process holds a lock on a file.
fn is_locked(path: &Path) -> bool {
    let opened = File::open(path);
    opened.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
}

/// Returns the start time of a process (field 22 of proc_pid_stat(5)); `None` if there is no such
/// process or it is a zombie.
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field, a name in parentheses, may contain anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn sleeper() -> std::process::Child {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_run_is_found_while_it_lives_and_gone_when_it_ends() {
        let root = tempfile::tempdir().unwrap();
        let runs = RunDirectories::below(root.path());
        assert!(runs.list().unwrap().is_empty());
        let directory = runs.create().unwrap();
        let record = RunRecord {
            director: std::process::id(),
            title: "A run".to_owned(),
            hosts: vec![HostRecord::of("a", std::process::id())],
        };
        directory.describe(&record).unwrap();
        let found = runs.list().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].record, record);
        assert!(found[0].is_alive && found[0].record.hosts[0].is_alive());
        assert!(found[0].clean().is_err());
        drop(directory);
        assert!(runs.list().unwrap().is_empty());
    }

    #[test]
    fn only_the_remains_of_a_killed_director_are_cleaned() {
        let root = tempfile::tempdir().unwrap();
        let runs = RunDirectories::below(root.path());
        let (mut left, mut other) = (sleeper(), sleeper());
        let path = root.path().join("4000000");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(LOCK), "").unwrap();
        let reused = HostRecord {
            started: 1,
            ..HostRecord::of("reused", other.id())
        };
        let record = RunRecord {
            director: 4_000_000,
            title: String::new(),
            hosts: vec![HostRecord::of("left", left.id()), reused],
        };
        fs::write(path.join(ABOUT), serde_json::to_vec(&record).unwrap()).unwrap();
        let found = runs.list().unwrap();
        assert!(!found[0].is_alive);
        // A zombie counts as dead. It stays one here because no parent waits for it.
        assert_eq!(found[0].clean().unwrap(), 1);
        assert!(!left.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        assert!(runs.list().unwrap().is_empty());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn an_incomplete_run_directory_is_found() {
        let root = tempfile::tempdir().unwrap();
        let runs = RunDirectories::below(root.path());
        fs::create_dir(root.path().join(".4000000")).unwrap();
        let found = runs.list().unwrap();
        assert_eq!(found[0].record.director, 4_000_000);
        assert_eq!(found[0].clean().unwrap(), 0);
    }
}
