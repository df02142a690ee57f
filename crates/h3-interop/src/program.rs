//! The programs: how they are found, built and run.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::CertificateFiles;

/// Why a case failed, or a program did not run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

impl Failed {
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// A program in `peers/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// quic-go and connect-go.
    Go,
    /// aioquic.
    Aioquic,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Go => "go",
            Self::Aioquic => "aioquic",
        })
    }
}

impl Program {
    /// All programs.
    pub const ALL: [Self; 2] = [Self::Go, Self::Aioquic];

    /// Returns what this machine lacks to run the program, if anything.
    pub fn missing(self) -> Option<&'static str> {
        let (mut command, reason) = match self {
            Self::Go => {
                let mut command = Command::new("go");
                command.args(["list", "-m"]).current_dir(go_folder());
                (command, "no Go 1.24 (make setup)")
            }
            Self::Aioquic => {
                let mut command = Command::new(python());
                command.args(["-c", "import aioquic"]);
                (command, "no aioquic in python/.venv (make python-env)")
            }
        };
        let found = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        found
            .map_or(true, |status| !status.success())
            .then_some(reason)
    }

    /// Returns a command that runs the program; the first call builds that in Go.
    ///
    /// # Errors
    /// [`Failed`] where it cannot be built.
    pub(crate) fn command(self) -> Result<Command, Failed> {
        match self {
            Self::Go => Ok(Command::new(go_program()?)),
            Self::Aioquic => {
                let mut command = Command::new(python());
                command.arg(root().join("peers/aioquic"));
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                Ok(command)
            }
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn go_folder() -> PathBuf {
    root().join("peers/go")
}

fn python() -> PathBuf {
    root().join("python/.venv/bin/python")
}

/// Builds the program in Go, once; Go itself keeps what has not changed.
fn go_program() -> Result<PathBuf, Failed> {
    static PROGRAM: OnceLock<Result<PathBuf, Failed>> = OnceLock::new();
    let build = || {
        let target = root().join("target");
        std::fs::create_dir_all(&target).map_err(Failed::new)?;
        let go = |arguments: &[&str]| {
            let mut command = Command::new("go");
            run(command.args(arguments).current_dir(go_folder()))
        };
        go(&["generate", "."])?;
        go(&["build", "-o", "../../target/peers-go", "."])?;
        Ok(target.join("peers-go"))
    };
    PROGRAM.get_or_init(build).clone()
}

/// Runs a command to its end.
fn run(command: &mut Command) -> Result<Output, Failed> {
    let output = command.stdin(Stdio::null()).output().map_err(Failed::new)?;
    if output.status.success() {
        return Ok(output);
    }
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    Err(Failed(format!("{command:?}: {out}{errors}")))
}

/// Returns the lines of a program's table of cases.
///
/// # Errors
/// [`Failed`] where the program does not run.
pub(crate) fn cases(program: Program) -> Result<Vec<String>, Failed> {
    let output = run(program.command()?.arg("cases"))?;
    let text = String::from_utf8(output.stdout).map_err(Failed::new)?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Returns the names of a client's cases of plain HTTP/3.
///
/// # Errors
/// [`Failed`] where the program does not run.
pub fn client_cases(program: Program) -> Result<Vec<String>, Failed> {
    let mut cases = cases(program)?;
    cases.retain(|name| name.starts_with("http_"));
    Ok(cases)
}

/// Runs a case of a program's client against a server.
///
/// # Errors
/// [`Failed`] with what the program says.
pub fn run_client(
    program: Program,
    to: SocketAddr,
    files: &CertificateFiles,
    case: &str,
) -> Result<(), Failed> {
    let mut command = program.command()?;
    command.arg("client");
    address_arguments(&mut command, to, files);
    run(command.args(["--case", case]))?;
    Ok(())
}

/// Adds the arguments that all clients have.
pub(crate) fn address_arguments(command: &mut Command, to: SocketAddr, files: &CertificateFiles) {
    command.arg("--to").arg(to.to_string());
    command.arg("--ca").arg(files.certificate());
}
