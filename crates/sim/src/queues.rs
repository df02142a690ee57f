//! From what a scenario says of a queue to the rules of the fabric.

use weir_fabric::{Action, Class, Probability, Ramp, Red, Rule, discipline};
use weir_scenario::{Buffer, Discipline, Level, Port, Queue, RedLength};
use weir_units::ByteSize;

/// The rules of a port's queue, in the order in which they are asked.
pub(crate) fn rules(port: &Port) -> Vec<Rule> {
    let Queue { discipline, buffer } = &port.queue;
    let mut rules: Vec<Rule> = match *buffer {
        Buffer::Limited(Level::Bytes(size)) => vec![Rule::buffer(size)],
        Buffer::Limited(Level::Packets(places)) => vec![Rule::buffer_packets(places)],
        Buffer::Unlimited => Vec::new(),
    };
    // The presets of the fabric bring a rule for the buffer along.
    let without_buffer = |preset: &[Rule]| preset.iter().skip(1).copied().collect::<Vec<_>>();
    rules.extend(match *discipline {
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
        Discipline::Shared { ecn_threshold, red } => without_buffer(&discipline::shared_queue(
            ecn_threshold,
            ramp(red),
            ByteSize::MAX,
        )),
        Discipline::Qfx { ecn_threshold } => without_buffer(&discipline::ecn_with_tail_drop(
            ecn_threshold,
            ByteSize::MAX,
        )),
    });
    rules
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
            weight: Probability::new(weight).unwrap_or_default(),
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
