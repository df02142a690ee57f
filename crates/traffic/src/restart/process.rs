//! The server's process, as its parent sees it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::execution::Role;
use crate::calls::error::Error;
use crate::calls::process::Launcher;

/// The time between two reads of the pipe: fewer wake-ups, and a fraction of what the pipe can hold.
const READ_INTERVAL: Duration = Duration::from_millis(20);
const NAME: &str = "the server";

/// A running server. Dropping it kills it.
pub(super) struct ServerProcess {
    child: Child,
    address: SocketAddr,
    executed: Option<JoinHandle<std::io::Result<Vec<u8>>>>,
}

impl ServerProcess {
    /// Starts a server and waits until it listens. It dies with the calling thread.
    pub(super) fn start(launcher: &Launcher, role: &Role) -> Result<Self, Error> {
        let mut child = Command::new(&launcher.program)
            .args(&launcher.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("starting the server"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut process = Self {
            child,
            address: role.address,
            executed: None,
        };
        let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else {
            return Err(process.ended());
        };
        let mut line = serde_json::to_string(role)?;
        line.push('\n');
        let mut port = [0; 8];
        let exchanged = stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdout.read_exact(&mut port));
        let port = u16::try_from(u64::from_le_bytes(port));
        let (Ok(()), Ok(port)) = (exchanged, port) else {
            return Err(process.ended());
        };
        process.address.set_port(port);
        process.executed = Some(thread::spawn(move || collect(stdout)));
        Ok(process)
    }

    /// Returns the address at which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills the server with SIGKILL, and returns the numbers of all calls that it executed. Its sockets
    /// are closed then.
    pub(super) fn kill(&mut self) -> Result<Vec<u64>, Error> {
        if let Ok(Some(_)) = self.child.try_wait() {
            return Err(self.ended());
        }
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map_err(Error::io("killing the server"))?;
        let collected = self.executed.take().map(JoinHandle::join);
        let Some(Ok(bytes)) = collected else {
            return Err(self.ended());
        };
        let bytes = bytes.map_err(Error::io("reading what the server executed"))?;
        let (numbers, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            let problem = "the last number is incomplete";
            return Err(Error::transport(
                "reading what the server executed",
                problem,
            ));
        }
        Ok(numbers.iter().copied().map(u64::from_le_bytes).collect())
    }

    fn ended(&mut self) -> Error {
        let _ = self.child.kill();
        Error::WorkerEnded {
            worker: NAME.to_owned(),
            status: match self.child.wait() {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, which comes with the death of the server.
fn collect(mut pipe: ChildStdout) -> std::io::Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match pipe.read(&mut buffer)? {
            0 => return Ok(all),
            length => all.extend_from_slice(&buffer[..length]),
        }
        thread::sleep(READ_INTERVAL);
    }
}
