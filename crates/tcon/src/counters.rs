//! What was done to the flows.

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Flows that were treated: one for each way of a connection.
    pub flows: u64,
    /// Segments of data that were sent on for the first time.
    pub segments: u64,
    /// Segments that were lost and sent again from here.
    pub retransmissions: u64,
    /// Time-outs.
    pub timeouts: u64,
    /// Acknowledgments whose window was lowered.
    pub lowered: u64,
    /// Acknowledgments that were kept from the sender.
    pub withheld: u64,
    /// Acknowledgments with an ECN echo, which was kept from the sender.
    pub echoes: u64,
    /// Segments that the sender sent again although a copy was kept.
    pub repeated: u64,
    /// Segments of which no copy was kept: there was no room, or they overlapped others.
    pub unkept: u64,
    /// Acknowledgments of what was never sent.
    pub forged: u64,
}
