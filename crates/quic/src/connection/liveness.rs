//! How a connection learns that its peer is gone: a client with open streams asks, counts the probes that
//! nobody answers, and checks what ICMP says (RFC 8085, section 5.2).

use std::net::SocketAddr;

use weir_units::{Duration, Time};

use super::Connection;
use super::close::{CloseMessage, LifeCycle};
use crate::error::ConnectionError;
use crate::{Code, Executed, Side, Space, TransportError};

/// Length of a long header up to the length of its destination ID (RFC 9000, section 17.2).
const BEFORE_DESTINATION: usize = 5;

/// What ICMP has said about the path in use.
#[derive(Debug, Default)]
pub(super) struct Unreachable {
    /// The packets that the path had sent when ICMP said first that nobody listens there. A packet
    /// received since clears it.
    probed_after: Option<u64>,
    /// The ICMP messages so far.
    messages: u64,
}

impl Unreachable {
    pub(super) fn on_received(&mut self) {
        self.probed_after = None;
    }
}

impl Connection {
    /// Returns the silence after which a PING is due; zero for never.
    pub(super) fn keep_alive_interval(&self) -> Duration {
        let (always, with_streams) = (self.config.keep_alive, self.config.stream_keep_alive);
        if !self.side.is_client() || with_streams.is_zero() || self.streams.passing_streams() == 0 {
            return always;
        }
        let bounded = match self.timers.idle_timeout {
            idle if idle.is_zero() => with_streams,
            idle => with_streams.min(idle / 3),
        };
        if always.is_zero() {
            bounded
        } else {
            bounded.min(always)
        }
    }

    /// Ends a client's connection whose server acknowledges nothing any more. The server is told, in
    /// case that only its packets are lost.
    pub(super) fn end_after_silence(&mut self, now: Time) {
        let most = self.config.max_probe_timeouts;
        let probes = self.recovery.probe_timeouts();
        if !self.side.is_client() || self.awaits_peer() || most == 0 || probes <= most {
            return;
        }
        let reason = "nothing is acknowledged";
        let message = CloseMessage::Transport(TransportError::new(Code::NO_ERROR, reason));
        self.begin_closing(now, message, ConnectionError::PeerSilent { probes });
    }

    /// Handles an ICMP message that nobody listens at `remote`. `quoted` is the beginning of the UDP
    /// payload that it quotes. Returns whether the payload is one of this connection's.
    ///
    /// Off the path nobody knows its connection ID. What anybody on it says is a hint only: the
    /// connection sends a probe, and ends where that causes another message before any packet of the
    /// peer arrives.
    pub fn handle_unreachable(&mut self, now: Time, remote: SocketAddr, quoted: &[u8]) -> bool {
        let path = self.path();
        let current = self.remote_ids.current();
        let is_ours =
            !current.is_empty() && destination(quoted, current.len()) == Some(current.as_bytes());
        if path.remote != remote || !is_ours || !matches!(self.state, LifeCycle::Open) {
            return false;
        }
        let sent = path.stats.packets_sent;
        self.unreachable.messages += 1;
        match self.unreachable.probed_after {
            Some(before) if sent > before => {
                let executed = self.executed_by_unreachable(sent);
                self.abandon(now, ConnectionError::PeerUnreachable { executed });
            }
            Some(_) => {}
            None => {
                self.unreachable.probed_after = Some(sent);
                self.probe_unreachable();
            }
        }
        true
    }

    /// Probes at once, in every space with packets that are not acknowledged.
    fn probe_unreachable(&mut self) {
        let outstanding =
            |connection: &Self, space| connection.recovery.has_eliciting_outstanding(space);
        let mut spaces: Vec<Space> = Space::ALL
            .into_iter()
            .filter(|space| outstanding(self, *space))
            .collect();
        if spaces.is_empty() && self.handshake.complete {
            spaces.push(Space::Data);
        }
        for space in spaces {
            let (recovery, _, mut fates) = self.recovery_parts();
            recovery.oldest_unacked_frames(space, 1, &mut fates);
            let probes = &mut self.probes[space as usize];
            *probes = (*probes).max(1);
        }
    }

    /// Returns whether the peer may have executed what a connection carried whose peer is unreachable.
    fn executed_by_unreachable(&self, sent: u64) -> Executed {
        // Where every packet came back, none has arrived.
        let all_came_back = !self.counters.authenticated && self.unreachable.messages >= sent;
        if self.side == Side::Client && (!self.has_sent_data() || all_came_back) {
            Executed::No
        } else {
            Executed::Maybe
        }
    }
}

/// Returns the destination ID in the beginning of a datagram; an ID in a short header has this length.
fn destination(datagram: &[u8], length: usize) -> Option<&[u8]> {
    let (first, rest) = datagram.split_first()?;
    if first & 0x80 == 0 {
        return rest.get(..length);
    }
    let length = usize::from(*datagram.get(BEFORE_DESTINATION)?);
    let begin = BEFORE_DESTINATION + 1;
    datagram.get(begin..begin + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_datagrams_may_be_cut_off_anywhere() {
        let long = [0xc0, 0, 0, 0, 1, 3, 7, 8, 9, 0];
        assert_eq!(destination(&long, 8), Some(&[7, 8, 9][..]));
        let short = [0x40, 1, 2, 3, 4];
        assert_eq!(destination(&short, 4), Some(&[1, 2, 3, 4][..]));
        for end in 0..9 {
            assert_eq!(destination(&long[..end], 8), None);
        }
        for end in 0..5 {
            assert_eq!(destination(&short[..end], 4), None);
        }
    }
}
