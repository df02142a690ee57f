//! Reads a pre-shared key from a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_dcudp::{KeyError, PreSharedKey};

/// Why no key could be read.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("cannot read the key in {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Reads the key in a file, in the format of [`PreSharedKey::from_hex`].
///
/// # Errors
/// [`KeyFileError`].
pub fn read_key(path: &Path) -> Result<PreSharedKey, KeyFileError> {
    let text = fs::read_to_string(path).map_err(|source| KeyFileError::File {
        path: path.to_owned(),
        source,
    })?;
    Ok(PreSharedKey::from_hex(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_file_errors_name_the_path_or_the_key_format() {
        let error = read_key(Path::new("/no/such/file")).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"));
        let error = read_key(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, KeyFileError::Key(KeyError::Malformed)));
    }
}
