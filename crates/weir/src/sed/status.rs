//! `weir sed status`

use std::fmt::Write as _;

use clap::Args;
use weir_control::Client;
use weir_control::view::{FlowView, StatusView, SwitchView};

use super::{CertificateArguments, controller_address};
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir sed status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir sed status
  weir sed status --controller sed1:9600 --flows 50
  weir sed status --json

Slack is the time between when the rest of a flow will be there, at its window, and its deadline.")]
pub(crate) struct Status {
    /// Address of the controller
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1")]
    controller: String,

    #[command(flatten)]
    certificates: CertificateArguments,

    /// Number of flows to show, the most urgent ones first
    #[arg(long, value_name = "N", default_value_t = 20)]
    flows: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        let credentials = self.certificates.credentials("operator")?;
        let address = controller_address(&self.controller);
        let client = Client::connect(&address, &credentials)
            .await
            .map_err(Failure::of)?;
        let status = client
            .status(self.flows.max(1))
            .await
            .map_err(Failure::of)?;
        let view = StatusView::of(&status).map_err(Failure::of)?;
        if self.json {
            output::print_json(&view)
        } else {
            output::print(&text(&view))
        }
    }
}

fn text(status: &StatusView) -> String {
    let mut text = format!(
        "controller {} with term {}, up for {}; {} flows, {} registered, {} senders of their own\n\n",
        status.name,
        status.term,
        status.up,
        status.flow_count,
        status.registrations,
        status.senders
    );
    for switch in &status.switches {
        switch_text(&mut text, switch);
    }
    if status.flows.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\n{:<45}  {:<16} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "flow", "at", "size", "done", "left", "window", "slack"
    );
    for flow in &status.flows {
        flow_text(&mut text, flow);
    }
    if status.flow_count > status.flows.len() as u64 {
        let _ = writeln!(
            text,
            "and {} more",
            status.flow_count - status.flows.len() as u64
        );
    }
    text
}

fn switch_text(text: &mut String, switch: &SwitchView) {
    let state = if switch.attached {
        ""
    } else {
        " (its agent is not connected)"
    };
    let _ = writeln!(text, "{}{state}", switch.name);
    for port in &switch.ports {
        let state = match (port.state.congested, port.state.governed) {
            (true, true) => "congested, windows in force",
            (true, false) => "congested",
            (false, true) => "windows in force",
            (false, false) => "",
        };
        let _ = writeln!(
            text,
            "    {:<16} {:>10} {:>6} flows  {state}",
            port.name, port.rate, port.flows
        );
    }
}

fn flow_text(text: &mut String, flow: &FlowView) {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let _ = writeln!(
        text,
        "{:<45}  {:<16} {:>10} {:>10} {:>10} {:>10} {:>10}",
        format!("{} > {}", flow.source, flow.destination),
        format!("{}:{}", flow.switch, flow.port),
        or_dash(flow.size.map(|size| size.to_string())),
        flow.acknowledged.to_string(),
        or_dash(flow.time_left.clone()),
        or_dash(flow.window.map(|window| window.to_string())),
        or_dash(flow.slack.clone()),
    );
}
