//! A peer that follows no rules but has the right keys: it drives a session itself and builds its
//! packets manually.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use weir_quic::crypto::seeded::{SeededClient, SeededServer};
use weir_quic::crypto::{
    AnyPacketKey, ClientCrypto, ClientStart, DirectionKeys, KeyChange, KeyUpdates, Keys, Provider,
    ServerAnswer, ServerCrypto, Session, SessionEvent,
};
use weir_quic::frame::{Close, Frame, Frames, write};
use weir_quic::packet::{
    self, Header, Kind, LongFields, LongKind, expand_packet_number, read_packet_number,
};
use weir_quic::transport_parameters::TransportParameters;
use weir_quic::{Code, ConnectionId, Level, Side, Space, Version};
use weir_units::Duration;

/// The length of its connection IDs.
pub(crate) const ID_LENGTH: usize = 8;
/// The number of received packets that it stores.
const REMEMBERED: usize = 200;
/// The most handshake bytes in one packet.
const PIECE: usize = 1000;

/// The differences of a forged packet from a valid one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disguise {
    /// Sets bits that must be zero.
    pub(crate) reserved_bits: bool,
    /// Clears the bit that must be one.
    pub(crate) no_fixed_bit: bool,
    /// Has the other key phase, sealed with the keys of this one.
    pub(crate) wrong_phase: bool,
    /// Goes to an ID that no connection has.
    pub(crate) wrong_id: bool,
}

/// The state of one packet number space.
#[derive(Default)]
struct SpaceState {
    keys: Option<Keys>,
    next_number: u64,
    received: BTreeSet<u64>,
    /// Handshake bytes received in order, and those to send.
    read: u64,
    sent: u64,
    outgoing: Vec<u8>,
}

pub(crate) struct Peer {
    side: Side,
    session: Box<dyn Session>,
    spaces: [SpaceState; 3],
    early: Option<DirectionKeys>,
    updates: Option<Box<dyn KeyUpdates>>,
    /// The keys to open the victim's packets of other key phases.
    more_keys: Vec<AnyPacketKey>,
    phase: bool,
    local_id: ConnectionId,
    /// The destination ID of the client's first packet.
    chosen_by_client: ConnectionId,
    remote_id: ConnectionId,
    /// The victim's IDs with their sequence numbers.
    pub(crate) ids: Vec<(u64, ConnectionId)>,
    /// The victim's challenges, and their addresses.
    pub(crate) challenges: Vec<([u8; 8], SocketAddr)>,
    /// The victim's close code.
    pub(crate) closed: Option<Code>,
    pub(crate) complete: bool,
    /// The end of the data sent in order on each of its streams, by index.
    pub(crate) stream_offsets: [u64; 8],
}

impl Peer {
    /// Creates a client that starts a connection.
    pub(crate) fn client(crypto: &Arc<SeededClient>, name: u64, early_data: bool) -> Self {
        let first = id(name, 1);
        let local_id = id(name, 2);
        let mut encoded = Vec::new();
        parameters(local_id, name).encode(Side::Client, &mut encoded, None);
        let session = crypto
            .clone()
            .start(&ClientStart {
                version: Version::V1,
                version_may_change: false,
                server_name: "victim.test",
                parameters: &encoded,
                early_data,
            })
            .expect("a session");
        let keys = crypto.initial_keys(Version::V1, &first, Side::Client);
        Self::new(Side::Client, session, keys, local_id, first, first)
    }

    /// Creates a server that answers the client of this first datagram.
    pub(crate) fn server(crypto: &Arc<SeededServer>, name: u64, datagram: &[u8]) -> Option<Self> {
        let header = Header::decode(datagram, ID_LENGTH).ok()?;
        if header.kind != Kind::Initial {
            return None;
        }
        let local_id = id(name, 2);
        let own = TransportParameters {
            original_destination_connection_id: Some(header.destination),
            stateless_reset_token: Some([9; 16]),
            ..parameters(local_id, name)
        };
        let mut encoded = Vec::new();
        own.encode(Side::Server, &mut encoded, None);
        let answer = ServerAnswer {
            version: Version::V1,
            parameters: encoded,
        };
        let session = crypto
            .clone()
            .start(Version::V1, Box::new(move |_| Ok(answer)))
            .ok()?;
        let keys = crypto.initial_keys(Version::V1, &header.destination, Side::Server);
        Some(Self::new(
            Side::Server,
            session,
            keys,
            local_id,
            header.source,
            header.destination,
        ))
    }

    fn new(
        side: Side,
        session: Box<dyn Session>,
        initial: Keys,
        local_id: ConnectionId,
        remote_id: ConnectionId,
        chosen_by_client: ConnectionId,
    ) -> Self {
        let mut spaces: [SpaceState; 3] = Default::default();
        spaces[Space::Initial as usize].keys = Some(initial);
        let mut peer = Self {
            side,
            session,
            spaces,
            early: None,
            updates: None,
            more_keys: Vec::new(),
            phase: false,
            local_id,
            chosen_by_client,
            remote_id,
            ids: Vec::new(),
            challenges: Vec::new(),
            closed: None,
            complete: false,
            stream_offsets: [0; 8],
        };
        peer.drive();
        peer
    }

    fn drive(&mut self) {
        while let Some(event) = self.session.poll() {
            match event {
                SessionEvent::Send(level, bytes) => {
                    self.spaces[level.space() as usize].outgoing.extend(bytes);
                }
                SessionEvent::Keys(KeyChange::ZeroRtt(keys)) => self.early = Some(keys),
                SessionEvent::Keys(KeyChange::Handshake(keys)) => {
                    self.spaces[Space::Handshake as usize].keys = Some(keys);
                }
                SessionEvent::Keys(KeyChange::OneRtt(keys, updates)) => {
                    self.spaces[Space::Data as usize].keys = Some(keys);
                    self.updates = Some(updates);
                }
                SessionEvent::Complete => self.complete = true,
                _ => {}
            }
        }
    }

    /// Returns the number of its next packet.
    pub(crate) fn next_number(&self, level: Level) -> u64 {
        self.spaces[level.space() as usize].next_number
    }

    /// Returns the largest number that the victim used.
    pub(crate) fn largest_received(&self, level: Level) -> Option<u64> {
        let space = &self.spaces[level.space() as usize];
        space.received.last().copied()
    }

    /// Returns the end of its sent handshake bytes.
    pub(crate) fn crypto_offset(&self, level: Level) -> u64 {
        self.spaces[level.space() as usize].sent
    }

    pub(crate) fn has_keys(&self, level: Level) -> bool {
        match level {
            Level::ZeroRtt => self.early.is_some() && self.side == Side::Client,
            _ => self.spaces[level.space() as usize].keys.is_some(),
        }
    }

    /// Whether packets with this destination are addressed to it.
    fn is_addressed(&self, destination: &ConnectionId) -> bool {
        *destination == self.local_id
            || *destination == self.chosen_by_client
            || is_forged_id(destination, &self.local_id)
    }

    /// Handles a datagram of the victim; `false` if it is addressed to another peer.
    pub(crate) fn receive(&mut self, at: SocketAddr, datagram: &[u8]) -> bool {
        let mut rest = datagram.to_vec();
        let mut taken = false;
        while let Ok(header) = Header::decode(&rest, ID_LENGTH) {
            if !self.is_addressed(&header.destination) {
                return taken;
            }
            taken = true;
            let tail = rest.split_off(header.end.min(rest.len()));
            self.open(at, &header, rest);
            rest = tail;
        }
        taken
    }

    fn open(&mut self, at: SocketAddr, header: &Header, mut packet: Vec<u8>) -> Option<()> {
        let level = header.kind.level()?;
        let space = &mut self.spaces[level.space() as usize];
        let keys = &space.keys.as_ref()?.remote;
        let length = keys.header.unprotect(header.number_offset, &mut packet)?;
        let expected = space.received.last().map_or(0, |largest| largest + 1);
        let truncated = read_packet_number(&packet, header.number_offset, length)?;
        let number = expand_packet_number(truncated, length, expected);
        let (head, payload) = packet.split_at_mut(header.number_offset + length);
        let more = self.more_keys.iter().rev();
        let size = std::iter::once(&keys.packet).chain(more).find_map(|key| {
            let mut opened = payload.to_vec();
            let size = key.open(number, head, &mut opened).ok()?;
            payload.copy_from_slice(&opened);
            Some(size)
        })?;
        space.received.insert(number);
        if space.received.len() > REMEMBERED {
            space.received.pop_first();
        }
        if level == Level::Initial {
            self.remote_id = header.source;
            self.ids = vec![(0, header.source)];
        }
        let payload = payload[..size].to_vec();
        for frame in Frames::new(&payload) {
            self.on_frame(
                at,
                level,
                &frame.expect("the victim's frames are well-formed"),
            );
        }
        Some(())
    }

    fn on_frame(&mut self, at: SocketAddr, level: Level, frame: &Frame<'_>) {
        match frame {
            Frame::Crypto { offset, data } => {
                let space = &mut self.spaces[level.space() as usize];
                if *offset == space.read {
                    space.read += data.len() as u64;
                    let _ = self.session.read(level, data);
                    self.drive();
                }
            }
            Frame::NewConnectionId(id) => {
                if !self.ids.contains(&(id.sequence, id.id)) {
                    self.ids.push((id.sequence, id.id));
                }
                if self.ids.len() > 64 {
                    self.ids.remove(0);
                }
            }
            Frame::PathChallenge(data) => {
                self.challenges.push((*data, at));
                if self.challenges.len() > 64 {
                    self.challenges.remove(0);
                }
            }
            Frame::Close(Close::Transport { code, .. }) => self.closed = Some(*code),
            Frame::Close(Close::Application { .. }) => self.closed = Some(Code::NO_ERROR),
            _ => {}
        }
    }

    /// Switches to the keys of the next phase, whatever the victim's state.
    pub(crate) fn update_keys(&mut self) {
        let Some(updates) = &mut self.updates else {
            return;
        };
        let next = updates.next_keys();
        self.more_keys.push(next.remote);
        if let Some(keys) = &mut self.spaces[Space::Data as usize].keys {
            keys.local.packet = next.local;
            self.phase = !self.phase;
        }
    }

    /// Selects the victim's ID for its next packets.
    pub(crate) fn use_id(&mut self, index: usize) {
        if let Some((_, id)) = self.ids.get(index % self.ids.len().max(1)) {
            self.remote_id = *id;
        }
    }

    /// Returns the datagrams that an honest peer would send now: handshake bytes, ACKs, responses.
    pub(crate) fn behave(&mut self) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            if !self.has_keys(level) {
                continue;
            }
            let mut frames = Vec::new();
            self.write_ack(level, &mut frames);
            if level == Level::OneRtt {
                for (data, _) in std::mem::take(&mut self.challenges) {
                    write::path_response(&mut frames, data);
                }
            }
            let space = &mut self.spaces[level.space() as usize];
            let mut pieces = Vec::new();
            while (space.sent as usize) < space.outgoing.len() {
                let begin = space.sent as usize;
                let end = space.outgoing.len().min(begin + PIECE);
                let mut piece = Vec::new();
                write::crypto(&mut piece, space.sent, &space.outgoing[begin..end]);
                space.sent = end as u64;
                pieces.push(piece);
            }
            if pieces.is_empty() && !frames.is_empty() {
                pieces.push(Vec::new());
            }
            for piece in pieces {
                let frames = [&frames[..], &piece].concat();
                let number = self.next_number(level);
                datagrams.extend(self.packet(level, number, &frames, Disguise::default()));
            }
        }
        datagrams
    }

    /// Writes an ACK of all recent packets.
    pub(crate) fn write_ack(&self, level: Level, out: &mut Vec<u8>) {
        let space = &self.spaces[level.space() as usize];
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in space.received.iter().rev() {
            match ranges.last_mut() {
                Some((start, _)) if *start == number + 1 => *start = *number,
                _ => ranges.push((*number, *number)),
            }
        }
        let ranges = ranges.into_iter().map(|(start, end)| start..=end);
        write::ack(out, ranges, 0, None, 600);
    }

    /// Builds a datagram with one valid packet of these frames; `None` without keys.
    pub(crate) fn packet(
        &mut self,
        level: Level,
        number: u64,
        frames: &[u8],
        disguise: Disguise,
    ) -> Option<Vec<u8>> {
        if !self.has_keys(level) {
            return None;
        }
        let space = &mut self.spaces[level.space() as usize];
        space.next_number = space.next_number.max(number.saturating_add(1));
        let mut out = Vec::with_capacity(1500);
        let destination = if disguise.wrong_id {
            id(0, 0xff)
        } else {
            self.remote_id
        };
        let kind = match level {
            Level::Initial => Some(LongKind::Initial { token: &[] }),
            Level::ZeroRtt => Some(LongKind::ZeroRtt),
            Level::Handshake => Some(LongKind::Handshake),
            Level::OneRtt => None,
        };
        let long = kind.map(|kind| {
            packet::write_long_header(
                &mut out,
                &LongFields {
                    version: Version::V1,
                    kind,
                    destination,
                    source: self.local_id,
                    number,
                    number_length: 4,
                    size_limit: 60_000,
                },
            )
        });
        let phase = self.phase != disguise.wrong_phase;
        let number_offset = match &long {
            Some(long) => long.number_offset,
            None => packet::write_short_header(&mut out, &destination, false, phase, number, 4),
        };
        let keys = match level {
            Level::ZeroRtt => self.early.as_ref(),
            _ => space.keys.as_ref().map(|keys| &keys.local),
        }?;
        if disguise.reserved_bits {
            out[0] |= if long.is_some() { 0x0c } else { 0x18 };
        }
        if disguise.no_fixed_bit {
            out[0] &= !0x40;
        }
        let header_length = out.len();
        out.extend_from_slice(frames);
        let tag = keys.packet.tag_length();
        let least = match level {
            Level::Initial => 1200 - tag,
            _ => header_length + 4,
        };
        let end = out.len().max(least) + tag;
        out.resize(end, 0);
        if let Some(long) = long {
            long.finish(&mut out, end);
        }
        keys.packet.seal(number, header_length, &mut out);
        keys.header.protect(number_offset, &mut out);
        Some(out)
    }
}

/// Returns an ID of this peer.
fn id(name: u64, kind: u8) -> ConnectionId {
    let mut bytes = (name << 16).to_be_bytes();
    bytes[6] = kind;
    ConnectionId::new(&bytes).expect("a short ID")
}

/// Returns the ID that the peer issues by NEW_CONNECTION_ID with this sequence number.
pub(crate) fn issued_id(peer: &Peer, number: u8) -> ConnectionId {
    let mut bytes = [0; ID_LENGTH];
    bytes.copy_from_slice(peer.local_id.as_bytes());
    bytes[7] = number;
    ConnectionId::new(&bytes).expect("a short ID")
}

fn is_forged_id(candidate: &ConnectionId, own: &ConnectionId) -> bool {
    candidate.len() == ID_LENGTH && candidate.as_bytes()[..7] == own.as_bytes()[..7]
}

fn parameters(source: ConnectionId, name: u64) -> TransportParameters {
    // Some peers have hardly any buffer space, others have it without limit.
    let room = [0, 1_000, 100_000, (1 << 62) - 1][(name % 4) as usize];
    TransportParameters {
        initial_source_connection_id: Some(source),
        initial_max_data: room,
        initial_max_stream_data_bidi_local: room,
        initial_max_stream_data_bidi_remote: room,
        initial_max_stream_data_uni: room,
        initial_max_streams_bidi: room.min(1 << 60),
        initial_max_streams_uni: room.min(1 << 60),
        active_connection_id_limit: [2, 3, 8, 1 << 40][(name / 4 % 4) as usize],
        max_datagram_frame_size: room.min(65_535),
        max_idle_timeout: Duration::ZERO,
        min_ack_delay: Some(Duration::from_micros(100)),
        grease_quic_bit: name & 1 == 0,
        go_away: name & 2 == 0,
        ..TransportParameters::default()
    }
}
