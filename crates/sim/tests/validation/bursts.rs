//! Bursts of segmentation offload: they leave as packets that fit the links.

use crate::observe::{bottleneck, run};

const SCENARIO: &str = r#"
title = "Bursts"
source = "a sanity check"
duration = "1s"
warm_up = "100ms"
[dumbbell]
rate = "1Gbps"
delay = "5us"
queue = { kind = "step", ecn_threshold = "20 packets", buffer = "1MB" }
[dumbbell.senders.sender]
count = 2
rtt = "100us"
rate = "10Gbps"
[groups.flows]
from = "sender"
to = "receiver"
congestion = "dctcp"
workload = "bulk"
tcp = { ecn = "dctcp" }
"#;

#[test]
fn offload_bursts_fill_the_link_without_losses() {
    for segments in [2, 10, 44] {
        let summary = run(
            SCENARIO,
            &[format!("groups.flows.tcp.tso_segments={segments}")],
        );
        let (flows, port) = (&summary.groups["flows"], bottleneck(&summary));
        let utilization = port.utilization.value();
        assert!(utilization > 0.99, "{segments}: {utilization}");
        assert_eq!(flows.retransmits, 0, "{segments}");
    }
}
