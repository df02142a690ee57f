//! The program over quic-go's HTTP/3 and connect-go's gRPC: `peers/go`.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use rustix::process::{Pid, Signal, kill_process};
use weir_grpc::Channel;

use super::ALL;
use super::weir::{self, Certificate};

/// Returns the program, built by the first call; or why it cannot be built.
pub(crate) fn program() -> Result<&'static Path, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let program =
        PROGRAM.get_or_init(|| build().inspect_err(|reason| println!("SKIPPED: {reason}")));
    program.as_deref().map_err(String::clone)
}

fn build() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/go");
    let go = |arguments: &[&str]| {
        let output = Command::new("go")
            .args(arguments)
            .current_dir(&source)
            .output();
        output.map_err(|error| format!("Go: {error}"))
    };
    let listed = go(&["list", "-m"])?;
    if !listed.status.success() {
        let reason = String::from_utf8_lossy(&listed.stderr).trim().to_owned();
        return Err(format!("Go cannot build peers/go: {reason}"));
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("peers-go");
    let path = program.to_str().unwrap();
    for arguments in [&["generate", "."][..], &["build", "-o", path, "."]] {
        let output = go(arguments)?;
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "go {}: {text}", arguments[0]);
    }
    Ok(program)
}

struct Process(Child);

/// The Go server. It ends with its standard input.
pub(crate) struct Server {
    process: Process,
    certificate: Arc<Certificate>,
    address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(Arc::new(Certificate::new()))
    }

    pub(crate) fn with(certificate: Arc<Certificate>) -> Self {
        let mut process = Command::new(program().unwrap())
            .args(["server", "--listen", "127.0.0.1:0", "--certificate"])
            .arg(certificate.chain())
            .arg("--key")
            .arg(certificate.key())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap();
        Self {
            process: Process(process),
            certificate,
            address: address.parse().unwrap(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn channel(&self) -> Channel {
        weir::channel([self.address], self.certificate.fingerprint)
    }

    /// Has it say GOAWAY, and waits until it is gone.
    pub(crate) async fn drain(mut self) {
        let id = Pid::from_raw(self.process.0.id().cast_signed()).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        // `wait` would close it, which ends the server at once.
        let _input = self.process.0.stdin.take();
        let gone = tokio::task::spawn_blocking(move || self.process.0.wait());
        gone.await.unwrap().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Closes its standard input.
        let _ = self.0.wait();
    }
}

/// Runs a case of the Go client.
pub(crate) async fn run_client(
    server: SocketAddr,
    certificate: &Path,
    case: &str,
) -> Result<(), String> {
    // Its name for all cases of gRPC.
    let case = if case == ALL { "grpc" } else { case };
    let mut client = Command::new(program()?);
    client.args(["client", "--to", &server.to_string(), "--case", case]);
    client.arg("--ca").arg(certificate);
    let running = tokio::task::spawn_blocking(move || client.output());
    let output = running.await.unwrap().unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && report.contains("passed") {
        return Ok(());
    }
    Err(report + &String::from_utf8_lossy(&output.stderr))
}
