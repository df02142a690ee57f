//! Flow hashes, and the mixing function for hashes and seeds. Results are the same on every machine.

use std::net::IpAddr;

use weir_wire::FlowKey;

/// Returns the hash of a flow's key; the same on every machine.
pub(crate) fn hash_of(flow: &FlowKey) -> u64 {
    let address = |address| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let ports = u64::from(flow.source_port) << 24
        | u64::from(flow.destination_port) << 8
        | u64::from(flow.protocol);
    let (source, destination) = (address(flow.source), address(flow.destination));
    [source, source >> 64, destination, destination >> 64]
        .into_iter()
        .fold(mix(ports), |hash, word| mix(hash ^ word as u64))
}

/// The output function of SplitMix64 (Steele, Lea and Flood 2014, figure 16): a bijection in which
/// each input bit changes each output bit with probability one half.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
