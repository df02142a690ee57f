//! The control socket of a running client or server: a Unix socket. Each connection asks by a line: for the
//! status, which is one line of JSON, or as a successor ([`crate::handover`]).

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::time::{sleep, timeout};

use crate::handover::{self, Handover};
use crate::status::Status;

/// The time limit of either side for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// The request for the status.
const STATUS: &str = "status";
/// The longest request in bytes.
const LONGEST: u64 = 64;
/// How long a successor may take until it listens.
const SUCCESSION: Duration = Duration::from_secs(30);
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
    /// A successor does not get the sockets.
    #[error("cannot take over from the tunnel at {}: {source}", path.display())]
    TakeOver {
        /// The socket.
        path: PathBuf,
        /// What failed.
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
    let asked = (&stream).write_all(format!("{STATUS}\n").as_bytes());
    asked.map_err(unreachable)?;
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
    /// Whether the socket is removed at the end: not where a predecessor or a successor goes on with it.
    is_owned: AtomicBool,
}

/// What the control socket asks of its process.
pub trait Controlled {
    /// Returns the status.
    fn status(&self) -> Status;

    /// Returns what a successor gets.
    ///
    /// # Errors
    /// Why it gets nothing.
    fn hand_over(&self) -> Result<Handover, String>;

    /// The successor that was given the sockets has failed.
    fn keep(&self);
}

/// A successor that listens. It knows that its predecessor has ended when this is dropped.
#[derive(Debug)]
pub struct Successor {
    _stream: tokio::net::UnixStream,
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
            is_owned: AtomicBool::new(true),
        })
    }

    /// Goes on with the control socket of a predecessor, within a tokio runtime. It stays the predecessor's
    /// until [`Control::own`].
    ///
    /// # Errors
    /// [`ControlError`], which names the socket.
    pub fn inherit(path: PathBuf, socket: OwnedFd) -> Result<Self, ControlError> {
        let listener = std::os::unix::net::UnixListener::from(socket);
        // It is in this mode already, with the predecessor.
        let nonblocking = listener.set_nonblocking(true);
        let registered = nonblocking.and_then(|()| UnixListener::from_std(listener));
        match registered {
            Ok(listener) => Ok(Self {
                path,
                listener,
                is_owned: AtomicBool::new(false),
            }),
            Err(source) => Err(ControlError::Listen { path, source }),
        }
    }

    /// Notes that the predecessor has let go of it.
    pub fn own(&self) {
        self.is_owned.store(true, Ordering::Relaxed);
    }

    /// Answers who asks, until a successor listens.
    pub async fn answer(&self, process: &impl Controlled) -> Successor {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            match read_line(&mut stream, PATIENCE).await.as_deref() {
                Some(STATUS) => tell(&mut stream, &process.status()).await,
                Some(handover::TAKE_OVER) => {
                    if let Some(successor) = self.hand_over(stream, process).await {
                        return successor;
                    }
                }
                _ => {}
            }
        }
    }

    /// Gives the sockets to a successor; `None` where there is none in the end.
    async fn hand_over(
        &self,
        mut stream: tokio::net::UnixStream,
        process: &impl Controlled,
    ) -> Option<Successor> {
        let offer = process.hand_over();
        if let Err(why) = &offer {
            tracing::warn!("a successor gets no sockets: {why}");
        }
        let is_offered = offer.is_ok();
        let answered = handover::answer(stream.as_fd(), offer, self.listener.as_fd());
        if is_offered && answered.is_ok() {
            let line = read_line(&mut stream, SUCCESSION).await;
            if line.as_deref() == Some(handover::READY) {
                self.is_owned.store(false, Ordering::Relaxed);
                return Some(Successor { _stream: stream });
            }
        }
        if is_offered {
            tracing::warn!("a successor took the sockets, and did not begin: this process goes on");
            process.keep();
        }
        None
    }
}

/// Reads a line without its end; `None` where none comes in time.
async fn read_line(stream: &mut tokio::net::UnixStream, limit: Duration) -> Option<String> {
    let mut line = String::new();
    let mut limited = tokio::io::BufReader::new(stream.take(LONGEST));
    let read = timeout(limit, limited.read_line(&mut line)).await;
    read.ok()?.ok()?;
    line.strip_suffix('\n').map(str::to_owned)
}

async fn tell(stream: &mut tokio::net::UnixStream, status: &Status) {
    let Ok(mut line) = serde_json::to_string(status) else {
        return;
    };
    line.push('\n');
    // Who does not read gets no answer.
    let _ = timeout(PATIENCE, stream.write_all(line.as_bytes())).await;
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.is_owned.load(Ordering::Relaxed) {
            // Another process may have removed it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
