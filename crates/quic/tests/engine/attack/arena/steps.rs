//! Plays the steps of a script.

use weir_quic::packet::write_version_negotiation;
use weir_quic::{ConnectionError, Direction, GoAway, Level, MoveCause, Side};
use weir_units::Duration;

use super::super::flood::advanced;
use super::super::frames::{Verdict, write_frame};
use super::super::peer::{Disguise, Peer};
use super::super::script::{ApplicationAction, Hostile, Look, Seal, Step, Wrong};
use super::{Arena, address};

impl Arena {
    /// Plays one step.
    pub(crate) fn play(&mut self, step: &Step) {
        match step {
            Step::Packet { .. } => self.send_packet(step),
            Step::Flood {
                frame,
                packets,
                per_packet,
                new_addresses,
            } => self.flood(frame, *packets, *per_packet, *new_addresses),
            Step::Behave { from } => self.behave(*from),
            Step::Begin { early, stalls } => self.begin(*early, *stalls),
            Step::Initials { count } => self.send_initials(*count),
            Step::Raw { look, bytes, from } => self.send_raw(*look, bytes, *from),
            Step::Replay { index, from, flip } => self.replay(*index, *from, *flip),
            Step::UseId(index) => {
                if let Some(attacker) = self.attackers.last_mut() {
                    attacker.peer.use_id((*index).into());
                }
            }
            Step::UpdateKeys => {
                if let Some(attacker) = self.attackers.last_mut() {
                    attacker.provoked = true;
                    attacker.peer.update_keys();
                }
            }
            Step::Elapse { mantissa, exponent } => {
                let nanos = u64::from(*mantissa) << (exponent % 32);
                self.elapse(Duration::from_nanos(nanos));
            }
            Step::Honest { copies, flip } => {
                (self.copies, self.flips) = (copies % 16, *flip);
                self.ask();
                (self.copies, self.flips) = (0, false);
            }
            Step::Application(wish) => self.wish(*wish),
        }
        self.collect();
    }

    /// Records the addresses validated by responses to the victim's challenges.
    fn note_answers(&mut self, frames: &[Hostile]) {
        let answers = frames
            .iter()
            .any(|frame| matches!(frame, Hostile::HonestResponse));
        if let Some(attacker) = self.attackers.last().filter(|_| answers) {
            let asked = attacker.peer.challenges.iter();
            self.validated.extend(asked.map(|(_, at)| *at));
        }
    }

    fn send_packet(&mut self, step: &Step) {
        let Step::Packet {
            seal,
            number,
            frames,
            from,
            wrong,
        } = step
        else {
            return;
        };
        self.note_answers(frames);
        let Some(attacker) = self.attackers.last_mut() else {
            return;
        };
        let level = match seal {
            Seal::OneRtt => Level::OneRtt,
            Seal::Initial => Level::Initial,
            Seal::Handshake => Level::Handshake,
            Seal::ZeroRtt => Level::ZeroRtt,
        };
        let next = attacker.peer.next_number(level);
        let mut number = number.value(next);
        if number > next + (1 << 24) {
            number = next + (number & 0xffff);
        }
        let mut payload = Vec::new();
        let mut verdict = Verdict::Harmless;
        for frame in frames.iter().take(64) {
            let this = write_frame(
                &mut attacker.peer,
                self.role.other(),
                level,
                frame,
                &mut payload,
            );
            if verdict == Verdict::Harmless {
                verdict = this;
            }
        }
        let disguise = Disguise {
            reserved_bits: matches!(wrong, Wrong::ReservedBits),
            no_fixed_bit: matches!(wrong, Wrong::FixedBit),
            wrong_phase: matches!(wrong, Wrong::Phase),
            wrong_id: matches!(wrong, Wrong::Id),
        };
        let taken = attacker.established
            && level == Level::OneRtt
            && number >= next
            && !payload.is_empty()
            && (self.role == Side::Server || from % 16 == 0)
            && matches!(wrong, Wrong::Nothing | Wrong::FixedBit);
        let provokes = verdict != Verdict::Harmless || !taken;
        let expected = match verdict {
            // Earlier violations affect what the victim accepts now.
            Verdict::Violation(code) if taken && !attacker.provoked => Some(code),
            _ => None,
        };
        attacker.provoked |= provokes;
        let open = attacker.handle.is_some();
        let Some(packet) = attacker.peer.packet(level, number, &payload, disguise) else {
            return;
        };
        if level == Level::Handshake {
            // RFC 9000, section 8.1: a peer with these keys has received the server's answer.
            let address = self.attacker_address(*from);
            self.validated.insert(address);
        }
        let before = self.victim.closed.len();
        self.attack(*from, packet);
        if let Some(code) = expected.filter(|_| open) {
            match self.victim.closed.get(before) {
                Some((_, ConnectionError::Transport(error))) if error.code == code => {}
                other => panic!("{code} expected after {frames:?}, got {other:?}"),
            }
        }
    }

    fn flood(&mut self, frame: &Hostile, packets: u8, per_packet: u8, new_addresses: bool) {
        for index in 0..packets {
            self.note_answers(std::slice::from_ref(frame));
            let Some(attacker) = self.attackers.last_mut() else {
                return;
            };
            let mut payload = Vec::new();
            for repeat in 0..=per_packet % 64 {
                let frame = advanced(frame, index, repeat);
                let side = self.role.other();
                let verdict = write_frame(
                    &mut attacker.peer,
                    side,
                    Level::OneRtt,
                    &frame,
                    &mut payload,
                );
                attacker.provoked |= verdict != Verdict::Harmless;
            }
            let number = attacker.peer.next_number(Level::OneRtt);
            let packet = attacker
                .peer
                .packet(Level::OneRtt, number, &payload, Disguise::default());
            let Some(packet) = packet.filter(|_| !payload.is_empty()) else {
                return;
            };
            let from = if new_addresses {
                self.new_address()
            } else {
                self.attacker_address(0)
            };
            self.deliver(from, packet);
            if index % 8 == 7 {
                self.collect();
            }
        }
    }

    /// Sends first packets of handshakes that never continue.
    fn send_initials(&mut self, count: u8) {
        for _ in 0..count {
            self.names += 1;
            let from = self.new_address();
            for datagram in Peer::client(&self.client_crypto, self.names, false).behave() {
                self.deliver(from, datagram);
            }
        }
    }

    fn send_raw(&mut self, look: Look, bytes: &[u8], from: u8) {
        let destination = self
            .attackers
            .last()
            .and_then(|attacker| attacker.peer.ids.last())
            .map_or(vec![0; 8], |(_, id)| id.as_bytes().to_vec());
        let mut datagram = Vec::new();
        let long = |out: &mut Vec<u8>, first: u8, version: u32| {
            out.push(first);
            out.extend(version.to_be_bytes());
            out.push(destination.len() as u8);
            out.extend(&destination);
            out.push(0);
        };
        match look {
            Look::Anything => {}
            Look::ShortHeader => {
                datagram.push(0x41);
                datagram.extend(&destination);
            }
            Look::Initial => long(&mut datagram, 0xc3, 1),
            Look::OtherVersion => long(&mut datagram, 0xc3, 0xbaba_baba),
            Look::Retry => long(&mut datagram, 0xf0, 1),
            Look::Handshake => long(&mut datagram, 0xe3, 1),
            Look::VersionNegotiation => {
                let versions = [1, 0xff00_001d];
                write_version_negotiation(&mut datagram, &destination, &[], &versions, 0);
            }
        }
        datagram.extend(&bytes[..bytes.len().min(60_000)]);
        if matches!(look, Look::Initial | Look::OtherVersion) {
            datagram.resize(datagram.len().max(1200), 0);
        }
        // Before the first packet of its peer, the victim accepts unauthenticated packets.
        self.provoke_unestablished();
        self.attack(from, datagram);
    }

    fn provoke_unestablished(&mut self) {
        for attacker in &mut self.attackers {
            attacker.provoked |= !attacker.established;
        }
    }

    fn replay(&mut self, index: u8, from: u8, flip: Option<(u16, u8)>) {
        if self.sent.is_empty() {
            return;
        }
        let mut datagram = self.sent[usize::from(index) % self.sent.len()].clone();
        if let Some((at, bit)) = flip {
            let at = usize::from(at) % datagram.len();
            datagram[at] ^= 1 << (bit % 8);
        }
        self.provoke_unestablished();
        self.attack(from, datagram);
    }

    fn wish(&mut self, wish: ApplicationAction) {
        let handle = self.attackers.last().and_then(|attacker| attacker.handle);
        let Some(handle) = handle else { return };
        let (now, stream) = (self.now, self.stream);
        let (opened, _) = self.victim.measured(|host| {
            let connection = host.connections.get_mut(&handle)?;
            match wish {
                ApplicationAction::Write(hundreds) => {
                    let direction = match hundreds & 1 {
                        0 => Direction::Bidirectional,
                        _ => Direction::Unidirectional,
                    };
                    let id = connection.open(direction).or(stream)?;
                    let _ = connection.write(id, &vec![5; usize::from(hundreds) * 100]);
                    return Some(id);
                }
                ApplicationAction::Finish => _ = connection.finish(stream?),
                ApplicationAction::Reset => _ = connection.reset(stream?, 3),
                ApplicationAction::Stop => _ = connection.stop_sending(stream?, 4),
                ApplicationAction::Datagram(length) => {
                    let _ = connection.send_datagram(vec![length; length.into()].into());
                }
                ApplicationAction::UpdateKeys => _ = connection.update_keys(now),
                ApplicationAction::AddAddress(port) => {
                    connection.add_local_address(now, address(1, u16::from(port % 4) + 1));
                }
                ApplicationAction::Rebind(port) => {
                    let _ = connection.rebind(now, address(1, u16::from(port % 4) + 1));
                }
                ApplicationAction::Move(path) => {
                    let paths = connection.stats().paths;
                    let path = paths[usize::from(path) % paths.len()].id;
                    let _ = connection.move_to(now, path, MoveCause::Requested);
                }
                ApplicationAction::GoAway => connection.go_away(now, leaving()),
                ApplicationAction::Close => connection.close(now, 1, b"enough"),
            }
            None
        });
        self.stream = opened.or(self.stream);
        if matches!(wish, ApplicationAction::UpdateKeys) {
            // The peer does not follow, so it may violate the rules of the next update.
            self.attackers
                .iter_mut()
                .for_each(|attacker| attacker.provoked = true);
        }
    }
}

fn leaving() -> GoAway {
    GoAway {
        refusal_code: 1,
        close_code: 1,
        reason: b"enough".to_vec(),
    }
}
