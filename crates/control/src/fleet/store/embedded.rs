//! A store in one file, by redb: transactions that survive a crash at any point.
#![allow(
    clippy::result_large_err,
    reason = "the errors are the library's, and rare"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, DatabaseError, ReadableTable as _, StorageError, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use weir_rollout::{Batch, Entry, State, Stored};

use super::{PolicyStore, StoreError, fleet_name};

/// The state, and the format of all records.
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const VERSIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("versions");
const HOSTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("hosts");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

const STATE_KEY: &str = "state";
const FORMAT_KEY: &str = "format";
const FORMAT: &[u8] = b"1";
/// Memory for pages; a store has some megabytes.
const CACHE: usize = 8 << 20;

/// A file that is open.
#[derive(Debug)]
pub(super) struct EmbeddedStore {
    path: PathBuf,
    /// Reopened after an error, as the library asks for.
    database: Option<Arc<Database>>,
}

impl EmbeddedStore {
    /// Opens a file; creates it if it is not there.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self {
            path: path.to_owned(),
            database: None,
        };
        let database = store.database()?;
        // What is wrong with it is to be said at once.
        load(&database, &store.path)?;
        Ok(store)
    }

    fn database(&mut self) -> Result<Arc<Database>, StoreError> {
        if let Some(database) = &self.database {
            return Ok(database.clone());
        }
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| self.file(&error))?;
        }
        let path = &self.path;
        let opened = Database::builder().set_cache_size(CACHE).create(path);
        let database = Arc::new(opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.clone()),
            DatabaseError::Storage(error) => of_storage(path, &error),
            error => corrupt(path, &error),
        })?);
        self.database = Some(database.clone());
        Ok(database)
    }

    fn file(&self, error: &io::Error) -> StoreError {
        StoreError::File {
            path: self.path.clone(),
            problem: error.to_string(),
        }
    }

    /// Runs something that may wait for the disk.
    async fn blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Database, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (database, path) = (self.database()?, self.path.clone());
        let done = tokio::task::spawn_blocking(move || work(&database, &path)).await;
        let done = done.unwrap_or_else(|error| Err(StoreError::Etcd(error.to_string())));
        if done.is_err() {
            self.database = None;
        }
        done
    }
}

#[tonic::async_trait]
impl PolicyStore for EmbeddedStore {
    async fn lead(&mut self) -> Result<Stored, StoreError> {
        self.blocking(load).await
    }

    fn leadership(&self) -> Option<watch::Receiver<bool>> {
        None
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.blocking(move |database, path| {
            write(database, &batch).map_err(|error| of(path, error))
        })
        .await
    }

    async fn log(&mut self, from: u64, count: u32) -> Result<Vec<Entry>, StoreError> {
        self.blocking(move |database, path| {
            let read = || -> Result<Vec<(u64, Vec<u8>)>, redb::Error> {
                let log = database.begin_read()?.open_table(LOG)?;
                let entries = log.range(from..)?.take(count as usize);
                let entries = entries.map(|entry| {
                    let (number, bytes) = entry?;
                    Ok((number.value(), bytes.value().to_vec()))
                });
                entries
                    .collect::<Result<_, StorageError>>()
                    .map_err(Into::into)
            };
            let entries = read().map_err(|error| of(path, error))?;
            let decoded = entries.iter();
            decoded
                .map(|(number, bytes)| decode(path, &format!("log {number}"), bytes))
                .collect()
        })
        .await
    }

    fn most_hosts(&self) -> usize {
        usize::MAX
    }
}

fn write(database: &Database, batch: &Batch) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        if let Some(state) = &batch.state {
            let mut table = transaction.open_table(STATE)?;
            table.insert(STATE_KEY, encode(state)?.as_slice())?;
        }
        if let Some(version) = &batch.version {
            let mut table = transaction.open_table(VERSIONS)?;
            table.insert(version.number, encode(version)?.as_slice())?;
        }
        let mut hosts = transaction.open_table(HOSTS)?;
        for host in &batch.hosts {
            hosts.insert(host.name.as_str(), encode(host)?.as_slice())?;
        }
        let mut log = transaction.open_table(LOG)?;
        for entry in &batch.entries {
            log.insert(entry.number, encode(entry)?.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, redb::Error> {
    serde_json::to_vec(value).map_err(|error| redb::Error::Io(io::Error::other(error)))
}

/// Reads all but the log; writes a new fleet into an empty file.
fn load(database: &Database, path: &Path) -> Result<Stored, StoreError> {
    let existing = read(database).map_err(|error| of(path, error))?;
    let Some(existing) = existing else {
        let state = State::new(fleet_name()?);
        begin(database, &state).map_err(|error| of(path, error))?;
        return Ok(Stored {
            state,
            versions: Vec::new(),
            hosts: Vec::new(),
            last_entry: 0,
        });
    };
    if existing.format != FORMAT {
        return Err(StoreError::Corrupt {
            path: path.to_owned(),
            problem: "it is of another version of weir".to_owned(),
        });
    }
    let versions = existing.versions.iter();
    let hosts = existing.hosts.iter();
    Ok(Stored {
        state: decode(path, "its state", &existing.state)?,
        versions: versions
            .map(|bytes| decode(path, "a version", bytes))
            .collect::<Result<_, _>>()?,
        hosts: hosts
            .map(|bytes| decode(path, "a host", bytes))
            .collect::<Result<_, _>>()?,
        last_entry: existing.last_entry,
    })
}

/// What is in a file, undecoded.
struct Contents {
    format: Vec<u8>,
    state: Vec<u8>,
    versions: Vec<Vec<u8>>,
    hosts: Vec<Vec<u8>>,
    last_entry: u64,
}

fn read(database: &Database) -> Result<Option<Contents>, redb::Error> {
    let transaction = database.begin_read()?;
    let state = match transaction.open_table(STATE) {
        Ok(state) => state,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let of_state = |key| -> Result<Vec<u8>, redb::Error> {
        let value = state.get(key)?;
        Ok(value
            .map(|bytes| bytes.value().to_vec())
            .unwrap_or_default())
    };
    let (versions, hosts) = (
        transaction.open_table(VERSIONS)?,
        transaction.open_table(HOSTS)?,
    );
    let value = |bytes: redb::AccessGuard<'_, &[u8]>| bytes.value().to_vec();
    let last = transaction.open_table(LOG)?;
    let last = last.last()?.map_or(0, |(number, _)| number.value());
    Ok(Some(Contents {
        format: of_state(FORMAT_KEY)?,
        state: of_state(STATE_KEY)?,
        versions: { versions.iter()? }
            .map(|entry| entry.map(|(_, bytes)| value(bytes)))
            .collect::<Result<_, StorageError>>()?,
        hosts: { hosts.iter()? }
            .map(|entry| entry.map(|(_, bytes)| value(bytes)))
            .collect::<Result<_, StorageError>>()?,
        last_entry: last,
    }))
}

fn begin(database: &Database, state: &State) -> Result<(), redb::Error> {
    let state = encode(state)?;
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(STATE)?;
        table.insert(FORMAT_KEY, FORMAT)?;
        table.insert(STATE_KEY, state.as_slice())?;
        transaction.open_table(VERSIONS)?;
        transaction.open_table(HOSTS)?;
        transaction.open_table(LOG)?;
    }
    transaction.commit()?;
    Ok(())
}

fn decode<T: DeserializeOwned>(path: &Path, what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    let decoded = serde_json::from_slice(bytes);
    decoded.map_err(|error| StoreError::Corrupt {
        path: path.to_owned(),
        problem: format!("{what} cannot be read: {error}"),
    })
}

fn of(path: &Path, error: redb::Error) -> StoreError {
    match error {
        redb::Error::Io(error) => of_storage(path, &StorageError::Io(error)),
        redb::Error::Corrupted(problem) => of_storage(path, &StorageError::Corrupted(problem)),
        error => StoreError::File {
            path: path.to_owned(),
            problem: error.to_string(),
        },
    }
}

fn of_storage(path: &Path, error: &StorageError) -> StoreError {
    match error {
        StorageError::Io(error) if error.kind() != io::ErrorKind::InvalidData => StoreError::File {
            path: path.to_owned(),
            problem: error.to_string(),
        },
        error => corrupt(path, error),
    }
}

fn corrupt(path: &Path, error: &dyn std::error::Error) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        problem: format!("it is damaged, or no store of policies: {error}"),
    }
}
