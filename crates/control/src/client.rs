//! What applications and operators ask a controller.

use std::time::Duration;

use tonic::Status;
use tonic::transport::Channel;
use weir_sed::{Demand, FlowPattern};

use crate::connect::connect;
use crate::controller::with_causes;
use crate::credentials::Credentials;
use crate::translate::{to_demand, to_pattern};
use crate::v1;
use crate::v1::flows_client::FlowsClient;
use crate::v1::operation_client::OperationClient;

/// Why a controller does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be reached, or is not what it should be.
    #[error("no controller at {controller}: {}", with_causes(.source))]
    Connect {
        /// Where it should be.
        controller: String,
        /// What is wrong.
        source: tonic::transport::Error,
    },
    /// It has refused, or has not answered.
    #[error("the controller says: {}", .0.message())]
    Refused(Box<Status>),
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// A connection to a controller, for applications, which register what their flows demand, and for
/// operators. Clones share it.
///
/// Registrations are the controller's as long as it lives and their flows do: an application whose
/// connection breaks registers anew what it has not opened yet.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
}

impl Client {
    /// Connects to the controller at `HOST:PORT`.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub async fn connect(controller: &str, credentials: &Credentials) -> Result<Self, ClientError> {
        let channel = connect(controller, credentials).await;
        let channel = channel.map_err(|source| ClientError::Connect {
            controller: controller.to_owned(),
            source,
        })?;
        Ok(Self { channel })
    }

    /// Says what a flow of the caller's own demands that it is about to open, or what all do that are
    /// alike.
    ///
    /// # Errors
    /// [`ClientError::Refused`] where the demand makes no sense, the flow is not the caller's, or it has
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
        let mut client = FlowsClient::new(self.channel.clone());
        client.register(timely(registration)).await?;
        Ok(())
    }

    /// Takes a registration back; tells whether it was there.
    ///
    /// # Errors
    /// [`ClientError::Refused`] where the flow is not the caller's.
    pub async fn withdraw(&self, flows: impl Into<FlowPattern>) -> Result<bool, ClientError> {
        let mut client = FlowsClient::new(self.channel.clone());
        let answer = client.withdraw(timely(to_pattern(&flows.into()))).await?;
        Ok(answer.into_inner().was_there)
    }

    /// What the controller knows and has ordered, with the `flows` most urgent flows.
    ///
    /// # Errors
    /// [`ClientError::Refused`] where the certificate is no operator's.
    pub async fn status(&self, flows: u32) -> Result<v1::Status, ClientError> {
        let mut client = OperationClient::new(self.channel.clone());
        let answer = client.show(timely(v1::StatusQuestion { flows })).await?;
        Ok(answer.into_inner())
    }
}

fn timely<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(ANSWER);
    request
}
