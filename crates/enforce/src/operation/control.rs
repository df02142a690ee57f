//! The control socket of a running enforcer: a Unix socket with one line of JSON per request and per
//! response.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Status;

/// The default path of the socket.
pub const DEFAULT_PATH: &str = "/run/weir/enforce.sock";

/// The time limit of either side for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// The limit on the length of a request.
const LONGEST_QUESTION: u64 = 4096;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlRequest {
    /// Returns the status.
    Status,
    /// Reloads the policy file.
    Reload,
    /// Puts a rule that a guard has taken back in force again.
    Resume {
        /// Its line in the policy file.
        rule: u32,
    },
}

/// A response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlResponse {
    /// The status.
    Status(Box<Status>),
    /// The policy of this file is in force.
    Reloaded {
        /// The file.
        file: PathBuf,
        /// How many rules it has.
        rules: usize,
    },
    /// The rule is in force again.
    Resumed {
        /// Its line in the policy file.
        rule: u32,
    },
    /// The request was refused.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// The control socket failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No enforcer listens.
    #[error("no enforcer answers at {}: {source}; `weir enforce` starts one", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another enforcer listens already.
    #[error(
        "another enforcer listens at {}: stop it, or give this one another socket by --control",
        path.display()
    )]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// This user may not create the socket.
    #[error(
        "may not listen at {}: run as root, or let the socket be somewhere else by --control",
        path.display()
    )]
    NotPermitted {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be created.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The response is invalid.
    #[error("the enforcer at {} answers what this version does not understand", path.display())]
    Foreign {
        /// The socket.
        path: PathBuf,
    },
}

/// Sends a request to the enforcer at a socket, and returns the response.
///
/// # Errors
/// [`ControlError`], which names the socket.
pub fn send_request(
    path: &Path,
    question: ControlRequest,
) -> Result<ControlResponse, ControlError> {
    let unreachable = |source| ControlError::Unreachable {
        path: path.to_owned(),
        source,
    };
    let foreign = |_| ControlError::Foreign {
        path: path.to_owned(),
    };
    let mut stream = UnixStream::connect(path).map_err(unreachable)?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(unreachable)?;
    let line = serde_json::to_string(&question).map_err(foreign)?;
    writeln!(stream, "{line}").map_err(unreachable)?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .map_err(unreachable)?;
    serde_json::from_str(&answer).map_err(foreign)
}

/// The process at the other end of the socket, when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its process ID.
    pub pid: i32,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {}, pid {}", self.uid, self.pid)
    }
}

impl Peer {
    /// Asks the kernel (`SO_PEERCRED`). The process ID is 0 for a process of an outer namespace.
    fn of(stream: &UnixStream) -> Option<Self> {
        let mut credentials = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which is the size of the structure, and any
        // numbers are valid in it.
        let result = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut credentials).cast(),
                &raw mut length,
            )
        };
        (result == 0).then_some(Self {
            uid: credentials.uid,
            pid: credentials.pid,
        })
    }
}

/// A request that waits for its response.
#[derive(Debug)]
pub struct PendingRequest {
    /// The request.
    pub request: ControlRequest,
    /// Who asks; `None` if the kernel does not say so.
    pub peer: Option<Peer>,
    reply: Sender<ControlResponse>,
}

impl PendingRequest {
    /// Sends the response.
    pub fn answer(self, answer: ControlResponse) {
        // The client may be gone.
        let _ = self.reply.send(answer);
    }
}

/// A listening control socket. Dropping it removes the socket.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    questions: Receiver<PendingRequest>,
}

impl Control {
    /// Listens at a path, for this user alone. A stale socket is replaced.
    ///
    /// # Errors
    /// [`ControlError`], which names the socket.
    pub fn listen(path: &Path) -> Result<Self, ControlError> {
        let failed = |source: io::Error| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::PermissionDenied => ControlError::NotPermitted { path },
                _ => ControlError::Listen { path, source },
            }
        };
        if UnixStream::connect(path).is_ok() {
            return Err(ControlError::InUse {
                path: path.to_owned(),
            });
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let owner_only = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, owner_only).map_err(failed)?;
        let (sender, questions) = channel();
        let thread = std::thread::Builder::new().name("control".to_owned());
        thread
            .spawn(move || serve(&listener, &sender))
            .map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            questions,
        })
    }

    /// Returns the next pending request, if there is one.
    pub fn next(&self) -> Option<PendingRequest> {
        self.questions.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(listener: &UnixListener, questions: &Sender<PendingRequest>) {
    for stream in listener.incoming().flatten() {
        // A client with an invalid request, or one that closes early, gets no response.
        let _ = converse(stream, questions);
    }
}

fn converse(stream: UnixStream, questions: &Sender<PendingRequest>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST_QUESTION)).read_line(&mut line)?;
    let question = serde_json::from_str(&line)?;
    let (reply, answer) = channel();
    let hung_up = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    questions
        .send(PendingRequest {
            request: question,
            peer: Peer::of(&stream),
            reply,
        })
        .map_err(hung_up)?;
    let answer = answer
        .recv_timeout(PATIENCE)
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
    let text = serde_json::to_string(&answer)?;
    writeln!(&stream, "{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_and_the_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/weir.sock");
        let control = Control::listen(&path).unwrap();
        assert!(matches!(
            Control::listen(&path),
            Err(ControlError::InUse { .. })
        ));
        let asking = path.clone();
        let thread = std::thread::spawn(move || send_request(&asking, ControlRequest::Status));
        let asked = loop {
            if let Some(asked) = control.next() {
                break asked;
            }
            std::thread::yield_now();
        };
        assert_eq!(asked.request, ControlRequest::Status);
        let own = Peer {
            uid: rustix::process::geteuid().as_raw(),
            pid: std::process::id().cast_signed(),
        };
        assert_eq!(asked.peer, Some(own));
        asked.answer(ControlResponse::Status(Box::default()));
        let answer = thread.join().unwrap().unwrap();
        assert_eq!(answer, ControlResponse::Status(Box::default()));
        drop(control);
        assert!(!path.exists());
        let error = send_request(&path, ControlRequest::Reload)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("weir.sock") && error.contains("weir enforce"),
            "{error}"
        );
    }
}
