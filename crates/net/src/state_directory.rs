//! What an endpoint keeps over restarts, in a directory: its secret.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use weir_quic::EndpointSecret;

use crate::error::EndpointError;
use crate::random::seed;

/// The file of the secret.
const SECRET: &str = "endpoint-secret";
/// Its length in bytes.
const LENGTH: usize = 32;

/// Returns the secret that a directory holds; makes both where they are missing.
///
/// # Errors
/// [`EndpointError::State`] where the file cannot be read or made, or has another length.
pub(crate) fn secret(directory: &Path) -> Result<EndpointSecret, EndpointError> {
    let failed = |source| EndpointError::State {
        path: directory.join(SECRET),
        source,
    };
    match read(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(directory, seed()?, seed()?).map_err(failed)?;
            read(directory).map_err(failed)
        }
        found => found.map_err(failed),
    }
}

fn read(directory: &Path) -> io::Result<EndpointSecret> {
    let content = fs::read(directory.join(SECRET))?;
    let bytes: [u8; LENGTH] = content.try_into().map_err(|content: Vec<u8>| {
        let problem = format!("it has {} bytes instead of {LENGTH}", content.len());
        io::Error::new(io::ErrorKind::InvalidData, problem)
    })?;
    Ok(EndpointSecret::new(bytes))
}

/// Stores a secret that only the owner can read, whole or not at all, by way of a file with a random name.
/// Of several processes one wins.
fn create(directory: &Path, secret: [u8; LENGTH], name: [u8; LENGTH]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let [first, second, third, fourth, ..] = name;
    let name = u32::from_be_bytes([first, second, third, fourth]);
    let unfinished = directory.join(format!(".{SECRET}.{name:08x}"));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)?;
    let written = file.write_all(&secret).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&unfinished, directory.join(SECRET)));
    let removed = fs::remove_file(&unfinished);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_keeps_its_secret() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("state");
        secret(&directory).unwrap();
        let file = directory.join(SECRET);
        let content = fs::read(&file).unwrap();
        assert_eq!(content.len(), LENGTH);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        secret(&directory).unwrap();
        assert_eq!(fs::read(&file).unwrap(), content);
        // Another process was first.
        create(&directory, [1; LENGTH], [2; LENGTH]).unwrap();
        assert_eq!(fs::read(&file).unwrap(), content);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_no_secret_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(SECRET), "short").unwrap();
        let error = secret(directory.path()).err().unwrap().to_string();
        assert!(
            error.contains(SECRET) && error.contains("5 bytes"),
            "{error}"
        );
    }
}
