//! Files that arrive.

use std::io;
use std::path::PathBuf;

use axum::body::Body;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use weir_net::ByteSize;

use super::{CHECKSUM, hexadecimal};

/// The start of the names of files that are not complete.
const TEMPORARY: &str = ".upload-";

/// A directory of files that arrived.
pub(super) struct Store {
    directory: PathBuf,
    max_size: ByteSize,
}

/// Why a file is not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("a name has to be one part of a path, and must not begin with a dot")]
    Name,
    #[error("more than {limit}")]
    TooLarge { limit: ByteSize },
    #[error("the upload broke off: {0}")]
    Broken(axum::Error),
    #[error("the trailer {CHECKSUM} is missing")]
    NoChecksum,
    #[error("the data do not have the checksum that was sent")]
    Checksum,
    #[error("the file cannot be written: {0}")]
    Io(#[from] io::Error),
}

impl Store {
    pub(super) fn open(directory: PathBuf, max_size: ByteSize) -> io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        Ok(Self {
            directory,
            max_size,
        })
    }

    /// Writes a body to a temporary file, which gets its name once the checksum is right. Whatever
    /// ends this earlier removes the file.
    pub(super) async fn keep(&self, name: &str, mut body: Body) -> Result<u64, StoreError> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(StoreError::Name);
        }
        let temporary = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(&self.directory)?;
        let mut file = File::from_std(temporary.reopen()?);
        let (mut size, mut hash, mut checksum) = (0, Sha256::new(), None);
        while let Some(frame) = body.frame().await {
            match frame.map_err(StoreError::Broken)?.into_data() {
                Ok(data) => {
                    size += data.len() as u64;
                    if size > self.max_size.bytes() {
                        return Err(StoreError::TooLarge {
                            limit: self.max_size,
                        });
                    }
                    hash.update(&data);
                    file.write_all(&data).await?;
                }
                Err(frame) => checksum = frame.into_trailers().ok(),
            }
        }
        let checksum = checksum.and_then(|trailers| trailers.get(CHECKSUM).cloned());
        let checksum = checksum.ok_or(StoreError::NoChecksum)?;
        if checksum != hexadecimal(&hash.finalize()) {
            return Err(StoreError::Checksum);
        }
        file.flush().await?;
        file.sync_all().await?;
        self.name(temporary, name)?;
        Ok(size)
    }

    fn name(&self, temporary: NamedTempFile, name: &str) -> io::Result<()> {
        let named = temporary.persist(self.directory.join(name));
        named.map(drop).map_err(|error| error.error)
    }
}
