use std::net::Ipv4Addr;

use proptest::prelude::*;
use weir_wire::tcp::{Options, SynOptions};

use super::*;

const LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 4,
    idle: Duration::from_secs(100),
    half_open: Duration::from_secs(10),
};

fn table(limits: ConnectionLimits) -> Connections<u32> {
    Connections::new(limits, 7)
}

fn flow(number: u16) -> FlowKey {
    FlowKey {
        source: Ipv4Addr::new(10, 0, 0, 1).into(),
        destination: Ipv4Addr::new(10, 0, 0, 2).into(),
        source_port: number,
        destination_port: 80,
        protocol: FlowKey::TCP,
    }
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn segment(flags: Flags, sequence: u32, acknowledgment: u32) -> Segment {
    Segment {
        flags,
        sequence: Sequence::new(sequence),
        acknowledgment: Sequence::new(acknowledgment),
        options: if flags.contains(Flags::SYN) {
            Options::Syn(SynOptions {
                maximum_segment_size: 1460,
                window_scale: Some(7),
                sack_permitted: true,
            })
        } else {
            Options::None
        },
        ..Segment::default()
    }
}

fn syn() -> Segment {
    segment(Flags::SYN, 100, 0)
}

fn syn_ack() -> Segment {
    segment(Flags::SYN | Flags::ACK, 500, 101)
}

fn ack() -> Segment {
    segment(Flags::ACK, 101, 501)
}

/// The handshake of a flow.
fn open(table: &mut Connections<u32>, now: Time, number: u16) {
    table.observe(now, flow(number), &syn());
    table.observe(now, flow(number).reversed(), &syn_ack());
    table.observe(now, flow(number), &ack());
}

#[test]
fn a_connection_is_tracked_from_syn_to_last_ack() {
    let (mut table, now) = (table(LIMITS), Time::ZERO);
    let (direction, connection) = table.observe(now, flow(1), &syn()).unwrap();
    assert_eq!(
        (direction, connection.is_open()),
        (Direction::Forward, false)
    );
    connection.state = 42;
    let (direction, connection) = table.observe(now, flow(1).reversed(), &syn_ack()).unwrap();
    assert_eq!((direction, connection.state), (Direction::Reverse, 42));
    assert!(!connection.is_open());
    assert!(table.observe(now, flow(1), &ack()).unwrap().1.is_open());
    let fin = Flags::FIN | Flags::ACK;
    for (flow, segment) in [
        (flow(1), segment(fin, 101, 501)),
        (flow(1).reversed(), segment(Flags::ACK, 501, 102)),
        // The other end continues for a while.
        (flow(1).reversed(), segment(fin, 501, 102)),
    ] {
        assert!(!table.observe(now, flow, &segment).unwrap().1.is_closed());
    }
    let last = segment(Flags::ACK, 102, 502);
    assert!(table.observe(now, flow(1), &last).unwrap().1.is_closed());
    // The same segment again is unknown, and the entry is reclaimed.
    assert!(table.observe(now, flow(1), &last).is_none());
    assert_eq!(table.reclaim(now).unwrap().state, 42);
    assert!(table.is_empty() && table.reclaim(now).is_none());
    let counters = table.counters();
    assert_eq!((counters.opened, counters.closed), (1, 1));
    assert_eq!(counters.unknown, 1);
}

#[test]
fn a_connection_without_syn_is_unknown() {
    let mut table = table(LIMITS);
    assert!(table.observe(Time::ZERO, flow(1), &ack()).is_none());
    // A SYN-ACK alone does not begin a connection either.
    assert!(table.observe(Time::ZERO, flow(1), &syn_ack()).is_none());
    assert_eq!(table.counters().unknown, 2);
}

#[test]
fn a_reset_ends_it_and_another_syn_begins_another() {
    let (mut table, now) = (table(LIMITS), Time::ZERO);
    open(&mut table, now, 1);
    table.observe(now, flow(1), &syn()).unwrap().1.state = 1;
    let other = segment(Flags::SYN, 9000, 0);
    let connection = table.observe(now, flow(1), &other).unwrap().1;
    assert_eq!((connection.state, connection.is_open()), (0, false));
    assert_eq!(
        connection
            .handshake
            .offer(Direction::Forward)
            .unwrap()
            .sequence,
        Sequence::new(9000)
    );
    let reset = segment(Flags::RST | Flags::ACK, 0, 9001);
    assert!(
        table
            .observe(now, flow(1).reversed(), &reset)
            .unwrap()
            .1
            .is_closed()
    );
    assert!(table.find(&flow(1)).is_none());
    assert_eq!(table.counters().closed, 2);
}

#[test]
fn a_simultaneous_open_is_tracked() {
    let (mut table, now) = (table(LIMITS), Time::ZERO);
    table.observe(now, flow(1), &syn());
    let (direction, _) = table
        .observe(now, flow(1).reversed(), &segment(Flags::SYN, 500, 0))
        .unwrap();
    assert_eq!(direction, Direction::Reverse);
    table.observe(now, flow(1), &segment(Flags::SYN | Flags::ACK, 100, 501));
    table.observe(now, flow(1).reversed(), &syn_ack());
    assert!(table.observe(now, flow(1), &ack()).unwrap().1.is_open());
    assert_eq!(table.counters().opened, 1);
}

#[test]
fn a_syn_flood_displaces_only_half_open_connections() {
    let mut table = table(LIMITS);
    open(&mut table, Time::ZERO, 1);
    for number in 2..1000 {
        assert!(table.observe(Time::ZERO, flow(number), &syn()).is_some());
        assert!(table.len() <= 4);
    }
    assert!(table.find(&flow(1)).is_some());
    assert!(table.find(&flow(999)).is_some() && table.find(&flow(990)).is_none());
    assert_eq!(table.counters().displaced, 995);
    // Open connections are not displaced.
    for number in 997..1000 {
        open(&mut table, Time::ZERO, number);
    }
    assert!(table.observe(Time::ZERO, flow(5), &syn()).is_none());
    assert_eq!(table.counters().refused, 1);
}

#[test]
fn idle_connections_are_reclaimed() {
    let mut table = table(LIMITS);
    open(&mut table, seconds(0), 1);
    open(&mut table, seconds(0), 2);
    table.observe(seconds(0), flow(3), &syn());
    table.observe(seconds(60), flow(1), &ack());
    assert_eq!(table.reclaim(seconds(11)).unwrap().flow, flow(3));
    assert!(table.reclaim(seconds(100)).is_none());
    assert_eq!(table.reclaim(seconds(101)).unwrap().flow, flow(2));
    assert!(table.reclaim(seconds(160)).is_none());
    assert_eq!(table.reclaim(seconds(161)).unwrap().flow, flow(1));
    assert_eq!(table.counters().idle, 3);
}

#[test]
fn a_released_connection_does_not_count_and_leaves_room() {
    let mut table = table(LIMITS);
    for number in 1..=100 {
        let (id, _) = table
            .observe_by_id(seconds(1), flow(number), &syn())
            .unwrap();
        assert_eq!(table.release(id).unwrap().flow, flow(number));
        assert_eq!(table.find(&flow(number)), None);
        assert!(table.release(id).is_none());
    }
    assert!(table.is_empty());
    assert_eq!(table.counters(), ConnectionCounters::default());
}

proptest! {
    /// The table stays within its bound, every slot is used once, and each connection is found by its
    /// flow in either direction.
    #[test]
    fn the_table_stays_bounded_and_consistent(events in prop::collection::vec((0_u16..8, any::<bool>(), 0_u8..64, 0_u32..3, 0_u64..20), 0..300)) {
        let (mut table, mut now) = (table(LIMITS), Time::ZERO);
        for (number, reversed, flags, sequence, wait) in events {
            now += Duration::from_secs(wait);
            let flow = if reversed { flow(number).reversed() } else { flow(number) };
            let segment = segment(Flags::from_bits(flags), sequence, sequence);
            table.observe(now, flow, &segment);
            prop_assert!(table.len() <= LIMITS.connections);
            let known = table.iter().filter(|(_, connection)| !connection.is_closed());
            for (id, connection) in known {
                prop_assert_eq!(table.find(&connection.flow), Some(id));
                prop_assert_eq!(table.find(&connection.flow.reversed()), Some(id));
            }
        }
        while table.reclaim(now + Duration::from_secs(1000)).is_some() {}
        prop_assert!(table.is_empty() && table.slots_by_endpoints.is_empty());
    }
}
