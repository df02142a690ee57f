//! Queue rules: a scenario's queue as the rules of the fabric.

use weir_fabric::{Action, Class, Ramp, Red, Rule, discipline};
use weir_scenario::{Buffer, Discipline, Level, Port, Queue, RedLength};

/// Returns the rules of a port's queue, in the order in which they apply.
pub(crate) fn rules(port: &Port) -> Vec<Rule> {
    let Queue { discipline, buffer } = &port.queue;
    let buffer = match *buffer {
        Buffer::Limited(Level::Bytes(size)) => Some(Rule::buffer(size)),
        Buffer::Limited(Level::Packets(places)) => Some(Rule::buffer_packets(places)),
        Buffer::Unlimited => None,
    };
    let discipline = match *discipline {
        Discipline::DropTail => Vec::new(),
        Discipline::Red { red, length, ecn } => early_detection(port, red, length, ecn),
        Discipline::Step { ecn_threshold } => vec![match ecn_threshold {
            Level::Bytes(size) => Rule::mark_above(size),
            Level::Packets(packets) => Rule::mark_above_packets(packets),
        }],
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
