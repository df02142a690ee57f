//! Files that are replaced at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::{CertificatesError, file_error};

/// The mode of private keys.
pub(super) const SECRET: u32 = 0o600;
/// The mode of everything else.
pub(super) const PUBLIC: u32 = 0o644;

/// Writes a file with this mode, and the owner of the one that it replaces. It has the mode from its
/// creation on, so that other users can never read a secret.
pub(super) fn replace(path: &Path, text: &str, mode: u32) -> Result<(), CertificatesError> {
    let next = next_to(path);
    let written = write(&next, path, text, mode).and_then(|()| fs::rename(&next, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&next);
        file_error(path, source)
    })
}

fn next_to(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    name.into()
}

fn write(next: &Path, path: &Path, text: &str, mode: u32) -> io::Result<()> {
    // One that an interrupted call has left may have another mode.
    match fs::remove_file(next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(next)?;
    keep_owner(&file, path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Gives a file the owner of another one, if that exists.
fn keep_owner(file: &File, other: &Path) -> io::Result<()> {
    let other = match fs::metadata(other) {
        Ok(other) => other,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    fchown(file, Some(other.uid()), Some(other.gid()))
}
