//! Reading a pre-shared key from a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_dcudp::{KeyError, PreSharedKey};

/// Why there is no key.
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
    /// What is in it is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// The key in a file, as [`PreSharedKey::from_hex`] reads it.
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
    fn an_error_names_the_file_or_says_what_a_key_is() {
        let error = read_key(Path::new("/no/such/file")).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"));
        let error = read_key(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, KeyFileError::Key(KeyError::Malformed)));
    }
}
