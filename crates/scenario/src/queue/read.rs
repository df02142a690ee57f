//! Reads the tables `[queues.NAME]`.

use weir_fabric::Probability;
use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use super::{Buffer, Discipline, Level, Queue, RedLength};
use crate::document::{Cursor, Reported};
use crate::schema::{Accepts, Fields};

/// The keys of RED's queue length.
#[derive(Keys)]
pub(super) struct LengthKeys {
    /// The length that is compared with the thresholds: the queue's length when the packet arrives,
    /// or a moving average.
    #[key(accepts = Accepts::Word(&["instantaneous", "average"]), default = "average")]
    length: String,
    /// The weight of one arrival in the average, w_q in the paper; only with `length = "average"`.
    #[key(accepts = Accepts::Number(1e-9, 1.0), absent = "0.002 with the average length")]
    weight: Option<f64>,
    /// Whether the probability grows to 1 between `red_max` and twice that, instead of at once; only
    /// with `length = "average"`.
    #[key(absent = "true with the average length")]
    gentle: Option<bool>,
}

impl Queue {
    /// Reads the table of a queue.
    pub(crate) fn read(at: &Cursor<'_>) -> Result<Self, Reported> {
        Self::read_keys(&Fields::open_kind(at, &Discipline::SECTIONS)?, ())
    }

    /// Reports thresholds that the queue cannot reach: they would have no effect.
    pub(crate) fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        let Buffer::Limited(buffer) = self.buffer else {
            return Ok(());
        };
        let mut result = Ok(());
        for (name, threshold) in self.discipline.thresholds() {
            let above = match (threshold, buffer) {
                (Level::Bytes(threshold), Level::Bytes(buffer)) => threshold > buffer,
                (Level::Packets(threshold), Level::Packets(buffer)) => threshold > buffer,
                _ => false,
            };
            if above {
                result = Err(fields.error_position(name).conflict(
                    format!("{threshold} is above the buffer of {buffer}"),
                    "set a threshold up to the buffer, or a larger buffer",
                ));
            }
        }
        result
    }
}

impl Discipline {
    /// Checks the order of the thresholds.
    pub(crate) fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
        match self {
            Self::TwoThreshold {
                ecn_min, ecn_max, ..
            } => check_order(fields, ("ecn_min", *ecn_min), ("ecn_max", *ecn_max)),
            Self::Red { red, .. } | Self::Shared { red, .. } => {
                check_order(fields, ("red_min", red.red_min), ("red_max", red.red_max))
            }
            Self::Codel {
                target, interval, ..
            } if target >= interval => Err(fields.error_position("target").conflict(
                format!("{target} is not below `interval`, {interval}"),
                "`target` must be below `interval`: 5 to 10 % of it are usual",
            )),
            Self::DropTail
            | Self::Step { .. }
            | Self::Qfx { .. }
            | Self::Codel { .. }
            | Self::StrictPriority { .. } => Ok(()),
        }
    }
}

impl RedLength {
    /// The weight of one arrival that Floyd and Jacobson recommend.
    const WEIGHT: f64 = 0.002;

    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let keys = LengthKeys::read_keys(fields, ())?;
        if keys.length == "average" {
            let weight = Probability::new(keys.weight.unwrap_or(Self::WEIGHT));
            return Ok(Self::Average {
                weight: weight.map_err(|_| {
                    fields
                        .error_position("weight")
                        .wrong_kind("a number up to 1")
                })?,
                gentle: keys.gentle.unwrap_or(true),
            });
        }
        match ["weight", "gentle"].iter().find(|key| fields.has(key)) {
            None => Ok(Self::Instantaneous),
            Some(key) => Err(fields.error_position(key).conflict(
                format!("`{key}` has no meaning for the instantaneous length"),
                "remove it, or set `length = \"average\"`",
            )),
        }
    }
}

fn check_order(
    fields: &Fields<'_>,
    (least, min): (&str, ByteSize),
    (most, max): (&str, ByteSize),
) -> Result<(), Reported> {
    if min > max {
        return Err(fields.error_position(least).conflict(
            format!("{min} is above `{most}`, {max}"),
            format!("`{least}` must be at most `{most}`"),
        ));
    }
    Ok(())
}
