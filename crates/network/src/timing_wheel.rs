//! A timing wheel (Varghese & Lauck 1987) of the packets on the links, by arrival.
//!
//! A packet and its event are one: a slot holds the packet, its arrival time and the port of its link, and
//! stays in place from hop to hop. Slots of about the same time are linked to a bucket. Only the bucket in
//! which the next packet arrives is sorted. Packets arrive in order of time, at the same time in order of
//! port, and of the same port in the order in which they were scheduled.
//!
//! Buckets lie on two levels; a coarse bucket is spread over the fine ones when its time comes. The few
//! packets beyond both are in a sorted map. Buckets become narrower while many packets share one.

use std::collections::BTreeMap;

use weir_units::Time;

/// The packets in flight, in order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct TimingWheel<P> {
    slots: Vec<Slot<P>>,
    /// The first free slot.
    free: u32,
    fine: Buckets,
    coarse: Buckets,
    /// Beyond the coarse buckets: by time and the number of the insertion.
    far: BTreeMap<(Time, u64), u32>,
    far_insertions: u64,
    /// The arrivals of the open bucket that are still to come, from `next` on.
    open_arrivals: Vec<Arrival>,
    next: usize,
    /// The number of the open fine bucket. All earlier ones are empty.
    open: u64,
    /// The width of a fine bucket is two to this power, in nanoseconds.
    width_bits: u32,
    /// Of the buckets opened since the width was last examined: their number and that of their packets.
    opened: u32,
    found: u32,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it reaches the far end of the link.
    pub(crate) time: Time,
    /// The port whose link delivers it.
    pub(crate) port: u32,
    /// Its slot.
    pub(crate) slot: SlotIndex,
}

/// The position of a packet in the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotIndex(u32);

#[derive(Clone, Debug)]
struct Slot<P> {
    time: Time,
    port: u32,
    /// The next slot of the same bucket, or the next free one.
    next: u32,
    packet: P,
}

/// The buckets of one level: lists of slots, the newest first.
#[derive(Clone, Debug)]
struct Buckets {
    heads: Vec<u32>,
    /// A bit for each bucket that is not empty.
    occupied: Vec<u64>,
}

/// The end of a list.
const NIL: u32 = u32::MAX;
/// The numbers of buckets: powers of two.
const FINE: u64 = 8192;
const COARSE: u64 = 4096;
/// The first width of fine buckets: 256 ns. At 100 Gbit/s a full packet takes 120.
const WIDTH_BITS: u32 = 8;
/// After how many buckets the width is examined.
const EXAMINED: u32 = 4096;
/// The mean number of packets in a bucket above which the buckets become narrower.
const CROWDED: u32 = 6;

impl<P> TimingWheel<P> {
    /// Creates an empty wheel at time zero.
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NIL,
            fine: Buckets::new(FINE),
            coarse: Buckets::new(COARSE),
            far: BTreeMap::new(),
            far_insertions: 0,
            open_arrivals: Vec::new(),
            next: 0,
            open: 0,
            width_bits: WIDTH_BITS,
            opened: 0,
            found: 0,
        }
    }

    /// Schedules a packet.
    #[inline]
    pub(crate) fn insert(&mut self, time: Time, port: u32, packet: P) {
        let slot = self.store(packet);
        self.schedule(slot, time, port);
    }

    /// Puts a packet into a slot without scheduling it.
    #[inline]
    pub(crate) fn store(&mut self, packet: P) -> SlotIndex {
        SlotIndex(match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                slot.packet = packet;
                std::mem::replace(&mut self.free, slot.next)
            }
            None => self.grow(packet),
        })
    }

    #[cold]
    fn grow(&mut self, packet: P) -> u32 {
        self.slots.push(Slot {
            time: Time::ZERO,
            port: 0,
            next: NIL,
            packet,
        });
        self.slots.len() as u32 - 1
    }

    /// Schedules a packet that has arrived, for its next link.
    #[inline]
    pub(crate) fn schedule(&mut self, SlotIndex(slot): SlotIndex, time: Time, port: u32) {
        let bucket = time.as_nanos() >> self.width_bits;
        if bucket <= self.open {
            return self.insert_into_open(Arrival {
                time,
                port,
                slot: SlotIndex(slot),
            });
        }
        let entry = &mut self.slots[slot as usize];
        (entry.time, entry.port) = (time, port);
        if bucket / FINE == self.open / FINE {
            self.fine.link(bucket % FINE, slot, &mut entry.next);
        } else {
            self.schedule_coarsely(bucket / FINE, slot);
        }
    }

    #[inline(never)]
    fn schedule_coarsely(&mut self, bucket: u64, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        if bucket - self.open / FINE < COARSE {
            self.coarse.link(bucket % COARSE, slot, &mut entry.next);
        } else {
            self.far_insertions += 1;
            self.far.insert((entry.time, self.far_insertions), slot);
        }
    }

    /// Inserts an arrival into the open bucket, behind those of the same time and port.
    fn insert_into_open(&mut self, arrival: Arrival) {
        if self.next == self.open_arrivals.len() {
            self.open_arrivals.clear();
            self.next = 0;
        }
        let mut place = self.open_arrivals.len();
        self.open_arrivals.push(arrival);
        while place > self.next && self.open_arrivals[place - 1].order() > arrival.order() {
            self.open_arrivals[place] = self.open_arrivals[place - 1];
            place -= 1;
        }
        self.open_arrivals[place] = arrival;
    }

    /// Returns the first arrival, if it is before `limit`.
    #[inline]
    pub(crate) fn first_before(&mut self, limit: Time) -> Option<Arrival> {
        if self.next == self.open_arrivals.len() && !self.open_next(limit) {
            return None;
        }
        let first = self.open_arrivals[self.next];
        (first.time < limit).then_some(first)
    }

    /// Removes the arrival that [`Self::first_before`] has returned. Its packet stays in its slot until it
    /// is [scheduled](Self::schedule) again or [released](Self::release).
    #[inline]
    pub(crate) fn pop_first(&mut self) {
        self.next += 1;
    }

    /// The packet of a slot.
    #[inline]
    pub(crate) fn packet(&self, SlotIndex(slot): SlotIndex) -> &P {
        &self.slots[slot as usize].packet
    }

    /// The packet of a slot, for changes.
    #[inline]
    pub(crate) fn packet_mut(&mut self, SlotIndex(slot): SlotIndex) -> &mut P {
        &mut self.slots[slot as usize].packet
    }

    /// Frees the slot of a packet that has arrived.
    #[inline]
    pub(crate) fn release(&mut self, SlotIndex(slot): SlotIndex) {
        self.slots[slot as usize].next = self.free;
        self.free = slot;
    }

    /// Iterates over the scheduled packets, in no order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &P> {
        let mut slots = Vec::new();
        for buckets in [&self.fine, &self.coarse] {
            for head in &buckets.heads {
                self.take_list(*head, &mut slots);
            }
        }
        slots.extend(self.far.values());
        let open = self.open_arrivals[self.next..].iter();
        slots.extend(open.map(|arrival| arrival.slot.0));
        let slots = slots.into_iter();
        slots.map(|slot| &self.slots[slot as usize].packet)
    }

    /// Opens the next bucket that is not empty, if it begins before `limit`.
    #[inline(never)]
    fn open_next(&mut self, limit: Time) -> bool {
        loop {
            let first = self.open - self.open % FINE;
            if let Some(bucket) = self.fine.first_from(self.open % FINE + 1) {
                let number = first + bucket;
                if number << self.width_bits >= limit.as_nanos() {
                    return false;
                }
                self.open = number;
                self.open_bucket(bucket);
                return true;
            }
            if !self.spread_next(limit) {
                return false;
            }
            if self.next < self.open_arrivals.len() {
                return true;
            }
        }
    }

    /// Sorts the arrivals of a fine bucket.
    fn open_bucket(&mut self, bucket: u64) {
        self.next = 0;
        self.open_arrivals.clear();
        let mut slot = self.fine.head(bucket);
        self.fine.clear(bucket);
        while slot != NIL {
            let entry = &self.slots[slot as usize];
            self.open_arrivals.push(Arrival {
                time: entry.time,
                port: entry.port,
                slot: SlotIndex(slot),
            });
            slot = entry.next;
        }
        // The list has the newest first.
        self.open_arrivals.reverse();
        sort(&mut self.open_arrivals);
        self.opened += 1;
        self.found += self.open_arrivals.len() as u32;
        if self.opened == EXAMINED {
            self.examine_width();
        }
    }

    /// Spreads the next coarse bucket that is not empty over the fine ones, if it begins before `limit`.
    fn spread_next(&mut self, limit: Time) -> bool {
        let now = self.open / FINE;
        let at = now % COARSE;
        let coarse = self.coarse.first_from(at + 1).map(|bucket| now - at + bucket);
        let wrapped = || self.coarse.first_from(0).map(|bucket| now - at + COARSE + bucket);
        let coarse = coarse.or_else(wrapped);
        let far = self.far.first_key_value();
        let far = far.map(|((time, _), _)| (time.as_nanos() >> self.width_bits) / FINE);
        let Some(bucket) = coarse.into_iter().chain(far).min() else {
            return false;
        };
        if bucket.saturating_mul(FINE) >= limit.as_nanos() >> self.width_bits {
            return false;
        }
        self.open_arrivals.clear();
        self.next = 0;
        // Its first fine bucket is open.
        self.open = bucket * FINE;
        // Those of the map were scheduled first, while the bucket was out of reach.
        let mut slots = Vec::new();
        while let Some(entry) = self.far.first_entry()
            && (entry.key().0.as_nanos() >> self.width_bits) / FINE == bucket
        {
            slots.push(entry.remove());
        }
        self.take_list(self.coarse.head(bucket % COARSE), &mut slots);
        self.coarse.clear(bucket % COARSE);
        self.schedule_again(&slots);
        true
    }

    /// Appends the slots of a list, the oldest first.
    fn take_list(&self, head: u32, slots: &mut Vec<u32>) {
        let before = slots.len();
        let mut slot = head;
        while slot != NIL {
            slots.push(slot);
            slot = self.slots[slot as usize].next;
        }
        slots[before..].reverse();
    }

    fn schedule_again(&mut self, slots: &[u32]) {
        for slot in slots {
            let Slot { time, port, .. } = self.slots[*slot as usize];
            self.schedule(SlotIndex(*slot), time, port);
        }
    }

    /// Halves the width of the fine buckets if many packets share one.
    #[cold]
    fn examine_width(&mut self) {
        let is_crowded = self.found > CROWDED * self.opened;
        (self.opened, self.found) = (0, 0);
        if !is_crowded || self.width_bits == 0 {
            return;
        }
        let mut slots = Vec::new();
        for buckets in [&self.fine, &self.coarse] {
            for head in &buckets.heads {
                self.take_list(*head, &mut slots);
            }
        }
        self.fine = Buckets::new(FINE);
        self.coarse = Buckets::new(COARSE);
        let far = std::mem::take(&mut self.far);
        // Whatever is not in the open bucket arrives after its end.
        self.open = 2 * self.open + 1;
        self.width_bits -= 1;
        slots.extend(far.into_values());
        self.schedule_again(&slots);
    }
}

impl<P> Default for TimingWheel<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl Arrival {
    fn order(&self) -> (Time, u32) {
        (self.time, self.port)
    }
}

impl Buckets {
    fn new(count: u64) -> Self {
        Self {
            heads: vec![NIL; count as usize],
            occupied: vec![0; count as usize / 64],
        }
    }

    /// Puts a slot at the head of a bucket.
    #[inline]
    fn link(&mut self, bucket: u64, slot: u32, next: &mut u32) {
        let head = &mut self.heads[bucket as usize];
        *next = std::mem::replace(head, slot);
        self.occupied[bucket as usize / 64] |= 1 << (bucket % 64);
    }

    fn head(&self, bucket: u64) -> u32 {
        self.heads[bucket as usize]
    }

    fn clear(&mut self, bucket: u64) {
        self.heads[bucket as usize] = NIL;
        self.occupied[bucket as usize / 64] &= !(1 << (bucket % 64));
    }

    /// Returns the first bucket from this one on that is not empty.
    fn first_from(&self, bucket: u64) -> Option<u64> {
        let word = bucket / 64;
        let first = self.occupied.get(word as usize)? & (u64::MAX << (bucket % 64));
        if first != 0 {
            return Some(word * 64 + u64::from(first.trailing_zeros()));
        }
        let rest = (word + 1..).zip(self.occupied.get(word as usize + 1..)?);
        let (word, bits) = rest.into_iter().find(|(_, bits)| **bits != 0)?;
        Some(word * 64 + u64::from(bits.trailing_zeros()))
    }
}

/// Sorts arrivals by time and port; equal ones keep their order. Most buckets have a few arrivals, which
/// are nearly sorted.
fn sort(arrivals: &mut [Arrival]) {
    if arrivals.len() > 20 {
        return arrivals.sort_by_key(Arrival::order);
    }
    for end in 1..arrivals.len() {
        let arrival = arrivals[end];
        let mut place = end;
        while place > 0 && arrivals[place - 1].order() > arrival.order() {
            arrivals[place] = arrivals[place - 1];
            place -= 1;
        }
        arrivals[place] = arrival;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// Delays of a link, of a queue, of a long path, and beyond the coarse buckets.
    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0_u64..300,
            4 => 0_u64..100_000,
            2 => 0_u64..20_000_000,
            1 => 0_u64..40_000_000_000,
        ]
    }

    proptest! {
        /// Packets arrive as from a sorted map, for any limits and any number of packets in a bucket.
        #[test]
        fn packets_arrive_in_order_of_time_port_and_insertion(
            steps in prop::collection::vec((delay(), 0_u32..3, any::<bool>(), delay()), 1..400),
            narrow in 0_u32..3,
        ) {
            let mut wheel = TimingWheel::new();
            let mut model = BTreeMap::new();
            let (mut now, mut insertions) = (0, 0..);
            for (number, (wait, port, forward, limit)) in (0_u64..).zip(steps) {
                wheel.insert(at(now + wait), port, number);
                model.insert((now + wait, port, insertions.next()), number);
                if narrow > 0 && number % 50 == 0 {
                    // As if there had been many packets.
                    wheel.opened = 1;
                    wheel.found = u32::MAX;
                    wheel.examine_width();
                }
                let end = now + limit;
                while let Some(arrival) = wheel.first_before(at(end)) {
                    let (key, expected) = model.pop_first().unwrap();
                    prop_assert_eq!((arrival.time.as_nanos(), arrival.port), (key.0, key.1));
                    prop_assert_eq!(*wheel.packet(arrival.slot), expected);
                    wheel.pop_first();
                    now = key.0;
                    if forward {
                        // The same packet travels on, once.
                        let number = expected + 1_000_000;
                        if number < 2_000_000 {
                            *wheel.packet_mut(arrival.slot) = number;
                            wheel.schedule(arrival.slot, at(now + wait), port);
                            model.insert((now + wait, port, insertions.next()), number);
                            continue;
                        }
                    }
                    wheel.release(arrival.slot);
                }
                prop_assert!(model.first_key_value().is_none_or(|(key, _)| key.0 >= end));
                now = end;
            }
        }
    }

    #[test]
    fn crowded_buckets_become_narrower_and_slots_are_reused() {
        let mut wheel = TimingWheel::new();
        let mut now = 0;
        for _ in 0..20 * EXAMINED {
            for packet in 0..16 {
                wheel.insert(at(now + packet), 0, packet);
            }
            for packet in 0..16 {
                let arrival = wheel.first_before(Time::MAX).unwrap();
                assert_eq!(arrival.time, at(now + packet));
                wheel.pop_first();
                wheel.release(arrival.slot);
            }
            now += 1000;
        }
        assert!(wheel.width_bits < WIDTH_BITS);
        assert_eq!(wheel.slots.len(), 16);
        assert_eq!(wheel.first_before(Time::MAX), None);
    }
}
