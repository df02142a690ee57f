//! aioquic's hostile client: which cases it has, and what our server does in each.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;

use crate::CertificateFiles;
use crate::program::{Failed, Program, address_arguments, cases};

/// What our server did in a case.
#[derive(Clone, Debug)]
pub struct HostileResult {
    /// The outcome of the case, of a request after it on the same connection and of one on a new
    /// connection.
    pub outcome: String,
    /// Whether the RFCs allow it.
    pub is_right: bool,
}

/// Returns the names of the hostile cases.
///
/// # Errors
/// [`Failed`] where the program does not run.
pub fn hostile_cases() -> Result<Vec<String>, Failed> {
    let lines = cases(Program::Aioquic)?;
    let names = lines.iter().filter_map(|line| {
        let (name, _) = line.strip_prefix("hostile ")?.split_once(':')?;
        Some(name.to_owned())
    });
    Ok(names.collect())
}

/// Runs hostile cases against a server, `at_once` of them at the same time, and returns the results by
/// name.
///
/// # Errors
/// [`Failed`] where the program ends early.
pub fn hostile_results(
    to: SocketAddr,
    files: &CertificateFiles,
    cases: &[String],
    at_once: usize,
) -> Result<HashMap<String, HostileResult>, Failed> {
    if cases.is_empty() {
        return Ok(HashMap::new());
    }
    let mut command = Program::Aioquic.command()?;
    command.arg("hostile");
    address_arguments(&mut command, to, files);
    command.arg("--at-once").arg(at_once.to_string());
    command.arg("--case").arg(cases.join(","));
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().map_err(Failed::new)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let results: HashMap<_, _> = text.lines().filter_map(parse).collect();
    if results.len() != cases.len() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(format!("the hostile client failed: {text}{errors}")));
    }
    Ok(results)
}

/// Reads a line: `NAME: OUTCOME: VERDICT`.
fn parse(line: &str) -> Option<(String, HostileResult)> {
    let (name, rest) = line.split_once(": ")?;
    let result = HostileResult {
        outcome: rest.to_owned(),
        is_right: rest.ends_with(": right"),
    };
    Some((name.to_owned(), result))
}
