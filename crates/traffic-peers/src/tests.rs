//! Checks that every driver fulfils the contract of `weir_traffic::calls::driver` at all its packet sizes.

use weir_traffic::calls::{TransportSpecification, conformance};
use weir_traffic_peers::drivers;

use crate::plans::{BULK, LATENCY, MIXES};

#[test]
fn all_drivers_pass_the_conformance_checks() {
    let drivers = drivers();
    for text in LATENCY.iter().chain(&BULK).chain(&MIXES) {
        let specification: TransportSpecification = text.parse().unwrap();
        let driver = drivers.get(&specification.driver).unwrap();
        if let Err(error) = conformance::check(driver, &specification) {
            panic!("{text}: {error}");
        }
    }
}
