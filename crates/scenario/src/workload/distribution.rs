//! Distributions of flow sizes.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use weir_units::ByteSize;

use super::cdf_file;
use super::known::{DATA_MINING, KNOWN, NamedDistribution, WEB_SEARCH};
use crate::document::{Cursor, Reported, Value};
use crate::error::ProblemKind;
use crate::schema::Accepts;

/// Flow sizes by their cumulative distribution, linear between two points.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    name: Option<&'static str>,
    points: Vec<(ByteSize, f64)>,
}

/// The accepted values of the key.
pub(super) const ACCEPTS: Accepts = Accepts::Other(
    "\"web-search\", \"data-mining\", \"fb-hadoop\", \"ali-storage-2019\", \"google-rpc-2008\", a list of points \
     [size, fraction of flows up to it], or a table with the `file` that has them",
);

impl Distribution {
    /// Returns the web search workload of the DCTCP paper.
    pub fn web_search() -> Self {
        Self::known(WEB_SEARCH)
    }

    /// Returns the data mining workload of VL2.
    pub fn data_mining() -> Self {
        Self::known(DATA_MINING)
    }

    fn known(known: &'static NamedDistribution) -> Self {
        let size = |units: u64| ByteSize::from_bytes(units * known.unit);
        let points = known.points.iter();
        Self {
            name: Some(known.name),
            points: points.map(|(units, to)| (size(*units), *to)).collect(),
        }
    }

    /// Returns the points: sizes, ascending, and the fraction of flows up to each, ascending to 1.
    pub fn points(&self) -> &[(ByteSize, f64)] {
        &self.points
    }

    /// Returns the size that this fraction of the flows does not exceed; `fraction` is clamped to
    /// the range 0 to 1. A uniformly random fraction gives a random size.
    pub fn quantile(&self, fraction: f64) -> ByteSize {
        let above = self.points.partition_point(|(_, to)| *to < fraction);
        let Some((size, to)) = self.points.get(above).or(self.points.last()).copied() else {
            return ByteSize::ZERO;
        };
        let Some((before, from)) = above.checked_sub(1).and_then(|at| self.points.get(at)) else {
            return size;
        };
        let part = ((fraction - from) / (to - from)).clamp(0.0, 1.0);
        *before + (size - *before).mul_f64(part)
    }

    /// Returns the mean size.
    pub fn mean(&self) -> ByteSize {
        ByteSize::from_bytes(self.mean_bytes() as u64)
    }

    /// Returns the mean size in bytes.
    pub(crate) fn mean_bytes(&self) -> f64 {
        self.mean_of(|size| size, |size| size * size / 2.0)
    }

    /// Returns the mean number of pieces of up to `piece` that a flow has.
    pub(crate) fn mean_count(&self, piece: ByteSize) -> f64 {
        let piece = piece.bytes().max(1) as f64;
        let count = |size: f64| (size / piece).ceil();
        // The integral of `count` from zero: full steps of 1, 2 … pieces, and a part of the next one.
        let integral = |size: f64| {
            let full = (size / piece).floor();
            piece * full * (full + 1.0) / 2.0 + (full + 1.0) * (size - full * piece)
        };
        self.mean_of(count, integral)
    }

    /// Returns the mean of `value` over the sizes; `integral` is its integral from zero.
    fn mean_of(&self, value: impl Fn(f64) -> f64, integral: impl Fn(f64) -> f64) -> f64 {
        let bytes = |size: ByteSize| size.bytes() as f64;
        let first = self.points.first();
        let first = first.map_or(0.0, |(size, to)| value(bytes(*size)) * to);
        let between = self.points.windows(2).map(|pair| {
            let ((low, from), (high, to)) = (pair[0], pair[1]);
            let (low, high) = (bytes(low), bytes(high));
            (integral(high) - integral(low)) / (high - low) * (to - from)
        });
        first + between.sum::<f64>()
    }

    /// Reads a name, a list of points, or a table with the name of a file.
    pub(super) fn read(at: &Cursor<'_>) -> Result<Self, Reported> {
        match &at.node.value {
            Value::Text(name) => {
                let known = KNOWN.iter().find(|known| known.name == name);
                known.map(Self::known).ok_or_else(|| {
                    at.problem(ProblemKind::UnknownWord {
                        found: name.clone(),
                        accepted: ACCEPTS.to_string(),
                        nearest: crate::error::nearest(name, KNOWN.iter().map(|known| known.name)),
                    })
                })
            }
            Value::Table(_) => cdf_file::read(at).map(|points| Self { name: None, points }),
            _ => {
                let points = at.list(&ACCEPTS.to_string())?;
                let points: Result<Vec<_>, _> = points.iter().map(point).collect();
                Self::through(points?).map_err(|wrong| at.conflict(wrong.what, wrong.remedy))
            }
        }
    }

    /// Returns the distribution through these points.
    fn through(points: Vec<(ByteSize, f64)>) -> Result<Self, PointMistake> {
        check_points(&points)?;
        Ok(Self { name: None, points })
    }
}

/// A mistake in the points of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointMistake {
    /// The index of the point; of the last one, if there is none.
    pub(super) point: usize,
    /// The mistake.
    pub(super) what: &'static str,
    /// What would be right.
    pub(super) remedy: &'static str,
}

/// Checks that points are the cumulative distribution of sizes.
pub(super) fn check_points(points: &[(ByteSize, f64)]) -> Result<(), PointMistake> {
    let descends = |pair: &[(ByteSize, f64)]| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1;
    if let Some(before) = points.windows(2).position(descends) {
        return Err(PointMistake {
            point: before + 1,
            what: "the points are not in ascending order",
            remedy: "sizes must grow from point to point, and fractions must not shrink",
        });
    }
    match points.last() {
        Some((_, 1.0)) => Ok(()),
        _ => Err(PointMistake {
            point: points.len().saturating_sub(1),
            what: "the last fraction is not 1",
            remedy: "end with the largest size and the fraction 1",
        }),
    }
}

fn point(at: &Cursor<'_>) -> Result<(ByteSize, f64), Reported> {
    let expected = "a point [size, fraction], such as [\"10KB\", 0.5]";
    let parts = at.list(expected)?;
    let [size, fraction] = &parts[..] else {
        return Err(at.wrong_kind(expected));
    };
    let (size, fraction) = (
        Accepts::SIZE.read(size),
        Accepts::Number(0.0, 1.0).read(fraction),
    );
    Ok((size?, fraction?))
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.name {
            Some(name) => serializer.serialize_str(name),
            None => self.points.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Distribution {
    /// Reads the output of [`Serialize`]: a name, or points.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Name(String),
            Points(Vec<(ByteSize, f64)>),
        }
        match Form::deserialize(deserializer)? {
            Form::Name(name) => {
                let known = KNOWN.iter().find(|known| known.name == name);
                let known = known.map(Self::known);
                known.ok_or_else(|| de::Error::custom(format!("no distribution `{name}`")))
            }
            Form::Points(points) => {
                Self::through(points).map_err(|wrong| de::Error::custom(wrong.what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::PACKET;
    use super::*;

    #[test]
    fn means_match_the_literature() {
        // The mean of 1,711,250 bytes that simulations report is 1140.8 packets of 1500 bytes.
        let packets = |distribution: Distribution| distribution.mean().bytes() / PACKET;
        assert_eq!(packets(Distribution::web_search()), 1_140);
        assert_eq!(packets(Distribution::data_mining()), 5_116);
        // The means of the tables in the repository of the HPCC paper: 120,420, 40,870 and 2,892 bytes.
        let means = KNOWN[2..]
            .iter()
            .map(|known| Distribution::known(known).mean().bytes());
        assert_eq!(means.collect::<Vec<_>>(), [120_420, 40_869, 2_905]);
    }

    #[test]
    fn every_known_distribution_is_one() {
        for known in &KNOWN {
            let distribution = Distribution::known(known);
            assert_eq!(
                check_points(distribution.points()),
                Ok(()),
                "{}",
                known.name
            );
            assert!(ACCEPTS.to_string().contains(known.name));
        }
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        let sizes = Distribution::web_search();
        for (size, fraction) in sizes.points() {
            assert_eq!(sizes.quantile(*fraction), *size);
        }
        assert_eq!(
            sizes.quantile(0.75),
            ByteSize::from_bytes((667 + 333) * PACKET)
        );
        let sizes = Distribution::data_mining();
        assert_eq!(sizes.quantile(0.2), ByteSize::from_bytes(PACKET));
        assert_eq!(
            sizes.quantile(f64::NAN),
            sizes.quantile(0.0),
            "nonsense is taken as the smallest"
        );
        assert_eq!(sizes.quantile(7.0), sizes.quantile(1.0));
    }

    #[test]
    fn the_mean_of_quantiles_is_the_mean() {
        for sizes in KNOWN.iter().map(Distribution::known) {
            let draws = 1_000_000;
            let sum: f64 = (0..draws)
                .map(|n| sizes.quantile((n as f64 + 0.5) / draws as f64).bytes() as f64)
                .sum();
            let (found, expected) = (sum / draws as f64, sizes.mean().bytes() as f64);
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        }
    }
}
