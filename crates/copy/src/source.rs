//! The files that a client copies.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use weir_units::ByteSize;

use crate::error::Error;
use crate::path::{PathError, RelativePath};

/// A regular file of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it is.
    pub local: PathBuf,
    /// Its name below the directory on the server.
    pub remote: RelativePath,
    /// Its size in bytes.
    pub size: u64,
    /// Its permissions.
    pub mode: u16,
}

/// Files to be copied, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The files, in alphabetical order within each directory.
    pub files: Vec<SourceFile>,
    /// Symbolic links and special files within directories.
    pub skipped: Vec<PathBuf>,
}

impl Sources {
    /// Returns the size of all files together.
    #[must_use]
    pub fn size(&self) -> ByteSize {
        let sum = self
            .files
            .iter()
            .fold(0_u64, |sum, file| sum.saturating_add(file.size));
        ByteSize::from_bytes(sum)
    }
}

/// Returns the files under these names: a directory with all that is below it, each under its name.
/// Symbolic links are followed only where they are named.
///
/// # Errors
/// [`Error::Source`], [`Error::SourceKind`] or [`Error::SourceName`].
pub fn collect(paths: &[PathBuf]) -> Result<Sources, Error> {
    let mut sources = Sources::default();
    for path in paths {
        // A trailing `.` or `..` has no name of its own.
        let named = match path.file_name() {
            Some(_) => path.clone(),
            None => fs::canonicalize(path).map_err(unreadable(path))?,
        };
        let name = named.file_name().unwrap_or_default().to_str();
        let name = name.ok_or(PathError::Encoding);
        let name = name.map_err(|problem| Error::SourceName {
            path: path.clone(),
            problem,
        })?;
        let status = fs::metadata(path).map_err(unreadable(path))?;
        if status.is_dir() {
            sources.add_directory(path, name)?;
        } else if status.is_file() {
            sources.add_file(path, name, &status)?;
        } else {
            return Err(Error::SourceKind(path.clone()));
        }
    }
    Ok(sources)
}

impl Sources {
    fn add_file(&mut self, path: &Path, name: &str, status: &fs::Metadata) -> Result<(), Error> {
        let remote = RelativePath::parse(name).map_err(|problem| Error::SourceName {
            path: path.to_owned(),
            problem,
        })?;
        self.files.push(SourceFile {
            local: path.to_owned(),
            remote,
            size: status.len(),
            mode: (status.permissions().mode() & 0o777) as u16,
        });
        Ok(())
    }

    fn add_directory(&mut self, directory: &Path, prefix: &str) -> Result<(), Error> {
        let entries = fs::read_dir(directory).map_err(unreadable(directory))?;
        let entries = entries.collect::<Result<Vec<_>, _>>();
        let mut entries = entries.map_err(unreadable(directory))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let status = fs::symlink_metadata(&path).map_err(unreadable(&path))?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| Error::SourceName {
                path: path.clone(),
                problem: PathError::Encoding,
            })?;
            let name = format!("{prefix}/{name}");
            if status.is_dir() {
                self.add_directory(&path, &name)?;
            } else if status.is_file() {
                self.add_file(&path, &name, &status)?;
            } else {
                self.skipped.push(path);
            }
        }
        Ok(())
    }
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Source { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn directories_are_walked_and_links_within_them_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("d/e")).unwrap();
        fs::write(at("d/e/two"), "22").unwrap();
        fs::write(at("d/one"), "1").unwrap();
        symlink("/etc/passwd", at("d/link")).unwrap();
        symlink(at("d/one"), at("named")).unwrap();
        let sources = collect(&[at("d"), at("named")]).unwrap();
        let names: Vec<_> = sources
            .files
            .iter()
            .map(|it| it.remote.to_string())
            .collect();
        assert_eq!(names, ["d/e/two", "d/one", "named"]);
        assert_eq!(sources.size(), ByteSize::from_bytes(4));
        assert_eq!(sources.skipped, [at("d/link")]);
        let dot = collect(&[at("d/e/..")]).unwrap();
        assert_eq!(dot.files[1].remote.to_string(), "d/one");
        let missing = collect(&[at("none")]).unwrap_err().to_string();
        assert!(missing.contains("none: No such file"), "{missing}");
    }
}
