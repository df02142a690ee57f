//! The control socket of a running client or server: a Unix socket, which answers each connection with
//! its status as one line of JSON.

use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;
use tokio::time::{sleep, timeout};

use crate::status::Status;

/// The time limit of either side for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a failed accept, mostly a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// The control socket failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing listens.
    #[error(
        "no tunnel answers at {}: {source}; `weir tunnel client` and `weir tunnel server` listen where \
         --control says",
        path.display()
    )]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process listens already.
    #[error("another tunnel listens at {}: give this one another socket by --control", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The answer is not a status.
    #[error("the tunnel at {} answers what this version does not understand", path.display())]
    Foreign {
        /// The socket.
        path: PathBuf,
    },
}

/// Asks the process at a socket for its status.
///
/// # Errors
/// [`ControlError`], which names the socket.
pub fn ask(path: &Path) -> Result<Status, ControlError> {
    let unreachable = |source| ControlError::Unreachable {
        path: path.to_owned(),
        source,
    };
    let stream = UnixStream::connect(path).map_err(unreachable)?;
    let limited = stream.set_read_timeout(Some(PATIENCE));
    limited.map_err(unreachable)?;
    let mut line = String::new();
    BufReader::new(stream)
        .read_line(&mut line)
        .map_err(unreachable)?;
    serde_json::from_str(&line).map_err(|_| ControlError::Foreign {
        path: path.to_owned(),
    })
}

/// A listening control socket. Dropping it removes the socket.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    listener: UnixListener,
}

impl Control {
    /// Listens at a path, for this user alone, within a tokio runtime. A stale socket is replaced.
    ///
    /// # Errors
    /// [`ControlError`], which names the socket.
    pub fn listen(path: &Path) -> Result<Self, ControlError> {
        if UnixStream::connect(path).is_ok() {
            return Err(ControlError::InUse {
                path: path.to_owned(),
            });
        }
        let listening = || {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
            Ok(listener)
        };
        let listener = listening().map_err(|source| ControlError::Listen {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            listener,
        })
    }

    /// Answers who asks, without an end.
    pub async fn answer(&self, status: impl Fn() -> Status) {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Ok(mut line) = serde_json::to_string(&status()) else {
                continue;
            };
            line.push('\n');
            // Who does not read gets no answer.
            let _ = timeout(PATIENCE, stream.write_all(line.as_bytes())).await;
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}
