//! `weir sed certificates`

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use weir_control::Role;
use weir_control::certificates::Authority;

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir sed certificates`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  weir sed certificates /etc/weir/sed --switch tor1 --switch tor2
  weir sed certificates /etc/weir/sed --host web1 --publisher alice  # for the policy: docs/controller.md
  weir sed certificates /etc/weir/sed --application db --address 10.0.0.7 --address 10.1.0.7
  weir sed certificates /etc/weir/sed --renew --switch tor1          # as a timer does, well before they expire
  weir sed certificates revoke /etc/weir/sed tor1

The first call makes an authority, and certificates for the controller and an operator. Each holder needs its own two files and
authority.pem; authority.key signs all of them, and stays where it is. Those that are there already are
made anew only if they are named, with a new key. Holders read their files every ten seconds: a renewed pair that is copied
to them is in use without a restart."
)]
pub(crate) struct Certificates {
    #[command(subcommand)]
    command: Option<Command>,

    /// Output directory
    #[arg(value_name = "DIR", required = true)]
    directory: Option<PathBuf>,

    /// Name of a switch, for its agent (repeatable)
    #[arg(long, value_name = "NAME", value_parser = label)]
    switch: Vec<String>,

    /// Name of a host that takes versions of the policy (repeatable)
    #[arg(long, value_name = "NAME", value_parser = label)]
    host: Vec<String>,

    /// Name of somebody who pushes versions of the policy (repeatable)
    #[arg(long, value_name = "NAME", value_parser = label)]
    publisher: Vec<String>,

    /// Name of an application that registers flows (repeatable)
    #[arg(long, value_name = "NAME", value_parser = label)]
    application: Vec<String>,

    /// Address whose flows these applications may register, in addition to the address that they
    /// connect from (repeatable)
    #[arg(long, value_name = "ADDRESS", requires = "application")]
    address: Vec<IpAddr>,

    /// Renew the controller's and the operator's certificates
    #[arg(long)]
    renew: bool,

    /// Days for which the certificates are valid; the authority's own does not expire
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

/// What is done with certificates that were issued.
#[derive(Debug, Subcommand)]
enum Command {
    /// Revoke all certificates that were issued to holders
    Revoke(Revoke),
}

/// The arguments of `weir sed certificates revoke`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sed certificates revoke /etc/weir/sed tor1
  weir sed certificates revoke /etc/weir/sed tor1 db

DIR/crl.pem lists revoked certificates. Those started with `--crl FILE` refuse them; copy it to them, and they read it within
ten seconds. Connections of revoked clients end. A certificate that is made for the name later is valid.")]
struct Revoke {
    /// Directory with authority.key
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Names of the holders
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

impl Certificates {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match (&self.command, &self.directory) {
            (Some(Command::Revoke(revoke)), _) => revoke.run(),
            (None, Some(directory)) => self.issue(directory),
            // Clap has refused it.
            (None, None) => Err(Failure::of("the output directory is missing")),
        }
    }

    fn issue(&self, directory: &Path) -> Result<(), Failure> {
        let authority = Authority::open(directory).map_err(Failure::of)?;
        let lifetime = Duration::from_secs(u64::from(self.days) * 24 * 3600);
        let mut made = Vec::new();
        let mut issue = |name: &str, role: Role, addresses: &[IpAddr]| {
            made.push(name.to_owned());
            let issued = authority.issue(name, &[role], addresses, lifetime);
            issued.map_err(Failure::of)
        };
        for (name, role) in [
            ("controller", Role::Controller),
            ("operator", Role::Operator),
        ] {
            if self.renew || !directory.join(format!("{name}.pem")).exists() {
                issue(name, role, &[])?;
            }
        }
        for name in &self.switch {
            issue(name, Role::Switch(name.clone()), &[])?;
        }
        for name in &self.host {
            issue(name, Role::Host(name.clone()), &[])?;
        }
        for name in &self.publisher {
            issue(name, Role::Publisher(name.clone()), &[])?;
        }
        for name in &self.application {
            issue(name, Role::Application, &self.address)?;
        }
        let mut text = String::new();
        let directory = directory.display();
        for name in made {
            let days = self.days;
            let _ = writeln!(
                text,
                "{directory}/{name}.pem and .key, valid for {days} days"
            );
        }
        let _ = writeln!(text, "signed by {directory}/authority.pem");
        output::print(&text)
    }
}

impl Revoke {
    fn run(&self) -> Result<(), Failure> {
        let authority = Authority::existing(&self.directory).map_err(Failure::of)?;
        let mut text = String::new();
        for name in &self.names {
            let revocation = authority.revoke(name).map_err(Failure::of)?;
            let file = revocation.file.display();
            let _ = match revocation.added {
                0 => writeln!(text, "{name}: all certificates are in {file} already"),
                1 => writeln!(text, "{name}: 1 certificate added to {file}"),
                count => writeln!(text, "{name}: {count} certificates added to {file}"),
            };
        }
        output::print(&text)
    }
}

/// Parses a name: a DNS label that is not reserved for another file.
fn label(text: &str) -> Result<String, String> {
    let is_label = (1..=63).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    if !is_label {
        return Err("a name has 1 to 63 lower-case letters, digits and hyphens".to_owned());
    }
    match text {
        "authority" | "controller" | "operator" => Err(format!("`{text}` is not free")),
        text => Ok(text.to_owned()),
    }
}
