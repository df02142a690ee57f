//! The listening address of the exporter, as text.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A text that is no listening address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address to listen on: give a port (9100, on 127.0.0.1 alone), an address with a \
     port (10.0.0.1:9100) or 0.0.0.0:9100 for all addresses"
)]
pub struct AddressError(String);

/// Parses an address with its port, or a port alone, which means 127.0.0.1: metrics reveal this
/// machine's peers and traffic volume, so access from other machines must be enabled explicitly.
///
/// # Errors
/// [`AddressError`] where the text is neither.
pub fn parse_address(text: &str) -> Result<SocketAddr, AddressError> {
    let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse() {
        Ok(port) => Ok(loopback(port)),
        Err(_) => text.parse().map_err(|_| AddressError(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_means_this_machine_alone() {
        let address = |text| parse_address(text).map(|address| address.to_string());
        assert_eq!(address("9100"), Ok("127.0.0.1:9100".to_owned()));
        assert_eq!(address(":9100"), Ok("127.0.0.1:9100".to_owned()));
        assert_eq!(address("0.0.0.0:80"), Ok("0.0.0.0:80".to_owned()));
        assert_eq!(address("[::1]:0"), Ok("[::1]:0".to_owned()));
        for wrong in ["", ":", "localhost", "70000", "1.2.3.4", "::1"] {
            let error = parse_address(wrong).unwrap_err().to_string();
            assert!(error.contains("9100"), "{error}");
        }
    }
}
