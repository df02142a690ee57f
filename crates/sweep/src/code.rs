//! The version of the code: a digest of each part that determines results, and the parts that a run uses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use weir_scenario::{Scenario, Transport};

/// The part that every run uses.
const SIMULATOR: &str = "simulator";

/// The digests of all parts of this program's code, by name: `simulator`, `congestion/cubic`, `quic` …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code(BTreeMap<String, String>);

impl Code {
    /// Returns this program's.
    pub fn own() -> &'static Self {
        static OWN: LazyLock<Code> =
            LazyLock::new(|| Code(parts(env!("WEIR_CODE")).map(owned).collect()));
        &OWN
    }

    /// Returns the parts that a run of this scenario uses. `text` is the scenario in the general form.
    ///
    /// The text has the name of every algorithm that the run builds, as a text of its own. A scenario that calls
    /// something else by an algorithm's name seems to use it, which at worst repeats a run.
    pub(crate) fn of_run(&self, scenario: &Scenario, text: &str) -> CodeVersion {
        let algorithms = self.0.keys().filter(|part| {
            let name = part.strip_prefix("congestion/");
            name.is_some_and(|name| text.contains(&format!("\"{name}\"")))
        });
        let transports = scenario.groups.iter().map(|group| match group.transport {
            Transport::Tcp { .. } | Transport::Tls { .. } | Transport::Udp { .. } => SIMULATOR,
            Transport::Quic { .. } => "quic",
            Transport::Dcudp { .. } => "dcudp",
        });
        let mut congestion = scenario.congestion();
        let has_plugin = congestion.any(|(_, spec)| spec.plugin().is_some());
        let mut switches = scenario.topology.switches.iter();
        let has_tcon = switches.any(|switch| !switch.tcon.is_empty());
        let elements = [
            has_tcon.then_some("tcon"),
            scenario.sed.as_ref().map(|_| "sed"),
            has_plugin.then_some("plugin"),
        ];
        let others = transports.chain(elements.into_iter().flatten());
        self.version(algorithms.map(|part| &part[..]).chain(others))
    }

    /// Returns the version of what reads and checks scenarios, for those that cannot be run.
    pub(crate) fn of_reading(&self) -> CodeVersion {
        self.version([])
    }

    /// Returns the version of these parts and of the simulator.
    fn version<'p>(&self, used: impl IntoIterator<Item = &'p str>) -> CodeVersion {
        let mut names: Vec<_> = used.into_iter().chain([SIMULATOR]).collect();
        names.sort_unstable();
        names.dedup();
        let digest = |name: &str| self.0.get(name).map_or("", String::as_str);
        let parts = names.iter().map(|name| format!("{name}:{}", digest(name)));
        CodeVersion(parts.collect::<Vec<_>>().join(" "))
    }

    /// Returns the names of the parts that differ from those of `version`. Parts that this program does not have
    /// differ.
    pub fn differing<'v>(&self, version: &'v CodeVersion) -> Vec<&'v str> {
        let own = |name: &str| self.0.get(name).map(String::as_str);
        let parts = parts(&version.0).filter(|(name, digest)| own(name) != Some(*digest));
        parts.map(|(name, _)| name).collect()
    }

    #[cfg(test)]
    pub(crate) fn with(mut self, part: &str, digest: &str) -> Self {
        self.0.insert(part.to_owned(), digest.to_owned());
        self
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version(self.0.keys().map(String::as_str)).fmt(f)
    }
}

/// The parts of the code that a run used, with their digests: `congestion/cubic:0123456789abcdef
/// simulator:0123456789abcdef`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CodeVersion(String);

impl CodeVersion {
    /// Returns the version that a row's text names.
    pub fn parse(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the names of the parts that differ from those of `other`.
    pub fn changed_since(&self, other: &Self) -> Vec<String> {
        let [own, others]: [BTreeMap<_, _>; 2] =
            [self, other].map(|version| parts(&version.0).collect());
        let mut changed: Vec<_> = own.keys().chain(others.keys()).copied().collect();
        changed.sort_unstable();
        changed.dedup();
        let changed = changed
            .into_iter()
            .filter(|name| own.get(name) != others.get(name));
        changed.map(str::to_owned).collect()
    }
}

impl fmt::Display for CodeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the parts of a text, each with its digest; a word without a digest is a part, too.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = text.split_whitespace();
    parts.map(|part| part.split_once(':').unwrap_or((part, "")))
}

fn owned((name, digest): (&str, &str)) -> (String, String) {
    (name.to_owned(), digest.to_owned())
}

#[cfg(test)]
#[path = "../build/parts.rs"]
mod built;

#[cfg(test)]
mod tests;
