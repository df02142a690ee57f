//! Every message survives a round trip, and invalid lines are rejected.

use std::net::{IpAddr, SocketAddr};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use weir_congestion::AlgorithmSpec;
use weir_counters::FlowCounters;
use weir_scenario::{
    ArrivalProcess, Arrivals, ConnectionUse, Distribution, MigrationDetector, MigrationOptions,
    QuicOptions, QuicPacketSize, TlsOptions, UdpEcn, Workload,
};
use weir_traffic::tcp::TcpSettings;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::*;

fn size() -> impl Strategy<Value = ByteSize> {
    any::<u64>().prop_map(ByteSize::from_bytes)
}

fn span() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(Time::from_nanos)
}

fn address() -> impl Strategy<Value = SocketAddr> {
    any::<(IpAddr, u16)>().prop_map(SocketAddr::from)
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::web_search()),
        Just(Distribution::data_mining()),
    ]
}

fn workload() -> impl Strategy<Value = Workload> {
    prop_oneof![
        Just(Workload::Bulk),
        (any::<u64>(), size(), any::<bool>()).prop_map(|(rate, packet, regular)| Workload::Cbr {
            rate: Rate::from_bits_per_second(rate),
            packet,
            arrivals: if regular {
                Arrivals::Regular
            } else {
                Arrivals::Poisson
            },
        }),
        size().prop_map(|size| Workload::Transfer {
            size,
            rounds: 1,
            interval: None
        }),
        (size(), any::<u32>(), span(), span()).prop_map(|(response, rounds, pause, spread)| {
            Workload::Incast {
                response,
                rounds,
                pause,
                spread,
            }
        }),
        (
            size(),
            size(),
            span(),
            option::of(any::<u32>()),
            any::<bool>()
        )
            .prop_map(|(request, response, pause, requests, kept)| {
                Workload::RequestResponse {
                    request,
                    response,
                    pause,
                    requests,
                    connection: if kept {
                        ConnectionUse::Kept
                    } else {
                        ConnectionUse::Fresh
                    },
                }
            }),
        (size(), size(), any::<u32>()).prop_map(|(request, response, count)| Workload::Epochs {
            request,
            response,
            count,
        }),
        (span(), distribution(), any::<bool>()).prop_map(
            |(mean_interval, distribution, by_host)| {
                Workload::Poisson {
                    mean_interval,
                    per: if by_host {
                        ArrivalProcess::Host
                    } else {
                        ArrivalProcess::Group
                    },
                    fan_in: 1,
                    distribution,
                }
            }
        ),
    ]
}

fn tcp() -> impl Strategy<Value = TcpSettings> {
    let timers = (option::of(span()), option::of(span()), option::of(span()));
    let sizes = (option::of(size()), option::of(size()), option::of(size()));
    (
        option::of("[a-z]{1,15}"),
        sizes,
        timers,
        any::<(bool, bool, bool)>(),
    )
        .prop_map(
            |(congestion, sizes, timers, (nagle, paced, fast_open))| TcpSettings {
                congestion,
                mss: sizes.0,
                nagle,
                send_buffer: sizes.1,
                receive_buffer: sizes.2,
                min_rto: timers.0,
                max_rto: timers.1,
                delayed_ack_timeout: timers.2,
                paced,
                fast_open,
            },
        )
}

fn migration() -> impl Strategy<Value = MigrationOptions> {
    let windows = any::<(u32, u32, u32)>();
    let spans = (span(), span(), option::of(span()));
    (option::of(any::<u32>()), windows, 1.0..100.0_f64, spans).prop_map(
        |(confirmations, windows, alpha, spans)| MigrationOptions {
            detector: match confirmations {
                Some(confirmations) => MigrationDetector::SizeClass { confirmations },
                None => MigrationDetector::Paper,
            },
            long_window: windows.0,
            short_window: windows.1,
            alpha,
            probe_timeouts: windows.2,
            min_increase: spans.0,
            hysteresis: spans.1,
            return_after: spans.2,
        },
    )
}

fn transport() -> impl Strategy<Value = LiveTransport> {
    let congestion = prop_oneof![
        Just("cubic".to_owned()),
        (0.001..1.0_f64).prop_map(|g| format!("dctcp,g={g}")),
    ];
    let packet_size = prop_oneof![
        Just(QuicPacketSize::Interface),
        Just(QuicPacketSize::Probe),
        Just(QuicPacketSize::ByTask),
        (1200..65_527_u64).prop_map(|size| QuicPacketSize::Fixed(ByteSize::from_bytes(size))),
    ];
    let quic = (
        packet_size,
        option::of(size()),
        any::<[bool; 2]>(),
        option::of(migration()),
    );
    prop_oneof![
        tcp().prop_map(LiveTransport::Tcp),
        (tcp(), size(), any::<bool>()).prop_map(|(tcp, record, resume)| LiveTransport::Tls {
            tcp,
            tls: TlsOptions { record, resume },
        }),
        Just(LiveTransport::Udp { ecn: UdpEcn::Ect0 }),
        (quic, congestion).prop_map(
            |((packet_size, socket_buffers, [ecn, known_peers], migration), congestion)| {
                LiveTransport::Quic {
                    options: QuicOptions {
                        packet_size,
                        socket_buffers,
                        ecn,
                        known_peers,
                        migration,
                    },
                    congestion: congestion.parse::<AlgorithmSpec>().unwrap(),
                }
            }
        ),
    ]
}

fn flow_order() -> impl Strategy<Value = FlowOrder> {
    let places = (vec(address(), 0..3), vec(address(), 0..3));
    let times = (time(), option::of(time()), option::of(span()));
    let numbers = any::<(u64, u32, u64, bool)>();
    (
        numbers,
        ".*",
        transport(),
        workload(),
        places,
        times,
        option::of(".*"),
    )
        .prop_map(
            |(
                (flow, related_flows, seed, client),
                group,
                transport,
                workload,
                places,
                times,
                pin,
            )| {
                FlowOrder {
                    flow,
                    group,
                    role: if client { Role::Client } else { Role::Server },
                    transport,
                    workload,
                    write_size: ByteSize::from_bytes(seed % 65_536),
                    local: places.0,
                    peer: places.1,
                    related_flows,
                    start: times.0,
                    later_starts: vec![times.0; related_flows as usize % 3],
                    load: LoadFactors(vec![(times.0, 0.5); related_flows as usize % 2]),
                    stop: times.1,
                    failover: times.2,
                    server_fingerprint: pin,
                    seed,
                }
            },
        )
}

fn host_change() -> impl Strategy<Value = HostChange> {
    prop_oneof![
        ".*".prop_map(|interface| HostChange::InterfaceDown { interface }),
        ".*".prop_map(|interface| HostChange::InterfaceUp { interface }),
        (".*", any::<(IpAddr, IpAddr)>()).prop_map(|(interface, (was, is))| HostChange::Address {
            interface,
            was,
            is,
        }),
    ]
}

fn order() -> impl Strategy<Value = HostCommand> {
    prop_oneof![
        flow_order().prop_map(|order| HostCommand::Start(Box::new(order))),
        (any::<u64>(), option::of(span()))
            .prop_map(|(epoch, interval)| HostCommand::Begin { epoch, interval }),
        Just(HostCommand::Sample),
        any::<u64>().prop_map(|number| HostCommand::Epoch { number }),
        host_change().prop_map(HostCommand::Host),
        Just(HostCommand::Stop),
    ]
}

fn failure() -> impl Strategy<Value = FlowFailure> {
    prop_oneof![
        address().prop_map(|peer| FlowFailure::Refused { peer }),
        address().prop_map(|peer| FlowFailure::NoAnswer { peer }),
        (".*", ".*").prop_map(|(doing, cause)| FlowFailure::Lost { doing, cause }),
        ".*".prop_map(|problem| FlowFailure::Protocol { problem }),
        ".*".prop_map(|problem| FlowFailure::Order { problem }),
    ]
}

fn counters() -> impl Strategy<Value = FlowCounters> {
    (size(), any::<[u64; 2]>()).prop_map(|(delivered, [retransmits, marks])| FlowCounters {
        delivered,
        retransmits,
        marks,
        ..FlowCounters::ZERO
    })
}

fn outcome() -> impl Strategy<Value = FlowOutcome> {
    let completion = (time(), span()).prop_map(|(at, took)| Completion { at, took });
    let times = (option::of(time()), option::of(time()), option::of(span()));
    let rest = (
        option::of(failure()),
        vec(completion, 0..5),
        option::of(".*"),
        counters(),
    );
    (any::<[u64; 5]>(), option::of(any::<u64>()), times, rest).prop_map(
        |(counts, arrival, times, rest)| FlowOutcome {
            flow: counts[0],
            arrival,
            role: Some(Role::Server),
            started: times.0,
            ended: times.1,
            size: Some(ByteSize::from_bytes(counts[1])),
            counters: rest.3,
            completions: rest.1,
            requests_failed: counts[2],
            requests_repeated: counts[3],
            moves: counts[4],
            smoothed_rtt: times.2,
            congestion: rest.2,
            failure: rest.0,
            ..FlowOutcome::default()
        },
    )
}

fn sample() -> impl Strategy<Value = HostSample> {
    let path = (option::of(size()), option::of(span()));
    let flow =
        (any::<u64>(), counters(), path).prop_map(|(flow, counters, (window, smoothed_rtt))| {
            FlowSample {
                flow,
                counters,
                window,
                smoothed_rtt,
            }
        });
    (time(), span(), vec(flow, 0..5)).prop_map(|(at, cpu, flows)| HostSample { at, cpu, flows })
}

fn event() -> impl Strategy<Value = AgentEvent> {
    prop_oneof![
        ".*".prop_map(|fingerprint| AgentEvent::Ready { fingerprint }),
        (any::<u64>(), vec(address(), 0..3))
            .prop_map(|(flow, addresses)| AgentEvent::Listening { flow, addresses }),
        sample().prop_map(AgentEvent::Sample),
        (any::<[u64; 3]>(), time(), option::of(span())).prop_map(
            |([flow, number, attempts], asked, took)| AgentEvent::EpochDone {
                flow,
                number,
                asked,
                took,
                attempts,
            }
        ),
        (any::<u64>(), time(), any::<bool>(), ".*").prop_map(|(flow, at, moved, description)| {
            AgentEvent::Path {
                flow,
                at,
                moved,
                description,
            }
        }),
        outcome().prop_map(|outcome| AgentEvent::Finished(Box::new(outcome))),
        (host_change(), option::of(".*"))
            .prop_map(|(change, error)| AgentEvent::Changed { change, error }),
        span().prop_map(|cpu| AgentEvent::Stopped { cpu }),
    ]
}

fn is_one_line(line: &[u8]) -> bool {
    line.iter().position(|byte| *byte == b'\n') == Some(line.len() - 1)
}

proptest! {
    #[test]
    fn commands_round_trip(order in order()) {
        let line = encode(&order).unwrap();
        prop_assert!(is_one_line(&line));
        prop_assert_eq!(decode::<HostCommand>(&line).unwrap(), order);
    }

    #[test]
    fn events_round_trip(event in event()) {
        let line = encode(&event).unwrap();
        prop_assert!(is_one_line(&line));
        prop_assert_eq!(decode::<AgentEvent>(&line).unwrap(), event);
    }

    #[test]
    fn a_truncated_line_is_an_error(order in order(), part in 0.0..1.0_f64) {
        let line = encode(&order).unwrap();
        let end = ((line.len() - 1) as f64 * part) as usize;
        prop_assert!(decode::<HostCommand>(&line[..end]).is_err());
    }

    #[test]
    fn any_line_is_read_or_refused(line: Vec<u8>) {
        let _ = decode::<HostCommand>(&line);
        let _ = decode::<AgentEvent>(&line);
    }
}
