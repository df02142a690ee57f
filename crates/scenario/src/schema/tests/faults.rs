//! Faults.

use super::{Case, EPOCHS, FILE, case};

pub(super) const CASES: &[Case] = &[
    case(
        "[[faults]] kind = \"down\"",
        FILE,
        &[],
        &[
            ("ports", "faults.0.ports=*"),
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
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
            ("both_ways", "faults.0.both_ways=true"),
            ("at", "faults.0.at=2s"),
            ("until", "faults.0.until=2s"),
            ("rate", "faults.0.rate=2Gbps"),
        ],
    ),
    case(
        "[[faults]] kind = \"down\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"down\", ports = \"bottleneck\", at_epoch = 1 }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"loss\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"loss\", ports = \"bottleneck\", at_epoch = 1, probability = 0.1 }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"duplicate\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"duplicate\", ports = \"bottleneck\", at_epoch = 1, probability = 0.1 }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"corrupt\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"corrupt\", ports = \"bottleneck\", at_epoch = 1, probability = 0.1 }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"reorder\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"reorder\", ports = \"bottleneck\", at_epoch = 1, probability = 0.1, delay = \"1us\" }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"delay\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"delay\", ports = \"bottleneck\", at_epoch = 1, delay = \"1us\" }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"jitter\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"jitter\", ports = \"bottleneck\", at_epoch = 1, jitter = \"1us\" }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"rate\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"rate\", ports = \"bottleneck\", at_epoch = 1, rate = \"1Gbps\" }",
        ],
        &[
            ("at_epoch", "faults.0.at_epoch=2"),
            ("until_epoch", "faults.0.until_epoch=2"),
        ],
    ),
    case(
        "[[faults]] kind = \"address\"",
        FILE,
        &["faults.0={ kind = \"address\", ports = \"near1->switch\", at = \"1s\" }"],
        &[
            ("ports", "faults.0.ports=near*->switch"),
            ("at", "faults.0.at=2s"),
        ],
    ),
    case(
        "[[faults]] kind = \"address\"",
        FILE,
        &[
            EPOCHS,
            "faults.0={ kind = \"address\", ports = \"near1->switch\", at_epoch = 1 }",
        ],
        &[("at_epoch", "faults.0.at_epoch=2")],
    ),
    case(
        "[[faults]] kind = \"down\"",
        FILE,
        &["faults.0={ kind = \"down\", ports = \"*\", at = \"1s\" }"],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"loss\"",
        FILE,
        &["faults.0={ kind = \"loss\", ports = \"*\", at = \"1s\", probability = 0.1 }"],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"duplicate\"",
        FILE,
        &["faults.0={ kind = \"duplicate\", ports = \"*\", at = \"1s\", probability = 0.1 }"],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"corrupt\"",
        FILE,
        &["faults.0={ kind = \"corrupt\", ports = \"*\", at = \"1s\", probability = 0.1 }"],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"reorder\"",
        FILE,
        &[
            "faults.0={ kind = \"reorder\", ports = \"*\", at = \"1s\", probability = 0.1, delay = \"1us\" }",
        ],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"delay\"",
        FILE,
        &["faults.0={ kind = \"delay\", ports = \"*\", at = \"1s\", delay = \"1us\" }"],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"jitter\"",
        FILE,
        &["faults.0={ kind = \"jitter\", ports = \"*\", at = \"1s\", jitter = \"1us\" }"],
        &[("random", "faults.0.random=1")],
    ),
    case(
        "[[faults]] kind = \"rate\"",
        FILE,
        &["faults.0={ kind = \"rate\", ports = \"*\", at = \"1s\", rate = \"1Gbps\" }"],
        &[("random", "faults.0.random=1")],
    ),
];
