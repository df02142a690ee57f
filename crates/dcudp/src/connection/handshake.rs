//! The handshake: request, challenge with a cookie, request with the cookie, response.
//!
//! Data follows the cookie at once, so that it leaves after one round trip as in TCP: the challenge
//! carries the packet size. The client does not know the server's socket id before the response.
//! Until then its data carries the client's own id, and the server finds the connection by that and
//! the address. With a shared key data waits for the response, because the connection's key is
//! derived from it.

use weir_units::{ByteSize, Duration, Time};

use super::{Connection, Event, Setup};
use crate::config::{DataKind, SMALLEST_PACKET, TransportConfig};
use crate::error::ConnectionError;
use crate::packet::{
    Control, ControlHeader, ControlKind, HEADER_LENGTH, Handshake, HandshakeKind, HeaderFlags,
    Refusal, SocketId, Timestamp,
};
use crate::protection::{Session, SharedKey, tags_agree};
use crate::receiver::Receiver;
use crate::sequence::SequenceNumber;

/// The handshake of a client.
#[derive(Debug)]
pub(super) struct ClientHandshake {
    first: SequenceNumber,
    random: [u8; 16],
    cookie: u64,
    pub(super) due: bool,
    pub(super) again_at: Time,
    interval: Duration,
    pub(super) give_up_at: Time,
    /// Send time of the request with the newest cookie, if it was sent once.
    sent_at: Option<Time>,
    times_sent: u32,
    /// The RTT of the challenge, reported to the server.
    rtt: Duration,
    /// Packet size and remaining number of data packets that may follow the cookie.
    early: Option<(ByteSize, usize)>,
}

/// Limit of the data packets that follow the cookie: they are lost if the request is lost.
const MOST_EARLY: usize = 64;

/// The server's answer to a request.
#[derive(Debug)]
pub(super) struct ServerResponse {
    first: SequenceNumber,
    random: [u8; 16],
    client_random: [u8; 16],
    /// The client's cookie. By it the client matches the answer to its request.
    cookie: u64,
    pub(super) due: bool,
    /// Send time until the client answers; `None` if it was sent more than once.
    pub(super) sent_at: Option<Time>,
    times_sent: u32,
}

impl ClientHandshake {
    pub(super) fn new(now: Time, setup: &Setup) -> Self {
        let config = &setup.config;
        Self {
            first: setup.first,
            random: setup.random,
            cookie: 0,
            due: true,
            again_at: now + config.handshake_interval,
            interval: config.handshake_interval,
            give_up_at: now + config.handshake_timeout,
            sent_at: None,
            times_sent: 0,
            rtt: Duration::ZERO,
            early: None,
        }
    }

    /// Returns the number of data packets that may be sent now.
    pub(super) fn early_room(&self) -> usize {
        match self.early {
            Some((_, room)) if !self.due => room,
            _ => 0,
        }
    }

    pub(super) fn on_early_sent(&mut self, packets: usize) {
        if let Some((_, room)) = &mut self.early {
            *room = room.saturating_sub(packets);
        }
    }

    /// Takes a cookie. Returns the RTT, if the cookie is new and the request for it was sent once.
    fn on_cookie(&mut self, now: Time, cookie: u64) -> Option<Duration> {
        if self.cookie == cookie {
            return None;
        }
        let sample = self.sent_at.map(|sent_at| now.since(sent_at));
        self.rtt = sample.unwrap_or(self.rtt);
        self.cookie = cookie;
        self.times_sent = 0;
        self.due = true;
        sample
    }
}

impl ServerResponse {
    pub(super) fn new(request: &Handshake, first: SequenceNumber, random: [u8; 16]) -> Self {
        Self {
            first,
            random,
            client_random: request.random,
            cookie: request.cookie,
            due: true,
            sent_at: None,
            times_sent: 0,
        }
    }
}

/// Returns a handshake packet of one end of a connection with this configuration.
pub(crate) fn handshake(
    config: &TransportConfig,
    kind: HandshakeKind,
    socket: SocketId,
    first: SequenceNumber,
    random: [u8; 16],
    cookie: u64,
) -> Handshake {
    Handshake {
        version: Handshake::VERSION,
        kind,
        messages: config.data == DataKind::Messages,
        udp_mode: config.udp_mode,
        initial_sequence: first,
        packet_size: config.packet_size,
        window: config.receive_window,
        rtt: Duration::ZERO,
        socket,
        cookie,
        random,
        tag: config.shared_key.is_some().then_some([0; 16]),
    }
}

/// Sets the tag of a handshake packet, which spans `start` to the end of `buffer`.
pub(crate) fn sign(key: Option<&dyn SharedKey>, start: usize, buffer: &mut Vec<u8>) {
    let Some(key) = key else {
        return;
    };
    let end = buffer.len().saturating_sub(16);
    let tag = key.tag(buffer.get(start..end).unwrap_or_default());
    buffer.truncate(end);
    buffer.extend_from_slice(&tag);
}

/// Returns whether the sender of a handshake packet has our key. Without a key, any packet passes.
pub(crate) fn is_signed(
    key: Option<&dyn SharedKey>,
    datagram: &[u8],
    tag: Option<[u8; 16]>,
) -> bool {
    match (key, tag) {
        (None, tag) => tag.is_none(),
        (Some(_), None) => false,
        (Some(key), Some(tag)) => {
            let end = datagram.len().saturating_sub(16);
            tags_agree(&key.tag(datagram.get(..end).unwrap_or_default()), &tag)
        }
    }
}

/// Returns a handshake packet outside of any connection.
pub(crate) fn reply(
    key: Option<&dyn SharedKey>,
    destination: SocketId,
    handshake: Handshake,
) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(HEADER_LENGTH + Handshake::LENGTH + 16);
    let header = ControlHeader {
        kind: ControlKind::Handshake,
        flags: HeaderFlags::default(),
        number: SequenceNumber::default(),
        timestamp: Timestamp::default(),
        destination,
    };
    header.encode(&mut buffer);
    Control::Handshake(handshake).encode(&mut buffer);
    sign(key.filter(|_| handshake.tag.is_some()), 0, &mut buffer);
    buffer
}

impl Connection {
    /// Processes a handshake packet; `datagram` is the whole packet.
    pub(super) fn handle_handshake(&mut self, now: Time, datagram: &[u8]) {
        let body = datagram.get(HEADER_LENGTH..).unwrap_or_default();
        let Ok(Control::Handshake(handshake)) = Control::decode(ControlKind::Handshake, body)
        else {
            self.counters.malformed += 1;
            return;
        };
        if !is_signed(self.config.shared_key.as_deref(), datagram, handshake.tag) {
            // A server without a key cannot sign a refusal, so only a client without a key accepts
            // one.
            self.counters.unauthentic += 1;
            return;
        }
        match (&mut self.client, &mut self.response) {
            (Some(_), _) => self.on_server(now, &handshake),
            (None, Some(response)) => {
                let again = handshake.kind == HandshakeKind::Request
                    && handshake.random == response.client_random
                    && handshake.cookie != 0;
                response.due |= again && response.sent_at != Some(now);
            }
            (None, None) => {}
        }
    }

    fn on_server(&mut self, now: Time, handshake: &Handshake) {
        let Some(client) = &mut self.client else {
            return;
        };
        let is_echoed = handshake.random == client.random;
        match handshake.kind {
            HandshakeKind::Challenge if is_echoed => {
                if let Some(sample) = client.on_cookie(now, handshake.cookie) {
                    // Data that follow the request are answered after as long.
                    self.rtt.on_sample(sample);
                }
                self.begin_early(handshake);
            }
            HandshakeKind::Refused(refusal) if is_echoed => {
                self.close_silently(ConnectionError::Refused(refusal));
            }
            HandshakeKind::Response => {
                let (random, first, sent_at) = (client.random, client.first, client.sent_at);
                if handshake.cookie != client.cookie || client.cookie == 0 {
                    self.counters.malformed += 1;
                    return;
                }
                let early = client.early.map(|(size, _)| size);
                if let Some(refusal) = self.mismatch(handshake) {
                    return self.close_silently(ConnectionError::Refused(refusal));
                }
                if early.is_some_and(|size| size != self.agreed_size(handshake)) {
                    // Packets of another size have been sent already.
                    self.counters.malformed += 1;
                    return;
                }
                debug_assert_eq!(first.first_count(), self.sender.buffer.base);
                self.client = None;
                if let Some(sent_at) = sent_at {
                    self.rtt.on_sample(now.since(sent_at));
                }
                self.establish(now, handshake, handshake.random, random);
                self.keep_alive_due = true;
            }
            HandshakeKind::Request | HandshakeKind::Challenge | HandshakeKind::Refused(_) => {
                self.counters.malformed += 1;
            }
        }
    }

    /// Allows data to follow the cookie, if the challenge permits it.
    fn begin_early(&mut self, challenge: &Handshake) {
        let is_possible = self.config.shared_key.is_none() && self.mismatch(challenge).is_none();
        let size = self.agreed_size(challenge);
        let Some(client) = self.client.as_mut().filter(|_| is_possible) else {
            return;
        };
        if client.early.is_some() || challenge.window == 0 {
            return;
        }
        client.early = Some((size, MOST_EARLY));
        self.packet_size = size;
        self.sender
            .begin(size, self.channel.overhead(), challenge.window);
    }

    /// Returns the negotiated packet size.
    fn agreed_size(&self, peer: &Handshake) -> ByteSize {
        let smaller = self.config.packet_size.min(peer.packet_size);
        smaller.max(SMALLEST_PACKET)
    }

    fn mismatch(&self, handshake: &Handshake) -> Option<Refusal> {
        if handshake.version != Handshake::VERSION {
            return Some(Refusal::Version);
        }
        let messages = self.config.data == DataKind::Messages;
        (handshake.messages != messages).then_some(Refusal::Mode)
    }

    /// Applies the parameters of both ends and completes the handshake.
    pub(super) fn establish(
        &mut self,
        now: Time,
        peer: &Handshake,
        server_random: [u8; 16],
        client_random: [u8; 16],
    ) {
        let is_client = self.response.is_none();
        let (ours, theirs) = (self.channel.local, peer.socket);
        self.channel.peer = theirs;
        let (client, server) = if is_client {
            (ours, theirs)
        } else {
            (theirs, ours)
        };
        let session = Session {
            is_client,
            client_random,
            server_random,
            client,
            server,
        };
        let key = self.config.shared_key.as_ref();
        self.channel.protect(key.map(|key| key.session(&session)));
        self.packet_size = self.agreed_size(peer);
        self.peer_window = peer.window.max(1);
        self.sender
            .begin(self.packet_size, self.channel.overhead(), self.peer_window);
        let messages = self.config.data == DataKind::Messages;
        let first = peer.initial_sequence.first_count();
        self.receiver = Receiver::new(&self.config, messages, first, peer.udp_mode);
        self.timers.on_heard(now);
        self.events.push_back(Event::Connected);
    }

    /// Writes the handshake packet that is due. Returns whether there was one.
    pub(super) fn transmit_handshake(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        let (kind, first, random, cookie, rtt) = if let Some(client) = &mut self.client {
            if !client.due {
                return false;
            }
            client.due = false;
            client.times_sent += 1;
            client.sent_at = (client.times_sent == 1).then_some(now);
            client.again_at = now + client.interval;
            (
                HandshakeKind::Request,
                client.first,
                client.random,
                client.cookie,
                client.rtt,
            )
        } else if let Some(response) = self.response.as_mut().filter(|response| response.due) {
            response.due = false;
            response.times_sent += 1;
            response.sent_at = (response.times_sent == 1).then_some(now);
            (
                HandshakeKind::Response,
                response.first,
                response.random,
                response.cookie,
                Duration::ZERO,
            )
        } else {
            return false;
        };
        let socket = self.channel.local;
        let handshake = Handshake {
            rtt,
            ..handshake(&self.config, kind, socket, first, random, cookie)
        };
        let start = buffer.len();
        let control = Control::Handshake(handshake);
        self.channel
            .write_control(now, HeaderFlags::default(), &control, buffer);
        sign(self.config.shared_key.as_deref(), start, buffer);
        true
    }

    /// Repeats the client's request, or times out.
    pub(super) fn on_handshake_time(&mut self, now: Time) {
        let Some(client) = &mut self.client else {
            return;
        };
        if now >= client.give_up_at {
            let timeout = self.config.handshake_timeout;
            return self.close_silently(ConnectionError::HandshakeTimeout(timeout));
        }
        if now >= client.again_at {
            client.due = true;
            client.interval = client.interval * 2;
            client.again_at = now + client.interval;
        }
    }
}
