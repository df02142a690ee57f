//! The checksum of IP, TCP and UDP (RFC 1071).

use std::net::IpAddr;

/// A ones' complement sum of 16-bit words. Zeros add nothing, so missing data counts as zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// Returns the sum of the pseudo-header of a TCP segment or UDP datagram of `length` bytes with
    /// its header (RFC 9293, section 3.1; RFC 8200, section 8.1).
    pub fn of_pseudo_header(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        length: u32,
    ) -> Self {
        let mut sum = Self(u64::from(protocol) + u64::from(length));
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => sum.add(&address.octets()),
                IpAddr::V6(address) => sum.add(&address.octets()),
            }
        }
        sum
    }

    /// Adds bytes that start at an even offset; an odd last byte counts as if a zero followed it.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(2);
        let whole = words.by_ref().fold(0, |sum: u64, word| match word {
            &[high, low] => sum + u64::from(u16::from_be_bytes([high, low])),
            _ => sum,
        });
        let odd = words.remainder().first().copied().unwrap_or_default();
        self.0 += whole + (u64::from(odd) << 8);
    }

    /// Returns the new value of a checksum `field` after `before`, at an even offset, was replaced
    /// by `after` of the same length (RFC 1624, equation 3). It equals a full recomputation, if the
    /// field was right.
    pub fn updated(field: u16, before: &[u8], after: &[u8]) -> u16 {
        let mut removed = Self::default();
        removed.add(before);
        // Subtracting is adding the complement.
        let mut sum = Self(u64::from(!field) + u64::from(removed.finish()));
        sum.add(after);
        sum.finish()
    }

    /// Returns the field for checksum offload, to be completed by the hardware or kernel: the sum
    /// so far, not complemented.
    pub fn partial(self) -> u16 {
        !self.finish()
    }

    /// Returns the value of the header's checksum field. Over a packet with a correct checksum this
    /// is zero.
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum >> 16) + (sum & 0xFFFF);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3: the sum is 0xDDF2.
    #[test]
    fn the_example_of_the_rfc() {
        let mut sum = Checksum::default();
        sum.add(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]);
        assert_eq!(sum.finish(), !0xDDF2);
        let mut odd = Checksum::default();
        odd.add(&[0x00, 0x01, 0xF2]);
        assert_eq!(odd.finish(), !0xF201);
    }

    #[test]
    fn a_right_checksum_sums_up_to_zero() {
        let [a, b] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap());
        let mut sum = Checksum::of_pseudo_header(a, b, 6, 4);
        sum.add(&[1, 2]);
        let field = sum.finish();
        sum.add(&field.to_be_bytes());
        assert_eq!(sum.finish(), 0);
    }
}
