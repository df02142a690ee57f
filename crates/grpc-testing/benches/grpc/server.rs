//! A server in a process of its own: this program, started again.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::contestant::{Contestant, Identity};
use crate::load::runtime;
use crate::{Failure, SERVER};

const CONTESTANT: &str = "GRPC_CONTESTANT";
const ADDRESS: &str = "GRPC_ADDRESS";
const CERTIFICATE: &str = "GRPC_CERTIFICATE";
const KEY: &str = "GRPC_KEY";

/// A server; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    process: Child,
}

impl Server {
    pub(crate) fn start(
        contestant: Contestant,
        identity: &Identity,
        address: impl Into<String>,
    ) -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(SERVER)
            .env(CONTESTANT, contestant.name())
            .env(ADDRESS, address.into())
            .env(CERTIFICATE, &identity.certificate)
            .env(KEY, &identity.key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().parse();
        let address = address.map_err(|_| format!("the server says {line:?}"))?;
        Ok(Self { address, process })
    }

    /// Returns the CPU time that it has used.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_of(&self.process.id().to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the CPU time of a process, in steps of 10 ms.
pub(crate) fn cpu_of(process: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain spaces.
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Runs as a server until its input ends.
pub(crate) fn serve() -> Result<(), Failure> {
    let name = std::env::var(CONTESTANT)?;
    let contestant = Contestant::ALL
        .into_iter()
        .find(|contestant| contestant.name() == name);
    let contestant = contestant.ok_or_else(|| format!("there is no {name}"))?;
    let identity = Identity {
        certificate: std::env::var(CERTIFICATE)?,
        key: std::env::var(KEY)?,
    };
    let address: IpAddr = std::env::var(ADDRESS)?.parse()?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let bound = |address| println!("{address}");
    runtime()?.block_on(contestant.serve(&identity, (address, 0).into(), bound))
}
