//! A scenario file with a log of what was changed while it ran. Both together are a scenario file again, which gives
//! the same run.

use std::fmt::Write as _;

use serde::Serialize;
use weir_scenario::{Document, Scenario, ScenarioError};
use weir_units::{Duration, Time};

use crate::error::StudioError;
use crate::knob::{Knob, Link, Target};

/// A change that was made while the scenario ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEntry {
    /// When, in seconds of the run.
    pub at: f64,
    /// What happened, for people.
    pub text: String,
    /// The knob that was turned, or the link.
    pub knob: String,
    /// Its value, in the knob's unit; none for a link that failed.
    pub value: Option<f64>,
    #[serde(skip)]
    change: Change,
}

/// What an entry of the log adds to the file.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// A table `[[changes]]`.
    Set {
        at: Time,
        target: Target,
        key: &'static str,
        value: String,
    },
    /// A table `[[faults]]`: the link of this port fails in both directions, until it is restored.
    Fail {
        at: Time,
        port: String,
        until: Option<Time>,
    },
}

/// A scenario file, and the changes since.
#[derive(Clone, Debug)]
pub struct Script {
    name: String,
    text: String,
    log: Vec<LogEntry>,
}

impl Script {
    /// Creates one of a scenario file's text; errors contain `name`.
    pub fn of_file(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            log: Vec::new(),
        }
    }

    /// Creates one of a scenario that is not what a file says alone: it has other settings, or is a variant. The
    /// scenario is written in the general form.
    ///
    /// # Errors
    /// The scenario cannot be written.
    pub fn of_scenario(name: &str, scenario: &Scenario) -> Result<Self, StudioError> {
        Ok(Self::of_file(name, &toml::to_string(scenario)?))
    }

    /// Returns the name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the changes, in the order in which they were made.
    pub fn log(&self) -> &[LogEntry] {
        &self.log
    }

    /// Returns the scenario file that gives the same run.
    pub fn file(&self) -> String {
        let mut file = self.text.trim_end().to_owned();
        file.push('\n');
        for entry in &self.log {
            let _ = write!(file, "\n# {}\n{}", entry.text, entry.change.table());
        }
        file
    }

    /// Returns the scenario with its changes.
    ///
    /// # Errors
    /// A change does not fit the scenario.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Document::parse(&self.name, &self.file())?.scenario()
    }

    /// Adds a new value of a knob. It replaces one that the knob got at the same time.
    pub(crate) fn set(&mut self, at: Time, knob: &Knob, value: f64) {
        let text = knob.text_of(value);
        let change = Change::Set {
            at,
            target: knob.target.clone(),
            key: knob.key,
            value: knob.written(value),
        };
        self.log
            .retain(|entry| entry.knob != knob.id || entry.change.begin() != at);
        self.log.push(LogEntry {
            at: seconds(at),
            text: format!("{}: {} = {text}", knob.section(), knob.key),
            knob: knob.id.clone(),
            value: Some(value),
            change,
        });
    }

    /// Fails a link in both directions.
    ///
    /// # Errors
    /// It has failed already.
    pub(crate) fn fail(&mut self, at: Time, link: &Link) -> Result<(), StudioError> {
        let Link { id, port } = link;
        if self.failed_at(port).is_some() {
            return Err(StudioError::HasFailed(port.clone()));
        }
        self.log.push(LogEntry {
            at: seconds(at),
            text: format!("link {port}: fails"),
            knob: id.clone(),
            value: None,
            change: Change::Fail {
                at,
                port: port.clone(),
                until: None,
            },
        });
        Ok(())
    }

    /// Ends the failure of a link.
    ///
    /// # Errors
    /// It has not failed, or only at this moment.
    pub(crate) fn restore(&mut self, now: Time, link: &Link) -> Result<(), StudioError> {
        let port = &link.port;
        let not_failed = || StudioError::HasNotFailed(port.clone());
        let place = self.failed_at(port).ok_or_else(not_failed)?;
        if let Some(entry) = self.log.get_mut(place)
            && let Change::Fail { at, until, .. } = &mut entry.change
        {
            if *at >= now {
                self.log.remove(place);
                return Ok(());
            }
            *until = Some(now);
            entry.text = format!("link {port}: fails until {}", now.since(Time::ZERO));
        }
        Ok(())
    }

    /// Takes the last change back. Returns when it began.
    pub(crate) fn undo(&mut self) -> Option<Time> {
        self.log.pop().map(|entry| entry.change.begin())
    }

    /// Returns the IDs of the links that are down by the log at a time.
    pub(crate) fn failed(&self, now: Time) -> Vec<String> {
        let down = self.log.iter().filter(|entry| {
            matches!(entry.change, Change::Fail { at, until, .. }
                if at <= now && until.is_none_or(|until| until > now))
        });
        down.map(|entry| entry.knob.clone()).collect()
    }

    /// Returns the place of the entry by which a port's link is down.
    fn failed_at(&self, wanted: &str) -> Option<usize> {
        self.log.iter().position(|entry| {
            matches!(&entry.change, Change::Fail { port, until: None, .. } if port == wanted)
        })
    }
}

impl Change {
    fn begin(&self) -> Time {
        match self {
            Self::Set { at, .. } | Self::Fail { at, .. } => *at,
        }
    }

    /// Returns the table in the file.
    fn table(&self) -> String {
        match self {
            Self::Set {
                at,
                target,
                key,
                value,
            } => {
                let (whom, name, section) = match target {
                    Target::Queue(port) => ("ports", port, "queue"),
                    Target::SharedBuffer(switch) => ("switches", switch, "shared_buffer"),
                    Target::Congestion(group) => ("groups", group, "congestion"),
                    Target::Workload(group) => ("groups", group, "workload"),
                };
                let (at, name) = (quoted(&span(*at)), quoted(name));
                format!("[[changes]]\nat = {at}\n{whom} = {name}\nset.{section}.{key} = {value}\n")
            }
            Self::Fail { at, port, until } => {
                let (at, port) = (quoted(&span(*at)), quoted(port));
                let mut table = format!(
                    "[[faults]]\nkind = \"down\"\nports = {port}\nboth_ways = true\nat = {at}\n"
                );
                if let Some(until) = until {
                    let _ = writeln!(table, "until = {}", quoted(&span(*until)));
                }
                table
            }
        }
    }
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn span(at: Time) -> String {
    at.since(Time::ZERO).to_string()
}

/// Seconds of the run.
pub(crate) fn seconds(at: Time) -> f64 {
    at.since(Time::ZERO).as_secs_f64()
}

/// The time after these seconds of the run, which are finite and not negative.
pub(crate) fn time(seconds: f64) -> Option<Time> {
    let is_time = seconds.is_finite() && (0.0..1e9).contains(&seconds);
    is_time.then(|| Time::ZERO + Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use weir_scenario::shipped::SHIPPED;

    use super::*;

    /// The scripts with another value of a knob: less and more. One of them may not fit another key, as a lower
    /// threshold the upper one.
    fn turned(script: &Script, knob: &Knob, at: Time) -> [Script; 2] {
        [0.9, 1.1].map(|factor| {
            let value = (knob.value * factor).clamp(knob.range.minimum, knob.range.maximum);
            let mut changed = script.clone();
            changed.set(at, knob, value);
            changed
        })
    }

    #[test]
    fn every_knob_of_the_shipped_scenarios_writes_what_a_file_accepts() {
        let mut tried = 0;
        for (name, text) in SHIPPED {
            let script = Script::of_file(name, text);
            let scenario = script.scenario().unwrap();
            let middle = Time::ZERO + scenario.duration / 2;
            let mut seen = HashSet::new();
            for knob in Knob::all(&scenario) {
                let what = std::mem::discriminant(&knob.target);
                if !seen.insert((what, knob.key)) {
                    continue;
                }
                let results = turned(&script, &knob, middle).map(|changed| changed.scenario());
                assert!(
                    results.iter().any(Result::is_ok),
                    "{name}, {}: {:?}",
                    knob.id,
                    results.map(Result::err)
                );
                tried += 1;
            }
            let mut failed = script.clone();
            failed.fail(middle, &Link::all(&scenario)[0]).unwrap();
            failed.scenario().unwrap();
            tried += 1;
        }
        assert!(tried > 150, "{tried}");
    }
}
