//! Where the controllers are, and who asks.

use clap::Args;
use tokio::runtime::Runtime;
use weir_control::{FleetClient, FleetClientError, policy_v1 as v1};
use weir_policy::Policy;
use weir_scenario::parse_policy;

use crate::failure::Failure;
use crate::sed::{CertificateArguments, controller_address};

/// The arguments of commands that ask a controller.
#[derive(Debug, Args)]
pub(crate) struct ControllerArguments {
    /// Address of a controller (repeatable: the one that leads is used)
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1")]
    controller: Vec<String>,

    #[command(flatten)]
    certificates: CertificateArguments,

    /// Name of the certificate: of a publisher to push and to undo, also of the operator to look
    #[arg(long = "as", value_name = "NAME", default_value = "operator")]
    name: String,
}

/// A client and its runtime.
pub(crate) struct Asking {
    client: FleetClient,
    runtime: Runtime,
}

impl ControllerArguments {
    pub(crate) fn open(&self) -> Result<Asking, Failure> {
        let credentials = self.certificates.credentials(&self.name)?;
        let addresses = self.controller.iter();
        let addresses = addresses.map(|text| controller_address(text)).collect();
        Ok(Asking {
            client: FleetClient::new(addresses, credentials),
            runtime: Runtime::new().map_err(Failure::of)?,
        })
    }
}

impl Asking {
    /// Asks a controller.
    pub(crate) fn ask<T, F: Future<Output = Result<T, FleetClientError>>>(
        &self,
        request: impl FnOnce(FleetClient) -> F,
    ) -> Result<T, Failure> {
        let asked = self.runtime.block_on(request(self.client.clone()));
        asked.map_err(Failure::of)
    }

    /// Returns a version; that which is everywhere without a number.
    pub(crate) fn version(&self, version: Option<u64>) -> Result<v1::Version, Failure> {
        self.ask(|client| async move { client.get(v1::GetRequest { version }).await })
    }
}

/// Reads the rules of a version; the empty policy has none.
pub(crate) fn rules(version: &v1::Version) -> Result<Policy, Failure> {
    if version.text.is_empty() {
        return Ok(Policy::default());
    }
    parse_policy(&named(version.number), &version.text).map_err(Failure::of)
}

/// Names a version, of which 0 is the empty policy.
pub(crate) fn named(version: u64) -> String {
    match version {
        0 => "no policy".to_owned(),
        version => format!("version {version}"),
    }
}

/// Formats a time since 1970.
pub(crate) fn date(nanoseconds: u64) -> String {
    let since = std::time::Duration::from_nanos(nanoseconds);
    let at = std::time::SystemTime::UNIX_EPOCH + since;
    humantime::format_rfc3339_seconds(at).to_string()
}
