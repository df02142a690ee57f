//! The status of an enforcer, for the studio's page.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_enforce::operation::control::{self, ControlRequest, ControlResponse};

/// The flows of an answer: those with the most bytes.
const FLOWS: usize = 200;

/// Asks an enforcer at its control socket.
pub(super) async fn ask(socket: PathBuf) -> Result<Value, String> {
    let asked = tokio::task::spawn_blocking(move || status(&socket));
    asked.await.map_err(|error| error.to_string())?
}

/// Returns the status, with the number of all flows.
///
/// # Errors
/// Why there is none.
pub(super) fn status(socket: &Path) -> Result<Value, String> {
    let answer = control::send_request(socket, ControlRequest::Status);
    match answer.map_err(|error| error.to_string())? {
        ControlResponse::Status(mut status) => {
            let all = status.flows.len();
            status.flows.truncate(FLOWS);
            let mut value = serde_json::to_value(&status).map_err(|error| error.to_string())?;
            value["all_flows"] = json!(all);
            Ok(value)
        }
        ControlResponse::Refused { reason } => Err(reason),
        ControlResponse::Reloaded { .. } | ControlResponse::Resumed { .. } => {
            Err("the enforcer answers something else".to_owned())
        }
    }
}
