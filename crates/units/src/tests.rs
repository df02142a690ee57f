use proptest::prelude::*;

use crate::{ByteSize, Duration, ParseError, Rate, Time};

fn duration(text: &str) -> Result<u64, ParseError> {
    text.parse::<Duration>().map(Duration::as_nanos)
}

fn rate(text: &str) -> Result<u64, ParseError> {
    text.parse::<Rate>().map(Rate::bits_per_second)
}

fn size(text: &str) -> Result<u64, ParseError> {
    text.parse::<ByteSize>().map(ByteSize::bytes)
}

#[test]
fn reads_every_unit() {
    for (text, nanos) in [
        ("7ns", 7),
        ("50us", 50_000),
        ("50µs", 50_000),
        ("50μs", 50_000),
        ("1.5 ms", 1_500_000),
        ("0.000000001s", 1),
        ("2min", 120_000_000_000),
        ("0.5h", 1_800_000_000_000),
        (" 10ms ", 10_000_000),
        ("007ns", 7),
        ("1.50000000000000000000000000000000us", 1_500),
    ] {
        assert_eq!(duration(text), Ok(nanos), "{text}");
    }
    for (text, bits) in [
        ("9bps", 9),
        ("9kbps", 9_000),
        ("9Kbps", 9_000),
        ("10 Mbit/s", 10_000_000),
        ("12.5Gbps", 12_500_000_000),
        ("1.6Tbps", 1_600_000_000_000),
    ] {
        assert_eq!(rate(text), Ok(bits), "{text}");
    }
    for (text, bytes) in [
        ("1B", 1),
        ("1.8MB", 1_800_000),
        ("1.8kB", 1_800),
        ("64KiB", 65_536),
        ("0.5MiB", 524_288),
        ("2GiB", 2 << 30),
        ("0.0000000000009094947017729282379150390625TiB", 1),
        ("3TB", 3_000_000_000_000),
    ] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn quantities_are_written_in_the_natural_unit() {
    for text in [
        "0ns",
        "1ns",
        "50us",
        "1.5us",
        "90s",
        "1min",
        "2h",
        "61s",
        "12.345678901s",
    ] {
        assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
        assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
    }
    for text in ["0bps", "999bps", "12.5Gbps", "1.6Tbps", "100Mbps"] {
        assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
    }
    for text in [
        "0B", "1.8MB", "64KiB", "128KB", "1000KiB", "1MB", "1MiB", "1452B", "9KB",
    ] {
        let size: ByteSize = text.parse().unwrap();
        let written = size.to_string();
        assert_eq!(written.parse(), Ok(size));
        if text != "1452B" {
            assert_eq!(written, text);
        }
    }
    assert_eq!(ByteSize::from_bytes(1452).to_string(), "1.452KB");
    assert_eq!(format!("[{:>8}]", Duration::from_micros(50)), "[    50us]");
}

#[test]
fn errors_name_the_part_and_the_units() {
    for (text, parts) in [
        ("", vec!["empty", "a duration", "ns, us, ms, s, min, h"]),
        ("50", vec!["`50` has no unit", "ns, us"]),
        ("50 parsecs", vec!["`parsecs` is not a unit", "ns, us"]),
        ("fast", vec!["`fast` is not a number", "ns, us"]),
        ("-5us", vec!["`-5` is not a number"]),
        ("1.2.3us", vec!["`1.2.3` is not a number"]),
        ("1.us", vec!["`1.` is not a number"]),
        (".5us", vec!["`.5` is not a number"]),
        ("1e3us", vec!["`e3us` is not a unit"]),
        ("0.3ns", vec!["`0.3ns` is finer", "whole number of ns"]),
        (
            "18446744073709551616ns",
            vec!["larger than a duration can be"],
        ),
        ("5124096h", vec!["larger"]),
    ] {
        let message = duration(text).unwrap_err().to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{text:?}: {message:?} lacks {part:?}"
            );
        }
    }
    assert!(rate("10GB").unwrap_err().to_string().contains("Gbps"));
    assert!(size("10Gb").unwrap_err().to_string().contains("KiB"));
    assert!(matches!(size("0.0001KiB"), Err(ParseError::TooFine { .. })));
}

#[test]
fn quantities_are_serialized_as_text() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Link {
        rate: Rate,
        delay: Duration,
        buffer: ByteSize,
    }
    let link = Link {
        rate: Rate::from_gbps(25),
        delay: Duration::from_micros(5),
        buffer: ByteSize::from_bytes(1_800_000),
    };
    let json = serde_json::to_string(&link).unwrap();
    assert_eq!(json, r#"{"rate":"25Gbps","delay":"5us","buffer":"1.8MB"}"#);
    assert_eq!(serde_json::from_str::<Link>(&json).unwrap(), link);
    let text = toml::to_string(&link).unwrap();
    assert_eq!(toml::from_str::<Link>(&text).unwrap(), link);

    let message =
        toml::from_str::<Link>("rate = 25\ndelay = \"5us\"\nbuffer = \"1B\"").unwrap_err();
    assert!(
        message.to_string().contains("a rate as text, in bps"),
        "{message}"
    );
    let message = serde_json::from_str::<Duration>("\"5 fortnights\"").unwrap_err();
    assert!(message.to_string().contains("`fortnights`"), "{message}");
}

#[test]
fn operators_saturate_and_checked_ones_return_none() {
    assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
    assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
    assert_eq!(Time::MAX.checked_add(Duration::from_nanos(1)), None);
    assert_eq!(Time::ZERO.checked_sub(Duration::from_nanos(1)), None);
    assert_eq!(Time::ZERO.checked_since(Time::from_nanos(1)), None);
    assert_eq!(Duration::ZERO - Duration::MAX, Duration::ZERO);
    assert_eq!(Duration::MAX * 2, Duration::MAX);
    assert_eq!(Duration::MAX.checked_mul(2), None);
    assert_eq!(Duration::from_secs(1) / 0, Duration::MAX);
    assert_eq!(Duration::from_millis(7) / Duration::from_millis(2), 3);
    assert_eq!(Duration::from_millis(7).mul_f64(f64::NAN), Duration::ZERO);
    assert_eq!(
        ByteSize::from_bytes(1) - ByteSize::from_bytes(2),
        ByteSize::ZERO
    );
    assert_eq!(ByteSize::MAX.checked_add(ByteSize::from_bytes(1)), None);
    assert_eq!(Rate::MAX + Rate::MAX, Rate::MAX);
    assert_eq!(Rate::ZERO.checked_sub(Rate::from_gbps(1)), None);
    assert_eq!(
        [Rate::from_mbps(400), Rate::from_mbps(600)]
            .into_iter()
            .sum::<Rate>(),
        Rate::from_gbps(1)
    );
}

#[test]
fn rates_sizes_and_spans_convert() {
    let rate = Rate::from_gbps(1);
    assert_eq!(
        rate.time_for(ByteSize::from_bytes(1_500)),
        Duration::from_micros(12)
    );
    assert_eq!(
        rate.size_in(Duration::from_micros(12)),
        ByteSize::from_bytes(1_500)
    );
    assert_eq!(
        Rate::from_size_over(ByteSize::from_bytes(1_500), Duration::from_micros(12)),
        rate
    );
    assert_eq!(Rate::MAX.size_in(Duration::MAX), ByteSize::MAX);
    assert_eq!(
        Rate::from_bits_per_second(1).time_for(ByteSize::MAX),
        Duration::MAX
    );
    assert_eq!(
        Rate::from_size_over(ByteSize::MAX, Duration::from_nanos(1)),
        Rate::MAX
    );
}

fn round_trips(value: u64) {
    let (span, point) = (Duration::from_nanos(value), Time::from_nanos(value));
    let (rate, size) = (
        Rate::from_bits_per_second(value),
        ByteSize::from_bytes(value),
    );
    assert_eq!(span.to_string().parse(), Ok(span));
    assert_eq!(point.to_string().parse(), Ok(point));
    assert_eq!(rate.to_string().parse(), Ok(rate));
    assert_eq!(size.to_string().parse(), Ok(size));
}

#[test]
fn the_extremes_round_trip() {
    [0, 1, u64::MAX - 1, u64::MAX]
        .into_iter()
        .for_each(round_trips);
}

proptest! {
    #[test]
    fn every_value_round_trips(value: u64) {
        round_trips(value);
    }

    #[test]
    fn round_values_round_trip(value in 0_u64..10_000, exponent in 0_u32..15, shift in 0_u32..41) {
        round_trips(value * 10_u64.pow(exponent));
        round_trips(value << shift);
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = (duration(&text), rate(&text), size(&text));
    }

    #[test]
    fn almost_valid_text_is_read_or_refused(text in "[ 0-9.+_-]{0,30} ?(n|u|µ|m|k|K|M|G|T)?(s|B|bps|iB|in|h)?") {
        let _ = (duration(&text), rate(&text), size(&text));
    }

    #[test]
    fn decimals_agree_with_the_finer_unit(whole in 0_u64..1_000_000, fraction in 0_u64..1_000) {
        prop_assert_eq!(duration(&format!("{whole}.{fraction:03}ms")), duration(&format!("{}us", whole * 1_000 + fraction)));
        prop_assert_eq!(rate(&format!("{whole}.{fraction:03}Mbps")), Ok((whole * 1_000 + fraction) * 1_000));
        prop_assert_eq!(size(&format!("{whole}.{fraction:03}KB")), Ok(whole * 1_000 + fraction));
    }

    #[test]
    fn time_for_a_size_is_long_enough_to_send_it(bits in 1_u64..u64::MAX, bytes in 0_u64..1 << 40) {
        let (rate, size) = (Rate::from_bits_per_second(bits), ByteSize::from_bytes(bytes));
        let span = rate.time_for(size);
        prop_assert!(span == Duration::MAX || rate.size_in(span) >= size);
    }
}
