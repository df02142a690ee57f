//! Packet numbers, encoded in as few bytes as the receiver needs (RFC 9000, section 17.1 and
//! appendix A).

use crate::codec::VARINT_MAX;

/// Returns the encoded length of a packet number, 1 to 4 bytes (RFC 9000, appendix A.2): enough for
/// more than twice as many numbers as are in doubt.
pub const fn packet_number_length(number: u64, largest_acked: Option<u64>) -> usize {
    let in_doubt = match largest_acked {
        Some(acked) => number.saturating_sub(acked),
        None => number.saturating_add(1),
    };
    match in_doubt {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    }
}

/// Returns the number of `length` bytes (1 to 4) at `offset` in an unprotected packet; `None` if
/// the packet ends before.
pub fn read_packet_number(packet: &[u8], offset: usize, length: usize) -> Option<u64> {
    let bytes = packet.get(offset..)?.get(..length)?;
    let number = bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some(number)
}

/// Returns the packet number whose lowest `length` bytes (1 to 4) are `truncated`: the one nearest
/// to `expected`, which is one more than the largest received number (RFC 9000, appendix A.3).
pub const fn expand_packet_number(truncated: u64, length: usize, expected: u64) -> u64 {
    let bits = match length {
        0 | 1 => 8,
        2 => 16,
        3 => 24,
        _ => 32,
    };
    let window = 1_u64 << bits;
    let half = window / 2;
    let mask = window - 1;
    let expected = if expected < VARINT_MAX {
        expected
    } else {
        VARINT_MAX
    };
    let candidate = (expected & !mask) | (truncated & mask);
    if candidate + half <= expected && candidate <= VARINT_MAX - window {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_follow_rfc_9000_appendix_a_2() {
        assert_eq!(packet_number_length(0xac_5c02, Some(0xab_e8b3)), 2);
        assert_eq!(packet_number_length(0xac_e8fe, Some(0xab_e8b3)), 3);
        let in_doubt = [
            (0x7f, 1),
            (0x80, 2),
            (0x7fff, 2),
            (0x8000, 3),
            (0x7f_ffff, 3),
            (0x80_0000, 4),
        ];
        for (count, length) in in_doubt {
            assert_eq!(packet_number_length(9 + count, Some(9)), length);
            assert_eq!(packet_number_length(count - 1, None), length);
        }
    }

    #[test]
    fn numbers_expand_as_in_rfc_9000_appendix_a_3() {
        assert_eq!(
            expand_packet_number(0x9b32, 2, 0xa82f_30ea + 1),
            0xa82f_9b32
        );
        for expected in [868, 1000] {
            // The numbers that one byte can encode.
            for number in expected - 127..=expected + 128 {
                assert_eq!(expand_packet_number(number & 0xff, 1, expected), number);
            }
        }
    }

    #[test]
    fn numbers_are_read_in_network_byte_order() {
        let packet = [0xff, 0x01, 0x02, 0x03, 0x04];
        assert_eq!(read_packet_number(&packet, 1, 4), Some(0x0102_0304));
        assert_eq!(read_packet_number(&packet, 2, 2), Some(0x0203));
        assert_eq!(read_packet_number(&packet, 2, 4), None);
        assert_eq!(read_packet_number(&packet, 9, 1), None);
    }

    proptest! {
        #[test]
        fn a_truncated_packet_number_expands_to_the_original(
            number in 0..1_u64 << 61,
            unacked in 1..1_u64 << 30,
            shift in 0..30_u32,
            seen in any::<prop::sample::Index>(),
        ) {
            let acked = number.checked_sub((unacked >> shift).max(1));
            let length = packet_number_length(number, acked);
            prop_assume!(acked.is_some() || number < 1 << 31);
            // The receiver's largest number is at least the acknowledged one.
            let doubtful = number - acked.unwrap_or(0);
            let largest = acked.unwrap_or(0) + seen.index(doubtful.max(1) as usize) as u64;
            let mask = (1_u64 << (8 * length)) - 1;
            prop_assert_eq!(expand_packet_number(number & mask, length, largest + 1), number);
        }

        #[test]
        fn expansion_keeps_the_low_byte_and_stays_in_range(
            truncated: u64,
            length in 0..10_usize,
            expected: u64,
        ) {
            let number = expand_packet_number(truncated, length, expected);
            prop_assert!(number <= VARINT_MAX);
            prop_assert_eq!(number as u8, truncated as u8);
        }
    }
}
