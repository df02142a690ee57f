//! Queues: a scenario's queue as the rules and the scheduler of the fabric.

use weir_fabric::{
    self as fabric, Action, Class, ClassQueue, Classifier, CodelSettings, Packet, Ramp, Red, Rule,
    Scheduler, discipline,
};
use weir_scenario::{Buffer, Discipline, Level, Port, PriorityClass, Queue, RedLength};
use weir_units::ByteSize;

/// Returns the queue of a port, and its scheduler if the queue decides at dequeue: then the first covers the
/// queues of the scheduler together. `seed` decides what is random.
pub(crate) fn queues<P: Packet>(port: &Port, seed: u64) -> (fabric::Queue, Option<Scheduler<P>>) {
    let class = |classifier, rules: Vec<Rule>| ClassQueue {
        classifier,
        queue: fabric::Queue::new(rules, seed),
        codel: None,
    };
    if let Some(codel) = codel(port) {
        let scheduler = Scheduler::codel(fabric::Queue::new(rules(port), seed), codel);
        return (fabric::Queue::new([], seed), Some(scheduler));
    }
    let scheduler = match port.queue.discipline {
        Discipline::StrictPriority { high, .. } => {
            let high = Classifier::Ecn(match high {
                PriorityClass::Ect => Class::Ect,
                PriorityClass::NotEct => Class::NotEct,
            });
            let low = class(Classifier::EVERY, rules(port));
            Scheduler::strict_priority([class(high, rules(port))], low)
        }
        _ => return (fabric::Queue::new(rules(port), seed), None),
    };
    (fabric::Queue::new([], seed), Some(scheduler))
}

/// The longest IPv4 packet.
const LONGEST_PACKET: ByteSize = ByteSize::from_bytes(65_535);

/// Returns the settings of a port's CoDel, if it has it.
pub(crate) fn codel(port: &Port) -> Option<CodelSettings> {
    let Discipline::Codel {
        target,
        interval,
        mark,
    } = port.queue.discipline
    else {
        return None;
    };
    Some(CodelSettings {
        target,
        interval,
        mtu: port.mtu.min(LONGEST_PACKET),
        mark,
    })
}

/// Returns the rules of a port's queue, in the order in which they apply.
pub(crate) fn rules(port: &Port) -> Vec<Rule> {
    let Queue { discipline, buffer } = &port.queue;
    let buffer = match *buffer {
        Buffer::Limited(Level::Bytes(size)) => Some(Rule::buffer(size)),
        Buffer::Limited(Level::Packets(places)) => Some(Rule::buffer_packets(places)),
        Buffer::Unlimited => None,
    };
    let discipline = match *discipline {
        Discipline::DropTail | Discipline::Codel { .. } => Vec::new(),
        Discipline::Red { red, length, ecn } => early_detection(port, red, length, ecn),
        Discipline::Step { ecn_threshold } => vec![mark_above(ecn_threshold)],
        Discipline::StrictPriority { ecn_threshold, .. } => {
            ecn_threshold.map(mark_above).into_iter().collect()
        }
        Discipline::TwoThreshold {
            ecn_min,
            ecn_max,
            probability,
        } => vec![Rule::mark_between(ecn_min, ecn_max, probability)],
        Discipline::Shared { ecn_threshold, red } => {
            discipline::shared_queue(ecn_threshold, ramp(red)).to_vec()
        }
        Discipline::Qfx { ecn_threshold } => discipline::ecn_with_tail_drop(ecn_threshold).to_vec(),
    };
    buffer.into_iter().chain(discipline).collect()
}

fn mark_above(threshold: Level) -> Rule {
    match threshold {
        Level::Bytes(size) => Rule::mark_above(size),
        Level::Packets(packets) => Rule::mark_above_packets(packets),
    }
}

fn ramp(red: weir_scenario::Red) -> Ramp {
    Ramp {
        min: red.red_min,
        max: red.red_max,
        probability: red.drop_probability,
    }
}

fn early_detection(
    port: &Port,
    red: weir_scenario::Red,
    length: RedLength,
    ecn: bool,
) -> Vec<Rule> {
    let rule = match length {
        RedLength::Instantaneous => Rule::red(ramp(red)),
        RedLength::Average { weight, gentle } => Rule::red_average(Red {
            ramp: ramp(red),
            weight,
            transmission: port.rate.time_for(port.mtu + port.framing),
            gentle,
        }),
    };
    if !ecn {
        return vec![rule];
    }
    let mark = Rule {
        class: Class::Ect,
        action: Action::Mark,
        ..rule
    };
    vec![mark, rule.only(Class::NotEct)]
}
