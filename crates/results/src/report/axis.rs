//! The ticks of an axis: positions and labels.

use crate::quantity::{Scale, unit_for};

/// A value axis that starts at zero, in one unit.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// The value at the end, in the base unit.
    pub(crate) end: f64,
    step: f64,
    /// The unit of all ticks: its size in the base unit, and its name.
    pub(crate) unit: (f64, &'static str),
}

impl Axis {
    /// Returns an axis that reaches `max` and has about `ticks` ticks. With `whole` it ends at the
    /// next tick.
    pub(crate) fn new(max: f64, ticks: u32, whole: bool, scale: &Scale) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = round_up(max / f64::from(ticks.max(1)));
        let end = if whole {
            (max / step).ceil() * step
        } else {
            max
        };
        Self {
            end,
            step,
            unit: unit_for(max, scale),
        }
    }

    /// Returns the ticks' values in the base unit, and their labels in the axis's unit.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let (unit, _) = self.unit;
        // Use as many decimals as the step has: 0.25 needs two.
        let step = self.step / unit;
        let digits = (0..6).find(|&digits| {
            let shifted = step * 10_f64.powi(digits);
            (shifted - shifted.round()).abs() < 1e-6
        });
        let digits = digits.unwrap_or(6) as usize;
        // A tick that rounding moved past the end counts as one at the end.
        let count = (self.end / self.step * (1.0 + 1e-9)).floor() as u32;
        (0..=count).map(move |index| {
            let value = f64::from(index) * self.step;
            (value, format!("{:.digits$}", value / unit))
        })
    }
}

/// Rounds up to the next 1, 2, 2.5 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0];
    let fits = |step: &f64| step * power >= value * (1.0 - 1e-9);
    steps.into_iter().find(fits).unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{RATES, SIZES, TIMES};

    fn texts(axis: &Axis) -> String {
        let texts: Vec<String> = axis.ticks().map(|(_, text)| text).collect();
        format!("{} {}", texts.join(" "), axis.unit.1)
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            texts(&Axis::new(23.7e9, 5, true, RATES)),
            "0 5 10 15 20 25 Gbps"
        );
        assert_eq!(
            texts(&Axis::new(880_000.0, 4, true, SIZES)),
            "0 250 500 750 1000 KB"
        );
        assert_eq!(
            texts(&Axis::new(120.0, 6, false, TIMES)),
            "0 20 40 60 80 100 120 s"
        );
        assert_eq!(
            texts(&Axis::new(0.05, 6, false, TIMES)),
            "0 10 20 30 40 50 ms"
        );
        assert_eq!(
            texts(&Axis::new(1.1e6, 4, true, SIZES)),
            "0.0 0.5 1.0 1.5 MB"
        );
    }

    #[test]
    fn any_axis_has_ticks() {
        for max in [0.0, -1.0, 1e-9, 1.0, f64::from(u32::MAX), 1.8e19] {
            let ticks = Axis::new(max, 5, true, SIZES).ticks().count();
            assert!((2..=8).contains(&ticks), "{max}: {ticks}");
        }
    }
}
