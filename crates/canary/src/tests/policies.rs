//! The rules of a policy over time: good ones stay, bad ones are taken back.

use weir_policy::{Policy, PolicyRule, Share};

use super::*;
use crate::{Canaries, ResumeError, RuleId, Undo};

fn rule(line: u32, undo_if: &str) -> PolicyRule {
    PolicyRule {
        line,
        share: Share::new(0.1, 0),
        compare: true,
        undo_if: vec![undo_if.parse().unwrap()],
        ..PolicyRule::new(None)
    }
}

/// Draws connections of both groups, a tenth of which are treated, 100 a second, for some seconds.
fn run(
    canaries: &mut Canaries,
    rule: RuleId,
    [treated, control]: [&mut Population; 2],
    seconds: std::ops::Range<u64>,
) -> Vec<Undo> {
    let mut undone = Vec::new();
    for number in seconds.start * 100..seconds.end * 100 {
        let is_treated = number % 10 == 0;
        let population = if is_treated {
            &mut *treated
        } else {
            &mut *control
        };
        let drawn = population.connection(number);
        let group = Group::ALL[usize::from(!is_treated)];
        canaries.record(
            at(number * 10),
            &ConnectionRecord {
                rule,
                group,
                ..drawn
            },
        );
        undone.extend(canaries.evaluate(at(number * 10)));
    }
    undone
}

fn population(seed: u64, loss: f64) -> Population {
    Population::new(seed, loss, Duration::from_millis(1))
}

#[test]
fn a_rule_that_loses_is_taken_back_and_a_good_one_is_not() {
    let policy = Policy {
        rules: vec![rule(1, "retransmits > 2x for 30s")],
    };
    let mut canaries = Canaries::default();
    let ids = canaries.set_policy(&policy);
    let [treated, control] = [&mut population(1, 0.05), &mut population(2, 0.01)];
    let undone = run(&mut canaries, ids[0], [treated, control], 0..100);
    assert_eq!((undone.len(), undone[0].line), (1, 1));
    let evidence = &undone[0].evidence;
    assert!(evidence.held >= Duration::from_secs(30));
    assert!(
        evidence.treated.low <= 0.05 && 0.05 <= evidence.treated.high,
        "{evidence}"
    );

    // An hour without a difference, with ten seconds' worth of noise in each decision.
    for condition in ["retransmits > 1.5x for 10s", "rtt > 1.5x for 10s"] {
        let policy = Policy {
            rules: vec![rule(1, condition)],
        };
        let mut canaries = Canaries::default();
        let ids = canaries.set_policy(&policy);
        let [treated, control] = [&mut population(3, 0.01), &mut population(4, 0.01)];
        assert_eq!(run(&mut canaries, ids[0], [treated, control], 0..3600), []);
    }
}

#[test]
fn a_rule_that_was_taken_back_stays_off_until_it_changes_or_is_resumed() {
    let policy = |line, text: &str| Policy {
        rules: vec![PolicyRule::new(None), rule(line, text)],
    };
    let text = "retransmits > 2x for 5s";
    let mut canaries = Canaries::default();
    let ids = canaries.set_policy(&policy(4, text));
    let [treated, control] = [&mut population(1, 0.05), &mut population(2, 0.01)];
    let undone = run(&mut canaries, ids[1], [&mut *treated, &mut *control], 0..40);
    assert_eq!(undone.len(), 1);
    assert!(canaries.is_undone(ids[1]) && !canaries.is_undone(ids[0]));

    // Moved by a line above it, but unchanged.
    assert_eq!(canaries.set_policy(&policy(6, text)), ids);
    assert!(canaries.is_undone(ids[1]));
    let error = canaries.resume(4).unwrap_err();
    assert_eq!(
        error,
        ResumeError::NoSuchRule {
            line: 4,
            lines: vec![6]
        }
    );
    assert!(error.to_string().ends_with("there is one on 6"), "{error}");
    assert_eq!(canaries.resume(6), Ok(ids[1]));
    assert_eq!(canaries.resume(6), Err(ResumeError::InForce(6)));
    let report = &canaries.reports(at(40_000))[0];
    assert_eq!((report.line, report.total.treated.connections), (6, 0));

    // What it did before does not count, what it does from now on does.
    let undone = run(&mut canaries, ids[1], [treated, control], 40..43);
    assert_eq!(undone, []);
    let undone = run(&mut canaries, ids[1], [treated, control], 43..80);
    assert_eq!(undone.len(), 1);

    // A changed rule is another one.
    let changed = canaries.set_policy(&policy(6, "retransmits > 3x for 5s"));
    assert_ne!(changed[1], ids[1]);
    assert!(!canaries.is_undone(changed[1]));
    assert!(canaries.set_policy(&Policy::default()).is_empty() && canaries.is_empty());
    let error = canaries.resume(6).unwrap_err().to_string();
    assert!(error.ends_with("no rule has one"), "{error}");
}
