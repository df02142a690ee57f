//! Handles the acknowledgment and the loss of sent frames.

use weir_units::Time;

use super::Connection;
use super::control_frames::ControlFrames;
use super::crypto_stream::CryptoStream;
use super::ids::RemoteIds;
use super::state_reporter::StateReporter;
use crate::Space;
use crate::observe::LostPacket;
use crate::path::Path;
use crate::recovery::{FrameSink, ReceivedPackets, Recovery, SentFrame};
use crate::streams::Streams;

/// The parts of a connection that sent frames come from.
pub(super) struct FrameFates<'c> {
    streams: &'c mut Streams,
    crypto: &'c mut [CryptoStream; 3],
    received: &'c mut [ReceivedPackets; 3],
    remote_ids: &'c mut RemoteIds,
    control: &'c mut ControlFrames,
    retransmitted: &'c mut u64,
    reporter: &'c mut Option<Box<StateReporter>>,
}

impl Connection {
    /// Returns recovery, the paths, and the sink that recovery reports the fate of sent frames to.
    pub(super) fn recovery_parts(&mut self) -> (&mut Recovery, &mut [Path], FrameFates<'_>) {
        let fates = FrameFates {
            streams: &mut self.streams,
            crypto: &mut self.crypto,
            received: &mut self.received,
            remote_ids: &mut self.remote_ids,
            control: &mut self.control,
            retransmitted: &mut self.counters.retransmitted,
            reporter: &mut self.reporter,
        };
        (&mut self.recovery, &mut self.paths, fates)
    }
}

impl FrameSink for FrameFates<'_> {
    fn acked(&mut self, space: Space, frame: &SentFrame) {
        match *frame {
            SentFrame::Ack { largest } => self.received[space as usize].on_ack_acked(largest),
            SentFrame::RetireConnectionId { .. } => self.remote_ids.on_retirement_acked(),
            SentFrame::NewConnectionId { .. }
            | SentFrame::NewToken
            | SentFrame::PathSecret
            | SentFrame::PathKey
            | SentFrame::GoAway
            | SentFrame::AckFrequency { .. } => self.control.on_acked(frame),
            SentFrame::Crypto { .. } | SentFrame::HandshakeDone => {}
            _ => self.streams.on_acked(frame),
        }
    }

    fn lost(&mut self, space: Space, frame: &SentFrame) {
        match *frame {
            SentFrame::Crypto { offset, length } => {
                *self.retransmitted += u64::from(length);
                self.crypto[space as usize].on_lost(offset, length);
            }
            SentFrame::RetireConnectionId { sequence } => {
                self.remote_ids.on_retirement_lost(sequence);
            }
            SentFrame::HandshakeDone
            | SentFrame::NewToken
            | SentFrame::PathSecret
            | SentFrame::PathKey
            | SentFrame::GoAway
            | SentFrame::AckFrequency { .. }
            | SentFrame::NewConnectionId { .. } => self.control.on_lost(frame),
            SentFrame::Ack { .. } => {}
            SentFrame::Stream { length, .. } => {
                *self.retransmitted += u64::from(length);
                self.streams.on_lost(frame);
            }
            _ => self.streams.on_lost(frame),
        }
    }

    fn packet_lost(&mut self, now: Time, lost: &LostPacket) {
        if let Some(reporter) = self.reporter {
            reporter.packet_lost(now, lost);
        }
    }
}
