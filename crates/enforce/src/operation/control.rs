//! Talking to an enforcer that runs: a Unix socket with one line of JSON for the question, and one for the
//! answer.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Status;

/// Where it is unless something else is said.
pub const DEFAULT_PATH: &str = "/run/weir/enforce.sock";

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);
/// A question is shorter than this.
const LONGEST_QUESTION: u64 = 4096;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlRequest {
    /// What is being done.
    Status,
    /// Read the policy's file again.
    Reload,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlResponse {
    /// To a question about the status.
    Status(Box<Status>),
    /// The policy of this file is in force; it has so many rules.
    Reloaded {
        /// The file.
        file: PathBuf,
        /// How many rules it has.
        rules: usize,
    },
    /// What was asked for is not done, and why.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens.
    #[error("no enforcer answers at {}: {source}; `weir enforce` starts one", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody listens already.
    #[error(
        "another enforcer listens at {}: stop it, or give this one another socket by --control",
        path.display()
    )]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// This user may not make the socket.
    #[error(
        "may not listen at {}: run as root, or let the socket be somewhere else by --control",
        path.display()
    )]
    NotPermitted {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The answer makes no sense.
    #[error("the enforcer at {} answers what this version does not understand", path.display())]
    Foreign {
        /// The socket.
        path: PathBuf,
    },
}

/// Asks the enforcer at a socket.
///
/// # Errors
/// [`ControlError`], which names the socket.
pub fn ask(path: &Path, question: ControlRequest) -> Result<ControlResponse, ControlError> {
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

/// A question that waits for its answer.
#[derive(Debug)]
pub struct PendingRequest {
    /// The question.
    pub question: ControlRequest,
    reply: Sender<ControlResponse>,
}

impl PendingRequest {
    /// Answers it.
    pub fn answer(self, answer: ControlResponse) {
        // Whoever has asked may be gone.
        let _ = self.reply.send(answer);
    }
}

/// A socket at which questions come in; it is removed with this value.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    questions: Receiver<PendingRequest>,
}

impl Control {
    /// Listens at a path, for this user alone. A socket at which nobody listens any more is replaced.
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

    /// The next question, if there is one now.
    pub fn next(&self) -> Option<PendingRequest> {
        self.questions.try_recv().ok()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve(listener: &UnixListener, questions: &Sender<PendingRequest>) {
    for stream in listener.incoming().flatten() {
        // One that asks badly, or hangs up, has no answer.
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
        .send(PendingRequest { question, reply })
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
    fn questions_are_answered_and_the_socket_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/weir.sock");
        let control = Control::listen(&path).unwrap();
        assert!(matches!(
            Control::listen(&path),
            Err(ControlError::InUse { .. })
        ));
        let asking = path.clone();
        let thread = std::thread::spawn(move || ask(&asking, ControlRequest::Status));
        let asked = loop {
            if let Some(asked) = control.next() {
                break asked;
            }
            std::thread::yield_now();
        };
        assert_eq!(asked.question, ControlRequest::Status);
        asked.answer(ControlResponse::Status(Box::default()));
        let answer = thread.join().unwrap().unwrap();
        assert_eq!(answer, ControlResponse::Status(Box::default()));
        drop(control);
        assert!(!path.exists());
        let error = ask(&path, ControlRequest::Reload).unwrap_err().to_string();
        assert!(
            error.contains("weir.sock") && error.contains("weir enforce"),
            "{error}"
        );
    }
}
