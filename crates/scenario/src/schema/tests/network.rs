//! The top of the file, networks, measurements and live options.

use super::{Case, FILE, GENERAL, STAR, TWO_GROUPS, case};

pub(super) const CASES: &[Case] = &[
    case(
        "the top of the file",
        FILE,
        &[],
        &[
            ("title", "title=u"),
            ("source", "source=u"),
            ("seed", "seed=7"),
            ("duration", "duration=11s"),
            ("warm_up", "warm_up=1s"),
            ("host_jitter", "host_jitter=0s"),
            ("dumbbell", "dumbbell.rate=1Gbps"),
            ("queues", "queues.q.buffer=2MB"),
            ("groups", "groups.g.flows=2"),
            ("faults", "faults=[]"),
            ("sed", "sed.rtt=100us"),
            ("live", "live.gso_segments=3"),
            ("measurements", "measurements.sample_interval=1ms"),
        ],
    ),
    case(
        "the top of the file",
        STAR,
        &[],
        &[("star", "star.rate=1Gbps")],
    ),
    case(
        "the top of the file",
        GENERAL,
        &[],
        &[
            ("hosts", "hosts.a.count=3"),
            (
                "switches",
                "switches.s.shared_buffer={ size = \"1MB\", alpha = 1 }",
            ),
            ("links", "links.0.rate=1Gbps"),
            ("routes", "routes=[]"),
        ],
    ),
    case(
        "[dumbbell]",
        FILE,
        &[],
        &[
            ("rate", "dumbbell.rate=1Gbps"),
            ("delay", "dumbbell.delay=4us"),
            ("mtu", "dumbbell.mtu=9000B"),
            ("framing", "dumbbell.framing=2B"),
            ("queue", "dumbbell.queue=unlimited"),
            ("senders", "dumbbell.senders.near.count=5"),
            ("receivers", "dumbbell.receivers.count=2"),
        ],
    ),
    case(
        "[dumbbell.senders.NAME]",
        FILE,
        &[],
        &[
            ("count", "dumbbell.senders.near.count=5"),
            ("rate", "dumbbell.senders.near.rate=1Gbps"),
            ("delay", "dumbbell.senders.far.delay=2ms"),
            ("rtt", "dumbbell.senders.near.rtt=2ms"),
        ],
    ),
    case(
        "[dumbbell.receivers]",
        FILE,
        &["dumbbell.receivers.count=4"],
        &[
            ("count", "dumbbell.receivers.count=5"),
            ("rate", "dumbbell.receivers.rate=1Gbps"),
            ("delay", "dumbbell.receivers.delay=2us"),
        ],
    ),
    case(
        "[star]",
        STAR,
        &[],
        &[
            ("rate", "star.rate=1Gbps"),
            ("delay", "star.delay=1us"),
            ("mtu", "star.mtu=9000B"),
            ("framing", "star.framing=2B"),
            (
                "queue",
                "star.queue={ kind = \"drop-tail\", buffer = \"1MB\" }",
            ),
            ("shared_buffer", "star.shared_buffer.size=2MB"),
            ("hosts", "star.hosts.a.count=5"),
        ],
    ),
    case(
        "[star.hosts.NAME]",
        STAR,
        &[],
        &[
            ("count", "star.hosts.a.count=5"),
            ("rate", "star.hosts.a.rate=1Gbps"),
            ("delay", "star.hosts.a.delay=1us"),
        ],
    ),
    case(
        "[hosts.NAME]",
        GENERAL,
        &[],
        &[("count", "hosts.a.count=3")],
    ),
    case(
        "[switches.NAME]",
        GENERAL,
        &[],
        &[
            (
                "shared_buffer",
                "switches.t.shared_buffer={ size = \"1MB\", alpha = 1 }",
            ),
            ("tcon", "switches.t.tcon=[{ pass = true }]"),
        ],
    ),
    case(
        "[[switches.NAME.tcon]]",
        GENERAL,
        &["switches.t.tcon=[{ congestion = \"bbr\" }]"],
        &[
            (
                "from",
                "switches.t.tcon=[{ congestion = \"bbr\", from = \"b\" }]",
            ),
            (
                "to",
                "switches.t.tcon=[{ congestion = \"bbr\", to = \"b\" }]",
            ),
            ("congestion", "switches.t.tcon=[{ congestion = \"dctcp\" }]"),
            ("pass", "switches.t.tcon=[{ pass = true }]"),
            (
                "ecn",
                "switches.t.tcon=[{ congestion = \"bbr\", ecn = true }]",
            ),
            (
                "buffer",
                "switches.t.tcon=[{ congestion = \"bbr\", buffer = \"1MB\" }]",
            ),
        ],
    ),
    case(
        "[switches.NAME.shared_buffer] and [star.shared_buffer]",
        STAR,
        &[],
        &[
            ("size", "star.shared_buffer.size=2MB"),
            ("per_port", "star.shared_buffer.per_port=1KB"),
        ],
    ),
    case(
        "[switches.NAME.shared_buffer] and [star.shared_buffer]",
        GENERAL,
        &["switches.t.shared_buffer={ size = \"1MB\", alpha = 1 }"],
        &[("alpha", "switches.t.shared_buffer.alpha=2")],
    ),
    case(
        "[[links]]",
        GENERAL,
        &[],
        &[
            ("from", "links.5.from=t"),
            ("to", "links.0.to=t"),
            ("name", "links.1.name=trunk"),
            ("rate", "links.1.rate=1Gbps"),
            ("delay", "links.1.delay=1us"),
            ("mtu", "links.1.mtu=9000B"),
            ("framing", "links.1.framing=2B"),
            (
                "queue",
                "links.1.queue={ kind = \"drop-tail\", buffer = \"1MB\" }",
            ),
            (
                "reverse_queue",
                "links.1.reverse_queue={ kind = \"drop-tail\", buffer = \"1MB\" }",
            ),
        ],
    ),
    case(
        "[[routes]]",
        GENERAL,
        &[],
        &[
            (
                "switch",
                "routes=[{ switch = \"u\", to = \"b\", via = \"b\" }]",
            ),
            ("to", "routes.0.to=[\"b\", \"c\"]"),
            ("via", "routes.0.via=t"),
        ],
    ),
    case(
        "[measurements]",
        FILE,
        &[],
        &[
            ("sample_interval", "measurements.sample_interval=1ms"),
            ("ports", "measurements.ports=*"),
            ("snap_length", "measurements.snap_length=64B"),
        ],
    ),
    case(
        "[measurements]",
        TWO_GROUPS,
        &[],
        &[(
            "reduction",
            "measurements.reduction={ of = \"g\", against = \"h\" }",
        )],
    ),
    case(
        "[measurements.reduction]",
        TWO_GROUPS,
        &["measurements.reduction={ of = \"g\", against = \"h\" }"],
        &[
            ("of", "measurements.reduction.of=i"),
            ("against", "measurements.reduction.against=i"),
        ],
    ),
    case(
        "[sed]",
        FILE,
        &["sed.rtt=100us"],
        &[
            ("rtt", "sed.rtt=200us"),
            ("threshold", "sed.threshold=20KB"),
            ("recovery", "sed.recovery=10KB"),
            ("total_rtt", "sed.total_rtt=loaded"),
            ("flow_rtt", "sed.flow_rtt=base"),
            ("allocation", "sed.allocation=planned"),
            ("best_effort", "sed.best_effort=10"),
            ("late", "sed.late=stop"),
            ("retransmit", "sed.retransmit=true"),
            ("lease", "sed.lease=1s"),
            ("counters_interval", "sed.counters_interval=2ms"),
            ("latency", "sed.latency=1ms"),
            ("rate", "sed.rate=1Mbps"),
        ],
    ),
    case(
        "[sed]",
        FILE,
        &["sed.rtt=100us", "sed.allocation=paper"],
        &[("base", "sed.base=2")],
    ),
    case(
        "[live]",
        FILE,
        &[],
        &[
            ("address_family", "live.address_family=ipv6"),
            ("network", "live.network=10.78.0.0/16"),
            ("gso_segments", "live.gso_segments=4"),
            ("delay_error", "live.delay_error=1ms"),
        ],
    ),
];
