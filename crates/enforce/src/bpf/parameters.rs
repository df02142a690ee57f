//! The choice of a congestion control, and its parameters.

use super::error::BpfError;

/// 1 in the fixed point of `bpf/fraction.h`.
const ONE: u32 = 1 << 20;

/// A congestion control of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Dctcp,
    D2tcp,
}

/// The parameters of DCTCP and D2TCP, named as in `weir_congestion`. Everything else is the kernel's:
/// the initial window comes from a route (`initcwnd`), growth and recovery are Reno's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The weight of the newest window in α (RFC 8257 section 3.3), between 10⁻⁵ and 1.
    pub g: f64,
    /// α before the first window has ended, between 0 and 1.
    pub initial_alpha: f64,
    /// The smallest window after a reduction, in packets: 1 to 10,000.
    pub min_window: u32,
}

impl Default for Parameters {
    /// Returns the values of RFC 8257 and Linux: g = 1/16, α = 1, two packets.
    fn default() -> Self {
        Self {
            g: 0.0625,
            initial_alpha: 1.0,
            min_window: 2,
        }
    }
}

/// [`Parameters`] in the format of `struct parameters` of `bpf/dctcp.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawParameters {
    pub(super) g: u32,
    pub(super) initial_alpha: u32,
    pub(super) min_window: u32,
}

impl Parameters {
    pub(super) fn fixed(&self) -> Result<RawParameters, BpfError> {
        within("g", self.g, 1e-5, 1.0)?;
        within("initial_alpha", self.initial_alpha, 0.0, 1.0)?;
        within("min_window", f64::from(self.min_window), 1.0, 10_000.0)?;
        let fraction = |value: f64| (value * f64::from(ONE)).round() as u32;
        Ok(RawParameters {
            g: fraction(self.g),
            initial_alpha: fraction(self.initial_alpha),
            min_window: self.min_window,
        })
    }
}

fn within(parameter: &'static str, found: f64, least: f64, most: f64) -> Result<(), BpfError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(BpfError::Parameter {
        parameter,
        least,
        most,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_converted_to_fixed_point() {
        let fixed = Parameters::default().fixed().unwrap();
        assert_eq!((fixed.g, fixed.initial_alpha), (ONE / 16, ONE));
        assert_eq!(fixed.min_window, 2);
    }
}
