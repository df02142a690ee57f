//! Flows that are counted together: those of one rule and one algorithm that leave by one interface. There
//! are few of them, however many flows there are.

use weir_units::{ByteSize, Duration};

use crate::counters::EnforcementCounters;

/// The most classes that are counted by their rules.
const MOST_CLASSES: usize = 256;

/// The upper bounds of RTTs, in nanoseconds: from 10 us to 1.3 s.
const RTT_BOUNDS: [u64; 18] = doubling(10_000);
/// The upper bounds of windows, in bytes: from 2 KiB to 256 MiB.
const WINDOW_BOUNDS: [u64; 18] = doubling(2048);

const fn doubling(first: u64) -> [u64; 18] {
    let mut bounds = [first; 18];
    let mut index = 1;
    while index < bounds.len() {
        bounds[index] = 2 * bounds[index - 1];
        index += 1;
    }
    bounds
}

/// Values counted in buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    bounds: &'static [u64; 18],
    counts: [u64; 19],
    sum: u64,
}

impl Distribution {
    const fn new(bounds: &'static [u64; 18]) -> Self {
        Self {
            bounds,
            counts: [0; 19],
            sum: 0,
        }
    }

    fn count(&mut self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(value);
    }

    /// Returns the upper bound of each bucket, with the number of values in it; the last one has none.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some);
        bounds.chain([None]).zip(self.counts)
    }

    /// Returns the sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

/// The flows of one rule and one algorithm that leave by the interface `I`.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowClass<I> {
    /// The egress interface of the data.
    pub egress: I,
    /// The [rule](crate::FlowPolicy::rule); `None` for all rules beyond the first 256 classes.
    pub rule: Option<u32>,
    /// The algorithm.
    pub congestion: &'static str,
    /// The number of flows now.
    pub flows: u64,
    /// The number of flows that came under control.
    pub begun: u64,
    /// The sums of the flows' counters.
    pub counters: EnforcementCounters,
    /// How often their controllers decided on new data: with each report, or each acknowledgment.
    pub decisions: u64,
    /// The smoothed RTTs at these decisions, in nanoseconds.
    pub rtt: Distribution,
    /// The controllers' windows after these decisions, in bytes.
    pub window: Distribution,
}

impl<I> FlowClass<I> {
    fn new(egress: I, rule: Option<u32>, congestion: &'static str) -> Self {
        Self {
            egress,
            rule,
            congestion,
            flows: 0,
            begun: 0,
            counters: EnforcementCounters::default(),
            decisions: 0,
            rtt: Distribution::new(&RTT_BOUNDS),
            window: Distribution::new(&WINDOW_BOUNDS),
        }
    }

    /// Counts what a flow's counters have grown by.
    pub(crate) fn add(&mut self, before: &EnforcementCounters, now: &EnforcementCounters) {
        let sum = &mut self.counters;
        sum.delivered += now.delivered - before.delivered;
        sum.marked += now.marked - before.marked;
        sum.masked += now.masked - before.masked;
        sum.sent_again += now.sent_again - before.sent_again;
        sum.lowered += now.lowered.saturating_sub(before.lowered);
    }

    /// Counts a decision; an RTT of zero is not known.
    pub(crate) fn decided(&mut self, rtt: Duration, window: ByteSize) {
        self.decisions += 1;
        if rtt > Duration::ZERO {
            self.rtt.count(rtt.as_nanos());
        }
        self.window.count(window.bytes());
    }
}

/// A class in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassIndex(usize);

/// All classes, since the start.
#[derive(Clone, Debug)]
pub(crate) struct FlowClasses<I>(Vec<FlowClass<I>>);

impl<I> Default for FlowClasses<I> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<I: PartialEq> FlowClasses<I> {
    /// Adds a flow to its class.
    pub(crate) fn begin(&mut self, egress: I, rule: u32, congestion: &'static str) -> ClassIndex {
        let own = self.find(&egress, Some(rule), congestion);
        let rule = (own.is_some() || self.0.len() < MOST_CLASSES).then_some(rule);
        let index = own.or_else(|| self.find(&egress, rule, congestion));
        let index = ClassIndex(index.unwrap_or_else(|| {
            self.0.push(FlowClass::new(egress, rule, congestion));
            self.0.len() - 1
        }));
        self.update(index, |class| {
            class.flows += 1;
            class.begun += 1;
        });
        index
    }

    fn find(&self, egress: &I, rule: Option<u32>, congestion: &'static str) -> Option<usize> {
        let is_it = |class: &FlowClass<I>| {
            class.rule == rule && class.congestion == congestion && class.egress == *egress
        };
        self.0.iter().position(is_it)
    }

    /// Removes a flow from its class, whose counts stay.
    pub(crate) fn end(&mut self, class: ClassIndex) {
        self.update(class, |class| class.flows -= 1);
    }

    pub(crate) fn update(&mut self, class: ClassIndex, change: impl FnOnce(&mut FlowClass<I>)) {
        if let Some(class) = self.0.get_mut(class.0) {
            change(class);
        }
    }

    pub(crate) fn all(&self) -> &[FlowClass<I>] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_counted_by_interface_rule_and_algorithm() {
        let mut classes = FlowClasses::default();
        let first = classes.begin("eth0", 4, "cubic");
        assert_eq!(classes.begin("eth0", 4, "cubic"), first);
        let others = [
            ("eth1", 4, "cubic"),
            ("eth0", 5, "cubic"),
            ("eth0", 4, "bbr"),
        ];
        let others = others.map(|(egress, rule, by)| classes.begin(egress, rule, by));
        assert!(!others.contains(&first));
        classes.end(first);
        let class = &classes.all()[first.0];
        assert_eq!((class.flows, class.begun), (1, 2));
        assert_eq!(classes.all().len(), 4);
    }

    #[test]
    fn the_number_of_classes_is_bounded() {
        let mut classes = FlowClasses::default();
        for rule in 0..10_000 {
            classes.begin("eth0", rule, "cubic");
        }
        assert_eq!(classes.all().len(), MOST_CLASSES + 1);
        let rest = classes.all().last().unwrap();
        assert_eq!(
            (rest.rule, rest.flows),
            (None, 10_000 - MOST_CLASSES as u64)
        );
        // The classes that there are go on to count.
        classes.begin("eth0", 7, "cubic");
        assert_eq!(classes.all()[7].flows, 2);
    }

    #[test]
    fn decisions_are_counted_in_buckets() {
        let mut classes = FlowClasses::default();
        let index = classes.begin("eth0", 1, "cubic");
        for (rtt, window) in [(10, 2048), (11, 2049), (0, 0), (9_000_000, u64::MAX)] {
            let rtt = Duration::from_micros(rtt);
            classes.update(index, |class| {
                class.decided(rtt, ByteSize::from_bytes(window))
            });
        }
        let class = &classes.all()[0];
        let counts = |of: &Distribution| of.buckets().map(|(_, count)| count).collect::<Vec<_>>();
        let mut expected = [0; 19];
        (expected[0], expected[1], expected[18]) = (1, 1, 1);
        assert_eq!(counts(&class.rtt), expected);
        expected[0] = 2;
        assert_eq!(counts(&class.window), expected);
        assert_eq!((class.decisions, class.window.sum()), (4, u64::MAX));
        let bounds: Vec<_> = class.rtt.buckets().map(|(bound, _)| bound).collect();
        assert_eq!(
            (bounds[0], bounds[17], bounds[18]),
            (Some(10_000), Some(1_310_720_000), None)
        );
    }
}
