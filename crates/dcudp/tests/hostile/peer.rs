//! A connection with a scripted peer: the handshake is correct, then the peer follows a script.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use weir_dcudp::packet::{
    Ack, Control, ControlHeader, DataHeader, Handshake, HandshakeKind, HeaderFlags, KeepAlive,
    LossRange, LossRanges, MessagePosition, Packet, Shutdown, ShutdownReason, SocketId, Timestamp,
    write_loss_range,
};
use weir_dcudp::{
    Connection, DataKind, Endpoint, Event, MessageNumber, Route, SequenceNumber, ServerConfig,
    TransportConfig,
};
use weir_units::{ByteSize, Duration, Rate, Time};
use weir_wire::Ecn;

/// A step of the script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends a packet of this kind, with fields near the correct values.
    Say {
        kind: u8,
        marks: u8,
        words: [u32; 5],
        ce: bool,
    },
    /// Sends any bytes behind a valid header.
    Bytes(Vec<u8>),
    /// Waits, in microseconds.
    Wait(u32),
    /// The victim's application writes.
    Write(u16),
    /// The victim's application closes.
    Close,
}

/// The server end with its application.
pub(crate) struct Victim {
    now: Time,
    peer: SocketAddr,
    pub(crate) connection: Connection,
    socket: SocketId,
    first: SequenceNumber,
    number: u32,
    messages: bool,
    pub(crate) events: Vec<Event>,
    buffer: Vec<u8>,
}

const FIRST: u32 = 0x7fff_fff0;
/// The most datagrams that the victim may send at once; more would be unbounded work.
const MOST_PER_STEP: usize = 64;

impl Victim {
    pub(crate) fn new(messages: bool) -> Self {
        let mut config = TransportConfig::new(Rate::from_gbps(1));
        config.data = if messages {
            DataKind::Messages
        } else {
            DataKind::Stream
        };
        config.receive_window = 64;
        config.send_buffer = ByteSize::from_bytes(100_000);
        config.quit.window = 2;
        let server = ServerConfig::new(Arc::new(config));
        let mut endpoint = Endpoint::new(Some(server), [3; 32]).expect("valid settings");
        let (now, peer) = (
            Time::from_nanos(1_000_000),
            SocketAddr::from(([10, 0, 0, 9], 99)),
        );
        let mut request = Handshake {
            version: Handshake::VERSION,
            kind: HandshakeKind::Request,
            messages,
            udp_mode: true,
            initial_sequence: SequenceNumber::new(FIRST),
            packet_size: ByteSize::from_bytes(1472),
            window: 64,
            rtt: Duration::ZERO,
            socket: SocketId(77),
            cookie: 0,
            random: [5; 16],
            tag: None,
        };
        let challenge = endpoint.route(
            now,
            peer,
            None,
            &control(SocketId::NONE, 0, 0, Control::Handshake(request)),
        );
        let Route::Reply(challenge) = challenge else {
            panic!("no challenge");
        };
        if let Ok(Packet::Control(_, Control::Handshake(challenge))) = Packet::decode(&challenge) {
            request.cookie = challenge.cookie;
        }
        let accepted = endpoint.route(
            now,
            peer,
            None,
            &control(SocketId::NONE, 0, 0, Control::Handshake(request)),
        );
        let Route::New(_, connection) = accepted else {
            panic!("not accepted");
        };
        let mut victim = Self {
            now,
            peer,
            connection: *connection,
            socket: SocketId::NONE,
            first: SequenceNumber::default(),
            number: 0,
            messages,
            events: Vec::new(),
            buffer: Vec::new(),
        };
        let transmit = victim.connection.poll_transmit(now, &mut victim.buffer, 1);
        assert!(transmit.is_some(), "no response");
        if let Ok(Packet::Control(_, Control::Handshake(response))) = Packet::decode(&victim.buffer)
        {
            victim.socket = response.socket;
            victim.first = response.initial_sequence;
        }
        victim
    }

    pub(crate) fn apply(&mut self, step: Step) {
        match step {
            Step::Say {
                kind,
                marks,
                words,
                ce,
            } => {
                let bytes = self.packet(kind, marks, words);
                self.receive_datagram(ce, &bytes);
            }
            Step::Bytes(mut bytes) => {
                if let Some(name) = bytes.get_mut(12..16) {
                    name.copy_from_slice(&self.socket.0.to_be_bytes());
                }
                self.receive_datagram(false, &bytes);
            }
            Step::Wait(micros) => self.wait(Duration::from_micros(micros.into())),
            Step::Write(length) => {
                let data = vec![1; length.into()];
                let _ = if self.messages {
                    self.connection
                        .write_message(&data, length.is_multiple_of(2))
                } else {
                    self.connection.write(&data).map(drop)
                };
            }
            Step::Close => self.connection.close(self.now),
        }
        self.service();
    }

    fn receive_datagram(&mut self, ce: bool, bytes: &[u8]) {
        let ecn = if ce { Ecn::Ce } else { Ecn::Ect0 };
        let datagram = BytesMut::from(bytes);
        self.connection
            .handle_datagram(self.now, self.peer, ecn, datagram);
    }

    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        // Rates are bounded, and so are the packets per time span: at most the send buffer's.
        while let Some(next) = self.connection.timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.connection.handle_timeout(self.now);
            self.service();
        }
        self.now = end;
    }

    fn service(&mut self) {
        let mut data = vec![0; 4096];
        if self.messages {
            data.clear();
            while self.connection.read_message(&mut data).is_ok() {
                data.clear();
            }
        } else {
            while self.connection.read(&mut data).is_ok() {}
        }
        let mut sent = 0;
        loop {
            self.buffer.clear();
            let transmit = self.connection.poll_transmit(self.now, &mut self.buffer, 1);
            if transmit.is_none() {
                break;
            }
            sent += 1;
            assert!(sent <= MOST_PER_STEP, "work without bounds");
        }
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
        }
        let stats = self.connection.stats();
        assert!(stats.unacknowledged.bytes() <= 200_000, "{stats:?}");
        assert!(stats.in_flight.bytes() <= 20_000_000, "{stats:?}");
    }

    /// Checks that the connection ends within its timers once the peer is silent.
    pub(crate) fn assert_ends_once_peer_is_silent(&mut self) {
        self.wait(Duration::from_secs(30));
        assert!(self.connection.is_drained(), "{:?}", self.connection);
        let closed = self
            .events
            .iter()
            .filter(|event| matches!(event, Event::Closed(_)));
        assert_eq!(closed.count(), 1, "{:?}", self.events);
        assert_eq!(self.connection.timeout(), None);
    }

    fn sequence(&self, word: u32) -> SequenceNumber {
        SequenceNumber::new(FIRST.wrapping_add(word))
    }

    fn sent(&self, word: u32) -> SequenceNumber {
        SequenceNumber::new(self.first.value().wrapping_add(word))
    }

    /// The words are offsets from a correct peer's initial values.
    fn packet(&mut self, kind: u8, marks: u8, words: [u32; 5]) -> Vec<u8> {
        let [first, second, third, fourth, fifth] = words;
        self.number += 1;
        let (number, socket) = (self.number, self.socket);
        match kind % 8 {
            0 => {
                let header = DataHeader {
                    sequence: self.sequence(first),
                    position: if self.messages {
                        MessagePosition::new(second & 1 != 0, second & 2 != 0)
                    } else if second.is_multiple_of(16) {
                        MessagePosition::Middle
                    } else {
                        MessagePosition::Only
                    },
                    in_order: second & 4 != 0,
                    flags: from_bits(marks),
                    message: MessageNumber::new(if self.messages { third } else { 0 }),
                    timestamp: Timestamp(fourth),
                    destination: socket,
                };
                let mut bytes = Vec::new();
                let payload = vec![7; (fifth % 1500) as usize];
                Packet::Data(header, &payload).encode(&mut bytes);
                bytes
            }
            1 => control(
                socket,
                number,
                marks,
                Control::KeepAlive(KeepAlive {
                    expected: self.sent(first),
                    window: second,
                    next: self.sequence(third),
                    request: fourth & 1 != 0,
                    answers: (fourth & 2 != 0).then(|| SequenceNumber::new(fifth)),
                }),
            ),
            2 => control(
                socket,
                number,
                marks,
                Control::Ack(Ack {
                    expected: self.sent(first),
                    window: second,
                    rtt: Duration::from_nanos(third.into()),
                    received: fourth,
                    marked: fifth,
                }),
            ),
            3 => {
                let mut list = Vec::new();
                let range = LossRange {
                    first: self.sent(first),
                    last: self.sent(first.wrapping_add(second % 100)),
                };
                write_loss_range(&mut list, range);
                match LossRanges::decode(&list) {
                    Ok(ranges) => control(socket, number, marks, Control::Nak(ranges)),
                    Err(_) => Vec::new(),
                }
            }
            4 => control(socket, number, marks, Control::ObsChange),
            5 => control(
                socket,
                number,
                marks,
                Control::Shutdown(Shutdown {
                    reason: [
                        ShutdownReason::Finished,
                        ShutdownReason::Aborted(second),
                        ShutdownReason::Protocol,
                        ShutdownReason::TimedOut,
                    ][(first % 4) as usize],
                    expected: self.sent(third),
                    is_answer: fourth & 1 != 0,
                }),
            ),
            6 => control(socket, first, marks, Control::Ack2),
            _ => control(socket, first, marks, Control::ObsChange),
        }
    }
}

fn from_bits(bits: u8) -> HeaderFlags {
    HeaderFlags {
        obs: bits & 4 != 0,
        cwr: bits & 2 != 0,
        ece: bits & 1 != 0,
    }
}

fn control(destination: SocketId, number: u32, marks: u8, control: Control<'_>) -> Vec<u8> {
    let header = ControlHeader {
        kind: control.kind(),
        flags: from_bits(marks),
        number: SequenceNumber::new(number),
        timestamp: Timestamp(0),
        destination,
    };
    let mut bytes = Vec::new();
    Packet::Control(header, control).encode(&mut bytes);
    bytes
}
