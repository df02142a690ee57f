//! Records a conversation as a pcapng file with its TLS keys, for Wireshark.

use std::borrow::Cow;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use etherparse::{PacketBuilder, PacketBuilderStep, UdpHeader};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::cases::{self, Pairing};
use crate::stack::{KeyLines, Result};
use crate::wire::{Record, Toward, rule};
use crate::{Direction, Failure, Peer, on_a_runtime};

/// A locally administered address that belongs to no device.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const HOPS: u8 = 64;
/// `if_tsresol`: time stamps are in nanoseconds.
const NANOSECONDS: u8 = 9;

/// A recorded conversation.
#[derive(Clone, Debug)]
pub struct Capture {
    /// A pcapng file.
    pub packets: Vec<u8>,
    /// The TLS secrets, one per line, in the format of NSS.
    pub keys: Vec<u8>,
    /// The server's UDP port.
    pub server_port: u16,
    /// The number of packets.
    pub count: usize,
}

/// Captures a conversation with many QUIC frame types: a handshake (with a Retry packet), streams, a
/// key update, client migration if both sides support it, datagrams, and a second connection with
/// early data if both sides support it.
///
/// # Errors
/// Returns the reason if a step fails.
pub fn conversation(peer: Peer, direction: Direction) -> std::result::Result<Capture, Failure> {
    on_a_runtime(converse(Pairing { peer, direction }))
}

async fn converse(pairing: Pairing) -> Result<Capture> {
    let lines = Arc::new(KeyLines::default());
    let mut setup = cases::setup()?;
    // After a Retry packet quiche's client sends a different ClientHello, which violates RFC 9000,
    // section 17.2.5.3. Wireshark looks for the keys of the first one.
    setup.retry = (pairing.peer, pairing.direction) != (Peer::Quiche, Direction::OurServer);
    setup.early_data = pairing.peer != Peer::S2n;
    setup.key_log = Some(Arc::clone(&lines));
    let stage = pairing.stage(&setup, rule::pass())?;
    let connection = stage.connect().await?;
    cases::exchange(connection.as_ref(), 1, 200_000).await?;
    let is_ours = pairing.direction == Direction::OurClient;
    match (is_ours, pairing.peer) {
        (true, _) | (false, Peer::Quinn) => connection.update_keys().await?,
        (false, _) => stage.server.update_keys().await?,
    }
    cases::exchange(connection.as_ref(), 2, 50_000).await?;
    if is_ours || pairing.peer != Peer::S2n {
        stage.client.migrate().await?;
        cases::exchange(connection.as_ref(), 3, 50_000).await?;
    }
    connection.datagram("datagram".into()).await?;
    connection.close();
    if setup.early_data {
        crate::stack::short_pause().await;
        let address = stage.wire.address();
        let (connection, _) = stage.client.connect_early(address, "early".into()).await?;
        connection.close();
    }
    crate::stack::short_pause().await;
    let records = stage.wire.records();
    let server = stage.server.address()?;
    Ok(Capture {
        packets: pcapng(&records, server)?,
        server_port: server.port(),
        keys: lines.text(),
        count: records.len(),
    })
}

/// Writes the pcapng file as captured on the server's side.
fn pcapng(records: &[Record], server: SocketAddr) -> Result<Vec<u8>> {
    let mut writer = PcapNgWriter::new(Vec::new())?;
    writer.write_pcapng_block(InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        options: vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)],
    })?;
    for record in records.iter().filter(|record| record.arrived()) {
        let data = frame(record, server)?;
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: 0,
            timestamp: record.datagram.at,
            original_len: u32::try_from(data.len())?,
            data: Cow::Owned(data),
            options: Vec::new(),
        })?;
    }
    let mut file = writer.into_inner();
    file.flush()?;
    Ok(file)
}

/// Builds the Ethernet frame of a datagram.
fn frame(record: &Record, server: SocketAddr) -> Result<Vec<u8>> {
    let (from, to) = match record.datagram.toward {
        Toward::Server => (record.address_after_nat, server),
        Toward::Client => (server, record.address_after_nat),
    };
    let udp = udp(from, to)?;
    let payload = &record.datagram.bytes;
    let mut frame = Vec::with_capacity(udp.size(payload.len()));
    udp.write(&mut frame, payload)?;
    Ok(frame)
}

fn udp(from: SocketAddr, to: SocketAddr) -> Result<PacketBuilderStep<UdpHeader>> {
    let ethernet = PacketBuilder::ethernet2(MAC, MAC);
    let ip = match (from, to) {
        (SocketAddr::V4(from), SocketAddr::V4(to)) => {
            ethernet.ipv4(from.ip().octets(), to.ip().octets(), HOPS)
        }
        (SocketAddr::V6(from), SocketAddr::V6(to)) => {
            ethernet.ipv6(from.ip().octets(), to.ip().octets(), HOPS)
        }
        _ => return Err("addresses of two families".into()),
    };
    Ok(ip.udp(from.port(), to.port()))
}
