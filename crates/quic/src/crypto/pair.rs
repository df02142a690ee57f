//! Two sessions connected without packets, for tests of both providers.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::{
    Answerer, ClientCrypto, ClientStart, DirectionKeys, KeyChange, KeyUpdates, Keys, ServerAnswer,
    ServerCrypto, Session, SessionEvent,
};
use crate::{Level, Side, TransportError, Version};

pub(super) const CLIENT_PARAMETERS: &[u8] = b"what the client can do";
pub(super) const SERVER_PARAMETERS: &[u8] = b"what the server can do";

/// An event without the parts that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Send(Level),
    ZeroRtt,
    Handshake,
    OneRtt,
    Parameters { encoded: Vec<u8>, remembered: bool },
    EarlyData { accepted: bool },
    Version(Version),
    Complete,
}

/// One side with all output of its session.
pub(super) struct Peer {
    pub(super) session: Box<dyn Session>,
    pub(super) seen: Vec<Seen>,
    /// All sent bytes, in order.
    pub(super) sent: Vec<(Level, Vec<u8>)>,
    outgoing: VecDeque<(Level, Vec<u8>)>,
    pub(super) zero_rtt: Option<DirectionKeys>,
    pub(super) handshake: Option<Keys>,
    pub(super) one_rtt: Option<Keys>,
    pub(super) updates: Option<Box<dyn KeyUpdates>>,
    /// The version that a server changed to; the other side gets it with the next flight.
    changed_to: Option<Version>,
}

impl Peer {
    pub(super) fn new(session: Box<dyn Session>) -> Self {
        let mut peer = Self {
            session,
            seen: Vec::new(),
            sent: Vec::new(),
            outgoing: VecDeque::new(),
            zero_rtt: None,
            handshake: None,
            one_rtt: None,
            updates: None,
            changed_to: None,
        };
        peer.take_events();
        peer
    }

    fn take_events(&mut self) {
        while let Some(event) = self.session.poll() {
            let seen = match event {
                SessionEvent::Send(level, bytes) => {
                    self.sent.push((level, bytes.clone()));
                    self.outgoing.push_back((level, bytes));
                    Seen::Send(level)
                }
                SessionEvent::Keys(KeyChange::ZeroRtt(keys)) => {
                    self.zero_rtt = Some(keys);
                    Seen::ZeroRtt
                }
                SessionEvent::Keys(KeyChange::Handshake(keys)) => {
                    self.handshake = Some(keys);
                    Seen::Handshake
                }
                SessionEvent::Keys(KeyChange::OneRtt(keys, updates)) => {
                    self.one_rtt = Some(keys);
                    self.updates = Some(updates);
                    Seen::OneRtt
                }
                SessionEvent::PeerParameters {
                    encoded,
                    remembered,
                } => Seen::Parameters {
                    encoded,
                    remembered,
                },
                SessionEvent::EarlyData { accepted } => Seen::EarlyData { accepted },
                SessionEvent::Version(version) => {
                    self.changed_to = Some(version);
                    Seen::Version(version)
                }
                SessionEvent::KnownParameters { .. } => panic!("a handshake has no known peer"),
                SessionEvent::Complete => Seen::Complete,
            };
            self.seen.push(seen);
        }
    }

    /// Reads bytes in pieces of the given sizes, repeated cyclically.
    fn read(&mut self, level: Level, bytes: &[u8], sizes: &[usize]) -> Result<(), TransportError> {
        let mut rest = bytes;
        for size in sizes.iter().cycle() {
            let (piece, later) = rest.split_at((*size).clamp(1, rest.len()));
            let read = self.session.read(level, piece);
            self.take_events();
            read?;
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.seen.contains(&Seen::Complete)
    }
}

/// A client and a server.
pub(super) struct Pair {
    pub(super) client: Peer,
    pub(super) server: Peer,
}

impl Pair {
    pub(super) fn new<C: ClientCrypto, S: ServerCrypto>(
        client: &Arc<C>,
        server: &Arc<S>,
        early_data: bool,
    ) -> Self {
        Self::in_versions(client, server, early_data, [Version::V1; 2])
    }

    /// Creates a client that starts in the first version and a server that answers in the second.
    pub(super) fn in_versions<C: ClientCrypto, S: ServerCrypto>(
        client: &Arc<C>,
        server: &Arc<S>,
        early_data: bool,
        [begun, answered]: [Version; 2],
    ) -> Self {
        let start = ClientStart {
            version: begun,
            version_may_change: begun != answered,
            ..start("localhost", CLIENT_PARAMETERS, early_data)
        };
        let client = client.clone().start(&start).unwrap();
        let server = server.clone().start(begun, answer_in(answered)).unwrap();
        Self {
            client: Peer::new(client),
            server: Peer::new(server),
        }
    }

    /// Runs both until neither has anything to send or one of them fails.
    pub(super) fn run(&mut self, sizes: &[usize]) -> Result<(), (Side, TransportError)> {
        self.run_tampered(sizes, usize::MAX, |_, _| {})
    }

    /// Runs at most `limit` flights, each of which `tamper` may change before it arrives.
    pub(super) fn run_tampered(
        &mut self,
        sizes: &[usize],
        limit: usize,
        mut tamper: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), (Side, TransportError)> {
        for index in 0..limit {
            let (receiver, side, level, mut bytes) =
                if let Some((level, bytes)) = self.client.outgoing.pop_front() {
                    (&mut self.server, Side::Server, level, bytes)
                } else if let Some((level, bytes)) = self.server.outgoing.pop_front() {
                    (&mut self.client, Side::Client, level, bytes)
                } else {
                    break;
                };
            tamper(index, &mut bytes);
            receiver
                .read(level, &bytes, sizes)
                .map_err(|error| (side, error))?;
            if let Some(version) = self.server.changed_to.take() {
                self.client.session.set_version(version);
            }
        }
        Ok(())
    }

    /// Passes garbage to both sides after `flights` flights. It must not cause a panic or complete
    /// a handshake.
    pub(super) fn check_garbage(&mut self, flights: usize, level: Level, garbage: &[u8]) {
        self.run_tampered(&[usize::MAX], flights, |_, _| {})
            .unwrap();
        for peer in [&mut self.client, &mut self.server] {
            let was_complete = peer.is_complete();
            for _ in 0..2 {
                let accepted = peer.session.read(level, garbage).is_ok();
                peer.take_events();
                assert!(!(accepted && level == Level::ZeroRtt));
            }
            assert_eq!(peer.is_complete(), was_complete);
        }
    }

    /// Creates a pair whose handshake is complete.
    pub(super) fn connected<C: ClientCrypto, S: ServerCrypto>(
        client: &Arc<C>,
        server: &Arc<S>,
        early_data: bool,
    ) -> Self {
        let mut pair = Self::new(client, server, early_data);
        pair.run(&[usize::MAX]).unwrap();
        assert!(pair.client.is_complete() && pair.server.is_complete());
        pair
    }

    /// Sends a packet in each direction at each level, and over three more key phases.
    pub(super) fn check_keys(&mut self) {
        let (client, server) = (&mut self.client, &mut self.server);
        for (client, server) in [
            (&client.handshake, &server.handshake),
            (&client.one_rtt, &server.one_rtt),
        ] {
            let (client, server) = (client.as_ref().unwrap(), server.as_ref().unwrap());
            check_direction(&client.local, &server.remote);
            check_direction(&server.local, &client.remote);
            assert!(!opens(&*client.local.packet, &*client.remote.packet));
        }
        let (client, server) = (
            client.updates.as_mut().unwrap(),
            server.updates.as_mut().unwrap(),
        );
        let mut previous = client.next_keys();
        assert!(opens(&*previous.local, &*server.next_keys().remote));
        for _ in 0..3 {
            let (ours, theirs) = (client.next_keys(), server.next_keys());
            assert!(opens(&*ours.local, &*theirs.remote));
            assert!(opens(&*theirs.local, &*ours.remote));
            assert!(!opens(&*previous.local, &*theirs.remote));
            previous = ours;
        }
    }
}

/// A client's start parameters in version 1.
pub(super) fn start<'a>(
    server_name: &'a str,
    parameters: &'a [u8],
    early_data: bool,
) -> ClientStart<'a> {
    ClientStart {
        version: Version::V1,
        version_may_change: false,
        server_name,
        parameters,
        early_data,
    }
}

/// An answer in this version, whatever the client offers.
fn answer_in(version: Version) -> Answerer {
    Box::new(move |_| {
        Ok(ServerAnswer {
            version,
            parameters: SERVER_PARAMETERS.to_vec(),
        })
    })
}

/// Meaningless handshake bytes: arbitrary ones, or a message of some type.
pub(super) fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let body = || prop::collection::vec(any::<u8>(), 0..80);
    let kinds = prop::sample::select(vec![1u8, 2, 4, 5, 8, 11, 13, 15, 20, 24]);
    prop_oneof![
        body(),
        (kinds, body())
            .prop_map(|(kind, body)| { [&[kind, 0, 0, body.len() as u8], &body[..]].concat() }),
    ]
}

/// Any encryption level.
pub(super) fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![
        Level::Initial,
        Level::ZeroRtt,
        Level::Handshake,
        Level::OneRtt,
    ])
}

const HEADER: [u8; 8] = [0x41, 1, 2, 3, 4, 5, 0x12, 0x34];
const NUMBER_OFFSET: usize = 6;
const TEXT: &[u8] = b"thirty or so bytes of plain text";

fn sealed(key: &dyn super::PacketKey) -> Vec<u8> {
    let mut packet = HEADER.to_vec();
    packet.extend_from_slice(TEXT);
    packet.resize(packet.len() + key.tag_length(), 0);
    key.seal(0x1234, HEADER.len(), &mut packet);
    packet
}

/// Whether a packet sealed with one key opens with the other.
pub(super) fn opens(seal: &dyn super::PacketKey, open: &dyn super::PacketKey) -> bool {
    let mut packet = sealed(seal);
    let (header, payload) = packet.split_at_mut(HEADER.len());
    match open.open(0x1234, header, payload) {
        Ok(length) => {
            assert_eq!(&payload[..length], TEXT);
            true
        }
        Err(_) => false,
    }
}

/// Checks that each side restores packets and headers that the other protects.
pub(super) fn check_direction(sender: &DirectionKeys, receiver: &DirectionKeys) {
    assert!(opens(&*sender.packet, &*receiver.packet));
    let packet = sealed(&*sender.packet);
    let mut protected = packet.clone();
    sender.header.protect(NUMBER_OFFSET, &mut protected);
    assert_ne!(
        packet[NUMBER_OFFSET..HEADER.len()],
        protected[NUMBER_OFFSET..HEADER.len()]
    );
    assert_eq!(packet[HEADER.len()..], protected[HEADER.len()..]);
    let short = NUMBER_OFFSET + 4 + 15;
    let mut cut = protected[..short].to_vec();
    assert_eq!(receiver.header.unprotect(NUMBER_OFFSET, &mut cut), None);
    let length = receiver.header.unprotect(NUMBER_OFFSET, &mut protected);
    assert_eq!(length, Some(2));
    assert_eq!(packet, protected);
}
