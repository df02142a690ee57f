//! The keys of `[queues.NAME]`, by kind.

use crate::schema::{Accepts, Key, Literal, Section};

const BUFFER: Key = Key::required(
    "buffer",
    Accepts::Buffer,
    "what the queue holds; whatever does not fit is dropped and counted as `buffer`",
);

const RED_MIN: Key = Key::required(
    "red_min",
    Accepts::THRESHOLD,
    "up to here nothing is dropped early; from here on the drop probability grows from zero",
);

const RED_MAX: Key = Key::required(
    "red_max",
    Accepts::THRESHOLD,
    "above this every packet is dropped, at least `red_min`; with both equal this is drop-tail at \
     that level",
);

const DROP_PROBABILITY: Key = Key::required(
    "drop_probability",
    Accepts::Probability,
    "the drop probability as the length reaches `red_max`",
);

static DROP_TAIL: Section = Section {
    title: "[queues.NAME] kind = \"drop-tail\"",
    doc: "First in, first out, until the buffer is full.",
    keys: &[Key::kind(&["drop-tail"]), BUFFER],
};

static RED: Section = Section {
    title: "[queues.NAME] kind = \"red\"",
    doc: "Random early detection (Floyd and Jacobson 1993).",
    keys: &[
        Key::kind(&["red"]),
        BUFFER,
        RED_MIN,
        RED_MAX,
        DROP_PROBABILITY,
        Key::default(
            "length",
            Accepts::Word(&["instantaneous", "average"]),
            Literal::Text("average"),
            "the length that is compared with the thresholds: the queue as the packet arrives, or \
             a moving average",
        ),
        Key::optional(
            "weight",
            Accepts::Number(1e-9, 1.0),
            "0.002 with the average length",
            "how much one arrival counts in the average, w_q in the paper; only with \
             `length = \"average\"`",
        ),
        Key::optional(
            "gentle",
            Accepts::Boolean,
            "true with the average length",
            "whether the probability grows to 1 between `red_max` and twice that, instead of at \
             once; only with `length = \"average\"`",
        ),
        Key::default(
            "ecn",
            Accepts::Boolean,
            Literal::Boolean(false),
            "whether ECT packets are marked where others are dropped early",
        ),
    ],
};

static STEP: Section = Section {
    title: "[queues.NAME] kind = \"step\"",
    doc: "ECT packets that find more than a threshold are marked: what DCTCP asks of a switch.",
    keys: &[
        Key::kind(&["step"]),
        BUFFER,
        Key::required(
            "ecn_threshold",
            Accepts::Level,
            "K: ECT packets that find more than this are marked",
        ),
    ],
};

static TWO_THRESHOLD: Section = Section {
    title: "[queues.NAME] kind = \"two-threshold\"",
    doc: "ECT packets are marked with a probability between two thresholds and always above the \
          second: DCUDP's marking.",
    keys: &[
        Key::kind(&["two-threshold"]),
        BUFFER,
        Key::required("ecn_min", Accepts::THRESHOLD, "marking begins above this"),
        Key::required(
            "ecn_max",
            Accepts::THRESHOLD,
            "above this every ECT packet is marked; at least `ecn_min`",
        ),
        Key::required(
            "probability",
            Accepts::Probability,
            "how probably an ECT packet is marked between the two",
        ),
    ],
};

static SHARED: Section = Section {
    title: "[queues.NAME] kind = \"shared\"",
    doc: "One queue for both kinds of traffic (Vargas et al., section 5.3): ECT packets are marked \
          above a threshold, Not-ECT packets meet RED on the instantaneous length.",
    keys: &[
        Key::kind(&["shared"]),
        BUFFER,
        Key::required(
            "ecn_threshold",
            Accepts::THRESHOLD,
            "ECT packets that find more than this are marked",
        ),
        RED_MIN,
        RED_MAX,
        DROP_PROBABILITY,
    ],
};

static QFX: Section = Section {
    title: "[queues.NAME] kind = \"qfx\"",
    doc: "One queue, as Juniper's QFX switches have it with ECN on: ECT packets are marked above \
          the threshold, Not-ECT packets are dropped there.",
    keys: &[
        Key::kind(&["qfx"]),
        BUFFER,
        Key::required(
            "ecn_threshold",
            Accepts::THRESHOLD,
            "above this ECT packets are marked and Not-ECT packets are dropped",
        ),
    ],
};

/// All kinds of queues.
pub(crate) static SECTIONS: [&Section; 6] =
    [&DROP_TAIL, &RED, &STEP, &TWO_THRESHOLD, &SHARED, &QFX];
