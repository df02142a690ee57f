//! The receiving half of a connection: reassembly, acknowledgments, and the announced window.

mod acks;
mod echo;
mod reassembly;
mod window;

use weir_units::{ByteSize, Time};
use weir_wire::Ecn;

use crate::counters::StoredCounters;
use crate::{Config, DelayedAcks, EcnMode};
use acks::AckState;
pub(crate) use acks::InOrderData;
use echo::EcnEcho;
pub(crate) use echo::PriorAck;
use reassembly::Reassembly;
use window::Window;

/// A data segment or FIN, in offsets of the peer's stream; it may lie outside the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Distance from the next expected byte.
    pub(crate) distance: i64,
    pub(crate) data: InOrderData,
    pub(crate) fin: bool,
    /// Whether CWR is set.
    pub(crate) cwr: bool,
    pub(crate) ecn: Ecn,
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The next byte expected.
    pub(crate) next: u64,
    /// The offset of FIN; [`u64::MAX`] until it has arrived.
    fin: u64,
    window: Window,
    pub(crate) acks: AckState,
    pub(crate) echo: EcnEcho,
    /// While there are gaps.
    reassembly: Option<Box<Reassembly>>,
    mss: u32,
}

/// A segment is never longer than 64 KiB.
fn shortened(mss: u64) -> u32 {
    u32::try_from(mss).unwrap_or(u32::MAX)
}

/// Whether some segments are acknowledged at once although ACKs are delayed.
fn has_quick_acks(config: &Config) -> bool {
    let delayed = config.delayed_acks;
    delayed.is_some_and(|delayed| delayed.quick_segments > 0)
}

/// Returns the window that announces the whole buffer.
pub(crate) fn whole_window(config: &Config, scale: u8) -> u64 {
    let mut window = Window::new(config, scale);
    window.offer_all();
    window.acceptable_up_to()
}

impl Receiver {
    pub(crate) fn new(config: &Config, mss: u64, scale: u8) -> Self {
        Self {
            next: 0,
            fin: u64::MAX,
            window: Window::new(config, scale),
            acks: AckState::new(config),
            echo: EcnEcho::new(config.ecn, has_quick_acks(config)),
            reassembly: None,
            mss: shortened(mss),
        }
    }

    /// Applies the negotiated MSS and window scale.
    pub(crate) fn settle(&mut self, mss: u64, scale: u8, config: &Config) {
        self.mss = shortened(mss);
        self.window.set_scale(scale, config);
    }

    /// Disables ECN after the negotiation.
    pub(crate) fn disable_ecn(&mut self) {
        self.echo = EcnEcho::new(EcnMode::Off, false);
    }

    /// Returns the window field of a SYN, which is not shifted.
    pub(crate) fn initial_window(config: &Config) -> u16 {
        Window::initial(config)
    }

    /// Handles a segment whose data has all arrived before.
    pub(crate) fn on_old_data(
        &mut self,
        distance: i64,
        payload: u32,
        delayed: Option<DelayedAcks>,
    ) {
        let start = self.next.saturating_sub(distance.unsigned_abs());
        let end = start + u64::from(payload);
        self.acks.on_duplicate(start, end, delayed);
    }

    /// Announces the whole buffer, if there is no handshake.
    pub(crate) fn offer_all(&mut self) {
        self.window.offer_all();
    }

    /// Returns the bytes delivered in order to the application.
    #[inline]
    pub(crate) fn received(&self) -> u64 {
        self.next.min(self.fin)
    }

    /// Returns whether everything up to FIN has arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.next > self.fin
    }

    /// Returns whether in-order data of this length is on the fast path: no gaps, no FIN, within
    /// the window.
    #[inline]
    pub(crate) fn expects(&self, payload: u32) -> bool {
        self.reassembly.is_none()
            && self.fin == u64::MAX
            && self.next + u64::from(payload) <= self.window.acceptable_up_to()
    }

    /// Returns whether the fast paths apply: no gaps, no FIN, and no blocks to report.
    pub(crate) fn has_fast_paths(&self) -> bool {
        self.reassembly.is_none() && self.fin == u64::MAX && !self.acks.has_blocks()
    }

    /// Returns whether in-order data of this length lies within the window.
    #[inline]
    pub(crate) fn has_room_for(&self, payload: u32) -> bool {
        self.next + u64::from(payload) <= self.window.acceptable_up_to()
    }

    /// Records in-order data on the fast path.
    #[inline(always)]
    pub(crate) fn on_expected(
        &mut self,
        now: Time,
        data: &InOrderData,
        cwr: bool,
        ecn: Ecn,
        counters: &mut StoredCounters,
    ) {
        self.note_mark(cwr, ecn, counters);
        self.next += u64::from(data.payload);
        self.window.on_delivered(self.next);
        self.acks.on_in_order(now, data, u64::from(self.mss));
    }

    /// Records the ECN mark of a data segment.
    #[inline(always)]
    fn note_mark(&mut self, cwr: bool, ecn: Ecn, counters: &mut StoredCounters) {
        let marked = ecn == Ecn::Ce;
        counters.ce_received += u64::from(marked);
        let waiting = self.acks.is_pending();
        if self.echo.on_data(marked, cwr, self.next, waiting) {
            self.acks.ack_now();
        }
    }

    /// Processes a segment with data or FIN.
    pub(crate) fn on_arrival(
        &mut self,
        now: Time,
        arrival: &Arrival,
        counters: &mut StoredCounters,
    ) {
        if arrival.data.payload > 0 {
            self.note_mark(arrival.cwr, arrival.ecn, counters);
        }
        let end = arrival.distance + i64::from(arrival.data.payload);
        self.place(now, arrival, end, counters);
    }

    /// Places a segment in the stream and cuts off data below or beyond the window.
    fn place(&mut self, now: Time, arrival: &Arrival, end: i64, counters: &mut StoredCounters) {
        let edge = self.window.acceptable_up_to();
        let below = self
            .next
            .saturating_sub(arrival.distance.min(0).unsigned_abs());
        let start = if arrival.distance < 0 {
            below
        } else {
            self.next.saturating_add(arrival.distance.unsigned_abs())
        };
        if end < 0 || (end == 0 && arrival.data.payload > 0 && !arrival.fin) {
            counters.rare().duplicate_segments += 1;
            let end = start + u64::from(arrival.data.payload);
            self.acks.on_duplicate(start, end, arrival.data.delayed);
            return;
        }
        let end = self.next + end.unsigned_abs();
        if end > edge {
            self.acks.ack_now();
        }
        if arrival.fin && self.fin == u64::MAX && end <= edge {
            // Data beyond a FIN would be invalid; the data received so far takes precedence.
            let highest = self.reassembly.as_ref().map_or(0, |runs| runs.highest());
            self.fin = end.max(highest);
        }
        let end = end.min(edge).min(self.fin);
        if arrival.distance < 0 && arrival.data.payload > 0 {
            counters.rare().duplicate_segments += 1;
            let end = self.next.min(end.max(start));
            self.acks.on_duplicate(start, end, arrival.data.delayed);
        }
        if arrival.distance > 0 {
            counters.rare().out_of_order_segments += 1;
        }
        let start = start.max(self.next);
        let filled_gap = self.reassembly.is_some() || arrival.distance != 0;
        if start > self.next {
            if end > start {
                self.store_out_of_order(start, end, arrival.data.delayed, counters);
            }
            self.acks.ack_now();
            return;
        }
        self.next = self.next.max(end);
        if let Some(runs) = &mut self.reassembly {
            if let Some(reached) = runs.take_up_to(self.next) {
                self.next = reached;
            }
            if runs.runs.is_empty() {
                self.reassembly = None;
            }
        }
        self.acks.drop_below(self.next);
        if self.fin == self.next {
            self.next += 1;
            self.acks.ack_now();
        }
        self.window.on_delivered(self.received());
        if filled_gap {
            self.acks.ack_now();
        } else {
            self.acks
                .on_in_order(now, &arrival.data, u64::from(self.mss));
        }
    }

    /// Stores out-of-order data. With too many gaps it is discarded (RFC 2018, section 8, permits
    /// even more).
    fn store_out_of_order(
        &mut self,
        start: u64,
        end: u64,
        delayed: Option<DelayedAcks>,
        counters: &mut StoredCounters,
    ) {
        let runs = self.reassembly.get_or_insert_default();
        if let Some(known) = runs.overlap(start, end) {
            counters.rare().duplicate_segments += 1;
            self.acks.on_duplicate(known.start, known.end, delayed);
        }
        if let Some(run) = runs.insert(start, end) {
            self.acks.on_out_of_order(run);
        }
    }

    /// Records that the application has read data. Sends an ACK if that opens the window
    /// considerably.
    pub(crate) fn on_read(&mut self, bytes: ByteSize) {
        let received = self.received();
        self.window.on_read(bytes, received);
        if self.window.has_opened(self.next, u64::from(self.mss)) {
            self.acks.ack_now();
        }
    }

    /// Returns the end of the acceptable data.
    pub(crate) fn edge(&self) -> u64 {
        self.window.acceptable_up_to()
    }

    /// Returns the bytes received but not read.
    pub(crate) fn unread(&self) -> u64 {
        self.window.unread(self.received())
    }

    /// Returns the window field of the segment that leaves now, in units of the scale.
    #[inline(always)]
    pub(crate) fn advertise(&mut self) -> u16 {
        self.window.announce(self.next, u64::from(self.mss))
    }

    /// Returns the window field of an acknowledgment of `next`, less than has arrived.
    pub(crate) fn advertise_from(&mut self, next: u64) -> u16 {
        self.window.advertise(next, u64::from(self.mss))
    }
}
