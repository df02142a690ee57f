//! For people who push versions and watch them.

use std::time::Duration;

use tonic::{Code, Status};

use crate::connect::{Connection, Refusal, connect};
use crate::controller::with_causes;
use crate::credentials::Credentials;
use crate::policy_v1 as v1;
use crate::policy_v1::policies_client::PoliciesClient;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum FleetClientError {
    /// No controller answers, or none leads.
    #[error("no controller decides: {}", .0.join("; "))]
    None(Vec<String>),
    /// The controller refuses.
    #[error("the controller at {controller} says: {reason}")]
    Refused {
        /// Its address.
        controller: String,
        /// Why.
        reason: String,
    },
}

pub use v1::Pushed;

/// How long a request may take.
const ANSWER: Duration = Duration::from_secs(15);

/// Sends requests to the first of several controllers that leads.
#[derive(Clone, Debug)]
pub struct FleetClient {
    controllers: Vec<String>,
    credentials: Credentials,
}

/// Declares a method for each request.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident: $request:ident => $answer:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`FleetClientError`].
            pub async fn $name(&self, request: v1::$request) -> Result<v1::$answer, FleetClientError> {
                let mut problems = Vec::new();
                for controller in &self.controllers {
                    let connection = match connect(controller, &self.credentials).await {
                        Ok(connection) => connection,
                        Err(error) => {
                            problems.push(format!("{controller}: {}", with_causes(&error)));
                            continue;
                        }
                    };
                    let mut client = PoliciesClient::new(connection.channel.clone())
                        .max_decoding_message_size(MOST_BYTES);
                    let mut request = tonic::Request::new(request.clone());
                    request.set_timeout(ANSWER);
                    match client.$name(request).await {
                        Ok(answer) => return Ok(answer.into_inner()),
                        Err(status) => {
                            let reason = explained(&connection, &status);
                            if is_elsewhere(&status) {
                                problems.push(format!("{controller}: {reason}"));
                                continue;
                            }
                            let controller = controller.clone();
                            return Err(FleetClientError::Refused { controller, reason });
                        }
                    }
                }
                Err(FleetClientError::None(problems))
            }
        )*
    };
}

/// The most bytes of an answer: a status of 100,000 hosts.
const MOST_BYTES: usize = 64 << 20;

impl FleetClient {
    /// Creates a client for controllers, `HOST:PORT`.
    pub fn new(controllers: Vec<String>, credentials: Credentials) -> Self {
        Self {
            controllers,
            credentials,
        }
    }

    requests! {
        /// Pushes a version.
        push: PushRequest => Pushed;
        /// Stops the version on its way, or pushes the one before the last again.
        undo: UndoRequest => Pushed;
        /// Returns a version.
        get: GetRequest => Version;
        /// Returns all versions without their texts.
        list: ListRequest => Versions;
        /// Returns entries of the log.
        log: LogRequest => LogEntries;
        /// Returns what is on its way and which host runs what.
        status: FleetStatusRequest => FleetStatus;
    }
}

/// Whether another controller may answer.
fn is_elsewhere(status: &Status) -> bool {
    status.code() == Code::Unavailable
}

fn explained(connection: &Connection, status: &Status) -> String {
    match connection.refusal() {
        Some(Refusal::ByController(reason) | Refusal::OfController(reason)) => reason,
        None => status.message().to_owned(),
    }
}
