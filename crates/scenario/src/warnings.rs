//! Settings that are valid together, but rarely meant.

use std::fmt;

use weir_congestion::{AlgorithmSpec, Value};
use weir_units::{Duration, Time};

use crate::{Group, Scenario, TcpOptions, TraceFlow, Transport, Workload};

/// Settings that are valid together, but rarely meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// The key that this is about.
    pub key: String,
    /// What follows from the settings, and what would be right.
    pub kind: WarningKind,
}

/// The kind of a [`Warning`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WarningKind {
    /// A window may hold fewer segments than a receiver waits for.
    #[error(
        "a window may fall to {window} segments, and receivers wait for {ack_every}: their ACKs then come after \
         {timeout}; set `ack_every` up to {window}, or a larger `min_window`"
    )]
    WindowBelowAckEvery {
        /// The smallest window whose segments are not all pushed.
        window: u32,
        /// The segments that receivers wait for.
        ack_every: u32,
        /// The time after which an ACK comes in any case.
        timeout: Duration,
    },
    /// Flows offer more than a link carries.
    #[error(
        "flows offer {load:.2} times what the link `{link}` carries: they wait ever longer, and the results depend on \
         `duration`; set a lower `load` or a longer `mean_interval`, or take fewer flows of a trace"
    )]
    Overload {
        /// The most loaded link.
        link: String,
        /// Its load.
        load: f64,
    },
    /// Flows of a trace start too late.
    #[error(
        "{late} of the {count} flows of the trace start after the end, at {end}, and are left out; set a longer \
         `duration` to have them"
    )]
    LateFlows {
        /// The flows that are left out.
        late: usize,
        /// All flows.
        count: usize,
        /// The time at which the group ends.
        end: Time,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.kind)
    }
}

impl Scenario {
    /// Returns the warnings about this scenario.
    pub fn warnings(&self) -> Vec<Warning> {
        let windows = self.groups.iter().filter_map(small_window);
        let late = self.groups.iter();
        let late = late.filter_map(|group| late_flows(group, self.duration));
        windows.chain(late).chain(overload(self)).collect()
    }
}

/// Returns the warning about flows of a trace that start after the end.
fn late_flows(group: &Group, duration: Duration) -> Option<Warning> {
    let Workload::Trace { trace } = &group.workload else {
        return None;
    };
    let end = Time::ZERO + duration;
    let end = group.stop.unwrap_or(end).min(end);
    let late = |flow: &&TraceFlow| group.start + flow.start >= end;
    let (late, count) = (trace.flows.iter().filter(late).count(), trace.flows.len());
    (late > 0).then(|| Warning {
        key: format!("groups.{}.workload", group.name),
        kind: WarningKind::LateFlows { late, count, end },
    })
}

/// Returns the warning about a link that carries less than random arrivals offer.
fn overload(scenario: &Scenario) -> Option<Warning> {
    if !scenario.has_arrivals() {
        return None;
    }
    let (port, load) = scenario.most_loaded_link()?;
    // Rounded to the nanosecond, a mean interval may give a load a little above 1.
    (load > 1.001).then(|| Warning {
        key: "groups".to_owned(),
        kind: WarningKind::Overload {
            link: scenario.topology.port(port).name.clone(),
            load,
        },
    })
}

/// Returns the warning about receivers that wait for more segments than a window may hold.
fn small_window(group: &Group) -> Option<Warning> {
    let (congestion, options) = match &group.transport {
        Transport::Tcp {
            congestion,
            options,
        }
        | Transport::Tls {
            congestion,
            options,
            ..
        } => (congestion, options),
        Transport::Quic { .. } | Transport::Dcudp { .. } | Transport::Udp { .. } => return None,
    };
    let window = smallest_unpushed_window(congestion, options)?;
    let delayed = options.delayed_ack;
    (delayed.ack_every > window).then(|| Warning {
        key: format!("groups.{}.tcp.ack_every", group.name),
        kind: WarningKind::WindowBelowAckEvery {
            window,
            ack_every: delayed.ack_every,
            timeout: delayed.delayed_ack_timeout,
        },
    })
}

/// Returns the smallest window in whole segments, of those whose segments do not ask for their ACKs. `None`
/// for an algorithm without a window.
fn smallest_unpushed_window(congestion: &AlgorithmSpec, options: &TcpOptions) -> Option<u32> {
    let least = if options.push_small_windows { 2 } else { 1 };
    let parameters = congestion.algorithm().parameters();
    let default = parameters
        .filter(|parameter| parameter.name == "min_window")
        .map(|parameter| parameter.default);
    let set = congestion
        .values()
        .filter(|(name, _)| *name == "min_window");
    let window = match set.map(|(_, value)| value).chain(default).next()? {
        Value::Integer(packets) => u32::try_from(packets).unwrap_or(u32::MAX),
        Value::Float(packets) => packets as u32,
        _ => return None,
    };
    Some(window.max(least))
}

#[cfg(test)]
mod tests {
    use crate::one_group;

    fn warnings(settings: &[&str]) -> Vec<String> {
        let warnings = one_group::scenario("\"bulk\"", settings).warnings();
        warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn more_than_a_link_carries_is_warned_of() {
        let warnings = |load: &str| {
            let workload = format!(
                "{{ kind = \"poisson\", load = {load}, of = \"a->b\", distribution = \"web-search\" }}"
            );
            let warnings = one_group::scenario(&workload, &[]).warnings();
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(warnings("1").is_empty());
        let found = warnings("1.5");
        assert!(
            found[0].starts_with("groups: flows offer 1.50 times"),
            "{found:?}"
        );
        assert!(found[0].contains("`a->b`"), "{found:?}");
    }

    #[test]
    fn receivers_that_wait_for_more_than_a_window_are_warned_of() {
        let none: [String; 0] = [];
        for quiet in [
            &[][..],
            &["congestion=swift"],
            &["congestion=dctcp,min_window=1"],
            &["tcp.push_small_windows=false"],
            &["tcp.ack_every=4", "congestion=cubic,min_window=4"],
            &["transport=quic"],
        ] {
            assert_eq!(warnings(quiet), none, "{quiet:?}");
        }
        for (settings, window) in [
            (&["tcp.ack_every=3"][..], "fall to 2 segments"),
            (
                &[
                    "tcp.push_small_windows=false",
                    "congestion=dctcp,min_window=1",
                ],
                "fall to 1 segments",
            ),
            (
                &["tcp.push_small_windows=false", "congestion=swift"],
                "fall to 1 segments",
            ),
        ] {
            let warnings = warnings(settings);
            assert_eq!(warnings.len(), 1, "{settings:?}");
            assert!(warnings[0].starts_with("groups.g.tcp.ack_every: "));
            assert!(warnings[0].contains(window), "{warnings:?}");
            assert!(warnings[0].contains("after 40ms"), "{warnings:?}");
        }
    }
}
