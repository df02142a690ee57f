//! The examples, as processes: a file server and uploads.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the examples print")]
#![allow(clippy::duplicate_mod, reason = "the examples are separate programs")]

// The processes are this program again: cargo does not tell a test where examples are.
#[path = "../examples/files/main.rs"]
mod files;
#[path = "../examples/upload/main.rs"]
mod upload;

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Output, Stdio};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = arguments.next();
    // The first argument of a process that is an example.
    let first = arguments.next();
    let rest = program.into_iter().chain(arguments);
    match first.as_deref().and_then(|first| first.to_str()) {
        Some("files-example") => return files::run(rest),
        Some("upload-example") => return upload::run(rest),
        _ => {}
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || -> Result<(), Failed> {
            test();
            Ok(())
        })
    };
    let trials = vec![
        trial("files_are_served", files_are_served),
        trial("curl_gets_the_same_files", curl_gets_the_same_files),
        trial("uploads_arrive", uploads_arrive),
        trial("wrong_uploads_are_refused", wrong_uploads_are_refused),
        trial(
            "an_interrupted_client_leaves_nothing",
            an_interrupted_client_leaves_nothing,
        ),
        trial(
            "an_interrupted_server_leaves_nothing",
            an_interrupted_server_leaves_nothing,
        ),
        trial(
            "a_draining_server_ends_an_upload",
            a_draining_server_ends_an_upload,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A server's process, and a directory with what it serves or keeps, `data`, and what it should not.
struct World {
    example: &'static str,
    directory: TempDir,
    server: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl World {
    fn start(example: &'static str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([example, "serve", "--at", "127.0.0.1:0"]);
        command
            .arg("--certificate")
            .arg(directory.path().join("tls"));
        command.args(arguments).arg(directory.path().join("data"));
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = server.stdout.take().unwrap();
        let mut lines = BufReader::new(output).lines();
        let mut lines_of_it = lines.by_ref().map(Result::unwrap);
        let listens = lines_of_it.find_map(|line| Some(line.strip_suffix(" listens")?.to_owned()));
        Self {
            example,
            directory,
            server,
            lines,
            address: listens.expect("the server does not start"),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(self.example).args(arguments);
        command.args(["--at", &self.address]);
        command
            .arg("--certificate")
            .arg(self.directory.path().join("tls"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.client(arguments).output().unwrap()
    }

    /// Starts an upload of the standard input, and waits until the server has begun to keep it. Dropping
    /// the input ends the upload, which waiting for the process would do if it had it.
    fn begin_upload(&self) -> (Child, ChildStdin) {
        let mut client = self.client(&["send", "-"]);
        let mut client = client
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = client.stdin.take().unwrap();
        input.write_all(&[7; 200_000]).unwrap();
        until(|| {
            let mut entries = std::fs::read_dir(self.data()).unwrap();
            entries.any(|entry| entry.unwrap().metadata().is_ok_and(|data| data.len() > 0))
        });
        (client, input)
    }

    fn kept(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.data()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn signal(&self, signal: Signal) {
        send_signal(&self.server, signal);
    }

    /// Waits until the server ends; returns what it has printed.
    fn end(mut self) -> String {
        assert!(self.server.wait().unwrap().success());
        let lines: Vec<_> = self.lines.by_ref().map(Result::unwrap).collect();
        lines.join("\n")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // After a failure. It may be gone.
        if self.server.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.server.kill();
            let _ = self.server.wait();
        }
    }
}

fn send_signal(process: &Child, signal: Signal) {
    let id = Pid::from_raw(process.id().cast_signed()).unwrap();
    kill_process(id, signal).unwrap();
}

/// Waits until a condition holds; the harness's time limit ends the wait.
fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn write(path: impl AsRef<Path>, size: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..size).map(|index| (index / 7) as u8).collect();
    std::fs::write(path, &data).unwrap();
    data
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

fn files_are_served() {
    let world = World::start("files-example", &[]);
    let large = write(world.data().join("large.bin"), 5_000_000);
    std::fs::write(world.data().join("page.html"), "<p>hello").unwrap();
    std::fs::write(world.directory.path().join("secret"), "secret").unwrap();

    let output = world.run(&["get", "large.bin"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout == large);

    let output = world.run(&["get", "page.html"]);
    assert_eq!(text(&output.stdout), "<p>hello");
    let header = text(&output.stderr);
    assert!(header.contains("200 OK"), "{header}");
    assert!(header.contains("content-type: text/html"), "{header}");
    assert!(header.contains("content-length: 8"), "{header}");

    let output = world.run(&["get", "large.bin", "--range", "1000000-1000099"]);
    assert!(output.stdout == large[1_000_000..1_000_100]);
    let header = text(&output.stderr);
    assert!(header.contains("206 Partial Content"), "{header}");
    let range = "content-range: bytes 1000000-1000099/5000000";
    assert!(header.contains(range), "{header}");

    let output = world.run(&["get", "large.bin", "--head"]);
    assert!(output.stdout.is_empty());
    let header = text(&output.stderr);
    assert!(header.contains("content-length: 5000000"), "{header}");

    for path in ["nothing", "../secret", "%2e%2e/secret", "..%2fsecret"] {
        let output = world.run(&["get", path]);
        assert!(!output.status.success());
        assert!(output.stdout.is_empty(), "{path}");
        assert!(text(&output.stderr).contains("404"), "{path}");
    }
    let output = world.run(&["get", "large.bin", "--range", "6000000-"]);
    assert!(text(&output.stderr).contains("416"));

    world.signal(Signal::TERM);
    let printed = world.end();
    assert!(printed.contains("9 requests, 0 given up"), "{printed}");
}

fn curl_gets_the_same_files() {
    let world = World::start("files-example", &[]);
    let data = write(world.data().join("a"), 1_000_000);
    for version in ["--http2", "--http1.1"] {
        let arguments = ["--silent", "--show-error", "--insecure", version];
        let url = format!("https://{}/a", world.address);
        let Ok(output) = Command::new("curl").args(arguments).arg(url).output() else {
            println!("SKIPPED: no curl");
            return;
        };
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(output.stdout == data);
    }
    world.signal(Signal::TERM);
    world.end();
}

fn uploads_arrive() {
    let world = World::start("upload-example", &[]);
    let file = world.directory.path().join("a file");
    let data = write(&file, 3_000_000);
    let output = world.run(&["send", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "3000000 bytes\n");
    assert!(std::fs::read(world.data().join("a file")).unwrap() == data);
    // From a pipe, whose end is not known before.
    let (mut client, input) = world.begin_upload();
    drop(input);
    let mut answer = String::new();
    client
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut answer)
        .unwrap();
    assert_eq!(answer, "200000 bytes\n");
    assert!(client.wait().unwrap().success());
    assert_eq!(
        std::fs::read(world.data().join("stdin")).unwrap().len(),
        200_000
    );
    assert_eq!(world.kept().len(), 2);
    world.signal(Signal::TERM);
    world.end();
}

fn wrong_uploads_are_refused() {
    let world = World::start("upload-example", &["--max-size", "1MB"]);
    let file = world.directory.path().join("a");
    write(&file, 3_000_000);
    for (name, expected) in [("a", "413"), ("../a", "400"), (".a", "400")] {
        let output = world.run(&["send", file.to_str().unwrap(), "--name", name]);
        assert!(!output.status.success(), "{name}");
        let error = text(&output.stderr);
        assert!(error.contains(expected), "{name}: {error}");
    }
    assert!(world.kept().is_empty());
}

fn an_interrupted_client_leaves_nothing() {
    let world = World::start("upload-example", &[]);
    let (mut client, _input) = world.begin_upload();
    send_signal(&client, Signal::INT);
    assert!(!client.wait().unwrap().success());
    until(|| world.kept().is_empty());
    // One that is killed cannot say so: the connection's idle timeout would end its upload.
    world.signal(Signal::TERM);
    world.end();
}

fn an_interrupted_server_leaves_nothing() {
    let world = World::start("upload-example", &[]);
    let (mut client, _input) = world.begin_upload();
    assert_eq!(world.kept().len(), 1);
    world.signal(Signal::INT);
    assert!(!client.wait().unwrap().success());
    until(|| world.kept().is_empty());
    world.end();
}

fn a_draining_server_ends_an_upload() {
    let world = World::start("upload-example", &[]);
    let (mut client, input) = world.begin_upload();
    world.signal(Signal::TERM);
    drop(input);
    assert!(client.wait().unwrap().success());
    assert_eq!(world.kept(), [world.data().join("stdin")]);
    world.end();
}
