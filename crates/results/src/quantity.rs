//! Formats quantities with three digits and a unit.

use weir_units::{ByteSize, Duration, Rate};

use crate::Ratio;

/// Units of one quantity, the smallest first: each with its size in the base unit and its name.
pub(crate) type Scale = [(f64, &'static str)];

/// Bits per second.
pub(crate) const RATES: &Scale = &[
    (1.0, "bps"),
    (1e3, "Kbps"),
    (1e6, "Mbps"),
    (1e9, "Gbps"),
    (1e12, "Tbps"),
];
/// Bytes.
pub(crate) const SIZES: &Scale = &[
    (1.0, "B"),
    (1e3, "KB"),
    (1e6, "MB"),
    (1e9, "GB"),
    (1e12, "TB"),
    (1e15, "PB"),
];
/// Seconds.
pub(crate) const TIMES: &Scale = &[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")];

/// Returns the largest unit in which the value is at least 1, or else the smallest unit.
pub(crate) fn unit_for(value: f64, scale: &Scale) -> (f64, &'static str) {
    // A value that rounds to 1000 takes the next unit.
    let fills = |&&(unit, _): &&(f64, &str)| value.abs() >= unit * 0.9995;
    let filled = scale.iter().rev().find(fills);
    filled.or(scale.first()).copied().unwrap_or((1.0, ""))
}

/// Formats a value in the largest suitable unit.
pub(crate) fn in_scale(value: f64, scale: &Scale) -> String {
    let (unit, name) = unit_for(value, scale);
    let value = value / unit;
    let digits = match value.abs() {
        // Whole units have no decimals.
        _ if unit == 1.0 && scale.first().is_some_and(|first| first.0 == 1.0) => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

pub(crate) fn rate(rate: Rate) -> String {
    in_scale(rate.bits_per_second() as f64, RATES)
}

pub(crate) fn size(size: ByteSize) -> String {
    in_scale(size.bytes() as f64, SIZES)
}

pub(crate) fn time(span: Duration) -> String {
    if span.is_zero() {
        return "0 s".to_owned();
    }
    in_scale(span.as_secs_f64(), TIMES)
}

pub(crate) fn percent(ratio: Ratio) -> String {
    format!("{:.1} %", ratio.value() * 100.0)
}

/// Formats an integer in groups of three digits.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(rate(Rate::from_mbps(15_000)), "15.0 Gbps");
        assert_eq!(rate(Rate::from_bits_per_second(999_499_999)), "999 Mbps");
        assert_eq!(rate(Rate::from_bits_per_second(999_500_000)), "1.00 Gbps");
        assert_eq!(rate(Rate::ZERO), "0 bps");
        assert_eq!(size(ByteSize::from_bytes(12)), "12 B");
        assert_eq!(size(ByteSize::from_bytes(1_800_000)), "1.80 MB");
        assert_eq!(time(Duration::from_micros(1_500)), "1.50 ms");
        assert_eq!(time(Duration::from_nanos(40)), "40.0 ns");
        assert_eq!(time(Duration::from_secs(120)), "120 s");
        assert_eq!(time(Duration::ZERO), "0 s");
        assert_eq!(percent(Ratio::of(3, 4)), "75.0 %");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(200_000_000), "200,000,000");
    }
}
