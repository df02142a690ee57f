//! The queue of the connection's own frames: connection IDs, tokens, HANDSHAKE_DONE, GOAWAY,
//! PATH_SECRET and ACK_FREQUENCY. [`FrameFates`](super::frame_fates::FrameFates) reports their acknowledgment or
//! loss.

use super::ids::RemoteIds;
use crate::frame;
use crate::frame::{NewConnectionId, PathSecret};
use crate::recovery::{AckRequests, SentFrame};

/// The key of a renewal of a path secret.
#[derive(Clone, Copy)]
pub(super) enum PathKey {
    /// A client's.
    Request([u8; 32]),
    /// A server's.
    Answer([u8; 32], PathSecret),
}

/// Control frames, pending and in flight.
#[derive(Default)]
pub(super) struct ControlFrames {
    /// Our connection IDs that the peer does not know yet, or whose frames were lost.
    new_ids: Vec<NewConnectionId>,
    /// Connection IDs in frames in flight, repeated when lost.
    issued: Vec<NewConnectionId>,
    /// The largest sequence number that was ever sent.
    pub(super) largest_id_sent: u64,
    pub(super) handshake_done: bool,
    /// The token for the client's next connection, until it is acknowledged, and whether it is to
    /// be sent now.
    new_token: Option<(Vec<u8>, bool)>,
    /// The offer of a path secret, until it is acknowledged, and whether it is to be sent now.
    path_secret: Option<(PathSecret, bool)>,
    /// The key of a renewal, until it is acknowledged, and whether it is to be sent now.
    path_key: Option<(PathKey, bool)>,
    /// The number of streams that are served, until it is acknowledged, and whether it is to be sent
    /// now.
    go_away: Option<(u64, bool)>,
    pub(super) ack_requests: AckRequests,
}

impl ControlFrames {
    pub(super) fn issue_id(&mut self, id: NewConnectionId) {
        self.new_ids.push(id);
    }

    /// Records that an ID of ours was sent to the peer.
    pub(super) fn note_id_sent(&mut self, sequence: u64) {
        self.largest_id_sent = self.largest_id_sent.max(sequence);
    }

    /// Drops an ID of ours that the peer has retired: it is not sent again.
    pub(super) fn forget_id(&mut self, sequence: u64) {
        self.new_ids.retain(|id| id.sequence != sequence);
        self.issued.retain(|id| id.sequence != sequence);
    }

    pub(super) fn issue_token(&mut self, token: Vec<u8>) {
        self.new_token = Some((token, true));
    }

    pub(super) fn offer_secret(&mut self, offer: PathSecret) {
        self.path_secret = Some((offer, true));
    }

    pub(super) fn send_key(&mut self, key: PathKey) {
        self.path_key = Some((key, true));
    }

    pub(super) fn send_go_away(&mut self, streams: u64) {
        self.go_away = Some((streams, true));
    }

    /// Whether any frame is pending, including retirements of the peer's IDs; only 1-RTT packets
    /// carry them.
    pub(super) fn are_due(&self, remote_ids: &RemoteIds) -> bool {
        self.handshake_done
            || self.new_token.as_ref().is_some_and(|(_, due)| *due)
            || self.path_secret.is_some_and(|(_, due)| due)
            || self.path_key.is_some_and(|(_, due)| due)
            || self.go_away.is_some_and(|(_, due)| due)
            || !self.new_ids.is_empty()
            || remote_ids.has_retirements()
            || self.ack_requests.is_due()
    }

    /// Writes the frames that fit.
    pub(super) fn fill(
        &mut self,
        remote_ids: &mut RemoteIds,
        out: &mut Vec<u8>,
        limit: usize,
        mut sent: impl FnMut(SentFrame),
    ) {
        let fits = |out: &Vec<u8>| out.len() + frame::write::CONTROL_MAX_SIZE <= limit;
        // Before HANDSHAKE_DONE, at which a client without a new secret gives up the old one.
        if let Some((offer, due @ true)) = &mut self.path_secret
            && fits(out)
        {
            frame::write::path_secret(out, offer);
            sent(SentFrame::PathSecret);
            *due = false;
        }
        if self.handshake_done && fits(out) {
            frame::write::handshake_done(out);
            sent(SentFrame::HandshakeDone);
            self.handshake_done = false;
        }
        if let Some((streams, due @ true)) = &mut self.go_away
            && fits(out)
        {
            frame::write::go_away(out, *streams);
            sent(SentFrame::GoAway);
            *due = false;
        }
        if let Some((key, due @ true)) = &mut self.path_key
            && fits(out)
        {
            match key {
                PathKey::Request(key) => frame::write::path_key(out, key),
                PathKey::Answer(key, secret) => frame::write::path_key_answer(out, key, secret),
            }
            sent(SentFrame::PathKey);
            *due = false;
        }
        if let Some((token, due @ true)) = &mut self.new_token
            && out.len() + frame::write::new_token_size(token.len()) <= limit
        {
            frame::write::new_token(out, token);
            sent(SentFrame::NewToken);
            *due = false;
        }
        if fits(out)
            && let Some(request) = self.ack_requests.take()
        {
            frame::write::ack_frequency(out, &request);
            sent(SentFrame::AckFrequency {
                sequence: request.sequence,
            });
        }
        while fits(out) {
            let Some(id) = self.new_ids.pop() else { break };
            frame::write::new_connection_id(out, &id);
            sent(SentFrame::NewConnectionId {
                sequence: id.sequence,
            });
            self.note_id_sent(id.sequence);
            self.issued.push(id);
        }
        while fits(out) {
            let Some(sequence) = remote_ids.next_retirement() else {
                break;
            };
            frame::write::retire_connection_id(out, sequence);
            sent(SentFrame::RetireConnectionId { sequence });
        }
    }

    /// Handles the acknowledgment of one of these frames.
    pub(super) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::NewConnectionId { sequence } => {
                self.issued.retain(|id| id.sequence != sequence);
            }
            SentFrame::NewToken => self.new_token = None,
            SentFrame::PathSecret => self.path_secret = None,
            SentFrame::PathKey => self.path_key = None,
            // Another one may be on its way, with a lower limit.
            SentFrame::GoAway => {
                self.go_away = self.go_away.filter(|(_, due)| *due);
            }
            SentFrame::AckFrequency { sequence } => self.ack_requests.on_acked(sequence),
            _ => {}
        }
    }

    /// Queues a lost frame again.
    pub(super) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::HandshakeDone => self.handshake_done = true,
            SentFrame::NewToken => {
                if let Some((_, due)) = &mut self.new_token {
                    *due = true;
                }
            }
            SentFrame::PathSecret => {
                if let Some((_, due)) = &mut self.path_secret {
                    *due = true;
                }
            }
            SentFrame::PathKey => {
                if let Some((_, due)) = &mut self.path_key {
                    *due = true;
                }
            }
            SentFrame::GoAway => {
                if let Some((_, due)) = &mut self.go_away {
                    *due = true;
                }
            }
            SentFrame::AckFrequency { sequence } => self.ack_requests.on_lost(sequence),
            SentFrame::NewConnectionId { sequence } => {
                if let Some(position) = self.issued.iter().position(|id| id.sequence == sequence) {
                    self.new_ids.push(self.issued.swap_remove(position));
                }
            }
            _ => {}
        }
    }
}
