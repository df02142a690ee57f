//! `weir sed certificates`

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use weir_control::Role;
use weir_control::certificates::Authority;

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir sed certificates`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sed certificates /etc/weir/sed --switch tor1 --switch tor2
  weir sed certificates /etc/weir/sed --application db --address 10.0.0.7 --address 10.1.0.7

The first call makes an authority, and certificates for the controller and an operator. Each holder needs its own two files and
authority.pem; authority.key signs all of them, and stays where it is. Those that are there already are
made anew only if they are named, with a new key.")]
pub(crate) struct Certificates {
    /// Output directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Name of a switch, for its agent (repeatable)
    #[arg(long, value_name = "NAME", value_parser = label)]
    switch: Vec<String>,

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
}

impl Certificates {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let authority = Authority::open(&self.directory).map_err(Failure::of)?;
        let mut made = Vec::new();
        let mut issue = |name: &str, role: Role, addresses: &[IpAddr]| {
            made.push(name.to_owned());
            authority
                .issue(name, &[role], addresses)
                .map_err(Failure::of)
        };
        for (name, role) in [
            ("controller", Role::Controller),
            ("operator", Role::Operator),
        ] {
            if self.renew || !self.directory.join(format!("{name}.pem")).exists() {
                issue(name, role, &[])?;
            }
        }
        for name in &self.switch {
            issue(name, Role::Switch(name.clone()), &[])?;
        }
        for name in &self.application {
            issue(name, Role::Application, &self.address)?;
        }
        let mut text = String::new();
        let directory = self.directory.display();
        for name in made {
            let _ = writeln!(text, "{directory}/{name}.pem and .key");
        }
        let _ = writeln!(text, "signed by {directory}/authority.pem");
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
