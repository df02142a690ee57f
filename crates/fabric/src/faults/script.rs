//! Scripts: faults that hit certain packets.

use std::fmt;

use weir_units::Duration;
use weir_wire::Ecn;

/// What a script does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes, and chance is not asked.
    Pass,
    /// It is dropped.
    Drop,
    /// It passes with a copy behind it.
    Duplicate,
    /// It is damaged; chance may delay it.
    Corrupt,
    /// It is delayed by this much while others pass.
    HoldBack(Duration),
    /// It passes with this codepoint: a path that bleaches ECN, or marks.
    RewriteEcn(Ecn),
}

/// Decides about each packet in turn. Where it gives no verdict, the random faults decide.
pub struct Script<P> {
    seen: u64,
    decide: Box<Decision<P>>,
}

type Decision<P> = dyn FnMut(u64, &P) -> Option<Verdict> + Send;

impl<P> Script<P> {
    /// Asks `decide` about every packet, with the number of packets before it under this script.
    pub fn new(decide: impl FnMut(u64, &P) -> Option<Verdict> + Send + 'static) -> Self {
        Self {
            seen: 0,
            decide: Box::new(decide),
        }
    }

    /// One verdict for each of the next packets, in order; nothing after the last.
    pub fn sequence(verdicts: impl IntoIterator<Item = Verdict, IntoIter: Send + 'static>) -> Self {
        let mut verdicts = verdicts.into_iter().fuse();
        Self::new(move |_, _| verdicts.next())
    }

    /// A verdict for the packets with these numbers, counted from zero under this script.
    pub fn nth(numbers: impl Into<Vec<u64>>, verdict: Verdict) -> Self {
        let numbers = numbers.into();
        Self::new(move |number, _| numbers.contains(&number).then_some(verdict))
    }

    /// A verdict for the packets that `matches` picks.
    pub fn matching(
        mut matches: impl FnMut(&P) -> bool + Send + 'static,
        verdict: Verdict,
    ) -> Self {
        Self::new(move |_, packet| matches(packet).then_some(verdict))
    }

    /// The verdict for the next packet.
    pub(crate) fn judge(&mut self, packet: &P) -> Option<Verdict> {
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
