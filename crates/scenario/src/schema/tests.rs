//! Every key does something: a scenario differs when its value does. A key that the loader listed
//! and forgot to read would be an option that silently does nothing.

use super::reference::sections;
use crate::{Document, Scenario, Setting};

const FILE: &str = r#"
title = "t"
source = "s"
duration = "10s"

[dumbbell]
rate = "10Gbps"
delay = "5us"
queue = "q"
[dumbbell.senders.near]
count = 4
rtt = "1ms"
[dumbbell.senders.far]
delay = "1ms"

[queues.q]
kind = "drop-tail"
buffer = "1MB"

[groups.g]
from = "near"
to = "receiver"
workload = "bulk"

[[faults]]
kind = "down"
ports = "bottleneck"
at = "1s"
"#;

const STAR: &str = r#"
title = "t"
source = "s"
duration = "10s"
[star]
rate = "10Gbps"
delay = "5us"
queue = "unlimited"
shared_buffer = { size = "1MB", per_port = "100KB" }
[star.hosts.a]
count = 4
[star.hosts.b]
count = 4
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;

const GENERAL: &str = r#"
title = "t"
source = "s"
duration = "10s"
[hosts.a]
count = 2
[hosts.b]
[hosts.c]
[switches.s]
[switches.t]
[switches.u]
[[links]]
from = "a"
to = "s"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "s"
to = "t"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "s"
to = "u"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "t"
to = "b"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "u"
to = "b"
rate = "10Gbps"
delay = "5us"
[[links]]
from = "u"
to = "c"
rate = "10Gbps"
delay = "5us"
[[routes]]
switch = "s"
to = "b"
via = "u"
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;

/// For one section: a file, settings that bring it there, and for each key a setting that changes
/// its value.
struct Case {
    title: &'static str,
    file: &'static str,
    base: &'static [&'static str],
    keys: &'static [(&'static str, &'static str)],
}

const fn case(
    title: &'static str,
    file: &'static str,
    base: &'static [&'static str],
    keys: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        title,
        file,
        base,
        keys,
    }
}

const CASES: &[Case] = &[
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
            ("dumbbell", "dumbbell.rate=1Gbps"),
            ("queues", "queues.q.buffer=2MB"),
            ("groups", "groups.g.flows=2"),
            ("faults", "faults=[]"),
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
        &[(
            "shared_buffer",
            "switches.t.shared_buffer={ size = \"1MB\", alpha = 1 }",
        )],
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
            "groups.g.workload={ kind = \"poisson\", load = 0.5, distribution = \"web-search\" }",
            "dumbbell.senders.near.rate=1Gbps",
        ],
        &[
            ("load", "groups.g.workload.load=0.6"),
            ("of", "groups.g.workload.of=near1->switch"),
        ],
    ),
    case(
        "[queues.NAME] kind = \"drop-tail\"",
        FILE,
        &[],
        &[("buffer", "queues.q.buffer=100 packets")],
    ),
    case(
        "[queues.NAME] kind = \"red\"",
        FILE,
        &[
            "queues.q={ kind = \"red\", buffer = \"1MB\", red_min = \"1KB\", red_max = \"2KB\", drop_probability = 0.1 }",
        ],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("red_min", "queues.q.red_min=0B"),
            ("red_max", "queues.q.red_max=3KB"),
            ("drop_probability", "queues.q.drop_probability=0.2"),
            ("length", "queues.q.length=instantaneous"),
            ("weight", "queues.q.weight=0.5"),
            ("gentle", "queues.q.gentle=false"),
            ("ecn", "queues.q.ecn=true"),
        ],
    ),
    case(
        "[queues.NAME] kind = \"step\"",
        FILE,
        &["queues.q={ kind = \"step\", buffer = \"1MB\", ecn_threshold = \"1KB\" }"],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("ecn_threshold", "queues.q.ecn_threshold=20 packets"),
        ],
    ),
    case(
        "[queues.NAME] kind = \"two-threshold\"",
        FILE,
        &[
            "queues.q={ kind = \"two-threshold\", buffer = \"1MB\", ecn_min = \"1KB\", ecn_max = \"2KB\", probability = 0.1 }",
        ],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("ecn_min", "queues.q.ecn_min=0B"),
            ("ecn_max", "queues.q.ecn_max=3KB"),
            ("probability", "queues.q.probability=1"),
        ],
    ),
    case(
        "[queues.NAME] kind = \"shared\"",
        FILE,
        &[
            "queues.q={ kind = \"shared\", buffer = \"1MB\", ecn_threshold = \"1KB\", red_min = \"1KB\", red_max = \"2KB\", drop_probability = 0.1 }",
        ],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("ecn_threshold", "queues.q.ecn_threshold=2KB"),
            ("red_min", "queues.q.red_min=0B"),
            ("red_max", "queues.q.red_max=3KB"),
            ("drop_probability", "queues.q.drop_probability=0.2"),
        ],
    ),
    case(
        "[queues.NAME] kind = \"qfx\"",
        FILE,
        &["queues.q={ kind = \"qfx\", buffer = \"1MB\", ecn_threshold = \"1KB\" }"],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("ecn_threshold", "queues.q.ecn_threshold=2KB"),
        ],
    ),
    case(
        "[[faults]] kind = \"down\"",
        FILE,
        &[],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
        ],
    ),
    case(
        "[[faults]] kind = \"loss\"",
        FILE,
        &["faults.0={ kind = \"loss\", ports = \"bottleneck\", at = \"1s\", probability = 0.1 }"],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("probability", "faults.0.probability=0.2"),
        ],
    ),
    case(
        "[[faults]] kind = \"duplicate\"",
        FILE,
        &[
            "faults.0={ kind = \"duplicate\", ports = \"bottleneck\", at = \"1s\", probability = 0.1 }",
        ],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("probability", "faults.0.probability=0.2"),
        ],
    ),
    case(
        "[[faults]] kind = \"corrupt\"",
        FILE,
        &[
            "faults.0={ kind = \"corrupt\", ports = \"bottleneck\", at = \"1s\", probability = 0.1 }",
        ],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("probability", "faults.0.probability=0.2"),
        ],
    ),
    case(
        "[[faults]] kind = \"reorder\"",
        FILE,
        &[
            "faults.0={ kind = \"reorder\", ports = \"bottleneck\", at = \"1s\", probability = 0.1, delay = \"1us\" }",
        ],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("probability", "faults.0.probability=0.2"),
            ("delay", "faults.0.delay=2us"),
        ],
    ),
    case(
        "[[faults]] kind = \"delay\"",
        FILE,
        &["faults.0={ kind = \"delay\", ports = \"bottleneck\", at = \"1s\", delay = \"1us\" }"],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("delay", "faults.0.delay=2us"),
        ],
    ),
    case(
        "[[faults]] kind = \"jitter\"",
        FILE,
        &["faults.0={ kind = \"jitter\", ports = \"bottleneck\", at = \"1s\", jitter = \"1us\" }"],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("jitter", "faults.0.jitter=2us"),
        ],
    ),
    case(
        "[[faults]] kind = \"rate\"",
        FILE,
        &["faults.0={ kind = \"rate\", ports = \"bottleneck\", at = \"1s\", rate = \"1Gbps\" }"],
        &[
            ("ports", "faults.0.ports=*"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("rate", "faults.0.rate=2Gbps"),
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
];

/// `parameters` and `variants` change what is read, not a scenario; `kind` chooses the section.
const ELSEWHERE: [&str; 3] = ["parameters", "variants", "kind"];

fn load(file: &str, settings: &[&str]) -> Scenario {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|text| text.parse().expect(text))
        .collect();
    let document = Document::parse("test.toml", file).and_then(|file| file.with(&settings));
    document
        .and_then(|document| document.scenario())
        .unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

#[test]
fn every_key_does_something() {
    for case in CASES {
        let base = load(case.file, case.base);
        for (key, setting) in case.keys {
            let settings: Vec<_> = case.base.iter().copied().chain([*setting]).collect();
            let changed = load(case.file, &settings) != base;
            assert!(changed, "{}: {key}: {setting} does nothing", case.title);
        }
    }
}

#[test]
fn no_key_is_left_out() {
    let tested = |title: &str, key: &str| {
        let mut cases = CASES.iter().filter(|case| case.title == title);
        cases.any(|case| case.keys.iter().any(|(tested, _)| *tested == key))
    };
    for section in sections() {
        assert!(
            CASES.iter().any(|case| case.title == section.title),
            "{}",
            section.title
        );
        for key in section.keys {
            let elsewhere = ELSEWHERE.contains(&key.name);
            assert!(
                elsewhere || tested(section.title, key.name),
                "{}: {}",
                section.title,
                key.name
            );
        }
    }
    for case in CASES {
        assert!(
            sections().any(|section| section.title == case.title),
            "{}",
            case.title
        );
    }
}
