//! Sampling: points in a unit cube for the values of keys.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

/// The distribution of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// Independently.
    Random,
    /// Stratified: each key's values occur equally often (McKay, Beckman and Conover 1979).
    LatinHypercube,
    /// Sobol's sequence with Owen's scrambling: even coverage of all keys together.
    Sobol,
}

/// The largest number of keys of a Sobol sample: the dimensions of the generator.
pub(crate) const MOST_SOBOL_KEYS: usize = sobol_burley::NUM_DIMENSIONS as usize;
/// The largest number of points of a Sobol sample.
pub(crate) const MOST_SOBOL_POINTS: u64 = 1 << 16;

/// A generator of points. The same seed gives the same points.
pub(crate) struct Generator(Pcg64Mcg);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::new(u128::from(seed) << 64 | u128::from(!seed)))
    }

    /// Returns a uniform number from zero, included, to one, excluded.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns `count` points with `keys` coordinates each.
    pub(crate) fn points(&mut self, method: Method, count: u64, keys: usize) -> Vec<Vec<f64>> {
        match method {
            Method::Random => {
                let points = 0..count;
                points
                    .map(|_| (0..keys).map(|_| self.fraction()).collect())
                    .collect()
            }
            Method::LatinHypercube => self.latin_hypercube(count, keys),
            Method::Sobol => {
                let seed = self.0.next_u64() as u32;
                let coordinate = |point: u64, key: usize| {
                    f64::from(sobol_burley::sample(point as u32, key as u32, seed))
                };
                let points = 0..count;
                points
                    .map(|point| (0..keys).map(|key| coordinate(point, key)).collect())
                    .collect()
            }
        }
    }

    fn latin_hypercube(&mut self, count: u64, keys: usize) -> Vec<Vec<f64>> {
        let mut points = vec![Vec::with_capacity(keys); count as usize];
        for _ in 0..keys {
            let mut rows: Vec<u64> = (0..count).collect();
            self.shuffle(&mut rows);
            for (point, row) in points.iter_mut().zip(rows) {
                point.push((row as f64 + self.fraction()) / count as f64);
            }
        }
        points
    }

    /// Shuffles (Fisher and Yates).
    fn shuffle(&mut self, rows: &mut [u64]) {
        for last in (1..rows.len()).rev() {
            let other = (self.fraction() * (last + 1) as f64) as usize;
            rows.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_covers_each_key() {
        for method in [Method::Random, Method::LatinHypercube, Method::Sobol] {
            let points = Generator::new(3).points(method, 256, 3);
            assert_eq!(
                points,
                Generator::new(3).points(method, 256, 3),
                "{method:?}"
            );
            assert_ne!(
                points,
                Generator::new(4).points(method, 256, 3),
                "{method:?}"
            );
            for key in 0..3 {
                let mean = points.iter().map(|point| point[key]).sum::<f64>() / 256.0;
                let tolerance = if method == Method::Random { 0.06 } else { 0.01 };
                assert!((mean - 0.5).abs() < tolerance, "{method:?}: {mean}");
                assert!(points.iter().all(|point| (0.0..1.0).contains(&point[key])));
            }
        }
    }

    #[test]
    fn a_latin_hypercube_uses_each_row_once() {
        let points = Generator::new(1).points(Method::LatinHypercube, 100, 2);
        for key in 0..2 {
            let mut rows: Vec<u64> = points
                .iter()
                .map(|point| (point[key] * 100.0) as u64)
                .collect();
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..100));
        }
    }
}
