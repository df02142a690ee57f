//! The parent's handle of a worker process. Dropping it kills and reaps the process. If the parent
//! dies without dropping it, the kernel kills the worker.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use weir_units::Duration;

use crate::calls::error::Error;
use crate::calls::message::{Answer, Command, Role};

/// The command line that starts a worker: a program that calls
/// [`worker::run`](crate::calls::worker::run) when it has these arguments.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Launcher {
    /// Returns a launcher of this program itself, with these arguments.
    ///
    /// # Errors
    /// [`Error::Io`] if the system does not report the program's path.
    pub fn this_program(arguments: &[&str]) -> Result<Self, Error> {
        Ok(Self {
            program: std::env::current_exe().map_err(Error::io("finding this program"))?,
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
        })
    }

    /// Starts a worker in its role and waits until it is ready.
    ///
    /// The worker dies with the calling thread.
    ///
    /// # Errors
    /// It cannot be started, reports an error, or is not ready within `limit`.
    pub fn start(
        &self,
        name: String,
        role: &Role,
        limit: Duration,
    ) -> Result<(Worker, Answer), Error> {
        let mut child = Process::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("starting a worker process"))?;
        let stdin = child.stdin.take();
        let (sender, answers) = channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || forward(stdout, &sender));
        }
        let mut worker = Worker {
            name,
            child,
            stdin,
            answers,
        };
        worker.send(role)?;
        let ready = worker.answer(limit)?;
        Ok((worker, ready))
    }
}

/// Forwards each line from the worker, until it ends or the receiver is dropped.
fn forward(stdout: ChildStdout, answers: &Sender<Result<Answer, serde_json::Error>>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { return };
        if answers.send(serde_json::from_str(&line)).is_err() {
            return;
        }
    }
}

/// A running worker process.
#[derive(Debug)]
pub struct Worker {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<Result<Answer, serde_json::Error>>,
}

impl Worker {
    /// Sends a command and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Worker`] if the worker reports an error; it remains usable. After any other error
    /// the process is unusable.
    pub fn request(&mut self, command: &Command, limit: Duration) -> Result<Answer, Error> {
        self.send(command)?;
        self.answer(limit)
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        let Some(stdin) = &mut self.stdin else {
            return Err(self.ended());
        };
        stdin.write_all(line.as_bytes()).map_err(|_| self.ended())
    }

    fn answer(&mut self, limit: Duration) -> Result<Answer, Error> {
        match self.answers.recv_timeout(limit.into()) {
            Ok(Ok(Answer::Failed(message))) => Err(Error::Worker {
                worker: self.name.clone(),
                message,
            }),
            Ok(answer) => Ok(answer?),
            Err(RecvTimeoutError::Timeout) => Err(Error::Stalled {
                what: self.name.clone(),
                limit,
            }),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn ended(&mut self) -> Error {
        let _ = self.child.kill();
        let status = match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Error::WorkerEnded {
            worker: self.name.clone(),
            status,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Raises the limit of open files of this process, and so of those that it starts, to what the system allows.
///
/// # Errors
/// [`Error::Io`] if the system refuses.
pub fn raise_file_limit() -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|errno| Error::io("raising the limit of open files")(errno.into()))
}
