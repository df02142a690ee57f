//! The inner segments of super-packets pass without processing, with the same results.

use super::*;

/// Sends super-packets, in pieces that are marked as such or not.
struct Sender {
    world: World,
    says_so: bool,
    number: u64,
}

#[derive(Clone, Debug)]
enum Step {
    /// Super-packets of several flows, with alternating pieces: flow, first segment, count. Between two
    /// pieces a receiver gets a window.
    Bursts(Vec<(u16, u32, u32)>, (u32, u16, u32)),
    Acknowledge(u16, u32),
    /// Limits what the receiver may send.
    AllowBack(u16, u32),
    Allow(u16, u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let port = 1_u16..4;
    let burst = (port.clone(), 0_u32..100, 1_u32..20);
    prop_oneof![
        4 => (prop::collection::vec(burst, 1..3), (0_u32..100, port.clone(), 0_u32..3)).prop_map(|(bursts, order)| Step::Bursts(bursts, order)),
        2 => (port.clone(), 0_u32..120).prop_map(|(port, number)| Step::Acknowledge(port, number * MSS)),
        1 => (port.clone(), 0_u32..3).prop_map(|(port, segments)| Step::AllowBack(port, segments)),
        1 => (port, 0_u32..50).prop_map(|(port, segments)| Step::Allow(port, segments)),
        2 => (0_u64..2_000).prop_map(Step::Wait),
    ]
}

impl Sender {
    fn new(says_so: bool) -> Self {
        let mut world = World::new(AgentConfig::paper(), 0);
        (1..4).for_each(|port| world.connect(port));
        Self {
            world,
            says_so,
            number: 0,
        }
    }

    fn allow_back(&mut self, port: u16, segments: u32) {
        self.world.order(WindowOrder::Allow {
            flow: flow(port).reversed(),
            window: segments * 20,
        });
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Bursts(bursts, (when, back, segments)) => {
                let first = self.number;
                self.number += bursts.len() as u64;
                let longest = bursts.iter().map(|(_, _, pieces)| *pieces).max();
                for index in 0..longest.unwrap_or(0) {
                    if index == *when {
                        self.allow_back(*back, *segments);
                    }
                    for (id, (port, start, pieces)) in (first..).zip(bursts) {
                        if index < *pieces {
                            let is_inner = index > 0 && index + 1 < *pieces;
                            let burst = Burst { id, is_inner };
                            self.world.burst = self.says_so.then_some(burst);
                            self.world.data(*port, (start + index) * MSS);
                        }
                    }
                }
                self.world.burst = None;
            }
            Step::Acknowledge(port, bytes) => self.world.acknowledge(*port, *bytes),
            Step::AllowBack(port, segments) => self.allow_back(*port, *segments),
            Step::Allow(port, segments) => self.world.allow(*port, *segments),
            Step::Wait(micros) => self.world.pass(Duration::from_micros(*micros)),
        }
    }
}

proptest! {
    #[test]
    fn bursts_give_the_same_result_as_single_segments(steps in prop::collection::vec(step(), 0..60)) {
        let [mut whole, mut pieces] = [true, false].map(Sender::new);
        for step in &steps {
            whole.step(step);
            pieces.step(step);
            prop_assert_eq!(whole.world.reports(), pieces.world.reports());
        }
        for forth in [true, false] {
            prop_assert_eq!(whole.world.arrived(forth), pieces.world.arrived(forth));
        }
        let counters = [&mut whole, &mut pieces].map(|sender| sender.world.agent().counters());
        prop_assert_eq!(counters[0], counters[1]);
    }
}
