//! The parent's handle of a worker process. Dropping it kills and reaps the process; should the
//! parent die without dropping, the kernel kills the worker.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use serde::Serialize;
use weir_units::Duration;

use crate::calls::error::Error;
use crate::calls::message::{Answer, Command, Role};

/// How to start a worker: a program that calls [`worker::run`](crate::calls::worker::run) when it is given
/// these arguments.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Launcher {
    /// This program itself, with these arguments.
    ///
    /// # Errors
    /// [`Error::Io`] when the system does not say which program this is.
    pub fn this_program(arguments: &[&str]) -> Result<Self, Error> {
        Ok(Self {
            program: std::env::current_exe().map_err(Error::io("finding this program"))?,
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
        })
    }

    /// Starts a worker in its role and waits until it is ready.
    ///
    /// The worker dies with the thread that calls this.
    ///
    /// # Errors
    /// When it cannot be started, reports an error, or is not ready within `limit`.
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
        worker.say(role)?;
        let ready = worker.answer(limit)?;
        Ok((worker, ready))
    }
}

/// Passes on each line that the worker writes, until it ends or nobody listens.
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
    /// Gives a command and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Worker`] when the worker reports an error, and it may be asked again; any other
    /// error means that the process is of no further use.
    pub fn ask(&mut self, command: &Command, limit: Duration) -> Result<Answer, Error> {
        self.say(command)?;
        self.answer(limit)
    }

    fn say(&mut self, message: &impl Serialize) -> Result<(), Error> {
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
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
