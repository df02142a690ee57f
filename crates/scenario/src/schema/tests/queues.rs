//! Queues.

use super::{Case, FILE, case};

pub(super) const CASES: &[Case] = &[
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
        "[queues.NAME] kind = \"codel\"",
        FILE,
        &["queues.q={ kind = \"codel\", buffer = \"1MB\" }"],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("target", "queues.q.target=1ms"),
            ("interval", "queues.q.interval=50ms"),
            ("mark", "queues.q.mark=true"),
        ],
    ),
    case(
        "[queues.NAME] kind = \"strict-priority\"",
        FILE,
        &["queues.q={ kind = \"strict-priority\", buffer = \"1MB\", high = \"ect\" }"],
        &[
            ("buffer", "queues.q.buffer=2MB"),
            ("high", "queues.q.high=not-ect"),
            ("ecn_threshold", "queues.q.ecn_threshold=20KB"),
        ],
    ),
];
