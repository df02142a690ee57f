//! The server's process, and its parent's handle.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use weir_traffic::calls::Launcher;
use weir_traffic::calls::identity::identity_from_der;
use weir_traffic::tls::Identity;

use crate::client::Counters;
use crate::{Failure, Transport, dcquic, quinn, tcp_tls};

/// What a server is told, as one line of JSON on standard input. Their end stops it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Role {
    pub(crate) transport: Transport,
    /// DER.
    pub(crate) certificate: Vec<u8>,
    /// PKCS #8.
    pub(crate) key: Vec<u8>,
}

impl Role {
    pub(crate) fn identity(&self) -> Identity {
        identity_from_der(self.certificate.clone(), self.key.clone())
    }
}

/// Runs a server until its standard input ends, at the latest with its parent.
pub(crate) fn serve() -> Result<(), Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let role: Role = serde_json::from_str(&line)?;
    let (stop, stopped) = oneshot::channel();
    thread::spawn(move || {
        // An error is an end too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        // The receiver is gone if the server has failed.
        let _ = stop.send(());
    });
    let stopped = async { stopped.await.unwrap_or_default() };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let counters = runtime.block_on(async {
        match role.transport {
            Transport::Dcquic => dcquic::serve(&role, stopped).await,
            Transport::TcpTls => tcp_tls::serve(&role, stopped).await,
            Transport::Quinn => quinn::serve(&role, stopped).await,
        }
    })?;
    say(&counters)
}

/// Tells the parent that the server listens.
pub(crate) fn listening(address: SocketAddr) -> Result<(), Failure> {
    say(&address)
}

fn say(answer: &impl Serialize) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(answer)?);
    Ok(())
}

/// A running server. Dropping it kills it.
pub(crate) struct ServerProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl ServerProcess {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(launcher: &Launcher, role: &Role) -> Result<Self, Failure> {
        let mut child = Command::new(&launcher.program)
            .args(&launcher.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
            return Err("the server has no standard input and output".into());
        };
        let mut line = serde_json::to_string(role)?;
        line.push('\n');
        stdin.write_all(line.as_bytes())?;
        let mut stdout = BufReader::new(stdout);
        Ok(Self {
            address: answer(&mut stdout)?,
            child,
            stdin: Some(stdin),
            stdout,
        })
    }

    /// Returns the address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server, and returns what it has counted.
    pub(crate) fn stop(mut self) -> Result<Counters, Failure> {
        drop(self.stdin.take());
        answer(&mut self.stdout)
    }
}

fn answer<Answer: for<'a> Deserialize<'a>>(
    stdout: &mut BufReader<ChildStdout>,
) -> Result<Answer, Failure> {
    let mut line = String::new();
    match stdout.read_line(&mut line)? {
        0 => Err("the server has failed".into()),
        _ => Ok(serde_json::from_str(&line)?),
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
