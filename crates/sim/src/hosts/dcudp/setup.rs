//! The creation of a group's DCUDP connections.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_congestion::AlgorithmSpec;
use weir_dcudp::{ConfigError, Endpoint, ServerConfig, TransportConfig};
use weir_network::{dcudp_transport, side_bytes};
use weir_scenario::{DcudpOptions, Topology};
use weir_units::{Rate, Time};

use super::end::DcudpEnd;
use crate::packet::{Address, Location, ports};

/// The settings of a group's connections.
#[derive(Debug)]
pub(crate) struct DcudpSetup {
    transport: TransportConfig,
    /// Whether each end sends at the rate of its own link.
    at_line_rate: bool,
}

impl DcudpSetup {
    pub(crate) fn new(
        options: &DcudpOptions,
        congestion: &AlgorithmSpec,
        topology: &Topology,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            transport: dcudp_transport(options, congestion, topology.slowest_rate())?,
            at_line_rate: options.rate.is_none(),
        })
    }

    /// Sets the congestion control of connections to come.
    pub(crate) fn set_congestion(&mut self, congestion: &AlgorithmSpec) {
        self.transport.congestion = congestion.clone();
    }

    /// Creates both ends of a flow with these addresses: the connecting one and the listening one. All
    /// random choices of both follow from the seed.
    ///
    /// # Errors
    /// None that [`Self::new`] has not found: links have a rate.
    pub(crate) fn ends(
        &self,
        now: Time,
        topology: &Topology,
        [initiator, responder]: [&Address; 2],
        seed: u64,
    ) -> Result<(DcudpEnd, DcudpEnd), ConfigError> {
        let (asking, listening) = ports(initiator.flow.number);
        let client = socket(initiator, asking);
        let server = socket(responder, listening);
        let transport = |address: &Address| {
            let link = topology.ports.get(address.port as usize);
            let rate = link.map_or(self.transport.rate, |link| link.rate);
            Arc::new(self.of_flow(rate, seed))
        };
        let accepted = ServerConfig::new(transport(responder));
        let asking = Endpoint::new(None, side_bytes(seed, 0))?;
        let waiting = Endpoint::new(Some(accepted), side_bytes(seed, 1))?;
        let asking = DcudpEnd::client(now, asking, transport(initiator), server);
        Ok((asking, DcudpEnd::server(waiting, client)))
    }

    fn of_flow(&self, line_rate: Rate, seed: u64) -> TransportConfig {
        let transport = self.transport.clone();
        TransportConfig {
            rate: if self.at_line_rate {
                line_rate
            } else {
                transport.rate
            },
            seed,
            ..transport
        }
    }
}

fn socket(address: &Address, port: u16) -> SocketAddr {
    let location = Location {
        number: address.source,
        generation: 0,
    };
    SocketAddr::new(location.ip(), port)
}
