//! Which rule holds for a flow, and why not the others.

use std::fmt;

use super::{Policy, PolicyFlow, PolicyRule};

/// A condition of a rule that a flow does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Its key in the file.
    pub key: &'static str,
    /// What the rule wants.
    pub wanted: String,
    /// What the flow has.
    pub found: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {}, not {}", self.key, self.found, self.wanted)
    }
}

/// How a policy comes to what it does with a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation<'p> {
    /// The rules before the one that holds, or all, each with its first condition that does not.
    pub passed_over: Vec<(&'p PolicyRule, Misfit)>,
    /// The rule that holds.
    pub rule: Option<&'p PolicyRule>,
}

impl Policy {
    /// The rule that holds for a flow.
    pub fn rule(&self, flow: &PolicyFlow<'_>) -> Option<&PolicyRule> {
        self.rules.iter().find(|rule| rule.fits(flow))
    }

    /// The same, with the reasons.
    pub fn explain(&self, flow: &PolicyFlow<'_>) -> Explanation<'_> {
        let mut passed_over = Vec::new();
        for rule in &self.rules {
            match rule.misfit(flow) {
                Some(misfit) => passed_over.push((rule, misfit)),
                None => {
                    return Explanation {
                        passed_over,
                        rule: Some(rule),
                    };
                }
            }
        }
        Explanation {
            passed_over,
            rule: None,
        }
    }
}

impl PolicyRule {
    /// Whether all its conditions hold for a flow.
    pub fn fits(&self, flow: &PolicyFlow<'_>) -> bool {
        self.misfit(flow).is_none()
    }

    /// The first condition that does not hold for a flow.
    fn misfit(&self, flow: &PolicyFlow<'_>) -> Option<Misfit> {
        let key = &flow.key;
        let name = flow.interface.unwrap_or("none");
        None.or_else(|| {
            check("from", &self.from, key.source, |set| {
                set.contains(key.source)
            })
        })
        .or_else(|| {
            let to = key.destination;
            check("to", &self.to, to, |set| set.contains(to))
        })
        .or_else(|| {
            let port = key.source_port;
            check("from_port", &self.from_ports, port, |ports| {
                ports.contains(port)
            })
        })
        .or_else(|| {
            let port = key.destination_port;
            check("to_port", &self.to_ports, port, |ports| {
                ports.contains(port)
            })
        })
        .or_else(|| {
            let fits = |interface: &str| self.interfaces.iter().any(|it| it.fits(interface));
            let is_there = flow.interface.is_some_and(fits);
            check("interface", &self.interfaces, name, |_| is_there)
        })
        .or_else(|| check("dscp", &self.dscp, flow.dscp, |class| *class == flow.dscp))
    }
}

/// What is wrong unless there is no condition, or one of the values fits.
fn check<T: fmt::Display>(
    key: &'static str,
    values: &[T],
    found: impl fmt::Display,
    fits: impl Fn(&T) -> bool,
) -> Option<Misfit> {
    if values.is_empty() || values.iter().any(fits) {
        return None;
    }
    let wanted: Vec<_> = values.iter().map(T::to_string).collect();
    Some(Misfit {
        key,
        wanted: wanted.join(" or "),
        found: found.to_string(),
    })
}
