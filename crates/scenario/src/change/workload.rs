//! What can change of a group's workload while it runs.

use serde::Serialize;
use weir_scenario_derive::Keys;
use weir_units::{Duration, Rate};

use super::Misfit;
use crate::schema::Accepts;
use crate::{Group, Workload};

/// New values of how much a group sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Keys)]
#[keys(
    title = "[[changes]] set.workload",
    doc = "How much `groups` send from then on. What is still to come until the next arrival, or the next packet, \
           becomes shorter or longer in proportion."
)]
pub struct WorkloadChange {
    /// The load of random arrivals that were written as `load`; the links are those of the group's `of`.
    #[key(accepts = Accepts::Number(0.001, 10.0), absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The mean interval of random arrivals that were written as `mean_interval`.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<Duration>,
    /// The rate of each flow of the workload `cbr`.
    #[key(absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl WorkloadChange {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the keys that are set, with their values as in a file.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let load = self.load.map(|load| ("load", load.to_string()));
        let interval = (self.mean_interval).map(|interval| ("mean_interval", interval.to_string()));
        let rate = self.rate.map(|rate| ("rate", rate.to_string()));
        [load, interval, rate].into_iter().flatten().collect()
    }

    /// Changes the workload of a group.
    pub(super) fn apply_to(&self, group: &mut Group) -> Result<(), Misfit> {
        let mut rest = *self;
        let can = match (&group.workload, &group.load) {
            (Workload::Poisson { .. }, Some(_)) => {
                if let Some(load) = rest.load.take() {
                    group.change_load(load);
                }
                "load"
            }
            (Workload::Poisson { .. }, None) => {
                if let (Some(new), Workload::Poisson { mean_interval, .. }) =
                    (rest.mean_interval.take(), &mut group.workload)
                {
                    *mean_interval = new;
                }
                "mean_interval"
            }
            (Workload::Cbr { .. }, _) => {
                if let (Some(new), Workload::Cbr { rate, .. }) =
                    (rest.rate.take(), &mut group.workload)
                {
                    *rate = new;
                }
                "rate"
            }
            _ => "nothing",
        };
        match rest.values().first() {
            None => Ok(()),
            Some((key, _)) => Err(Misfit {
                key,
                conflict: format!("the workload of the group `{}` has no `{key}`", group.name),
                remedy: format!("what can change of it: {can}"),
            }),
        }
    }
}
