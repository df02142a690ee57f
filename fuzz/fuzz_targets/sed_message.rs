//! Fuzzes the SED messages of agents and controllers: parsing any bytes does not panic, and neither does a
//! controller that processes the message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_control::message;
use weir_sed::{Controller, ControllerConfig, DemandTable, PortId};
use weir_units::{Rate, Time};

fuzz_target!(|bytes: &[u8]| {
    let _ = message::orders(bytes);
    let Ok(reports) = message::reports(bytes) else {
        return;
    };
    let mut controller =
        Controller::new(ControllerConfig::paper(), DemandTable::new(Vec::new(), 10));
    for port in 0..4 {
        controller.add_port(PortId { switch: 0, port }, Rate::from_gbps(1));
    }
    let mut now = Time::from_nanos(1 << 40);
    for report in reports {
        controller.receive(now, 0, report);
        controller.handle_timeout(now);
        while controller.next_order().is_some() {}
        now = Time::from_nanos(now.as_nanos() + 10_000_000);
    }
});
