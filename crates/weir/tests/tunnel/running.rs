//! Running processes of `weir tunnel`, and applications for their ends.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::weir;

/// A process of `weir tunnel`. Killed when dropped, with SIGKILL.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// What it printed at the start.
    pub(crate) said: Value,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_command(weir(&[&["tunnel"], arguments, &["--json"]].concat()))
    }

    /// Starts a command that runs `weir tunnel … --json`.
    pub(crate) fn start_command(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let Ok(said) = serde_json::from_str(&line) else {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            panic!("{text}");
        };
        // Nobody reads its log, and it must not wait for that.
        thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Self { child, said }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts an application that sends back what it receives, until its end.
pub(crate) fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut &tcp, &mut &tcp));
        }
    });
    address
}

pub(crate) fn echoes(address: &str) -> Result<(), ErrorKind> {
    let exchange = || {
        let mut tcp = TcpStream::connect(address)?;
        tcp.write_all(b"hello")?;
        tcp.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        tcp.read_to_string(&mut text)?;
        assert_eq!(text, "hello");
        Ok(())
    };
    exchange().map_err(|error: std::io::Error| error.kind())
}
