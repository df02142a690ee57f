//! `weir copy`, server and client as processes: complete, interrupted, refused.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::{command_output, wait, weir};

/// A `weir copy serve`. Killed when dropped, with SIGKILL.
struct CopyServer {
    child: Child,
    address: SocketAddr,
    security: Vec<String>,
}

impl CopyServer {
    /// Starts a server of a directory, over DCUDP if there is a key.
    fn start(directory: &Path, port: u16, key: Option<&Path>) -> Self {
        let mut command = weir(&["copy", "serve"]);
        command
            .arg(directory)
            .args(["--json", "--port", &port.to_string()]);
        if let Some(key) = key {
            command
                .args(["--transport", "dcudp", "--key-file"])
                .arg(key);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let security = match key {
            Some(key) => ["--transport", "dcudp", "--key-file", key.to_str().unwrap()].to_vec(),
            None => ["--pin", listening["fingerprint"].as_str().unwrap()].to_vec(),
        };
        Self {
            address: listening["listening"].as_str().unwrap().parse().unwrap(),
            security: security.into_iter().map(str::to_owned).collect(),
            child,
        }
    }

    /// Returns a client that copies these files to this directory.
    fn client(&self, files: &[&Path], directory: &str) -> Command {
        let mut command = weir(&["copy", "--json", "--port", &self.address.port().to_string()]);
        command.args(&self.security).args(files);
        command.arg(format!("{}:{directory}", self.address.ip()));
        command
    }
}

impl Drop for CopyServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Place {
    root: tempfile::TempDir,
    served: PathBuf,
    key: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (served, key) = (root.path().join("served"), root.path().join("key"));
        fs::create_dir(&served).unwrap();
        writeln!(fs::File::create(&key).unwrap(), "{}", "ab".repeat(32)).unwrap();
        Self { root, served, key }
    }

    /// Creates a file whose contents repeat nowhere.
    fn file(&self, name: &str, size: u32) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let words =
            (0..size.div_ceil(4)).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes());
        let contents: Vec<u8> = words.take(size as usize).collect();
        fs::write(&path, contents).unwrap();
        path
    }
}

/// Returns the lines of JSON of a client that succeeds.
fn copied(command: &mut Command) -> Vec<Value> {
    let said = command_output(command.output().unwrap());
    let lines = said.ok().stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn files_and_directories_arrive_and_are_not_sent_twice() {
    let place = Place::new();
    let (big, small) = (place.file("big", 3_000_001), place.file("d/e/small", 5));
    place.file("d/empty", 0);
    symlink("/etc/passwd", place.root.path().join("d/link")).unwrap();
    for key in [None, Some(place.key.as_path())] {
        let server = CopyServer::start(&place.served, 0, key);
        let directory = if key.is_some() {
            "dcudp"
        } else {
            "dcquic/below"
        };
        let files = [big.as_path(), &place.root.path().join("d")];
        let lines = copied(&mut server.client(&files, directory));
        let names: Vec<_> = lines
            .iter()
            .map(|line| line["file"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["big", "d/e/small", "d/empty"]);
        let at = |name: &str| place.served.join(directory).join(name);
        assert_eq!(fs::read(at("big")).unwrap(), fs::read(&big).unwrap());
        assert_eq!(
            fs::read(at("d/e/small")).unwrap(),
            fs::read(&small).unwrap()
        );
        assert_eq!(fs::read(at("d/empty")).unwrap(), b"");
        assert!(!at("d/link").exists());
        let sum = Command::new("sha256sum").arg(at("big")).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap();
        assert!(
            sum.starts_with(lines[0]["sha256"].as_str().unwrap()),
            "{sum}"
        );
        for line in copied(&mut server.client(&files, directory)) {
            assert_eq!(line["sent"], 0, "{line}");
        }
    }
}

#[test]
fn a_partial_file_is_continued_if_it_is_the_same_file() {
    let place = Place::new();
    let file = place.file("f", 1_000_000);
    let contents = fs::read(&file).unwrap();
    let partial = place.served.join(".f.weir-part");
    for key in [None, Some(place.key.as_path())] {
        let server = CopyServer::start(&place.served, 0, key);
        fs::write(&partial, &contents[..600_000]).unwrap();
        let lines = copied(&mut server.client(&[&file], ""));
        assert_eq!(lines[0]["sent"], 400_000);
        fs::remove_file(place.served.join("f")).unwrap();
        fs::write(&partial, &contents[1..600_000]).unwrap();
        let lines = copied(&mut server.client(&[&file], "."));
        assert_eq!(lines[0]["sent"], 1_000_000);
        assert_eq!(fs::read(place.served.join("f")).unwrap(), contents);
        assert!(!partial.exists());
        fs::remove_file(place.served.join("f")).unwrap();
    }
}

/// The kill may come after the end of the copy on a machine that is fast or stands still meanwhile: then
/// nothing is left to continue, and what is checked still holds.
#[test]
fn a_copy_goes_on_after_either_end_was_killed() {
    let place = Place::new();
    let file = place.file("f", 40_000_000);
    let target = place.served.join("f");
    let partial = place.served.join(".f.weir-part");
    for key in [None, Some(place.key.as_path())] {
        for kills_server in [false, true] {
            let mut server = CopyServer::start(&place.served, 0, key);
            let mut client = server
                .client(&[&file], "")
                .args(["--timeout", "5s"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let length = || fs::metadata(&partial).map_or(0, |status| status.len());
            wait("some data", || length() > 1_000_000 || target.exists());
            if kills_server {
                server.child.kill().unwrap();
                server.child.wait().unwrap();
            }
            client.kill().unwrap();
            client.wait().unwrap();
            if kills_server {
                server = CopyServer::start(&place.served, 0, key);
            }
            // A server that goes on may still receive what was under way.
            let there = length();
            let lines = copied(&mut server.client(&[&file], ""));
            assert!(lines[0]["sent"].as_u64().unwrap() <= 40_000_000 - there);
            assert_eq!(fs::read(&target).unwrap(), fs::read(&file).unwrap());
            assert!(!partial.exists());
            fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn names_that_leave_the_directory_are_refused() {
    let place = Place::new();
    let file = place.file("f", 10);
    let outside = place.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, place.served.join("out")).unwrap();
    symlink(outside.join("f"), place.served.join("f")).unwrap();
    let server = CopyServer::start(&place.served, 0, None);
    let refused = |directory: &str, code, words: &[&str]| {
        let said = server.client(&[&file], directory).output().unwrap();
        command_output(said).failed(code, words);
    };
    refused("..", 2, &["would leave"]);
    refused("/etc", 2, &["absolute"]);
    refused("out", 1, &["out", "symbolic link"]);
    refused("", 1, &["f", "symbolic link"]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    let file = place.file("f", 10);
    let path = file.to_str().unwrap();
    let run = |arguments: &[&str]| {
        command_output(weir(&[&["copy"], arguments].concat()).output().unwrap())
    };
    run(&[path]).failed(2, &["HOST:DIR"]);
    run(&[path, "host"]).failed(2, &["HOST:DIR"]);
    run(&[path, "127.0.0.1:"]).failed(2, &["--pin", "weir copy serve"]);
    run(&[path, "127.0.0.1:", "--transport", "dcudp"]).failed(2, &["--key-file", "openssl"]);
    run(&[path, "127.0.0.1:", "--transport", "tcp"]).failed(2, &["dcquic or dcudp"]);
    let pin = "ab".repeat(32);
    run(&["/no/such", "127.0.0.1:", "--pin", &pin]).failed(1, &["/no/such", "No such file"]);
    run(&["serve", "/no/such"]).failed(1, &["cannot serve /no/such"]);
    let server = CopyServer::start(&place.served, 0, None);
    let port = server.address.port().to_string();
    let wrong = run(&[path, "127.0.0.1:", "--port", &port, "--pin", &pin]);
    wrong.failed(1, &["127.0.0.1"]);
}
