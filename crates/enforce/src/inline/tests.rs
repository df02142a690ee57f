//! The cable between socket pairs in place of interfaces: no privileges needed.

mod ecn;

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use weir_fabric::{Output, Packet, PacketCount};
use weir_wire::tcp::Flags;

use super::*;
use crate::offload::tests::{Described, finished, joined, parsed, verified};
use crate::offload::{SuperFrame, VnetHeader};
use crate::port::Tap;

/// Halves every window, and holds each segment with PSH for 1 ms.
#[derive(Debug, Default)]
struct Meddler {
    held: Vec<(Time, PortIndex, Segment)>,
}

impl Element<Segment> for Meddler {
    fn process(
        &mut self,
        now: Time,
        ingress: PortIndex,
        mut packet: Segment,
        out: &mut Output<'_, Segment>,
    ) {
        let Some(segment) = packet.tcp() else {
            return out.forward(ingress, packet);
        };
        packet.set_window(segment.window / 2);
        if segment.flags.contains(Flags::PSH) {
            (self.held).push((now + Duration::from_millis(1), ingress, packet))
        } else {
            out.forward(ingress, packet)
        }
    }
    fn timeout(&self) -> Option<Time> {
        self.held.first().map(|(time, ..)| *time)
    }
    fn handle_timeout(&mut self, now: Time, out: &mut Output<'_, Segment>) {
        while self.timeout().is_some_and(|time| time <= now) {
            let (_, ingress, packet) = self.held.remove(0);
            out.forward(ingress, packet);
        }
    }
    fn held(&self) -> PacketCount {
        let mut held = PacketCount::ZERO;
        (self.held.iter()).for_each(|(.., packet)| held.record(packet.length()));
        held
    }
}

fn pair() -> (Tap, Tap) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (one, other): (OwnedFd, OwnedFd) =
        socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None).unwrap();
    (one.into(), other.into())
}

/// Returns the cable, the two ends that it joins, and the descriptor that stops it.
fn cable() -> (Inline, [Tap; 2], OwnedFd) {
    cable_with(Meddler::default())
}

fn cable_with(element: impl Element<Segment>) -> (Inline, [Tap; 2], OwnedFd) {
    let (left, left_end) = pair();
    let (right, right_end) = pair();
    let cable = Inline::new([left.into(), right.into()], element);
    let stop = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    (cable, [left_end, right_end], stop)
}

fn received(end: &Tap) -> Option<Vec<u8>> {
    let mut buffer = vec![0; SuperFrame::LARGEST];
    let length = end.receive(&mut buffer).unwrap()?;
    buffer.truncate(length);
    Some(buffer)
}

fn data() -> Described {
    Described {
        v4: true,
        udp: false,
        gso: true,
        size: 1000,
        payload: (0..4500).map(|byte| byte as u8).collect(),
        sequence: 7,
        flags: (Flags::ACK | Flags::PSH).bits(),
        options: 3,
        ecn: weir_wire::Ecn::Ect0,
    }
}

#[test]
fn super_packets_pass_segment_by_segment_and_leave_together() {
    let (mut cable, [left, right], stop) = cable();
    let sent = data().bytes();
    left.send(&[IoSlice::new(&sent)]).unwrap();
    assert!(!cable.run_for(&stop, Duration::ZERO).unwrap());
    assert_eq!((cable.switch.inside().packets, received(&left)), (1, None));
    let first = parsed(&received(&right).unwrap()).unwrap();
    assert_eq!((first.segments(), first.tcp(0).unwrap().window), (4, 500));
    // The frame's original destination address.
    assert_eq!(first.destination(), [2, 0, 0, 0, 0, 2]);
    while cable.switch.inside().packets > 0 {
        cable.run_for(&stop, Duration::from_millis(1)).unwrap();
    }
    let last = received(&right).unwrap();
    let mut payload = Vec::new();
    for index in 0..first.segments() {
        payload.extend(verified(&joined(&first.on_wire(index, first.ecn()))).payload);
    }
    payload.extend(verified(&finished(last)).payload);
    assert_eq!(payload, data().payload);
    let counters = cable.counters();
    assert_eq!(
        (counters.frames, counters.segments, counters.untouched),
        (1, 5, 0)
    );
    assert!(cable.switch.element::<Meddler>().is_some());
}

#[test]
fn frames_without_valid_ip_pass_unchanged() {
    let (mut cable, [left, right], stop) = cable();
    let mut arp = vec![0; VnetHeader::LENGTH + 42];
    arp[VnetHeader::LENGTH + 12..VnetHeader::LENGTH + 14].copy_from_slice(&[8, 6]);
    let mut malformed = data().bytes();
    malformed[VnetHeader::LENGTH + 14] = 0x41;
    for frame in [&arp, &malformed] {
        right.send(&[IoSlice::new(frame)]).unwrap();
    }
    cable.run_for(&stop, Duration::ZERO).unwrap();
    assert_eq!(received(&left).as_ref(), Some(&arp));
    assert_eq!(received(&left).as_ref(), Some(&malformed));
    assert_eq!(cable.counters().untouched, 2);
}

#[test]
fn the_stop_event_ends_it_and_sends_to_a_lost_side_are_counted() {
    let (mut cable, [left, right], stop) = cable();
    drop(right);
    left.send(&[IoSlice::new(&Described { flags: 0, ..data() }.bytes())])
        .unwrap();
    rustix::io::write(&stop, &1_u64.to_ne_bytes()).unwrap();
    cable.run(&stop).unwrap();
    assert_eq!(cable.counters().down, 1);
}
