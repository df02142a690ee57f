//! A foreign server.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use crate::CertificateFiles;
use crate::program::{Failed, Program};

/// A program that serves; it ends with this value.
pub struct ForeignServer {
    process: Child,
    address: SocketAddr,
}

impl ForeignServer {
    /// Starts a program's server.
    ///
    /// # Errors
    /// [`Failed`] where it does not come to listen.
    pub fn start(program: Program, files: &CertificateFiles) -> Result<Self, Failed> {
        let mut command = program.command()?;
        command.args(["server", "--listen", "127.0.0.1:0"]);
        command.arg("--certificate").arg(files.certificate());
        command.arg("--key").arg(files.key());
        // It ends at the end of its standard input, also where this process is killed.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(Failed::new)?;
        match address(&mut process) {
            Ok(address) => Ok(Self { process, address }),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error)
            }
        }
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ForeignServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads the first line of a server.
fn address(process: &mut Child) -> Result<SocketAddr, Failed> {
    let output = process.stdout.take();
    let output = output.ok_or_else(|| Failed::new("no standard output"))?;
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    read.map_err(Failed::new)?;
    let address = line.trim().strip_prefix("listening on ");
    let address = address.ok_or_else(|| Failed(format!("the server says {line:?}")))?;
    address.parse().map_err(Failed::new)
}
