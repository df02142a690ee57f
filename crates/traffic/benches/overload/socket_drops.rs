//! UDP datagrams that arrived at a socket without room for them.

use std::fs;

use crate::Failure;

const SOCKETS: &str = "/proc/net/udp";

/// Returns how many datagrams the kernel has dropped at the IPv4 sockets with this local port. Counts of
/// the whole machine, in `/proc/net/snmp`, have other programs' too.
pub(crate) fn drops_at(port: u16) -> Result<u64, Failure> {
    let table = fs::read_to_string(SOCKETS)?;
    let sockets = table.lines().skip(1).filter_map(socket);
    let counts: Vec<u64> = sockets
        .filter(|(local, _)| *local == port)
        .map(|(_, drops)| drops)
        .collect();
    if counts.is_empty() {
        return Err(format!("{SOCKETS} has no socket with port {port}").into());
    }
    Ok(counts.iter().sum())
}

/// Returns the port and the drops in a line: its second and last column.
fn socket(line: &str) -> Option<(u16, u64)> {
    let mut columns = line.split_ascii_whitespace();
    let (_, port) = columns.nth(1)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((port, columns.last()?.parse().ok()?))
}
