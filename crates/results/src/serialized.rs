//! Serialization of quantities: numbers in the unit that the field's name ends in.

/// Seconds, to the nanosecond.
pub(crate) mod seconds {
    use serde::de::{self, Deserializer};
    use serde::{Deserialize, Serializer};
    use weir_units::Duration;

    pub(crate) fn serialize<S: Serializer>(
        span: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(span.as_nanos() as f64 / 1e9)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        if !(0.0..=Duration::MAX.as_secs_f64()).contains(&seconds) {
            return Err(de::Error::custom(format!("{seconds} s is out of range")));
        }
        Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
    }
}

macro_rules! whole_number {
    ($(#[$doc:meta])* $module:ident, $type:ident, $from:ident, $into:ident) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use serde::de::Deserializer;
            use serde::{Deserialize, Serializer};
            use weir_units::$type;

            pub(crate) fn serialize<S: Serializer>(
                value: &$type,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(value.$into())
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$type, D::Error> {
                u64::deserialize(deserializer).map($type::$from)
            }
        }
    };
}

whole_number!(
    /// Bits per second.
    bps, Rate, from_bits_per_second, bits_per_second
);
whole_number!(
    /// Bytes.
    bytes, ByteSize, from_bytes, bytes
);
