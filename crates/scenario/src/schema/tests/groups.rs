//! Groups with their transports and workloads.

use super::{Case, EPOCHS, FILE, REQUESTS, TRACE, case};

pub(super) const CASES: &[Case] = &[
    case(
        "[groups.NAME.workload] kind = \"trace\"",
        TRACE,
        &[],
        &[(
            "file",
            "groups.g.workload.file=src/schema/tests/one-flow.csv",
        )],
    ),
    case(
        "[groups.NAME.workload.distribution]",
        FILE,
        &[
            "groups.g.workload={ kind = \"poisson\", mean_interval = \"1ms\", distribution = \"web-search\" }",
        ],
        &[(
            "file",
            "groups.g.workload={ kind = \"poisson\", mean_interval = \"1ms\", \
             distribution = { file = \"../../docs/examples/sizes.csv\" } }",
        )],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &[],
        &[
            ("from", "groups.g.from=far"),
            ("to", "groups.g.to=[\"receiver\", \"far\"]"),
            ("flows", "groups.g.flows=2"),
            ("tcp", "groups.g.tcp.sack=false"),
            ("congestion", "groups.g.congestion=newreno"),
            (
                "workload",
                "groups.g.workload={ kind = \"transfer\", size = \"1MB\" }",
            ),
            ("start", "groups.g.start=1s"),
            ("start_within", "groups.g.start_within=1s"),
            ("stop", "groups.g.stop=1s"),
        ],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &["groups.g.workload={ kind = \"transfer\", size = \"1MB\" }"],
        &[("deadline", "groups.g.deadline=1s")],
    ),
    case(
        "[groups.NAME.stands_for]",
        FILE,
        &["groups.g.stands_for.from=10.9.0.0/16"],
        &[
            ("from", "groups.g.stands_for.from=10.1.0.0/16"),
            ("to", "groups.g.stands_for.to=10.2.0.0/16"),
            ("from_port", "groups.g.stands_for.from_port=443"),
            ("to_port", "groups.g.stands_for.to_port=8000-8999"),
            ("dscp", "groups.g.stands_for.dscp=ef"),
            ("cgroup", "groups.g.stands_for.cgroup=/web"),
            ("user", "groups.g.stands_for.user=backup"),
            ("command", "groups.g.stands_for.command=nginx"),
        ],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &[],
        &[("stands_for", "groups.g.stands_for.from_port=443")],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &[REQUESTS],
        &[
            ("failover", "groups.g.failover=1s"),
            ("via", "groups.g.via=switch"),
        ],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &["groups.g.transport=tls"],
        &[("tls", "groups.g.tls.resume=true")],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &["groups.g.transport=quic"],
        &[("quic", "groups.g.quic.ecn=false")],
    ),
    case(
        "[groups.NAME.tls]",
        FILE,
        &["groups.g.transport=tls"],
        &[
            ("record", "groups.g.tls.record=1400B"),
            ("resume", "groups.g.tls.resume=true"),
        ],
    ),
    case(
        "[groups.NAME.quic]",
        FILE,
        &["groups.g.transport=quic"],
        &[
            ("packet_size", "groups.g.quic.packet_size=probe"),
            ("packet_size", "groups.g.quic.packet_size=task"),
            ("packet_size", "groups.g.quic.packet_size=1252B"),
            ("socket_buffers", "groups.g.quic.socket_buffers=200KB"),
            ("ecn", "groups.g.quic.ecn=false"),
            ("known_peers", "groups.g.quic.known_peers=true"),
            (
                "proactive_migration",
                "groups.g.quic.proactive_migration=false",
            ),
        ],
    ),
    case(
        "[groups.NAME.quic.proactive_migration]",
        FILE,
        &["groups.g.transport=quic"],
        &[
            (
                "detector",
                "groups.g.quic.proactive_migration.detector=paper",
            ),
            (
                "long_window",
                "groups.g.quic.proactive_migration.long_window=60",
            ),
            (
                "short_window",
                "groups.g.quic.proactive_migration.short_window=9",
            ),
            ("alpha", "groups.g.quic.proactive_migration.alpha=3"),
            (
                "confirmations",
                "groups.g.quic.proactive_migration.confirmations=4",
            ),
            (
                "probe_timeouts",
                "groups.g.quic.proactive_migration.probe_timeouts=4",
            ),
            (
                "min_increase",
                "groups.g.quic.proactive_migration.min_increase=0s",
            ),
            (
                "hysteresis",
                "groups.g.quic.proactive_migration.hysteresis=2s",
            ),
            (
                "return_after",
                "groups.g.quic.proactive_migration.return_after=2s",
            ),
        ],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &["groups.g.transport=dcudp"],
        &[
            ("dcudp", "groups.g.dcudp.rate=1.6Gbps"),
            ("congestion", "groups.g.congestion=cubic"),
        ],
    ),
    case(
        "[groups.NAME.dcudp]",
        FILE,
        &["groups.g.transport=dcudp"],
        &[
            ("udp_mode", "groups.g.dcudp.udp_mode=false"),
            ("rate", "groups.g.dcudp.rate=1.6Gbps"),
            ("packet_size", "groups.g.dcudp.packet_size=1KB"),
            ("receive_window", "groups.g.dcudp.receive_window=64"),
            ("send_buffer", "groups.g.dcudp.send_buffer=1MB"),
            ("echo", "groups.g.dcudp.echo=since-last-ack"),
            ("feedback", "groups.g.dcudp.feedback=counts"),
            ("ack_interval", "groups.g.dcudp.ack_interval=idle-rtt"),
            (
                "congestion_on_loss",
                "groups.g.dcudp.congestion_on_loss=true",
            ),
            ("initial_rtt", "groups.g.dcudp.initial_rtt=1ms"),
            ("min_ack_interval", "groups.g.dcudp.min_ack_interval=1us"),
            ("request_interval", "groups.g.dcudp.request_interval=2ms"),
            ("pacing_quantum", "groups.g.dcudp.pacing_quantum=20us"),
            ("quit", "groups.g.dcudp.quit.window=9"),
        ],
    ),
    case(
        "[groups.NAME.dcudp.quit]",
        FILE,
        &["groups.g.transport=dcudp"],
        &[
            ("window", "groups.g.dcudp.quit.window=9"),
            ("ecn_threshold", "groups.g.dcudp.quit.ecn_threshold=0.4"),
            ("rtt_threshold", "groups.g.dcudp.quit.rtt_threshold=1"),
            ("beta", "groups.g.dcudp.quit.beta=3"),
            ("condition", "groups.g.dcudp.quit.condition=below"),
            ("rtt", "groups.g.dcudp.quit.rtt=current"),
            ("rtt_tolerance", "groups.g.dcudp.quit.rtt_tolerance=0s"),
        ],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &[
            "groups.g.transport=udp",
            "groups.g.workload={ kind = \"cbr\", rate = \"1Mbps\" }",
        ],
        &[("udp", "groups.g.udp.ecn=ect0")],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &["groups.g.from=far"],
        &[("pairing", "groups.g.pairing=one-to-one")],
    ),
    case(
        "[groups.NAME]",
        FILE,
        &["groups.g.workload={ kind = \"cbr\", rate = \"1Mbps\" }"],
        &[("transport", "groups.g.transport=udp")],
    ),
    case(
        "[groups.NAME.udp]",
        FILE,
        &[
            "groups.g.transport=udp",
            "groups.g.workload={ kind = \"cbr\", rate = \"1Mbps\" }",
        ],
        &[("ecn", "groups.g.udp.ecn=ect1")],
    ),
    case(
        "[groups.NAME.tcp]",
        FILE,
        &[],
        &[
            ("mss", "groups.g.tcp.mss=1000B"),
            ("handshake", "groups.g.tcp.handshake=false"),
            ("ecn", "groups.g.tcp.ecn=rfc3168"),
            ("sack", "groups.g.tcp.sack=false"),
            ("timestamps", "groups.g.tcp.timestamps=false"),
            ("recovery", "groups.g.tcp.recovery=rfc6675"),
            ("limited_transmit", "groups.g.tcp.limited_transmit=false"),
            ("prr", "groups.g.tcp.prr=false"),
            ("ack_every", "groups.g.tcp.ack_every=1"),
            (
                "delayed_ack_timeout",
                "groups.g.tcp.delayed_ack_timeout=1ms",
            ),
            ("quick_ack_segments", "groups.g.tcp.quick_ack_segments=0"),
            ("initial_rto", "groups.g.tcp.initial_rto=3s"),
            ("min_rto", "groups.g.tcp.min_rto=10ms"),
            ("rto_floor", "groups.g.tcp.rto_floor=rfc6298"),
            ("frto", "groups.g.tcp.frto=false"),
            ("early_timer_margin", "groups.g.tcp.early_timer_margin=0s"),
            (
                "push_small_windows",
                "groups.g.tcp.push_small_windows=false",
            ),
            ("partial_ack_timer", "groups.g.tcp.partial_ack_timer=first"),
            ("max_rto", "groups.g.tcp.max_rto=60s"),
            ("pacing", "groups.g.tcp.pacing=window"),
            ("tso_segments", "groups.g.tcp.tso_segments=4"),
            ("send_buffer", "groups.g.tcp.send_buffer=unlimited"),
            ("receive_buffer", "groups.g.tcp.receive_buffer=64KiB"),
            ("idle_restart", "groups.g.tcp.idle_restart=false"),
            ("nagle", "groups.g.tcp.nagle=true"),
            ("small_queues", "groups.g.tcp.small_queues=false"),
        ],
    ),
    case("[groups.NAME.workload] kind = \"bulk\"", FILE, &[], &[]),
    case(
        "[groups.NAME.workload] kind = \"cbr\"",
        FILE,
        &["groups.g.workload={ kind = \"cbr\", rate = \"1Mbps\" }"],
        &[
            ("rate", "groups.g.workload.rate=2Mbps"),
            ("packet", "groups.g.workload.packet=100B"),
            ("arrivals", "groups.g.workload.arrivals=poisson"),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"transfer\"",
        FILE,
        &["groups.g.workload={ kind = \"transfer\", size = \"1MB\" }"],
        &[("size", "groups.g.workload.size=2MB")],
    ),
    case(
        "[groups.NAME.workload] kind = \"transfer\"",
        FILE,
        &[
            "groups.g.workload={ kind = \"transfer\", size = \"1MB\", rounds = 2, interval = \"1s\" }",
        ],
        &[
            ("rounds", "groups.g.workload.rounds=3"),
            ("interval", "groups.g.workload.interval=2s"),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"incast\"",
        FILE,
        &["groups.g.workload={ kind = \"incast\", response = \"1MB\" }"],
        &[
            ("response", "groups.g.workload.response=2MB"),
            ("rounds", "groups.g.workload.rounds=2"),
            ("pause", "groups.g.workload.pause=1ms"),
            ("spread", "groups.g.workload.spread=1ms"),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"request-response\"",
        FILE,
        &[
            "groups.g.workload={ kind = \"request-response\", request = \"1KB\", response = \"1MB\" }",
        ],
        &[
            ("request", "groups.g.workload.request=2KB"),
            ("response", "groups.g.workload.response=2MB"),
            ("pause", "groups.g.workload.pause=1ms"),
            ("requests", "groups.g.workload.requests=3"),
            ("connection", "groups.g.workload.connection=fresh"),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"epochs\"",
        FILE,
        &[EPOCHS],
        &[
            ("request", "groups.g.workload.request=2KB"),
            ("response", "groups.g.workload.response=2MB"),
            ("count", "groups.g.workload.count=3"),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"poisson\"",
        FILE,
        &[
            "groups.g.workload={ kind = \"poisson\", mean_interval = \"1ms\", distribution = \"web-search\" }",
        ],
        &[
            ("per", "groups.g.workload.per=host"),
            ("fan_in", "groups.g.workload.fan_in=4"),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"poisson\"",
        FILE,
        &[
            "groups.g.workload={ kind = \"poisson\", mean_interval = \"1ms\", distribution = \"web-search\" }",
        ],
        &[
            ("mean_interval", "groups.g.workload.mean_interval=2ms"),
            (
                "distribution",
                "groups.g.workload.distribution=[[\"1KB\", 0.5], [\"2KB\", 1.0]]",
            ),
        ],
    ),
    case(
        "[groups.NAME.workload] kind = \"poisson\"",
        FILE,
        &[
            "groups.g.workload={ kind = \"poisson\", load = 0.5, of = \"bottleneck\", distribution = \"web-search\" }",
            "dumbbell.senders.near.rate=1Gbps",
        ],
        &[
            ("load", "groups.g.workload.load=0.6"),
            ("of", "groups.g.workload.of=hosts"),
        ],
    ),
];
