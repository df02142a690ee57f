//! Unknown words and names.

use crate::check;

#[test]
fn words_and_names() {
    check(&[
        (
            "kind = \"shared\"",
            "kind = \"shred\"",
            &["queues.shared.kind", "did you mean `shared`?", "qfx"],
        ),
        (
            "kind = \"loss\"",
            "kind = \"fire\"",
            &["faults.0.kind", "down, loss"],
        ),
        (
            "workload = \"bulk\"",
            "workload = \"bluk\"",
            &["did you mean `bulk`?", "incast"],
        ),
        (
            "transport = \"udp\"",
            "transport = \"sctp\"",
            &["`sctp` is none of tcp, tls, quic, dcudp, udp"],
        ),
        (
            "name = \"dctcp\"",
            "name = \"dctpc\"",
            &["congestion.name", "`dctpc`", "cubic, dctcp"],
        ),
        (
            "g = 0.0625",
            "q = 0.0625",
            &["congestion.q", "no parameter `q`", "min_window"],
        ),
        ("g = 0.0625", "g = 7", &["congestion.g", "must lie between"]),
        (
            "queue = \"shared\"",
            "queue = \"share\"",
            &["no queue `share`", "did you mean `shared`?"],
        ),
        (
            "to = \"receiver\"",
            "to = \"reciever\"",
            &["no host `reciever`", "did you mean `receiver`?"],
        ),
        (
            "from = [\"far\"]",
            "from = [\"far\", \"farther*\"]",
            &["groups.cubic.from.1", "near1"],
        ),
        (
            "from = [\"far\"]",
            "from = []",
            &["groups.cubic.from", "at least one host"],
        ),
        (
            "from = [\"far\"]",
            "from = \"receiver\"",
            &["no sender has a receiver other"],
        ),
        (
            "from = [\"far\"]",
            "from = \"switch\"",
            &["no host `switch`"],
        ),
        (
            "ports = \"bottleneck\"",
            "ports = \"bottelneck\"",
            &["did you mean `bottleneck`?"],
        ),
        ("[groups.noise]", "[groups.\"a b\"]", &["`a b` is no name"]),
        (
            "[dumbbell.senders.far]",
            "[dumbbell.senders.near1]",
            &["`near1` is the name of another host"],
        ),
    ]);
}
