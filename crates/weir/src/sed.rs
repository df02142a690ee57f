//! `weir sed`

mod agent;
mod certificates;
pub(crate) mod controller;
mod per_interface;
mod rules;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tokio::runtime::Runtime;
use weir_control::{Credentials, DEFAULT_PORT};

use crate::failure::Failure;

/// Deadlines for unmodified TCP endpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum Sed {
    /// Another name for `weir controller`
    Controller(controller::Controller),
    /// Monitor the queues of a switch between two interfaces, and lower windows as the controller
    /// orders
    Agent(agent::Agent),
    /// Show a controller's flows and its orders
    Status(status::Status),
    /// Create certificates for a controller and its peers
    Certificates(certificates::Certificates),
}

impl Sed {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let runtime = Runtime::new().map_err(Failure::of)?;
        match self {
            Self::Controller(controller) => runtime.block_on(controller.run()),
            Self::Agent(agent) => agent.run(&runtime),
            Self::Status(status) => runtime.block_on(status.run()),
            Self::Certificates(certificates) => certificates.run(),
        }
    }
}

/// The location of the certificates.
#[derive(Debug, Args)]
pub(crate) struct CertificateArguments {
    /// Directory with authority.pem, and NAME.pem and NAME.key of this end
    #[arg(long, value_name = "DIR", default_value = "/etc/weir/sed")]
    certificates: PathBuf,

    /// File with revoked certificates, which are refused; `weir sed certificates revoke` writes crl.pem
    #[arg(long, value_name = "FILE")]
    crl: Option<PathBuf>,
}

impl CertificateArguments {
    pub(crate) fn credentials(&self, name: &str) -> Result<Credentials, Failure> {
        let credentials = Credentials::from_directory(&self.certificates, name);
        let credentials = credentials.map_err(|error| Failure::option("certificates", error))?;
        match &self.crl {
            None => Ok(credentials),
            Some(file) => {
                let credentials = credentials.with_crl(file);
                credentials.map_err(|error| Failure::option("crl", error))
            }
        }
    }
}

/// Returns a controller's address; a host without port gets the default port.
pub(crate) fn controller_address(text: &str) -> String {
    let has_port = match text.rsplit_once(':') {
        // An IPv6 address contains colons, and has brackets before its port.
        Some((host, _)) => !host.contains(':') || host.ends_with(']'),
        None => false,
    };
    if has_port {
        text.to_owned()
    } else if text.contains(':') && !text.starts_with('[') {
        format!("[{text}]:{DEFAULT_PORT}")
    } else {
        format!("{text}:{DEFAULT_PORT}")
    }
}

#[cfg(test)]
mod tests {
    use super::controller_address;

    #[test]
    fn a_host_without_port_has_the_default_port() {
        for (text, address) in [
            ("tor", "tor:9600"),
            ("tor:1", "tor:1"),
            ("10.0.0.1", "10.0.0.1:9600"),
            ("fd00::1", "[fd00::1]:9600"),
            ("[fd00::1]", "[fd00::1]:9600"),
            ("[fd00::1]:1", "[fd00::1]:1"),
        ] {
            assert_eq!(controller_address(text), address);
        }
    }
}
