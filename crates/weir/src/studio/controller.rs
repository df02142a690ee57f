//! The status of a controller, for the studio's page.

use serde_json::{Value, json};
use weir_control::view::{FlowView, StatusView};
use weir_control::{Client, Credentials, FleetClient, policy_v1};

use crate::policy;
use crate::sed::controller_address;

/// The flows and hosts of an answer: the most urgent ones, and those that something is wrong with.
const FLOWS: u32 = 200;
const HOSTS: u32 = 100;

/// A controller that is asked.
pub(super) struct Controller {
    address: String,
    credentials: Credentials,
    fleet: FleetClient,
}

impl Controller {
    pub(super) fn new(address: &str, credentials: Credentials) -> Self {
        let address = controller_address(address);
        Self {
            fleet: FleetClient::new(vec![address.clone()], credentials.clone()),
            address,
            credentials,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.address
    }

    /// Returns the state of SED, and that of the policy; of the latter the problem, if it is not told.
    pub(super) async fn ask(&self) -> Result<Value, String> {
        let sed = self.sed();
        let request = policy_v1::FleetStatusRequest { hosts: HOSTS };
        let (sed, fleet) = tokio::join!(sed, self.fleet.status(request));
        let (fleet, problem) = match fleet {
            Ok(status) => (policy::status::document(&status), None),
            Err(error) => (Value::Null, Some(error.to_string())),
        };
        Ok(json!({ "sed": sed?, "fleet": fleet, "fleet_problem": problem }))
    }

    async fn sed(&self) -> Result<Value, String> {
        let client = Client::connect(&self.address, &self.credentials).await;
        let status = client
            .map_err(|error| error.to_string())?
            .status(FLOWS)
            .await;
        let status = status.map_err(|error| error.to_string())?;
        let view = StatusView::of(&status).map_err(|error| error.to_string())?;
        Ok(numbers(&view))
    }
}

/// The status with its quantities as numbers: seconds, bytes, bits per second.
fn numbers(status: &StatusView) -> Value {
    let switches = status.switches.iter().map(|switch| {
        let ports = switch.ports.iter().map(|port| {
            json!({
                "name": port.name, "number": port.number, "rate": port.rate.bits_per_second(),
                "congested": port.state.congested, "governed": port.state.governed, "flows": port.flows,
            })
        });
        json!({ "name": switch.name, "attached": switch.attached, "ports": ports.collect::<Vec<_>>() })
    });
    json!({
        "name": status.name, "term": status.term, "up": status.up.as_secs_f64(),
        "all_flows": status.flow_count, "registrations": status.registrations, "senders": status.senders,
        "switches": switches.collect::<Vec<_>>(),
        "flows": status.flows.iter().map(flow).collect::<Vec<_>>(),
    })
}

fn flow(flow: &FlowView) -> Value {
    let seconds = |nanos: Option<i64>| nanos.map(|nanos| nanos as f64 / 1e9);
    json!({
        "from": flow.source.to_string(), "to": flow.destination.to_string(),
        "switch": flow.switch, "port": flow.port,
        "size": flow.size.map(|size| size.bytes()), "acknowledged": flow.acknowledged.bytes(),
        "left": seconds(flow.time_left_ns), "window": flow.window.map(|window| window.bytes()),
        "slack": seconds(flow.slack_ns),
    })
}
