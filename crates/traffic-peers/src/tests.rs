//! Checks that every driver fulfils the contract of `weir_traffic::calls::driver` at all its packet sizes.

use std::collections::BTreeSet;

use weir_traffic::calls::{TransportSpecification, conformance};
use weir_traffic_peers::drivers;

use crate::plans::{BULK, LATENCY, MIXES, OVER_1500, OVER_9000, OVER_LINK};

#[test]
fn all_drivers_pass_the_conformance_checks() {
    let drivers = drivers();
    let over_veth = OVER_1500.iter().chain(&OVER_9000);
    let elsewhere = over_veth.chain(&OVER_LINK);
    let all = LATENCY.iter().chain(&BULK).chain(&MIXES).chain(elsewhere);
    let all: BTreeSet<_> = all.collect();
    for text in all {
        let specification: TransportSpecification = text.parse().unwrap();
        let driver = drivers.get(&specification.driver).unwrap();
        if let Err(error) = conformance::check(driver, &specification) {
            panic!("{text}: {error}");
        }
    }
}
