//! Prometheus and its tool `promtool`, where they are installed (Debian's package `prometheus`).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::wait;

/// Returns whether Prometheus is installed; prints the reason if not.
pub(crate) fn is_installed(test: &str) -> bool {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let is_installed = has("prometheus") && has("promtool");
    if !is_installed {
        eprintln!(
            "SKIPPED: {test}: no Prometheus here (apt-get install prometheus, or make setup)"
        );
    }
    is_installed
}

/// Returns the body of an HTTP response; the request accepts what `accept` says.
pub(crate) fn get(address: SocketAddr, path: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: weir\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

/// Returns the metrics in Prometheus' text format.
pub(crate) fn scrape(address: SocketAddr) -> String {
    get(address, "/metrics", "text/plain")
}

/// Checks metrics by `promtool check metrics`, if it is installed.
#[track_caller]
pub(crate) fn assert_well_formed(test: &str, metrics: &str) {
    if !is_installed(test) {
        return;
    }
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(metrics.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(
        output.status.success() && said.is_empty(),
        "{said}\n{metrics}"
    );
}

/// A Prometheus that scrapes every second; ended when dropped.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts a Prometheus that listens at an address and scrapes targets. `command` creates the command
    /// that runs a program where it is to run.
    pub(crate) fn start(
        command: impl FnOnce(&str) -> Command,
        address: SocketAddr,
        targets: &[SocketAddr],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prometheus.yml");
        let targets: Vec<_> = targets.iter().map(|target| format!("'{target}'")).collect();
        let targets = targets.join(", ");
        let configuration = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs:\n  - job_name: weir-enforce\n    static_configs:\n      - targets: [{targets}]\n"
        );
        std::fs::write(&file, configuration).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// Waits until it answers. It is called where its address can be reached.
    pub(crate) fn wait(&self) {
        wait("Prometheus answers", || {
            TcpStream::connect(self.address).is_ok() && self.query("vector(1)").is_ok()
        });
    }

    /// Returns the series of a query's answer now, or the error.
    pub(crate) fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query?query={encoded}");
        let answer = get(self.address, &path, "application/json");
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        match answer["data"]["result"].as_array() {
            Some(series) if answer["status"] == "success" => Ok(series.clone()),
            _ => Err(answer["error"].to_string()),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the value of a series.
pub(crate) fn value(series: &Value) -> f64 {
    series["value"][1].as_str().unwrap().parse().unwrap()
}
