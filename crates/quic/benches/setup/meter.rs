//! What the operations of a connection's life cost.

use std::ops::AddAssign;
use std::time::Instant;

/// A part of a connection's life on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A client makes the connection; a server routes its first datagram.
    Begin,
    /// Datagrams are routed and handled, and events are passed on.
    Receive,
    /// The application opens, writes and reads its stream.
    Stream,
    /// Datagrams are written.
    Send,
    /// The connection closes and is dropped.
    End,
}

impl Operation {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 5] = [
        Self::Begin,
        Self::Receive,
        Self::Stream,
        Self::Send,
        Self::End,
    ];

    /// Returns its name in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::Receive => "receive",
            Self::Stream => "stream",
            Self::Send => "send",
            Self::End => "end",
        }
    }
}

/// The costs of an operation, summed over connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    pub(crate) nanoseconds: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.bytes += other.bytes;
        self.nanoseconds += other.nanoseconds;
    }
}

/// The costs of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    /// Whether nothing is measured.
    pub(crate) is_off: bool,
    costs: [Cost; Operation::ALL.len()],
}

impl Meter {
    /// Runs a part of an operation.
    pub(crate) fn measure<T>(&mut self, operation: Operation, run: impl FnOnce() -> T) -> T {
        if self.is_off {
            return run();
        }
        let mut result = None;
        let begin = Instant::now();
        let counted = allocation_counter::measure(|| result = Some(run()));
        let nanoseconds = begin.elapsed().as_nanos() as u64;
        self.costs[operation as usize] += Cost {
            allocations: counted.count_total,
            bytes: counted.bytes_total,
            nanoseconds,
        };
        result.unwrap()
    }

    /// Returns the cost of an operation.
    pub(crate) fn of(&self, operation: Operation) -> Cost {
        self.costs[operation as usize]
    }

    /// Returns the cost of all operations.
    pub(crate) fn sum(&self) -> Cost {
        let mut sum = Cost::default();
        self.costs.iter().for_each(|cost| sum += *cost);
        sum
    }
}
