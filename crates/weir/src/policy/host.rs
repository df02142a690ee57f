//! What a host needs to attach to a controller of policies.

use std::path::{Path, PathBuf};

use clap::Args;
use weir_control::{HeldFile, HostOptions};
use weir_rollout::Labels;

use crate::failure::Failure;
use crate::sed::{CertificateArguments, controller_address};

/// The arguments of commands that take their policy from a controller.
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// Address of a controller that the policy comes from, instead of a file (repeatable: the one that leads is used)
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "policy")]
    controller: Vec<String>,

    #[command(flatten)]
    certificates: CertificateArguments,

    /// With --controller: name of this host, as in its certificate [default: its host name]
    #[arg(long, value_name = "NAME", requires = "controller")]
    name: Option<String>,

    /// With --controller: label of this host (repeatable)
    #[arg(long, value_name = "KEY=VALUE", requires = "controller")]
    label: Vec<String>,

    /// With --controller: directory for the last version, which holds without contact [default: /var/lib/weir and the
    /// name of the command]
    #[arg(long, value_name = "DIR", requires = "controller")]
    state: Option<PathBuf>,
}

impl HostArguments {
    /// Returns whether the policy comes from a controller.
    pub(crate) fn is_used(&self) -> bool {
        !self.controller.is_empty()
    }

    /// Returns the options of a channel, and the file of the last version of a command: `enforce`.
    pub(crate) fn options(&self, command: &str) -> Result<(HostOptions, HeldFile), Failure> {
        let labels = Labels::parse(self.label.iter().map(String::as_str));
        let labels = labels.map_err(|error| Failure::option("label", error))?;
        let name = match &self.name {
            Some(name) => name.clone(),
            None => host_name()?,
        };
        let credentials = self.certificates.credentials(&name)?;
        let usual = || Path::new("/var/lib/weir").join(command);
        let state = self.state.clone().unwrap_or_else(usual);
        let file = HeldFile::in_directory(&state);
        let file = file.map_err(|error| Failure::option("state", error))?;
        let controllers = self.controller.iter();
        let options = HostOptions {
            controllers: controllers.map(|text| controller_address(text)).collect(),
            credentials,
            name,
            labels,
            held: None,
            wake: None,
        };
        Ok((options, file))
    }
}

/// Returns the first part of this machine's name.
fn host_name() -> Result<String, Failure> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let text = text.map_err(|error| Failure::option("name", error))?;
    let name = text.trim().split('.').next().unwrap_or_default();
    Ok(name.to_ascii_lowercase())
}
