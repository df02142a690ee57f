//! Changes.

use super::{Case, case};

const FILE: &str = r#"
title = "t"
source = "s"
duration = "10s"
[star]
rate = "10Gbps"
delay = "5us"
queue = "q"
shared_buffer = { size = "2MB", alpha = 1 }
[star.hosts.a]
count = 4
[star.hosts.b]
[queues.q]
kind = "red"
red_min = "20KB"
red_max = "80KB"
drop_probability = 0.1
buffer = "1MB"
[groups.g]
from = "a"
to = "b"
congestion = "dctcp"
workload = { kind = "poisson", load = 0.1, of = "hosts", distribution = "web-search" }
[groups.h]
from = "a"
to = "b"
congestion = "dctcp"
workload = { kind = "poisson", mean_interval = "1ms", distribution = "web-search" }
[groups.i]
from = "a"
to = "b"
workload = { kind = "cbr", rate = "1Mbps" }
"#;

const PER_PORT: &str = r#"
title = "t"
source = "s"
duration = "10s"
[star]
rate = "10Gbps"
delay = "5us"
queue = "unlimited"
shared_buffer = { size = "2MB", per_port = "1MB" }
[star.hosts.a]
[star.hosts.b]
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;

/// Other queues: keys of `set.queue` need a queue that has them.
const STEP: &str = "queues.q={ kind = \"step\", buffer = \"1MB\", ecn_threshold = \"1KB\" }";
const TWO: &str = "queues.q={ kind = \"two-threshold\", buffer = \"1MB\", ecn_min = \"1KB\", ecn_max = \"2KB\", probability = 0.1 }";
const CODEL: &str = "queues.q={ kind = \"codel\", buffer = \"1MB\" }";

pub(super) const CASES: &[Case] = &[
    case(
        "[[changes]]",
        FILE,
        &["changes=[{ at = \"1s\", groups = \"g\", set = { workload.load = 0.2 } }]"],
        &[
            ("at", "changes.0.at=2s"),
            (
                "groups",
                "changes=[{ at = \"1s\", groups = \"h\", set.workload.mean_interval = \"2ms\" }]",
            ),
            ("set", "changes.0.set.workload.load=0.3"),
            (
                "ports",
                "changes=[{ at = \"1s\", ports = \"b->switch\", set = { queue.buffer = \"2MB\" } }]",
            ),
            (
                "switches",
                "changes=[{ at = \"1s\", switches = \"switch\", set = { shared_buffer.size = \"1MB\" } }]",
            ),
        ],
    ),
    case(
        "[[changes]] set, of ports",
        FILE,
        &["changes=[{ at = \"1s\", ports = \"switch->b\", set = { queue.buffer = \"2MB\" } }]"],
        &[("queue", "changes.0.set.queue.buffer=3MB")],
    ),
    case(
        "[[changes]] set, of switches",
        FILE,
        &[
            "changes=[{ at = \"1s\", switches = \"switch\", set = { shared_buffer.size = \"1MB\" } }]",
        ],
        &[("shared_buffer", "changes.0.set.shared_buffer.size=3MB")],
    ),
    case(
        "[[changes]] set, of groups",
        FILE,
        &["changes=[{ at = \"1s\", groups = \"g\", set = { congestion.g = 0.5 } }]"],
        &[
            ("congestion", "changes.0.set.congestion.g=0.25"),
            ("workload", "changes.0.set.workload.load=0.3"),
        ],
    ),
    case(
        "[[changes]] set.queue",
        FILE,
        &["changes=[{ at = \"1s\", ports = \"switch->b\", set.queue.buffer = \"2MB\" }]"],
        &[
            ("buffer", "changes.0.set.queue.buffer=3MB"),
            ("red_min", "changes.0.set.queue.red_min=1KB"),
            ("red_max", "changes.0.set.queue.red_max=90KB"),
            (
                "drop_probability",
                "changes.0.set.queue.drop_probability=0.5",
            ),
            ("weight", "changes.0.set.queue.weight=0.5"),
            ("gentle", "changes.0.set.queue.gentle=false"),
        ],
    ),
    case(
        "[[changes]] set.queue",
        FILE,
        &[
            STEP,
            "changes=[{ at = \"1s\", ports = \"switch->b\", set.queue.buffer = \"2MB\" }]",
        ],
        &[(
            "ecn_threshold",
            "changes.0.set.queue.ecn_threshold=3 packets",
        )],
    ),
    case(
        "[[changes]] set.queue",
        FILE,
        &[
            TWO,
            "changes=[{ at = \"1s\", ports = \"switch->b\", set.queue.buffer = \"2MB\" }]",
        ],
        &[
            ("ecn_min", "changes.0.set.queue.ecn_min=0B"),
            ("ecn_max", "changes.0.set.queue.ecn_max=3KB"),
            ("probability", "changes.0.set.queue.probability=1"),
        ],
    ),
    case(
        "[[changes]] set.queue",
        FILE,
        &[
            CODEL,
            "changes=[{ at = \"1s\", ports = \"switch->b\", set.queue.buffer = \"2MB\" }]",
        ],
        &[
            ("target", "changes.0.set.queue.target=1ms"),
            ("interval", "changes.0.set.queue.interval=50ms"),
        ],
    ),
    case(
        "[[changes]] set.shared_buffer",
        FILE,
        &["changes=[{ at = \"1s\", switches = \"switch\", set.shared_buffer.size = \"1MB\" }]"],
        &[
            ("size", "changes.0.set.shared_buffer.size=3MB"),
            ("alpha", "changes.0.set.shared_buffer.alpha=4"),
        ],
    ),
    case(
        "[[changes]] set.shared_buffer",
        PER_PORT,
        &["changes=[{ at = \"1s\", switches = \"switch\", set.shared_buffer.size = \"1MB\" }]"],
        &[("per_port", "changes.0.set.shared_buffer.per_port=100KB")],
    ),
    case(
        "[[changes]] set.workload",
        FILE,
        &["changes=[{ at = \"1s\", groups = \"g\", set.workload.load = 0.2 }]"],
        &[("load", "changes.0.set.workload.load=0.3")],
    ),
    case(
        "[[changes]] set.workload",
        FILE,
        &["changes=[{ at = \"1s\", groups = \"h\", set.workload.mean_interval = \"2ms\" }]"],
        &[("mean_interval", "changes.0.set.workload.mean_interval=3ms")],
    ),
    case(
        "[[changes]] set.workload",
        FILE,
        &["changes=[{ at = \"1s\", groups = \"i\", set.workload.rate = \"2Mbps\" }]"],
        &[("rate", "changes.0.set.workload.rate=3Mbps")],
    ),
];
