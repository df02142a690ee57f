//! Where the sockets of rules are counted: a rule keeps its slot as long as it does not change, whichever
//! version of the policy it is in, and a slot is used again when no socket belongs to it.

use weir_policy::{Policy, PolicyRule};

use super::CgroupError;
use super::counts::MOST_SLOTS;

/// A rule that sockets belong to.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) rule: PolicyRule,
    /// The kernel's name of its algorithm; `None` if it passes.
    pub(super) algorithm: Option<String>,
    /// Whether it is in the policy in force.
    pub(super) is_current: bool,
}

/// All slots, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<Option<Slot>>);

impl Slots {
    /// Assigns a slot to each rule of a policy, and returns their numbers in the rules' order. `sockets` tells
    /// how many belong to a slot; `clear` has to forget what was counted in one.
    pub(super) fn assign(
        &mut self,
        policy: &Policy,
        sockets: impl Fn(usize) -> u64,
        mut clear: impl FnMut(u32) -> Result<(), CgroupError>,
    ) -> Result<Vec<u32>, CgroupError> {
        let before = std::mem::take(&mut self.0);
        self.0 = before
            .into_iter()
            .map(|slot| {
                slot.map(|slot| Slot {
                    is_current: false,
                    ..slot
                })
            })
            .collect();
        let kept: Vec<_> = policy.rules.iter().map(|rule| self.keep(rule)).collect();
        let rules = policy.rules.iter().zip(kept);
        let assign = |(rule, kept): (&PolicyRule, Option<usize>)| {
            if let Some(number) = kept {
                return Ok(number as u32);
            }
            let number = self.unused(&sockets)?;
            clear(number as u32)?;
            if number == self.0.len() {
                self.0.push(None);
            }
            if let Some(place) = self.0.get_mut(number) {
                *place = Some(Slot {
                    rule: rule.clone(),
                    algorithm: None,
                    is_current: true,
                });
            }
            Ok(number as u32)
        };
        rules.map(assign).collect()
    }

    /// Returns the slot of the same rule in a former version, which then is current again.
    fn keep(&mut self, rule: &PolicyRule) -> Option<usize> {
        let number = self.same(rule)?;
        if let Some(Some(slot)) = self.0.get_mut(number) {
            slot.is_current = true;
            // The line may be another.
            slot.rule = rule.clone();
        }
        Some(number)
    }

    fn same(&self, rule: &PolicyRule) -> Option<usize> {
        let is_same = |slot: &Slot| !slot.is_current && slot.rule.is_same(rule);
        let mut places = self.0.iter();
        places.position(|slot| slot.as_ref().is_some_and(is_same))
    }

    fn unused(&self, sockets: impl Fn(usize) -> u64) -> Result<usize, CgroupError> {
        let is_unused = |(number, slot): (usize, &Option<Slot>)| {
            let is_current = slot.as_ref().is_some_and(|slot| slot.is_current);
            (!is_current && sockets(number) == 0).then_some(number)
        };
        let found = self.0.iter().enumerate().find_map(is_unused);
        let number = found.unwrap_or(self.0.len());
        if number >= MOST_SLOTS as usize {
            return Err(CgroupError::NoRoom);
        }
        Ok(number)
    }

    /// Notes the kernel's name of a slot's algorithm.
    pub(super) fn set_algorithm(&mut self, number: u32, algorithm: Option<String>) {
        if let Some(Some(slot)) = self.0.get_mut(number as usize) {
            slot.algorithm = algorithm;
        }
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the slots that are used, with their numbers.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(number, slot)| Some((number as u32, slot.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(ports: &[u16]) -> Policy {
        let rule = |port: &u16| PolicyRule {
            to_ports: vec![port.to_string().parse().unwrap()],
            ..PolicyRule::new(None)
        };
        Policy {
            rules: ports.iter().map(rule).collect(),
        }
    }

    #[test]
    fn an_unchanged_rule_keeps_its_slot_and_unused_ones_are_used_again() {
        let mut slots = Slots::default();
        let mut cleared = Vec::new();
        let mut assign = |slots: &mut Slots, ports: &[u16], in_use: &[usize]| {
            let sockets = |number| u64::from(in_use.contains(&number));
            let clear = |number| {
                cleared.push(number);
                Ok(())
            };
            slots.assign(&policy(ports), sockets, clear).unwrap()
        };
        assert_eq!(assign(&mut slots, &[1, 2, 3], &[]), [0, 1, 2]);
        // Rule 2 has gone, but sockets belong to it.
        assert_eq!(assign(&mut slots, &[3, 4, 1], &[1]), [2, 3, 0]);
        assert_eq!(assign(&mut slots, &[3, 5], &[]), [2, 0]);
        // The same rule twice has two slots.
        assert_eq!(assign(&mut slots, &[5, 5], &[2]), [0, 1]);
        assert_eq!(cleared, [0, 1, 2, 3, 0, 1]);
        let current = slots.used().filter(|(_, slot)| slot.is_current).count();
        assert_eq!(current, 2);
    }

    #[test]
    fn slots_that_are_all_in_use_are_an_error() {
        let mut slots = Slots::default();
        let ports: Vec<_> = (1..=1024).collect();
        slots.assign(&policy(&ports), |_| 1, |_| Ok(())).unwrap();
        let error = slots
            .assign(&policy(&[2000]), |_| 1, |_| Ok(()))
            .unwrap_err();
        assert!(matches!(error, CgroupError::NoRoom));
    }
}
