//! Where a controller keeps versions, hosts and the log.

mod embedded;
mod etcd;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio::sync::watch;
use weir_rollout::{Batch, Entry, Stored};

use embedded::EmbeddedStore;
use etcd::EtcdStore;

/// Where the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// A file, which one controller uses at a time.
    File(PathBuf),
    /// An etcd cluster, where one of several controllers leads: `etcd://HOST:PORT,HOST:PORT/PREFIX`.
    Etcd {
        /// Its members, `HOST:PORT`.
        endpoints: Vec<String>,
        /// What the keys begin with.
        prefix: String,
        /// A directory with `ca.pem`, `client.pem` and `client.key`, for TLS.
        certificates: Option<PathBuf>,
    },
}

/// The port of etcd's clients.
const ETCD_PORT: u16 = 2379;
/// The keys' usual beginning.
const PREFIX: &str = "weir";

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!("`{text}` is no store: write etcd://HOST:PORT,HOST:PORT/PREFIX, or file:PATH")
        };
        if let Some(path) = text.strip_prefix("file:") {
            return Ok(Self::File(path.into()));
        }
        let rest = text.strip_prefix("etcd://").ok_or_else(form)?;
        let (hosts, prefix) = rest.split_once('/').unwrap_or((rest, PREFIX));
        let endpoint = |host: &str| match host.rsplit_once(':') {
            Some(_) => host.to_owned(),
            None => format!("{host}:{ETCD_PORT}"),
        };
        let prefix = prefix.trim_matches('/');
        if hosts.split(',').any(str::is_empty) || prefix.is_empty() {
            return Err(form());
        }
        Ok(Self::Etcd {
            endpoints: hosts.split(',').map(endpoint).collect(),
            prefix: prefix.to_owned(),
            certificates: None,
        })
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Etcd {
                endpoints, prefix, ..
            } => write!(f, "etcd://{}/{prefix}", endpoints.join(",")),
        }
    }
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another controller has it open.
    #[error(
        "{0} is in use by another controller: stop that first, or give this one another --state"
    )]
    InUse(PathBuf),
    /// The file cannot be read or written, or its disk is full.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system or the database says.
        problem: String,
    },
    /// The file's contents make no sense.
    #[error(
        "{path}: {problem}; bring a copy back (`weir policy log` of hosts tells what they run), or move it away to \
         begin without versions"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// etcd does not do it.
    #[error("etcd: {0}")]
    Etcd(String),
    /// Another controller leads.
    #[error("another controller leads")]
    NotLeader,
    /// A record cannot be read.
    #[error("{key}: {problem}")]
    Record {
        /// Its key.
        key: String,
        /// What is wrong.
        problem: String,
    },
}

/// Keeps what is decided. A batch is kept as a whole or not at all; it is on disk when `commit` has returned.
#[tonic::async_trait]
pub(crate) trait PolicyStore: Send + fmt::Debug {
    /// Waits until this controller leads, and returns what is kept. To be called again after an error: what the
    /// store has may be the batch or not.
    async fn lead(&mut self) -> Result<Stored, StoreError>;

    /// Returns whether this controller leads, with notice of the end; `None` if it cannot end.
    fn leadership(&self) -> Option<watch::Receiver<bool>>;

    /// Keeps a batch.
    async fn commit(&mut self, batch: Batch) -> Result<(), StoreError>;

    /// Returns entries of the log from a number on.
    async fn log(&mut self, from: u64, count: u32) -> Result<Vec<Entry>, StoreError>;

    /// The most hosts of a batch.
    fn most_hosts(&self) -> usize;
}

/// Opens a store. `name` is the controller's, for others that want to know who leads.
pub(crate) fn open(
    location: &StoreLocation,
    name: &str,
) -> Result<Box<dyn PolicyStore>, StoreError> {
    Ok(match location {
        StoreLocation::File(path) => Box::new(EmbeddedStore::open(path)?),
        StoreLocation::Etcd {
            endpoints,
            prefix,
            certificates,
        } => Box::new(EtcdStore::new(
            endpoints,
            prefix,
            certificates.as_deref(),
            name,
        )?),
    })
}

/// Returns a new fleet's name.
fn fleet_name() -> Result<String, StoreError> {
    let name = crate::leader_epoch::random_name();
    name.map_err(|error| StoreError::Etcd(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_files_or_clusters() {
        let location = |text: &str| text.parse::<StoreLocation>().map(|it| it.to_string());
        assert_eq!(location("etcd://a,b:7").unwrap(), "etcd://a:2379,b:7/weir");
        assert_eq!(location("etcd://a/x/").unwrap(), "etcd://a:2379/x");
        assert_eq!(location("file:/tmp/x").unwrap(), "/tmp/x");
        for wrong in [
            "",
            "a:1",
            "etcd://",
            "etcd://a,,b",
            "etcd://a//",
            "http://a",
        ] {
            assert!(
                location(wrong).unwrap_err().contains("etcd://HOST"),
                "{wrong}"
            );
        }
    }
}
