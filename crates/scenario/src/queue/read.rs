//! Reading the tables `[queues.NAME]`.

use weir_fabric::Probability;
use weir_units::ByteSize;

use super::{Buffer, Discipline, Level, Queue, Red, RedLength, SECTIONS};
use crate::document::{At, Fields, Reported, section_by_kind};

impl Queue {
    /// Reads the table of a queue.
    pub(crate) fn read(at: &At<'_>) -> Result<Self, Reported> {
        let section = section_by_kind(at, &SECTIONS)?;
        let fields = Fields::open(at.clone(), section)?;
        let buffer = fields.get("buffer");
        let queue = Self {
            discipline: Discipline::read(&fields)?,
            buffer: buffer?,
        };
        queue.check(&fields)?;
        Ok(queue)
    }

    /// Thresholds that the queue cannot reach would silently be none.
    fn check(&self, fields: &Fields<'_>) -> Result<(), Reported> {
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
                result = Err(fields.blame(name).conflict(
                    format!("{threshold} is above the buffer of {buffer}"),
                    "set a threshold up to the buffer, or a larger buffer",
                ));
            }
        }
        result
    }
}

impl Discipline {
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let kind: String = fields.get("kind")?;
        Ok(match kind.as_str() {
            "red" => {
                let (red, length) = (Red::read(fields), RedLength::read(fields));
                Self::Red {
                    red: red?,
                    length: length?,
                    ecn: fields.get("ecn")?,
                }
            }
            "step" => Self::Step {
                ecn_threshold: fields.get("ecn_threshold")?,
            },
            "two-threshold" => {
                let (min, max) = ordered(fields, "ecn_min", "ecn_max")?;
                Self::TwoThreshold {
                    ecn_min: min,
                    ecn_max: max,
                    probability: fields.get("probability")?,
                }
            }
            "shared" => {
                let (threshold, red) = (fields.get("ecn_threshold"), Red::read(fields));
                Self::Shared {
                    ecn_threshold: threshold?,
                    red: red?,
                }
            }
            "qfx" => Self::Qfx {
                ecn_threshold: fields.get("ecn_threshold")?,
            },
            _ => Self::DropTail,
        })
    }
}

impl Red {
    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let probability = fields.get("drop_probability");
        let (red_min, red_max) = ordered(fields, "red_min", "red_max")?;
        Ok(Self {
            red_min,
            red_max,
            drop_probability: probability?,
        })
    }
}

impl RedLength {
    /// The weight of one arrival that Floyd and Jacobson recommend.
    const WEIGHT: f64 = 0.002;

    fn read(fields: &Fields<'_>) -> Result<Self, Reported> {
        let length: String = fields.get("length")?;
        if length == "average" {
            let weight = Probability::new(fields.optional("weight")?.unwrap_or(Self::WEIGHT));
            return Ok(Self::Average {
                weight: weight
                    .map_err(|_| fields.blame("weight").wrong_kind("a number up to 1"))?,
                gentle: fields.optional("gentle")?.unwrap_or(true),
            });
        }
        match ["weight", "gentle"].iter().find(|key| fields.has(key)) {
            None => Ok(Self::Instantaneous),
            Some(key) => Err(fields.blame(key).conflict(
                format!("`{key}` has no meaning for the instantaneous length"),
                "remove it, or set `length = \"average\"`",
            )),
        }
    }
}

fn ordered(fields: &Fields<'_>, least: &str, most: &str) -> Result<(ByteSize, ByteSize), Reported> {
    let (min, max) = (fields.get::<ByteSize>(least), fields.get::<ByteSize>(most));
    let (min, max) = (min?, max?);
    if min > max {
        return Err(fields.blame(least).conflict(
            format!("{min} is above `{most}`, {max}"),
            format!("`{least}` must be at most `{most}`"),
        ));
    }
    Ok((min, max))
}
