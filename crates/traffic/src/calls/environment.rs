//! The machine and the software of a measurement, for readers of the results.

use std::fs;

/// The workspace's lock file, which has the version of every library in this program.
const LOCK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));

/// Returns the version of a library in this program; the newest if there are several.
#[must_use]
pub fn locked_version(package: &str) -> &'static str {
    version_in(LOCK, package).unwrap_or("of unknown version")
}

fn version_in<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    // The lock file sorts packages of one name by ascending version.
    lock.split("[[package]]")
        .filter(|entry| value(entry, "name") == Some(package))
        .filter_map(|entry| value(entry, "version"))
        .last()
}

fn value<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    entry
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value.trim_matches('"'))
}

/// Returns the kernel's release, such as `6.18.0`.
#[must_use]
pub fn kernel() -> String {
    read_line("/proc/sys/kernel/osrelease")
}

/// Returns the processor's name.
#[must_use]
pub fn processor_model() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "model name")
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, value)| value.trim().to_owned(),
        )
}

/// Returns the kernel's default congestion control for TCP.
#[must_use]
pub fn kernel_congestion() -> String {
    read_line("/proc/sys/net/ipv4/tcp_congestion_control")
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"0.5.0\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"0.6.0\"\ndependencies = [\n \"a\",\n]\n";
        assert_eq!(version_in(lock, "a"), Some("1.0.0"));
        assert_eq!(version_in(lock, "b"), Some("0.6.0"));
        assert_eq!(version_in(lock, "c"), None);
        assert!(locked_version("rustls").starts_with("0."));
    }
}
