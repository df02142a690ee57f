//! The audit log.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::Time;

use crate::record::since_1970;

/// An entry of the log, which only grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1 on, without gaps.
    pub number: u64,
    /// When.
    #[serde(with = "since_1970")]
    pub at: Time,
    /// What has happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Somebody has pushed a version.
    Pushed {
        /// The version.
        version: u64,
        /// Who.
        author: String,
        /// Why.
        message: String,
        /// How it goes to the hosts.
        stages: String,
        /// What a simulation said before, if there was one.
        simulated: Option<String>,
    },
    /// A stage has begun.
    StageBegan {
        /// The version.
        version: u64,
        /// The number of the stage, from 1 on.
        stage: usize,
        /// Its hosts.
        to: String,
        /// How many connected hosts have or get the version.
        hosts: u64,
    },
    /// Hosts have put a version in force.
    Took {
        /// The version.
        version: u64,
        /// The hosts.
        hosts: Vec<String>,
    },
    /// A host cannot put a version in force, and keeps what it had.
    Refused {
        /// The version.
        version: u64,
        /// The host.
        host: String,
        /// Why.
        reason: String,
    },
    /// A stage has passed its guards.
    StagePassed {
        /// The version.
        version: u64,
        /// The number of the stage, from 1 on.
        stage: usize,
        /// What the guards saw last.
        guards: Vec<String>,
    },
    /// A version was taken back.
    TakenBack {
        /// The version.
        version: u64,
        /// The number of the stage, from 1 on.
        stage: usize,
        /// Why.
        reason: String,
        /// The version that hosts get instead.
        back_to: u64,
    },
    /// Somebody has stopped a roll-out.
    Stopped {
        /// The version.
        version: u64,
        /// Who.
        author: String,
        /// Why.
        message: String,
        /// The version that hosts get instead.
        back_to: u64,
    },
    /// All connected hosts have a version, and others get it when they come.
    Completed {
        /// The version.
        version: u64,
    },
    /// Hosts have come for the first time.
    Joined {
        /// The hosts.
        hosts: Vec<String>,
    },
    /// A host has a later decision than this store, or another text of a version: the store is an old copy.
    Behind {
        /// The host.
        host: String,
        /// The revision that the host has.
        revision: u64,
        /// The version that the host has.
        version: u64,
        /// The revision of this store.
        own: u64,
    },
    /// A controller has taken over this store.
    Resumed {
        /// The controller.
        controller: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pushed {
                version,
                author,
                message,
                stages,
                simulated,
            } => {
                write!(
                    f,
                    "version {version} pushed by {author}: {message}; to {stages}"
                )?;
                match simulated {
                    Some(simulated) => write!(f, "; simulated: {simulated}"),
                    None => Ok(()),
                }
            }
            Self::StageBegan {
                version,
                stage,
                to,
                hosts,
            } => write!(
                f,
                "version {version}, stage {stage}: {to}: {hosts} {}",
                plural(*hosts)
            ),
            Self::Took { version, hosts } => {
                write!(f, "{} taken by {}", named(*version), listed(hosts))
            }
            Self::Refused {
                version,
                host,
                reason,
            } => write!(f, "version {version} refused by {host}: {reason}"),
            Self::StagePassed {
                version,
                stage,
                guards,
            } => {
                write!(f, "version {version} has passed stage {stage}")?;
                if guards.is_empty() {
                    return Ok(());
                }
                write!(f, ": {}", guards.join("; "))
            }
            Self::TakenBack {
                version,
                stage,
                reason,
                back_to,
            } => write!(
                f,
                "version {version} taken back in stage {stage}, to {}: {reason}",
                named(*back_to)
            ),
            Self::Stopped {
                version,
                author,
                message,
                back_to,
            } => write!(
                f,
                "version {version} stopped by {author}, back to {}: {message}",
                named(*back_to)
            ),
            Self::Completed { version } => write!(f, "version {version} is everywhere"),
            Self::Joined { hosts } => write!(f, "new: {}", listed(hosts)),
            Self::Behind {
                host,
                revision,
                version,
                own,
            } => write!(
                f,
                "{host} has version {version} by decision {revision}, which this store, at decision {own}, does \
                 not know: it is an old copy"
            ),
            Self::Resumed { controller } => write!(f, "the controller {controller} goes on"),
        }
    }
}

/// Names a version, of which 0 is the empty policy.
fn named(version: u64) -> String {
    match version {
        0 => "no policy".to_owned(),
        version => format!("version {version}"),
    }
}

fn plural(hosts: u64) -> &'static str {
    if hosts == 1 { "host" } else { "hosts" }
}

/// The most hosts that a line names.
const MOST_NAMED: usize = 8;

fn listed(hosts: &[String]) -> String {
    let named = hosts.iter().take(MOST_NAMED);
    let mut text = named.cloned().collect::<Vec<_>>().join(", ");
    if hosts.len() > MOST_NAMED {
        let _ = fmt::Write::write_fmt(
            &mut text,
            format_args!(" and {} more", hosts.len() - MOST_NAMED),
        );
    }
    text
}
