//! What a host keeps on its disk: the version that it has put in force last.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_rollout::{Held, TextDigest};

/// A version that was put in force, with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldPolicy {
    /// The decision.
    #[serde(flatten)]
    pub held: Held,
    /// The policy file; empty for the empty policy.
    pub text: String,
}

/// The file, in the state directory of a host.
#[derive(Clone, Debug)]
pub struct HeldFile {
    path: PathBuf,
}

/// The file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HeldFileError {
    /// The system does not do it.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its contents make no sense.
    #[error("{path}: {problem}; remove it to take what the controller says")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl HeldFile {
    /// Returns the file in a directory, which is created if it is not there.
    ///
    /// # Errors
    /// [`HeldFileError::File`].
    pub fn in_directory(directory: &Path) -> Result<Self, HeldFileError> {
        fs::create_dir_all(directory).map_err(|source| HeldFileError::File {
            path: directory.to_owned(),
            source,
        })?;
        Ok(Self {
            path: directory.join("policy.json"),
        })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what is kept; `None` before the first version.
    ///
    /// # Errors
    /// [`HeldFileError`].
    pub fn load(&self) -> Result<Option<HeldPolicy>, HeldFileError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.failed(source)),
        };
        let corrupt = |problem: String| HeldFileError::Corrupt {
            path: self.path.clone(),
            problem,
        };
        let kept: HeldPolicy = serde_json::from_str(&text)
            .map_err(|error| corrupt(format!("it is no policy of a controller: {error}")))?;
        if kept.held.digest != TextDigest::of(&kept.text) {
            return Err(corrupt("its text is not the one that was kept".to_owned()));
        }
        Ok(Some(kept))
    }

    /// Keeps a version in the place of the one before: a crash leaves one of the two.
    ///
    /// # Errors
    /// [`HeldFileError::File`].
    pub fn save(&self, policy: &HeldPolicy) -> Result<(), HeldFileError> {
        let next = self.path.with_extension("next");
        let write = || {
            let mut file = File::create(&next)?;
            file.write_all(&serde_json::to_vec(policy)?)?;
            file.sync_all()?;
            fs::rename(&next, &self.path)?;
            match self.path.parent() {
                Some(directory) => File::open(directory)?.sync_all(),
                None => Ok(()),
            }
        };
        write().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> HeldFileError {
        HeldFileError::File {
            path: self.path.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_kept_and_damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = HeldFile::in_directory(&directory.path().join("a/b")).unwrap();
        assert_eq!(file.load().unwrap(), None);
        let text = "[[rules]]\npass = true\n".to_owned();
        let policy = HeldPolicy {
            held: Held {
                fleet: "f".to_owned(),
                revision: 3,
                version: 2,
                digest: TextDigest::of(&text),
            },
            text,
        };
        file.save(&policy).unwrap();
        assert_eq!(file.load().unwrap(), Some(policy));
        let kept = fs::read_to_string(file.path()).unwrap();
        for damaged in [
            kept.replace("pass", "miss"),
            kept[..kept.len() / 2].to_owned(),
        ] {
            fs::write(file.path(), damaged).unwrap();
            let error = file.load().unwrap_err().to_string();
            assert!(
                error.contains("policy.json") && error.contains("remove it"),
                "{error}"
            );
        }
    }
}
