//! The placement of client and server on processors. Latencies are comparable only at equal
//! placement: waking a sleeping core costs more than most of what is measured here.

use std::fmt;
use std::fs;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::calls::error::Error;

/// The placement of a transport's two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Placement {
    /// Both on the same processor.
    #[serde(rename = "one core")]
    OneCore,
    /// Each on its own processor.
    #[serde(rename = "two cores")]
    TwoCores,
    /// Chosen by the scheduler.
    #[serde(rename = "free")]
    Free,
}

/// The processors that each side may use; any if empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    /// The client's.
    pub client: Vec<usize>,
    /// The server's.
    pub server: Vec<usize>,
}

impl Placement {
    /// All placements, in the order of a report.
    pub const ALL: [Self; 3] = [Self::OneCore, Self::TwoCores, Self::Free];

    /// Returns its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneCore => "one core",
            Self::TwoCores => "two cores",
            Self::Free => "free",
        }
    }

    /// Chooses processors among those that this process may use.
    ///
    /// # Errors
    /// [`Error::Specification`] if two cores are requested and only one is allowed.
    pub fn processors(self) -> Result<Processors, Error> {
        let allowed = allowed()?;
        self.choose(&allowed, &siblings_of_first(&allowed))
    }

    fn choose(self, allowed: &[usize], siblings: &[usize]) -> Result<Processors, Error> {
        let Some(&first) = allowed.first() else {
            return Ok(Processors::default());
        };
        match self {
            Self::Free => Ok(Processors::default()),
            Self::OneCore => Ok(Processors {
                client: vec![first],
                server: vec![first],
            }),
            Self::TwoCores => {
                // Prefer another core to another thread of the same core.
                let second = allowed
                    .iter()
                    .find(|cpu| !siblings.contains(cpu) && **cpu != first)
                    .or_else(|| allowed.get(1))
                    .ok_or_else(|| Error::Specification {
                        text: self.to_string(),
                        reason: "this process may use only one processor".to_owned(),
                    })?;
                Ok(Processors {
                    client: vec![*second],
                    server: vec![first],
                })
            }
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Placement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "one" | "one core" => Ok(Self::OneCore),
            "two" | "two cores" => Ok(Self::TwoCores),
            "free" => Ok(Self::Free),
            _ => Err(Error::Specification {
                text: text.to_owned(),
                reason: "a placement is one, two or free".to_owned(),
            }),
        }
    }
}

/// Restricts the calling thread, and threads that it starts later, to the processors; no
/// restriction if empty.
///
/// # Errors
/// [`Error::Io`] if the system refuses.
pub fn pin(processors: &[usize]) -> Result<(), Error> {
    if processors.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for processor in processors {
        if *processor >= CpuSet::MAX_CPU {
            return Err(Error::Specification {
                text: processor.to_string(),
                reason: format!("processors are numbered below {}", CpuSet::MAX_CPU),
            });
        }
        set.set(*processor);
    }
    sched_setaffinity(None, &set).map_err(|errno| Error::io("choosing processors")(errno.into()))
}

fn allowed() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None)
        .map_err(|errno| Error::io("reading the allowed processors")(errno.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// Returns the hardware threads that share a core with the first allowed processor, if the system
/// reports them.
fn siblings_of_first(allowed: &[usize]) -> Vec<usize> {
    let Some(first) = allowed.first() else {
        return Vec::new();
    };
    let path = format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list");
    fs::read_to_string(path)
        .map(|text| parse_list(text.trim()))
        .unwrap_or_default()
}

/// Parses the kernel's processor lists: `0-1,8`.
fn parse_list(text: &str) -> Vec<usize> {
    text.split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse::<usize>().ok()?..=high.parse::<usize>().ok()?)
        })
        .flatten()
        .take(CpuSet::MAX_CPU)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cores_avoid_a_shared_core_if_they_can() {
        let chosen = Placement::TwoCores.choose(&[0, 1, 2, 3], &[0, 1]).unwrap();
        assert_eq!((chosen.server, chosen.client), (vec![0], vec![2]));
        let chosen = Placement::TwoCores.choose(&[4, 5], &[4, 5]).unwrap();
        assert_eq!((chosen.server, chosen.client), (vec![4], vec![5]));
        assert!(Placement::TwoCores.choose(&[3], &[3]).is_err());
    }

    #[test]
    fn one_core_puts_both_on_the_first_allowed() {
        let chosen = Placement::OneCore.choose(&[3, 4], &[]).unwrap();
        assert_eq!((chosen.server, chosen.client), (vec![3], vec![3]));
        assert_eq!(
            Placement::Free.choose(&[3, 4], &[]).unwrap(),
            Processors::default()
        );
    }

    #[test]
    fn processor_lists_are_read() {
        assert_eq!(parse_list("0-1,8"), [0, 1, 8]);
        assert_eq!(parse_list("7"), [7]);
        assert!(parse_list("").is_empty());
    }
}
