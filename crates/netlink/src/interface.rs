//! Interfaces by name.

use std::io;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

/// Returns the index of the interface `name` in this thread's network namespace.
///
/// # Errors
/// The kernel's error: there is no such interface.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(&any, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_the_first_interface() {
        assert_eq!(interface_index("lo").unwrap(), 1);
        assert!(interface_index("no such one").is_err());
    }
}
