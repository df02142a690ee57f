//! Places spans of time on as few lanes as keep them apart.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Lanes with spans.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// When each lane is free again; the first one on top.
    free: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Lanes {
    /// Places a span that begins no earlier than those before, and returns its lane. Lanes are counted from 0.
    pub(super) fn place(&mut self, begin: u64, end: u64) -> usize {
        let lane = match self.free.peek() {
            Some(Reverse((at, lane))) if *at <= begin => {
                let lane = *lane;
                self.free.pop();
                lane
            }
            _ => self.free.len(),
        };
        self.free.push(Reverse((end, lane)));
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_share_a_lane_where_they_do_not_overlap() {
        let mut lanes = Lanes::default();
        let spans = [(0, 10), (2, 4), (4, 6), (5, 20), (10, 12)];
        let placed: Vec<_> = spans.map(|(begin, end)| lanes.place(begin, end)).to_vec();
        assert_eq!(placed, [0, 1, 1, 2, 1]);
    }
}
