//! What a hostile peer does, as a list that a fuzzer writes.

use arbitrary::Arbitrary;

/// A number that is interesting more often than a random one.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Relative to what an honest peer would say.
    Near(i8),
    Small(u8),
    Middle(u32),
    Any(u64),
}

impl Number {
    /// The number, as long as a variable-length integer may be.
    pub(crate) fn value(self, honest: u64) -> u64 {
        let value = match self {
            Self::Near(distance) => honest.saturating_add_signed(distance.into()),
            Self::Small(value) => value.into(),
            Self::Middle(value) => value.into(),
            Self::Any(value) => value,
        };
        value & ((1 << 62) - 1)
    }
}

/// A frame that the peer may not mean.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) enum Hostile {
    Padding(u8),
    Ping,
    /// Ranges as gaps and lengths, from the largest downwards.
    Ack {
        largest: Number,
        ranges: Vec<(u8, u8)>,
        delay: Number,
        ecn: Option<(Number, Number, Number)>,
    },
    /// What an honest peer would acknowledge.
    HonestAck,
    /// Data that continue one of its streams.
    Data {
        stream: u8,
        length: u8,
        fin: bool,
    },
    Stream {
        initiated_by_victim: bool,
        unidirectional: bool,
        index: Number,
        offset: Number,
        length: u8,
        fin: bool,
        without_length: bool,
    },
    /// Many tiny pieces of a stream.
    Pieces {
        stream: u8,
        start: u32,
        stride: i8,
        length: u8,
        count: u8,
    },
    Reset {
        stream: Number,
        size: Number,
    },
    Stop {
        stream: Number,
    },
    MaxData(Number),
    MaxStreamData {
        stream: Number,
        limit: Number,
    },
    MaxStreams {
        unidirectional: bool,
        limit: Number,
    },
    Blocked(Number),
    NewId {
        sequence: Number,
        retire_prior_to: Number,
        id: u8,
    },
    Retire(Number),
    Challenge(u64),
    Response(u64),
    /// The answer to what the victim asked.
    HonestResponse,
    Crypto {
        offset: Number,
        length: u8,
    },
    NewToken(u8),
    HandshakeDone,
    Datagram(u8),
    AckFrequency {
        sequence: Number,
        threshold: Number,
        delay: Number,
        reordering: Number,
    },
    ImmediateAck,
    Close {
        application: bool,
        code: Number,
    },
    /// A type and nothing behind it.
    Type(Number),
    Bytes(Vec<u8>),
}

/// At which level a packet is sealed.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Seal {
    OneRtt,
    Initial,
    Handshake,
    ZeroRtt,
}

/// How a packet differs from what it should be.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Wrong {
    Nothing,
    ReservedBits,
    FixedBit,
    Phase,
    Id,
}

/// What the victim's application does.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Wish {
    /// Opens a stream and writes so many hundred bytes.
    Write(u8),
    Finish,
    Reset,
    Stop,
    Datagram(u8),
    UpdateKeys,
    /// A client gets another address, or one under it changes (clients only).
    AddAddress(u8),
    Rebind(u8),
    Move(u8),
    Close,
}

/// One thing that happens.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) enum Step {
    /// A packet that opens.
    Packet {
        seal: Seal,
        number: Number,
        frames: Vec<Hostile>,
        from: u8,
        wrong: Wrong,
    },
    /// The same frame in many packets with numbers in order, from one address or ever new ones.
    Flood {
        frame: Hostile,
        packets: u8,
        per_packet: u8,
        new_addresses: bool,
    },
    /// What an honest peer would do now.
    Behave {
        from: u8,
    },
    /// Another connection; one that `stalls` sends its first packet and no more.
    Begin {
        early: bool,
        stalls: bool,
    },
    /// First packets from invented addresses.
    Initials {
        count: u8,
    },
    /// Bytes that are no packet, behind a beginning that looks like one.
    Raw {
        look: Look,
        bytes: Vec<u8>,
        from: u8,
    },
    /// Something that was sent before, perhaps with a byte changed, perhaps from elsewhere.
    Replay {
        index: u8,
        from: u8,
        flip: Option<(u16, u8)>,
    },
    UseId(u8),
    UpdateKeys,
    /// Time passes: the mantissa shifted by the exponent, in nanoseconds, up to some minutes.
    Elapse {
        mantissa: u8,
        exponent: u8,
    },
    /// The honest connection exchanges data, and someone sends so many copies of what its peer
    /// sends ahead of the originals.
    Honest {
        copies: u8,
        flip: bool,
    },
    Application(Wish),
}

/// What raw bytes look like.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Look {
    Anything,
    ShortHeader,
    Initial,
    VersionNegotiation,
    OtherVersion,
    Retry,
    Handshake,
}

/// All of it.
#[derive(Arbitrary, Clone, Debug)]
pub(crate) struct Script {
    /// Makes limits and windows differ.
    pub(crate) seed: u8,
    /// Whether the victim's application reads.
    pub(crate) reads: bool,
    pub(crate) steps: Vec<Step>,
}
