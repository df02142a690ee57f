//! The store: a file per key in a directory that all servers share. The example `grpc-kv` has it too.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static WRITES: AtomicU64 = AtomicU64::new(0);

/// Why the store does not do as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("no key {0}")]
    NotFound(String),
    #[error("a key is 1 to 64 letters, digits and '-'")]
    InvalidKey,
    #[error("{0}")]
    Failed(String),
}

/// A directory with a file per key.
#[derive(Clone)]
pub(crate) struct Store {
    directory: PathBuf,
}

impl Store {
    pub(crate) fn open(directory: &Path) -> std::io::Result<Self> {
        let directory = directory.join("data");
        std::fs::create_dir_all(&directory)?;
        Ok(Self { directory })
    }

    /// Returns a key's value.
    pub(crate) async fn get(self, key: String) -> Result<String, StoreError> {
        self.blocking(move |store| {
            std::fs::read_to_string(store.path(&key)?).map_err(|error| match error.kind() {
                ErrorKind::NotFound => StoreError::NotFound(key),
                _ => failed(error),
            })
        })
        .await
    }

    /// Sets a key's value, as a whole or not at all.
    pub(crate) async fn put(self, key: String, value: String) -> Result<(), StoreError> {
        self.blocking(move |store| {
            let number = WRITES.fetch_add(1, Ordering::Relaxed);
            let name = format!(".{}-{number}", std::process::id());
            let temporary = store.directory.join(name);
            let mut file = std::fs::File::create(&temporary).map_err(failed)?;
            file.write_all(value.as_bytes()).map_err(failed)?;
            std::fs::rename(&temporary, store.path(&key)?).map_err(failed)
        })
        .await
    }

    /// Returns all keys.
    pub(crate) async fn keys(self) -> Result<Vec<String>, StoreError> {
        self.blocking(|store| {
            let entries = std::fs::read_dir(&store.directory).map_err(failed)?;
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            Ok(names.filter(|name| !name.starts_with('.')).collect())
        })
        .await
    }

    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        let is_character = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(1..=64).contains(&key.len()) || !key.bytes().all(is_character) {
            return Err(StoreError::InvalidKey);
        }
        Ok(self.directory.join(key))
    }

    async fn blocking<T: Send + 'static>(
        self,
        work: impl FnOnce(Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = tokio::task::spawn_blocking(move || work(self)).await;
        done.unwrap_or_else(|error| Err(failed(error)))
    }
}

fn failed(error: impl std::error::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}
