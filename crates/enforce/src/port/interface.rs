//! Interface names in the format of system calls.

use super::PortError;

/// Returns the bytes of a name that Linux accepts, padded with zeros.
pub(super) fn name_bytes(name: &str) -> Result<[libc::c_char; libc::IFNAMSIZ], PortError> {
    let forbidden = |byte: u8| b"/:%".contains(&byte) || byte.is_ascii_whitespace() || byte == 0;
    let mut bytes = [0; libc::IFNAMSIZ];
    if name.is_empty()
        || name.len() >= libc::IFNAMSIZ
        || matches!(name, "." | "..")
        || name.bytes().any(forbidden)
    {
        return Err(PortError::BadName(name.to_owned()));
    }
    for (target, byte) in bytes.iter_mut().zip(name.bytes()) {
        *target = byte as libc::c_char;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_names_follow_the_linux_rules() {
        for name in ["eth0", "a", "fifteen-bytes-15"[..15].as_ref(), "h1.nic0"] {
            assert!(name_bytes(name).is_ok(), "{name}");
        }
        // `%d` would make the kernel choose a number.
        for name in [
            "",
            ".",
            "..",
            "sixteen-bytes-16",
            "a b",
            "tap%d",
            "a/b",
            "a:0",
        ] {
            assert!(
                matches!(name_bytes(name), Err(PortError::BadName(_))),
                "{name}"
            );
        }
    }
}
