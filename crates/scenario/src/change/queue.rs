//! What can change of a queue while it has packets.

use serde::{Serialize, Serializer};
use weir_fabric::Probability;
use weir_scenario_derive::Keys;
use weir_units::{ByteSize, Duration};

use super::Misfit;
use crate::queue::serialize_probability;
use crate::schema::Accepts;
use crate::{Buffer, Discipline, Level, Queue, Red, RedLength};

/// New values of a queue's settings, for packets that arrive from then on. Packets that wait stay, even
/// beyond a smaller buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Keys)]
#[keys(
    title = "[[changes]] set.queue",
    doc = "New values of the queues of `ports`, for packets that arrive from then on; each queue must have the key. \
           Packets that wait stay, and averages go on."
)]
pub struct QueueChange {
    /// The capacity.
    #[key(absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// The marking threshold; a size for the kinds `shared` and `qfx`.
    #[key(absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_threshold: Option<Level>,
    /// The lower threshold of `two-threshold`.
    #[key(accepts = Accepts::THRESHOLD, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_min: Option<ByteSize>,
    /// The upper threshold of `two-threshold`.
    #[key(accepts = Accepts::THRESHOLD, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_max: Option<ByteSize>,
    /// The marking probability of `two-threshold`.
    #[key(absent = "as before")]
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_optional_probability"
    )]
    pub probability: Option<Probability>,
    /// RED's lower threshold.
    #[key(accepts = Accepts::THRESHOLD, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub red_min: Option<ByteSize>,
    /// RED's upper threshold.
    #[key(accepts = Accepts::THRESHOLD, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub red_max: Option<ByteSize>,
    /// RED's drop probability at `red_max`.
    #[key(absent = "as before")]
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_optional_probability"
    )]
    pub drop_probability: Option<Probability>,
    /// The weight of one arrival in RED's average length.
    #[key(absent = "as before")]
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_optional_probability"
    )]
    pub weight: Option<Probability>,
    /// Whether RED's probability with the average length grows to 1 between `red_max` and twice that.
    #[key(absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gentle: Option<bool>,
    /// CoDel's acceptable wait.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Duration>,
    /// How long the wait must be above CoDel's target before the first drop.
    #[key(accepts = Accepts::POSITIVE_SPAN, absent = "as before")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
}

fn serialize_optional_probability<S: Serializer>(
    value: &Option<Probability>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serialize_probability(value, to),
        None => to.serialize_none(),
    }
}

/// Moves a new value to its place, if there is one.
fn take<T>(new: &mut Option<T>, value: &mut T) {
    if let Some(new) = new.take() {
        *value = new;
    }
}

impl QueueChange {
    /// Returns the keys that are set, with their values as in a file.
    pub fn values(&self) -> Vec<(&'static str, String)> {
        let text = |key, value: Option<String>| Some((key, value?));
        let number = |value: Option<Probability>| value.map(|value| value.value().to_string());
        [
            text("buffer", self.buffer.map(|value| value.to_string())),
            text(
                "ecn_threshold",
                self.ecn_threshold.map(|value| value.to_string()),
            ),
            text("ecn_min", self.ecn_min.map(|value| value.to_string())),
            text("ecn_max", self.ecn_max.map(|value| value.to_string())),
            text("probability", number(self.probability)),
            text("red_min", self.red_min.map(|value| value.to_string())),
            text("red_max", self.red_max.map(|value| value.to_string())),
            text("drop_probability", number(self.drop_probability)),
            text("weight", number(self.weight)),
            text("gentle", self.gentle.map(|value| value.to_string())),
            text("target", self.target.map(|value| value.to_string())),
            text("interval", self.interval.map(|value| value.to_string())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Changes a queue.
    pub(super) fn apply_to(&self, queue: &mut Queue) -> Result<(), Misfit> {
        let mut rest = *self;
        let has = adjustable(&queue.discipline);
        take(&mut rest.buffer, &mut queue.buffer);
        match &mut queue.discipline {
            Discipline::DropTail => {}
            Discipline::Step { ecn_threshold } => take(&mut rest.ecn_threshold, ecn_threshold),
            Discipline::StrictPriority { ecn_threshold, .. } => {
                *ecn_threshold = rest.ecn_threshold.take().or(*ecn_threshold);
            }
            Discipline::Qfx { ecn_threshold } => rest.take_bytes(ecn_threshold)?,
            Discipline::Shared { ecn_threshold, red } => {
                rest.take_bytes(ecn_threshold)?;
                rest.take_red(red);
            }
            Discipline::TwoThreshold {
                ecn_min,
                ecn_max,
                probability,
            } => {
                take(&mut rest.ecn_min, ecn_min);
                take(&mut rest.ecn_max, ecn_max);
                take(&mut rest.probability, probability);
            }
            Discipline::Red { red, length, .. } => {
                rest.take_red(red);
                if let RedLength::Average { weight, gentle } = length {
                    take(&mut rest.weight, weight);
                    take(&mut rest.gentle, gentle);
                }
            }
            Discipline::Codel {
                target, interval, ..
            } => {
                take(&mut rest.target, target);
                take(&mut rest.interval, interval);
            }
        }
        match rest.values().first() {
            None => Ok(()),
            Some((key, _)) => Err(Misfit {
                key,
                conflict: format!("the queue has no `{key}`"),
                remedy: format!("what can change of it: {}", has.join(", ")),
            }),
        }
    }

    fn take_red(&mut self, red: &mut Red) {
        take(&mut self.red_min, &mut red.red_min);
        take(&mut self.red_max, &mut red.red_max);
        take(&mut self.drop_probability, &mut red.drop_probability);
    }

    /// Takes a marking threshold that has to be a size.
    fn take_bytes(&mut self, threshold: &mut ByteSize) -> Result<(), Misfit> {
        match self.ecn_threshold.take() {
            Some(Level::Packets(count)) => Err(Misfit {
                key: "ecn_threshold",
                conflict: format!("{count} packets are no threshold of this kind of queue"),
                remedy: "write a size, such as \"100KB\"".to_owned(),
            }),
            Some(Level::Bytes(size)) => {
                *threshold = size;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Returns the keys that can change of a queue.
fn adjustable(discipline: &Discipline) -> Vec<&'static str> {
    const RED: [&str; 3] = ["red_min", "red_max", "drop_probability"];
    let own: &[&str] = match discipline {
        Discipline::DropTail => &[],
        Discipline::Step { .. } | Discipline::StrictPriority { .. } | Discipline::Qfx { .. } => {
            &["ecn_threshold"]
        }
        Discipline::Shared { .. } => &["ecn_threshold", RED[0], RED[1], RED[2]],
        Discipline::TwoThreshold { .. } => &["ecn_min", "ecn_max", "probability"],
        Discipline::Red {
            length: RedLength::Instantaneous,
            ..
        } => &RED,
        Discipline::Red { .. } => &[RED[0], RED[1], RED[2], "weight", "gentle"],
        Discipline::Codel { .. } => &["target", "interval"],
    };
    [&["buffer"], own].concat()
}
