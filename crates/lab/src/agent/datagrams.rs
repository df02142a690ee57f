//! Datagrams at a constant rate.

use futures_util::future::try_join_all;
use weir_scenario::{UdpEcn, Workload};
use weir_traffic::udp::{EcnCodepoint, ReceivedBatch, Udp};
use weir_units::{ByteSize, Duration};

use super::meter::FlowMeter;
use super::packet_schedule::PacketSchedule;
use super::partial_transfer::order_failure;
use super::transports::setup_failure;
use crate::clock::RunTimer;
use crate::control::{FlowFailure, FlowOrder};

/// Datagrams due within this time leave together.
const QUANTUM: Duration = Duration::from_micros(100);
/// UDP's header and those of IPv4 and IPv6.
const HEADERS_V4: ByteSize = ByteSize::from_bytes(28);
const HEADERS_V6: ByteSize = ByteSize::from_bytes(48);

/// Sends until the task is cancelled. Datagrams due within [`QUANTUM`] leave with one system call,
/// because a wake-up per datagram would use all CPU time. The host's link spaces them again, as that
/// of a real host would.
pub(super) async fn send(
    ecn: UdpEcn,
    order: &FlowOrder,
    meter: &FlowMeter,
    mut alarm: RunTimer,
) -> Result<(), FlowFailure> {
    let Workload::Cbr {
        rate,
        packet,
        arrivals,
    } = order.workload
    else {
        return Err(order_failure("UDP carries `cbr` alone"));
    };
    let (Some(local), Some(peer)) = (order.local.first(), order.peer.first()) else {
        return Err(order_failure(
            "a client needs an address of its own and its server's",
        ));
    };
    let headers = if peer.is_ipv4() {
        HEADERS_V4
    } else {
        HEADERS_V6
    };
    let payload = packet - headers.min(packet);
    let codepoint = match ecn {
        UdpEcn::NotEct => None,
        UdpEcn::Ect0 => Some(EcnCodepoint::Ect0),
        UdpEcn::Ect1 => Some(EcnCodepoint::Ect1),
    };
    let mut ticks = PacketSchedule::new(alarm.now(), (rate, packet, arrivals), order);
    let socket = Udp::bind(*local).map_err(setup_failure)?;
    loop {
        let due = ticks.wait(&mut alarm, QUANTUM).await;
        let mut left = due.map_err(order_failure)?;
        while left > 0 {
            let sent = socket.send(*peer, payload, left, codepoint).await;
            let sent = sent.map_err(order_failure)?;
            meter.count_datagrams(sent, 0);
            left -= sent;
        }
    }
}

/// Binds a server's sockets, one for each address of its order.
pub(super) fn bind(order: &FlowOrder) -> Result<Vec<Udp>, FlowFailure> {
    let sockets = order.local.iter().map(|local| Udp::bind(*local));
    sockets.collect::<Result<_, _>>().map_err(setup_failure)
}

/// Counts received datagrams until the task is cancelled.
pub(super) async fn receive(sockets: &[Udp], meter: &FlowMeter) -> Result<(), FlowFailure> {
    let receiving = sockets.iter().map(|socket| async move {
        let mut count = |arrived: ReceivedBatch| {
            meter.count_delivered(arrived.payload.bytes());
            meter.count_datagrams(arrived.datagrams, arrived.marked);
        };
        socket.receive(&mut count).await
    });
    try_join_all(receiving).await.map_err(order_failure)?;
    Ok(())
}
