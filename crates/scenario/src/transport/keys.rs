//! The keys of `[groups.NAME.tcp]` and `[groups.NAME.udp]`.

use weir_units::ByteSize;

use crate::schema::{Accepts, Key, Literal, Section};

pub(crate) static TCP: Section = Section {
    title: "[groups.NAME.tcp]",
    doc: "How both ends of the group's TCP connections are set up. The initial and the minimum window \
          are parameters of the congestion control.",
    keys: &[
        Key::optional(
            "mss",
            Accepts::Size(ByteSize::from_bytes(64), ByteSize::from_bytes(65_495)),
            "the smallest MTU of all links less 40B of headers",
            "the maximum segment size, as the MSS option counts it: time stamps and other options \
             take their bytes from it",
        ),
        Key::default(
            "handshake",
            Accepts::Boolean,
            Literal::Boolean(true),
            "whether connections begin with the three-way handshake and end with FINs; without, \
             both ends start established",
        ),
        Key::optional(
            "ecn",
            Accepts::Word(&["off", "rfc3168", "dctcp"]),
            "`\"dctcp\"` with the congestion controls `dctcp` and `d2tcp`, else `\"off\"`",
            "how the connections use ECN: not, one reaction per window (RFC 3168), or an exact echo \
             of marks (RFC 8257)",
        ),
        Key::default(
            "sack",
            Accepts::Boolean,
            Literal::Boolean(true),
            "selective acknowledgments (RFC 2018)",
        ),
        Key::default(
            "timestamps",
            Accepts::Boolean,
            Literal::Boolean(true),
            "the time-stamps option (RFC 7323): 12 bytes in each segment",
        ),
        Key::default(
            "recovery",
            Accepts::Word(&["rack", "rfc6675"]),
            Literal::Text("rack"),
            "how losses are found with SACK: by time and tail loss probes (RFC 8985), or by three \
             segments that were SACKed above (RFC 6675); without SACK, duplicate ACKs tell \
             (RFC 6582)",
        ),
        Key::default(
            "limited_transmit",
            Accepts::Boolean,
            Literal::Boolean(true),
            "whether the first two duplicate ACKs let new segments go (RFC 3042)",
        ),
        Key::default(
            "prr",
            Accepts::Boolean,
            Literal::Boolean(true),
            "proportional rate reduction while losses are repaired (RFC 9937)",
        ),
        Key::default(
            "ack_every",
            Accepts::Count(1, 1000),
            Literal::Integer(2),
            "the receiver acknowledges after this many segments; 1 turns delayed ACKs off",
        ),
        Key::default(
            "delayed_ack_timeout",
            Accepts::POSITIVE_SPAN,
            Literal::Text("40ms"),
            "how long an ACK waits at most for the next segment",
        ),
        Key::default(
            "quick_ack_segments",
            Accepts::Count(0, 1000),
            Literal::Integer(16),
            "so many segments at a connection's start are acknowledged at once",
        ),
        Key::default(
            "initial_rto",
            Accepts::POSITIVE_SPAN,
            Literal::Text("1s"),
            "the retransmission time-out before the first round-trip time sample (RFC 6298)",
        ),
        Key::default(
            "min_rto",
            Accepts::POSITIVE_SPAN,
            Literal::Text("200ms"),
            "the least that a retransmission time-out adds to the smoothed round-trip time, as in Linux",
        ),
        Key::default(
            "max_rto",
            Accepts::POSITIVE_SPAN,
            Literal::Text("120s"),
            "the largest retransmission time-out",
        ),
        Key::default(
            "pacing",
            Accepts::Word(&["controller", "window"]),
            Literal::Text("controller"),
            "what segments are paced by: the rate that the congestion control asks for, if it does; \
             or else also 2 windows per round trip in slow start and 1.2 later, as Linux does with \
             its fq queue",
        ),
        Key::default(
            "tso_segments",
            Accepts::Count(1, 44),
            Literal::Integer(1),
            "the most segments that are handed to the link at once. Linux sends bursts of up to \
             64 KB; 1 keeps flows fair in marked queues",
        ),
        Key::default(
            "send_buffer",
            Accepts::Limit(ByteSize::from_bytes(2048)),
            Literal::Text("4MiB"),
            "what the application can hand over ahead of acknowledgments: Linux's largest, \
             `net.ipv4.tcp_wmem`",
        ),
        Key::default(
            "receive_buffer",
            Accepts::Limit(ByteSize::from_bytes(2048)),
            Literal::Text("6MiB"),
            "what the receiver holds, and so the largest window: Linux's largest, \
             `net.ipv4.tcp_rmem`",
        ),
        Key::default(
            "idle_restart",
            Accepts::Boolean,
            Literal::Boolean(true),
            "whether the window shrinks while the connection is idle (RFC 2861)",
        ),
        Key::default(
            "nagle",
            Accepts::Boolean,
            Literal::Boolean(false),
            "Nagle's algorithm: a small segment waits while data is under way. Off, as programs that \
             make requests set it (TCP_NODELAY)",
        ),
        Key::default(
            "small_queues",
            Accepts::Boolean,
            Literal::Boolean(true),
            "flows wait while their host has about a millisecond to send, as Linux's do (TCP small \
             queues); without, a flow whose own link is the bottleneck fills its host's queue",
        ),
    ],
};

pub(crate) static UDP: Section = Section {
    title: "[groups.NAME.udp]",
    doc: "How the group's datagrams are sent.",
    keys: &[Key::default(
        "ecn",
        Accepts::Word(&["not-ect", "ect0", "ect1"]),
        Literal::Text("not-ect"),
        "the ECN codepoint of the datagrams",
    )],
};
