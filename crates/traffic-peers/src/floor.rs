//! The floor: the same bytes over UDP GSO/GRO and AES-128-GCM, and nothing else.
//!
//! The floor has a full TLS 1.3 handshake (`rustls::quic`), numbered packets that are sealed in the
//! send buffer after one copy and opened in the receive buffer, a fixed window with one
//! acknowledgement per receive batch or every 64 packets, and requests that acknowledge the previous
//! reply. It has **no** recovery, congestion control, flow control, header protection or streams.
//! The first flight is not encrypted, and a lost packet stalls a call. It is a lower bound to
//! compare engines with, not a usable transport.

use weir_traffic::calls::driver::{
    ClientOptions, Driver, Listening, Phase, RequestClient, ServerOptions,
};
use weir_traffic::calls::environment::locked_version;
use weir_traffic::calls::{Capabilities, Error, TransportSpecification};

use crate::settings::{DEFAULT_PACKET, udp_notes};
use crate::udp::Udp;

mod client;
mod handshake;
mod packet;
mod server;

/// The driver of the floor.
pub struct Floor;

/// The largest number of unacknowledged bytes in flight.
const WINDOW: u64 = 1024 * 1024;

/// The number of packets per acknowledgement within a receive batch.
const PACKETS_PER_ACK: u32 = 64;

impl Driver for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn version(&self) -> String {
        format!(
            "rustls {} for keys, quinn-udp {} for batches",
            locked_version("rustls"),
            locked_version("quinn-udp")
        )
    }

    fn supports(&self, phase: Phase) -> bool {
        !matches!(phase, Phase::Resumed | Phase::Known)
    }

    fn listen(&self, options: &ServerOptions) -> Result<Listening, Error> {
        let packet_size = packet_size(&options.specification)?;
        let udp = Udp::bind(options.bind, options.specification.spin)?;
        Ok(Listening {
            address: udp.address(),
            serve: server::serve(udp, packet_size, &options.identity)?,
            notes: udp_notes()?,
        })
    }

    fn client(&self, options: &ClientOptions) -> Result<Box<dyn RequestClient>, Error> {
        packet_size(&options.specification)?;
        Ok(Box::new(client::FloorClient::new(options)?))
    }
}

fn packet_size(specification: &TransportSpecification) -> Result<usize, Error> {
    specification.require(
        "floor",
        Capabilities {
            packet_size: true,
            spin: true,
            ..Capabilities::default()
        },
    )?;
    Ok(usize::from(
        specification.packet_size.unwrap_or(DEFAULT_PACKET),
    ))
}
