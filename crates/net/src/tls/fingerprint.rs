//! A certificate's fingerprint, as a server prints it and a client pins it.

use std::fmt;
use std::str::FromStr;

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

/// The SHA-256 of a certificate in DER; as text, 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        if let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() {
            let hash = suite.common.hash_provider.hash(certificate);
            bytes.copy_from_slice(hash.as_ref());
        }
        Self(bytes)
    }

    pub(super) fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Text that is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fingerprint: 64 hexadecimal digits are expected, colons between them allowed"
)]
pub struct FingerprintError(String);

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || FingerprintError(text.to_owned());
        let digits: Vec<u8> = text
            .chars()
            .filter(|char| *char != ':')
            .map(|char| char.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |high, digit| high << 4 | digit);
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_sha_256_and_round_trips() {
        let fingerprint = Fingerprint::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fingerprint.to_string(), text);
        assert_eq!(text.parse(), Ok(fingerprint));
        let colons = text
            .to_uppercase()
            .as_bytes()
            .chunks(2)
            .map(|pair| String::from_utf8(pair.to_vec()).unwrap())
            .collect::<Vec<_>>()
            .join(":");
        assert_eq!(colons.parse(), Ok(fingerprint));
    }

    #[test]
    fn an_invalid_fingerprint_is_named() {
        for wrong in [
            "",
            "abc",
            "zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ] {
            let error = wrong.parse::<Fingerprint>().unwrap_err();
            assert!(error.to_string().contains(wrong));
        }
    }
}
