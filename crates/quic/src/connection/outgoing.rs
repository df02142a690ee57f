//! What waits to be sent, apart from ACKs; the fate of sent frames comes back here.

use weir_units::Time;

use super::crypto_stream::CryptoStream;
use super::ids::RemoteIds;
use super::report::Reporter;
use crate::frame::NewConnectionId;
use crate::observe::LostPacket;
use crate::recovery::{AckRequests, FrameSink, ReceivedPackets, SentFrame};
use crate::streams::Streams;
use crate::{Space, frame};

/// What waits to be sent, with the state that acknowledgment and loss of frames change.
pub(super) struct Outgoing {
    pub(super) streams: Streams,
    pub(super) crypto: [CryptoStream; 3],
    pub(super) received: [ReceivedPackets; 3],
    pub(super) remote_ids: RemoteIds,
    /// Connection IDs of ours that the peer does not know yet, or whose frames were lost.
    new_ids: Vec<NewConnectionId>,
    /// Issued and on their way, to be repeated when lost.
    issued: Vec<NewConnectionId>,
    /// The largest sequence number of those that were ever sent.
    largest_id_sent: u64,
    pub(super) handshake_done: bool,
    /// A token for the client's next connection, until it is acknowledged, and whether it is to be
    /// sent now.
    new_token: Option<(Vec<u8>, bool)>,
    pub(super) ack_requests: AckRequests,
    /// Bytes of stream and handshake data that had to be sent again.
    pub(super) retransmitted: u64,
    /// Who is told of what happens; lost packets are among it.
    pub(super) reporter: Option<Box<Reporter>>,
}

impl Outgoing {
    pub(super) fn new(
        streams: Streams,
        received: [ReceivedPackets; 3],
        remote_ids: RemoteIds,
    ) -> Self {
        Self {
            streams,
            crypto: Default::default(),
            received,
            remote_ids,
            new_ids: Vec::new(),
            issued: Vec::new(),
            largest_id_sent: 0,
            handshake_done: false,
            new_token: None,
            ack_requests: AckRequests::default(),
            retransmitted: 0,
            reporter: None,
        }
    }

    pub(super) fn issue_id(&mut self, id: NewConnectionId) {
        self.new_ids.push(id);
    }

    /// The peer was told of an ID of ours.
    pub(super) fn note_id_sent(&mut self, sequence: u64) {
        self.largest_id_sent = self.largest_id_sent.max(sequence);
    }

    /// The largest sequence number of an ID of ours that the peer can know.
    pub(super) fn largest_id_sent(&self) -> u64 {
        self.largest_id_sent
    }

    /// The peer has retired an ID of ours: nothing about it has to be said again.
    pub(super) fn forget_id(&mut self, sequence: u64) {
        self.new_ids.retain(|id| id.sequence != sequence);
        self.issued.retain(|id| id.sequence != sequence);
    }

    pub(super) fn issue_token(&mut self, token: Vec<u8>) {
        self.new_token = Some((token, true));
    }

    /// The peer has retired an ID: it need not be told of it again.
    pub(super) fn withdraw_id(&mut self, sequence: u64) {
        self.new_ids.retain(|id| id.sequence != sequence);
        self.issued.retain(|id| id.sequence != sequence);
    }

    /// Whether frames other than CRYPTO and ACK wait that only 1-RTT packets may carry.
    pub(super) fn has_control(&self) -> bool {
        self.handshake_done
            || self.new_token.as_ref().is_some_and(|(_, due)| *due)
            || !self.new_ids.is_empty()
            || self.remote_ids.has_retirements()
            || self.ack_requests.is_due()
    }

    /// Writes the control frames that fit.
    pub(super) fn fill_control(
        &mut self,
        out: &mut Vec<u8>,
        limit: usize,
        mut sent: impl FnMut(SentFrame),
    ) {
        /// The longest of these frames: NEW_CONNECTION_ID.
        const LONGEST: usize = 1 + 8 + 8 + 1 + 20 + 16;
        let fits = |out: &Vec<u8>| out.len() + LONGEST <= limit;
        if self.handshake_done && fits(out) {
            frame::write::handshake_done(out);
            sent(SentFrame::HandshakeDone);
            self.handshake_done = false;
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
            let Some(sequence) = self.remote_ids.next_retirement() else {
                break;
            };
            frame::write::retire_connection_id(out, sequence);
            sent(SentFrame::RetireConnectionId { sequence });
        }
    }
}

impl FrameSink for Outgoing {
    fn acked(&mut self, space: Space, frame: &SentFrame) {
        match *frame {
            SentFrame::Ack { largest } => self.received[space as usize].on_ack_acked(largest),
            SentFrame::NewConnectionId { sequence } => {
                self.issued.retain(|id| id.sequence != sequence);
            }
            SentFrame::RetireConnectionId { .. } => self.remote_ids.on_retirement_acked(),
            SentFrame::NewToken => self.new_token = None,
            SentFrame::AckFrequency { sequence } => self.ack_requests.on_acked(sequence),
            SentFrame::Crypto { .. } | SentFrame::HandshakeDone => {}
            _ => self.streams.on_acked(frame),
        }
    }

    fn lost(&mut self, space: Space, frame: &SentFrame) {
        match *frame {
            SentFrame::Crypto { offset, length } => {
                self.retransmitted += u64::from(length);
                self.crypto[space as usize].on_lost(offset, length);
            }
            SentFrame::HandshakeDone => self.handshake_done = true,
            SentFrame::NewToken => {
                if let Some((_, due)) = &mut self.new_token {
                    *due = true;
                }
            }
            SentFrame::AckFrequency { sequence } => self.ack_requests.on_lost(sequence),
            SentFrame::NewConnectionId { sequence } => {
                if let Some(position) = self.issued.iter().position(|id| id.sequence == sequence) {
                    self.new_ids.push(self.issued.swap_remove(position));
                }
            }
            SentFrame::RetireConnectionId { sequence } => {
                self.remote_ids.on_retirement_lost(sequence);
            }
            SentFrame::Ack { .. } => {}
            SentFrame::Stream { length, .. } => {
                self.retransmitted += u64::from(length);
                self.streams.on_lost(frame);
            }
            _ => self.streams.on_lost(frame),
        }
    }

    fn packet_lost(&mut self, now: Time, lost: &LostPacket) {
        if let Some(reporter) = &mut self.reporter {
            reporter.packet_lost(now, lost);
        }
    }
}
