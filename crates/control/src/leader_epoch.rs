//! Leader epochs: which of two controllers an agent obeys.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustls::crypto::aws_lc_rs::default_provider;

/// A controller's identity for agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderEpoch {
    /// The name, which it shares with its predecessors and successors only.
    pub name: String,
    /// The number of controllers of this name so far, including it.
    pub term: u64,
}

/// Why a controller cannot get a name and a term.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another controller has locked the directory.
    #[error(
        "{0} belongs to a controller that is running: stop it first (`weir sed status` shows it), or give \
         this one another --state for other switches"
    )]
    Held(PathBuf),
    /// The file is not a controller's state.
    #[error(
        "{path}: `{text}` is not the state of a controller, which is a name and a number; remove it for a new one"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its contents.
        text: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No random numbers for a name.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

/// A controller's claim to its name, held while the value lives.
#[derive(Debug)]
pub struct EpochFile {
    leader_epoch: LeaderEpoch,
    /// Holds the lock.
    _lock: Option<File>,
}

impl EpochFile {
    /// Locks a directory and claims the next term of the name in it; creates a name if there is none.
    ///
    /// # Errors
    /// [`StateError::Held`] if another controller has locked it; the others if it is unusable.
    pub fn claim(directory: &Path) -> Result<Self, StateError> {
        let path = directory.join("controller");
        let failed = |source| {
            let path = path.clone();
            StateError::File { path, source }
        };
        fs::create_dir_all(directory).map_err(failed)?;
        let lock_path = directory.join("controller.lock");
        let lock = File::create(&lock_path).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StateError::Held(directory.to_owned()));
            }
            Err(error) => return Err(failed(error.into())),
        }
        let mut text = String::new();
        match File::open(&path).and_then(|mut file| file.read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(source)),
        }
        let leader_epoch = match text.trim() {
            "" => LeaderEpoch {
                name: random_name()?,
                term: 1,
            },
            text => next_of(text).ok_or_else(|| StateError::Malformed {
                path: path.clone(),
                text: text.to_owned(),
            })?,
        };
        // Replaced atomically: with a lost name this would be a different controller to every switch.
        let next = directory.join("controller.next");
        let text = format!("{} {}\n", leader_epoch.name, leader_epoch.term);
        fs::write(&next, text)
            .and_then(|()| fs::rename(&next, &path))
            .map_err(failed)?;
        Ok(Self {
            leader_epoch,
            _lock: Some(lock),
        })
    }

    /// Creates a name of its own, for a controller without stored state.
    ///
    /// # Errors
    /// [`StateError::NoRandomness`].
    pub fn ephemeral() -> Result<Self, StateError> {
        let (name, term) = (random_name()?, 1);
        Ok(Self {
            leader_epoch: LeaderEpoch { name, term },
            _lock: None,
        })
    }

    /// Returns the name and the term.
    pub fn leader_epoch(&self) -> &LeaderEpoch {
        &self.leader_epoch
    }
}

fn next_of(text: &str) -> Option<LeaderEpoch> {
    let (name, term) = text.split_once(' ')?;
    let term: u64 = term.parse().ok()?;
    Some(LeaderEpoch {
        name: name.to_owned(),
        term: term.checked_add(1)?,
    })
}

pub(crate) fn random_name() -> Result<String, StateError> {
    let mut bytes = [0; 8];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| StateError::NoRandomness)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_a_higher_term_and_the_state_is_locked() {
        let directory = tempfile::tempdir().unwrap();
        let first = EpochFile::claim(directory.path()).unwrap();
        assert_eq!(first.leader_epoch().term, 1);
        let error = EpochFile::claim(directory.path()).unwrap_err();
        assert!(matches!(error, StateError::Held(_)), "{error}");
        let name = first.leader_epoch().name.clone();
        drop(first);
        let second = EpochFile::claim(directory.path()).unwrap();
        assert_eq!(*second.leader_epoch(), LeaderEpoch { name, term: 2 });
    }

    #[test]
    fn a_malformed_state_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        for wrong in ["nonsense", "name -3", "name 18446744073709551615"] {
            fs::write(directory.path().join("controller"), wrong).unwrap();
            let error = EpochFile::claim(directory.path()).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
