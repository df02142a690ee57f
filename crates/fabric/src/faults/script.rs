//! Scripts: faults for chosen packets.

use std::fmt;

use weir_units::Duration;
use weir_wire::Ecn;

/// The action of a script on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes without random faults.
    Pass,
    /// It is dropped.
    Drop,
    /// It passes, followed by a copy.
    Duplicate,
    /// It is damaged; random delay still applies.
    Corrupt,
    /// It is delayed by this much while others pass.
    HoldBack(Duration),
    /// It passes with this codepoint: a path that bleaches ECN or marks.
    RewriteEcn(Ecn),
}

/// Decides about each packet in turn. Without a verdict the random faults decide.
pub struct Script<P> {
    seen: u64,
    decide: Box<Decision<P>>,
}

type Decision<P> = dyn FnMut(u64, &P) -> Option<Verdict> + Send;

impl<P> Script<P> {
    /// Creates a script that calls `decide` for every packet, with the number of packets before it.
    pub fn new(decide: impl FnMut(u64, &P) -> Option<Verdict> + Send + 'static) -> Self {
        Self {
            seen: 0,
            decide: Box::new(decide),
        }
    }

    /// Creates a script with one verdict for each of the next packets, in order, and none after the last.
    pub fn sequence(verdicts: impl IntoIterator<Item = Verdict, IntoIter: Send + 'static>) -> Self {
        let mut verdicts = verdicts.into_iter().fuse();
        Self::new(move |_, _| verdicts.next())
    }

    /// Creates a script with a verdict for the packets with these numbers, counted from zero.
    pub fn nth(numbers: impl Into<Vec<u64>>, verdict: Verdict) -> Self {
        let numbers = numbers.into();
        Self::new(move |number, _| numbers.contains(&number).then_some(verdict))
    }

    /// Creates a script with a verdict for the packets that `matches` selects.
    pub fn matching(
        mut matches: impl FnMut(&P) -> bool + Send + 'static,
        verdict: Verdict,
    ) -> Self {
        Self::new(move |_, packet| matches(packet).then_some(verdict))
    }

    /// Returns the verdict for the next packet.
    pub(crate) fn next_verdict(&mut self, packet: &P) -> Option<Verdict> {
        let number = self.seen;
        self.seen += 1;
        (self.decide)(number, packet)
    }
}

impl<P> fmt::Debug for Script<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Script")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
