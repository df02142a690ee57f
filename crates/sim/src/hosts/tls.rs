//! TLS 1.3 over TCP as byte counts: the flights of the handshake, and the overhead of records.
//!
//! A client's application data follow its Finished; a server's wait for it (no 0-RTT, no half-RTT data).
//! Each write becomes records of its own, and a record is delivered when all of it has arrived. The sizes
//! of the flights are those of rustls 0.23 with X25519, AES-128-GCM and the P-256 certificate of the live
//! endpoints, as captured on a loopback interface. Those of a resumption follow from RFC 8446 with an
//! identity of 32 bytes.

use std::collections::VecDeque;

use weir_scenario::TlsOptions;

/// Header, content type and authentication tag (RFC 8446, section 5.2).
const RECORD: u64 = 5 + 1 + 16;
/// The close_notify alert in its record.
const CLOSE_NOTIFY: u64 = RECORD + 2;
/// ChangeCipherSpec and Finished.
const CLIENT_FINISHED: u64 = 64;
/// Two NewSessionTickets, each in a record.
const TICKETS: u64 = 2 * (RECORD + 57);

/// The first flights.
#[derive(Clone, Copy, Debug)]
struct FirstFlights {
    client: u64,
    /// ServerHello to Finished, with the certificate if there is one.
    server: u64,
}

const FULL: FirstFlights = FirstFlights {
    client: 214,
    server: 660,
};
const RESUMED: FirstFlights = FirstFlights {
    client: 299,
    server: 197,
};

/// The TLS state of one end of a connection. It determines how many bytes go over TCP; both ends compute
/// the contents on their own.
#[derive(Debug)]
pub(crate) struct Tls {
    hellos: FirstFlights,
    /// The largest application data of a record.
    record: u64,
    /// Whether the server issues tickets.
    tickets: bool,
    is_client: bool,
    state: TlsState,
    /// Application writes before the handshake completes.
    waiting: Waiting,
    /// Writes of the peer's application that have not been delivered completely, as record headers would
    /// announce them.
    expected: VecDeque<u64>,
    /// Whether the peer's application sends endlessly after `expected`.
    endless: bool,
    /// Bytes of the stream before the first of `expected`.
    consumed: u64,
    /// Application data in these bytes.
    delivered: u64,
    /// Application data delivered, including those of the first of `expected`.
    pub(crate) opened: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsState {
    /// Before its first flight.
    Hello,
    /// Its first flight has been sent.
    Answer,
    /// Application data can be sent.
    Open,
}

#[derive(Debug, Default)]
struct Waiting {
    writes: Vec<u64>,
    endless: bool,
    close: bool,
}

/// A step for TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this many bytes.
    Send(u64),
    /// Send bytes endlessly.
    SendEndlessly,
    /// Send nothing more.
    Close,
}

impl Tls {
    pub(crate) fn new(options: &TlsOptions, is_client: bool, is_resumed: bool) -> Self {
        let hellos = if is_resumed { RESUMED } else { FULL };
        let tickets = if options.resume { TICKETS } else { 0 };
        Self {
            hellos,
            record: options.record.bytes().max(1),
            tickets: options.resume,
            is_client,
            state: TlsState::Hello,
            waiting: Waiting::default(),
            expected: VecDeque::new(),
            endless: false,
            consumed: if is_client {
                hellos.server + tickets
            } else {
                hellos.client + CLIENT_FINISHED
            },
            delivered: 0,
            opened: 0,
        }
    }

    /// Starts the connection: adds the first steps.
    pub(crate) fn begin(&mut self, out: &mut Vec<Step>) {
        if self.is_client {
            self.state = TlsState::Answer;
            out.push(Step::Send(self.hellos.client));
        }
    }

    /// Handles a total of `received` bytes of the stream.
    pub(crate) fn on_received(&mut self, received: u64, out: &mut Vec<Step>) {
        if self.state != TlsState::Open {
            self.shake_hands(received, out);
        }
        self.open_records(received);
    }

    fn shake_hands(&mut self, received: u64, out: &mut Vec<Step>) {
        if self.is_client {
            if received >= self.hellos.server {
                out.push(Step::Send(CLIENT_FINISHED));
                self.complete_handshake(out);
            }
            return;
        }
        if self.state == TlsState::Hello && received >= self.hellos.client {
            self.state = TlsState::Answer;
            out.push(Step::Send(self.hellos.server));
        }
        if received >= self.hellos.client + CLIENT_FINISHED {
            if self.tickets {
                out.push(Step::Send(TICKETS));
            }
            self.complete_handshake(out);
        }
    }

    /// Completes the handshake: adds the steps that waited for it.
    fn complete_handshake(&mut self, out: &mut Vec<Step>) {
        self.state = TlsState::Open;
        let Waiting {
            writes,
            endless,
            close,
        } = std::mem::take(&mut self.waiting);
        for size in writes {
            out.push(Step::Send(self.sealed(size)));
        }
        if endless {
            out.push(Step::SendEndlessly);
        }
        if close {
            out.extend([Step::Send(CLOSE_NOTIFY), Step::Close]);
        }
    }

    /// Returns the length of application data as records.
    fn sealed(&self, size: u64) -> u64 {
        size + RECORD * size.div_ceil(self.record)
    }

    pub(crate) fn write(&mut self, size: u64, out: &mut Vec<Step>) {
        match self.state {
            TlsState::Open => out.push(Step::Send(self.sealed(size))),
            _ => self.waiting.writes.push(size),
        }
    }

    pub(crate) fn write_endlessly(&mut self, out: &mut Vec<Step>) {
        match self.state {
            TlsState::Open => out.push(Step::SendEndlessly),
            _ => self.waiting.endless = true,
        }
    }

    pub(crate) fn close(&mut self, out: &mut Vec<Step>) {
        match self.state {
            TlsState::Open => out.extend([Step::Send(CLOSE_NOTIFY), Step::Close]),
            _ => self.waiting.close = true,
        }
    }

    /// Announces a write of the peer's application.
    pub(crate) fn expect(&mut self, size: u64) {
        self.expected.push_back(size);
    }

    /// Announces that the peer's application sends endlessly.
    pub(crate) fn expect_endlessly(&mut self) {
        self.endless = true;
    }

    /// Opens the records that are complete.
    fn open_records(&mut self, received: u64) {
        let full = self.record + RECORD;
        while let Some(size) = self.expected.front().copied() {
            let arrived = received.saturating_sub(self.consumed);
            let sealed = self.sealed(size);
            if arrived < sealed {
                self.opened = self.delivered + (arrived / full * self.record).min(size);
                return;
            }
            self.expected.pop_front();
            self.consumed += sealed;
            self.delivered += size;
            self.opened = self.delivered;
        }
        if self.endless {
            let arrived = received.saturating_sub(self.consumed);
            self.opened = self.delivered + arrived / full * self.record;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_units::ByteSize;

    use super::*;

    fn pair(record: u64, resume: bool, resumed: bool) -> [Tls; 2] {
        let options = TlsOptions {
            record: ByteSize::from_bytes(record),
            resume,
        };
        [true, false].map(|is_client| Tls::new(&options, is_client, resumed))
    }

    /// Returns the bytes of each step in the list.
    fn bytes(steps: &[Step]) -> u64 {
        let sizes = steps.iter().map(|step| match step {
            Step::Send(size) => *size,
            Step::SendEndlessly | Step::Close => 0,
        });
        sizes.sum()
    }

    #[test]
    fn the_handshake_takes_a_round_trip_before_data() {
        let [mut client, mut server] = pair(16_384, false, false);
        let mut out = Vec::new();
        client.begin(&mut out);
        server.begin(&mut out);
        client.write(1000, &mut out);
        server.expect(1000);
        assert_eq!(out, [Step::Send(214)]);
        let mut answer = Vec::new();
        server.on_received(213, &mut answer);
        assert_eq!(answer, []);
        server.on_received(214, &mut answer);
        assert_eq!(answer, [Step::Send(660)]);
        // The server's write waits for the client's Finished.
        server.write(5, &mut answer);
        assert_eq!(answer.len(), 1);
        let mut rest = Vec::new();
        client.on_received(660, &mut rest);
        assert_eq!(rest, [Step::Send(64), Step::Send(1022)]);
        let sent = bytes(&out) + bytes(&rest);
        server.on_received(sent - 1, &mut answer);
        assert_eq!(server.opened, 0, "a record is opened as a whole");
        assert_eq!(answer[1..], [Step::Send(27)]);
        server.on_received(sent, &mut answer);
        assert_eq!(server.opened, 1000);
        assert_eq!(answer.len(), 2);
    }

    #[test]
    fn a_resumption_is_smaller_and_tickets_are_no_data() {
        let [mut client, mut server] = pair(16_384, true, true);
        let (mut there, mut back) = (Vec::new(), Vec::new());
        client.begin(&mut there);
        server.on_received(bytes(&there), &mut back);
        assert!(bytes(&back) < 660 / 3);
        client.on_received(bytes(&back), &mut there);
        server.write(100, &mut back);
        server.on_received(bytes(&there), &mut back);
        client.expect(100);
        client.on_received(bytes(&back) - 1, &mut there);
        assert_eq!(client.opened, 0);
        client.on_received(bytes(&back), &mut there);
        assert_eq!(client.opened, 100);
    }

    #[test]
    fn close_notify_follows_the_data() {
        let [mut client, _] = pair(100, false, false);
        let mut out = Vec::new();
        client.begin(&mut out);
        client.write(250, &mut out);
        client.close(&mut out);
        assert_eq!(out, [Step::Send(214)]);
        client.on_received(660, &mut out);
        assert_eq!(
            out[1..],
            [
                Step::Send(64),
                Step::Send(250 + 3 * RECORD),
                Step::Send(CLOSE_NOTIFY),
                Step::Close
            ]
        );
    }

    #[test]
    fn endless_data_are_sent_in_full_records() {
        let [_, mut server] = pair(1000, false, false);
        let mut out = Vec::new();
        server.expect(500);
        server.expect_endlessly();
        let prefix = 214 + 64 + 522;
        for (more, opened) in [(0, 500), (1021, 500), (1022, 1500), (10_220, 10_500)] {
            server.on_received(prefix + more, &mut out);
            assert_eq!(server.opened, opened, "{more}");
        }
    }

    proptest! {
        /// For any segmentation of the stream, the delivered data never shrink, never exceed the written
        /// data, and are complete in the end.
        #[test]
        fn all_data_are_delivered_once(
            record in 1_u64..5000,
            writes in prop::collection::vec(1_u64..50_000, 1..20),
            mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let [mut client, mut server] = pair(record, false, false);
            let (mut there, mut back) = (Vec::new(), Vec::new());
            client.begin(&mut there);
            for (at, size) in writes.iter().enumerate() {
                if at == writes.len() / 2 {
                    client.on_received(660, &mut there);
                }
                client.write(*size, &mut there);
                server.expect(*size);
            }
            client.on_received(660, &mut there);
            let all = bytes(&there);
            cuts.sort_by_key(|cut| cut.index(all as usize));
            let mut last = 0;
            for cut in cuts {
                server.on_received(cut.index(all as usize) as u64, &mut back);
                prop_assert!(server.opened >= last);
                last = server.opened;
            }
            let sum: u64 = writes.iter().sum();
            prop_assert!(last <= sum);
            server.on_received(all, &mut back);
            prop_assert_eq!(server.opened, sum);
            prop_assert!(server.expected.is_empty());
        }
    }
}
