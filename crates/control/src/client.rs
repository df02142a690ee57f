//! The client of applications and operators.

use std::time::Duration;

use tonic::Status;
use weir_sed::{Demand, FlowPattern};

use crate::connect::{Connection, Refusal, connect};
use crate::controller::with_causes;
use crate::credentials::Credentials;
use crate::translate::{to_demand, to_pattern};
use crate::v1;
use crate::v1::flows_client::FlowsClient;
use crate::v1::operation_client::OperationClient;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The controller cannot be reached, or fails authentication.
    #[error("no controller at {controller}: {}", with_causes(.source))]
    Connect {
        /// The controller's address.
        controller: String,
        /// The cause.
        source: tonic::transport::Error,
    },
    /// One end refuses the certificate of the other.
    #[error("no controller at {controller}: {reason}")]
    Certificate {
        /// The controller's address.
        controller: String,
        /// Why.
        reason: String,
    },
    /// The controller has refused, or has not answered.
    #[error("the controller says: {}", .0.message())]
    Refused(Box<Status>),
}

/// The timeout of a request.
const ANSWER: Duration = Duration::from_secs(5);

/// A connection to a controller, for applications, which register the demands of their flows, and for
/// operators. Clones share it.
///
/// Registrations live in the controller until it ends or their flows do. An application whose
/// connection breaks must repeat the registrations of flows that are not open yet.
#[derive(Clone, Debug)]
pub struct Client {
    controller: String,
    connection: Connection,
}

impl Client {
    /// Connects to the controller at `HOST:PORT`.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub async fn connect(controller: &str, credentials: &Credentials) -> Result<Self, ClientError> {
        let controller = controller.to_owned();
        match connect(&controller, credentials).await {
            Ok(connection) => Ok(Self {
                controller,
                connection,
            }),
            Err(source) => Err(ClientError::Connect { controller, source }),
        }
    }

    /// Registers the demand of one of the caller's own flows, before it opens, or of all flows that
    /// match a pattern.
    ///
    /// # Errors
    /// [`ClientError::Certificate`]; [`ClientError::Refused`] if the demand is invalid, the flow is not the caller's, or it has
    /// registered too many.
    pub async fn register(
        &self,
        flows: impl Into<FlowPattern>,
        demand: Demand,
    ) -> Result<(), ClientError> {
        let registration = v1::Registration {
            flows: Some(to_pattern(&flows.into())),
            demand: Some(to_demand(&demand)),
        };
        let mut client = FlowsClient::new(self.connection.channel.clone());
        let answer = client.register(timely(registration)).await;
        answer.map_err(|status| self.explained(status))?;
        Ok(())
    }

    /// Removes a registration. Returns whether it was there.
    ///
    /// # Errors
    /// [`ClientError::Certificate`]; [`ClientError::Refused`] if the flow is not the caller's.
    pub async fn withdraw(&self, flows: impl Into<FlowPattern>) -> Result<bool, ClientError> {
        let mut client = FlowsClient::new(self.connection.channel.clone());
        let answer = client.withdraw(timely(to_pattern(&flows.into()))).await;
        let answer = answer.map_err(|status| self.explained(status))?;
        Ok(answer.into_inner().was_there)
    }

    /// Returns the controller's state and orders, with the `flows` most urgent flows.
    ///
    /// # Errors
    /// [`ClientError::Certificate`]; [`ClientError::Refused`] if the certificate is not an operator's.
    pub async fn status(&self, flows: u32) -> Result<v1::Status, ClientError> {
        let mut client = OperationClient::new(self.connection.channel.clone());
        let answer = client.show(timely(v1::StatusQuestion { flows })).await;
        let answer = answer.map_err(|status| self.explained(status))?;
        Ok(answer.into_inner())
    }

    fn explained(&self, status: Status) -> ClientError {
        match self.connection.refusal() {
            Some(Refusal::ByController(reason) | Refusal::OfController(reason)) => {
                ClientError::Certificate {
                    controller: self.controller.clone(),
                    reason,
                }
            }
            None => ClientError::Refused(Box::new(status)),
        }
    }
}

fn timely<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(ANSWER);
    request
}
