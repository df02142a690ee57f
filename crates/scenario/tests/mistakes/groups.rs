//! Groups with conflicting keys.

use weir_scenario::Scenario;

use crate::{FILE, check};

#[test]
fn conflicting_keys_of_a_group_are_refused() {
    check(&[
        (
            "rate = \"1Mbps\" }",
            "rate = \"1Mbps\" }\ncongestion = \"cubic\"",
            &["noise.congestion", "no meaning"],
        ),
        (
            "{ kind = \"cbr\", rate = \"1Mbps\" }",
            "\"bulk\"",
            &["noise.workload", "UDP has no"],
        ),
        (
            "to = \"receiver\"",
            "to = \"receiver\"\npairing = \"one-to-one\"",
            &["4 senders and 1 receivers"],
        ),
        (
            "[measurements]",
            "[star]\n[measurements]",
            &["described twice"],
        ),
        (
            "[measurements]",
            "[[links]]\n[measurements]",
            &["links", "short form"],
        ),
    ]);
}

#[test]
fn options_of_another_transport_are_refused() {
    check(&[
        (
            "min_rto = \"10ms\"",
            "min_rto = \"10ms\"\n[groups.dctcp.quic]\necn = false",
            &["dctcp.quic", "no meaning", "transport = \"quic\""],
        ),
        (
            "start_within = \"1s\"",
            "start_within = \"1s\"\ntls = { resume = true }",
            &["dctcp.tls", "no meaning", "transport = \"tls\""],
        ),
        (
            "start_within = \"1s\"",
            "start_within = \"1s\"\ntransport = \"quic\"",
            &["dctcp.tcp", "no meaning", "transport = \"tcp\""],
        ),
    ]);
}

#[test]
fn known_peers_are_an_option_of_dcquic_alone() {
    const BEFORE: &str = "to = \"receiver\"\nworkload";
    let no_meaning: &[&str] = &["cubic.quic", "no meaning", "transport = \"quic\""];
    check(&[
        (
            BEFORE,
            "to = \"receiver\"\nquic = { known_peers = true }\nworkload",
            no_meaning,
        ),
        (
            BEFORE,
            "to = \"receiver\"\ntransport = \"tls\"\nquic = { known_peers = true }\nworkload",
            no_meaning,
        ),
        (
            BEFORE,
            "to = \"receiver\"\ntransport = \"dcudp\"\nquic = { known_peers = true }\nworkload",
            no_meaning,
        ),
        (
            BEFORE,
            "to = \"receiver\"\ntransport = \"tls\"\ntls = { known_peers = true }\nworkload",
            &["cubic.tls.known_peers", "no such key"],
        ),
        (
            BEFORE,
            "to = \"receiver\"\ntransport = \"quic\"\nquic = { known_peers = 3 }\nworkload",
            &["cubic.quic.known_peers", "true or false"],
        ),
    ]);
}

#[test]
fn deadlines_and_their_controller() {
    check(&[
        (
            "start_within = \"1s\"",
            "start_within = \"1s\"\ndeadline = \"1s\"",
            &[
                "dctcp.deadline",
                "ends by itself",
                "`transfer`, `poisson` or `trace`",
            ],
        ),
        (
            "size = \"1GB\" }",
            "size = \"1GB\" }\ndeadline = \"-1s\"",
            &["cubic.deadline"],
        ),
        (
            "size = \"1GB\" }",
            "size = \"1GB\" }\ndeadline = \"0s\"",
            &["cubic.deadline", "from 1ns"],
        ),
        (
            "size = \"1GB\" }",
            "size = \"1GB\", rounds = 3 }",
            &["cubic.workload.rounds", "3 rounds need an `interval`"],
        ),
        (
            "size = \"1GB\" }",
            "size = \"1GB\", interval = \"1s\" }",
            &["cubic.workload.interval", "one round"],
        ),
        (
            "[measurements]",
            "[sed]\nthreshold = \"1 packet\"\n[measurements]",
            &["sed.rtt", "missing"],
        ),
        (
            "[measurements]",
            "[sed]\nrtt = \"1ms\"\nthreshold = \"0 packets\"\n[measurements]",
            &["sed.threshold", "an empty queue"],
        ),
        (
            "[measurements]",
            "[sed]\nrtt = \"1ms\"\nlease = \"2ms\"\nlatency = \"1ms\"\n[measurements]",
            &["sed.lease", "runs out"],
        ),
        (
            "[measurements]",
            "[sed]\nrtt = \"1ms\"\nallocation = \"plan\"\n[measurements]",
            &["sed.allocation", "paper, planned"],
        ),
        (
            "[measurements]",
            "[sed]\nrtt = \"1ms\"\nbase = 2\n[measurements]",
            &["sed.base", "earliest-deadline", "set `best_effort`"],
        ),
        (
            "[measurements]",
            "[sed]\nrtt = \"1ms\"\nallocation = \"planned\"\nbest_effort = 10\n[measurements]",
            &["sed.best_effort", "earliest-deadline", "set `base`"],
        ),
    ]);
}

#[test]
fn invalid_dcquic_settings_are_refused() {
    check(&[
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"quic\"\nquic = { packet_size = \"8972B\" }\nworkload",
            &[
                "cubic.quic.packet_size",
                "exceed the smallest MTU",
                "1.472KB",
            ],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"quic\"\nquic = { packet_size = \"100B\" }\nworkload",
            &["packet_size", "100B is outside", "1.2KB"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"quic\"\nquic = { proactive_migration = 3 }\nworkload",
            &["proactive_migration", "true, false, or a table"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"quic\"\n\
             quic = { proactive_migration = { short_window = 60 } }\nworkload",
            &["proactive_migration", "50 is not above `short_window`, 60"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"quic\"\n\
             quic = { proactive_migration = { short_window = 65, long_window = 99 } }\nworkload",
            &["short_window", "too long", "paper"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"quic\"\n\
             quic = { proactive_migration = { detector = \"paper\", confirmations = 2 } }\nworkload",
            &["confirmations", "`paper` takes no"],
        ),
    ]);
}

#[test]
fn invalid_dcudp_settings_are_refused() {
    check(&[
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"dcudp\"\ndcudp = { packet_size = \"8972B\" }\nworkload",
            &[
                "cubic.dcudp.packet_size",
                "exceed the smallest MTU",
                "1.472KB",
            ],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"dcudp\"\ndcudp = { packet_size = \"100B\" }\nworkload",
            &["packet_size", "100B is outside", "128B"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"dcudp\"\ndcudp = { quit = { beta = 0.5 } }\nworkload",
            &["cubic.dcudp.quit.beta", "0.5 is outside", "from 1 to 1000"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ntransport = \"dcudp\"\ndcudp = { receive_window = 8 }\nworkload",
            &["receive_window", "8 is outside", "16 to 65536"],
        ),
        (
            "to = \"receiver\"\nworkload",
            "to = \"receiver\"\ndcudp = { rate = \"1Gbps\" }\nworkload",
            &["cubic.dcudp", "no meaning", "transport = \"dcudp\""],
        ),
    ]);
}

#[test]
fn invalid_failover_and_via_are_refused() {
    check(&[
        (
            "{ kind = \"transfer\", size = \"1GB\" }",
            "{ kind = \"transfer\", size = \"1GB\" }\nfailover = \"1s\"",
            &["cubic.failover", "only a request"],
        ),
        (
            "{ kind = \"cbr\", rate = \"1Mbps\" }",
            "{ kind = \"cbr\", rate = \"1Mbps\" }\nfailover = \"1s\"",
            &["noise.failover", "does not open another"],
        ),
        (
            "start_within = \"1s\"",
            "start_within = \"1s\"\nvia = \"switsh\"",
            &["dctcp.via", "no switch `switsh`", "did you mean `switch`?"],
        ),
    ]);
}

#[test]
fn inconsistent_epochs_are_refused() {
    const EPOCHS: &str = "{ kind = \"epochs\", request = \"1KB\", response = \"1KB\", count = 10 }";
    let with = |dctcp: &str, cubic: &str| {
        let text = FILE
            .replace("workload = \"bulk\"", &format!("workload = {dctcp}"))
            .replace("{ kind = \"transfer\", size = \"1GB\" }", cubic);
        let loaded = Scenario::parse("test.toml", &text, &[]);
        loaded.map(drop).map_err(|error| error.to_string())
    };
    let message = with(EPOCHS, EPOCHS).expect_err("a stop");
    assert!(
        message.contains("groups.dctcp.stop: epochs go on"),
        "{message}"
    );
    let bulk = "\"bulk\"";
    assert_eq!(with(bulk, EPOCHS), Ok(()));
    let with = |first: &str, second: &str| {
        let text = format!(
            "{}[groups.one]\nfrom = \"near\"\nto = \"receiver\"\nworkload = {first}\n\
             [groups.two]\nfrom = \"far\"\nto = \"receiver\"\nworkload = {second}\n",
            FILE
        );
        let loaded = Scenario::parse("test.toml", &text, &[]);
        loaded.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(with(EPOCHS, EPOCHS), Ok(()));
    let message = with(EPOCHS, &EPOCHS.replace("10", "11")).expect_err("other counts");
    assert!(
        message.contains("`one` has 10 epochs and `two` 11"),
        "{message}"
    );
    let message = with(EPOCHS, &EPOCHS.replace("10", "10000000")).expect_err("other counts");
    assert!(message.contains("the same `count`"), "{message}");
    let many = EPOCHS.replace("10", "5000000");
    let message = with(&many, &many).expect_err("too many");
    assert!(
        message.contains("requests in epochs are too many"),
        "{message}"
    );
}

#[test]
fn invalid_reductions_are_refused() {
    check(&[
        (
            "sample_interval = \"10ms\"",
            "reduction = { of = \"cubic\", against = \"cubic\" }",
            &["measurements.reduction.against", "its own time"],
        ),
        (
            "sample_interval = \"10ms\"",
            "reduction = { of = \"cubic\", against = \"dctcp\" }",
            &["reduction.against", "`dctcp` has a workload without end"],
        ),
        (
            "sample_interval = \"10ms\"",
            "reduction = { of = \"cubik\", against = \"dctcp\" }",
            &["reduction.of", "no group `cubik`", "did you mean `cubic`?"],
        ),
    ]);
}

#[test]
fn invalid_live_networks_are_refused() {
    check(&[
        (
            "[measurements]",
            "[live]\nnetwork = \"10.77.0.1/16\"\n[measurements]",
            &[
                "live.network",
                "is no network",
                "after which the address is zero",
            ],
        ),
        (
            "[measurements]",
            "[live]\nnetwork = \"8.8.0.0/16\"\n[measurements]",
            &["live.network", "RFC 1918"],
        ),
        (
            "[measurements]",
            "[live]\naddress_family = \"ipv6\"\nnetwork = \"10.77.0.0/16\"\n[measurements]",
            &["live.network", "RFC 4193"],
        ),
        (
            "[measurements]",
            "[live]\ngso_segments = 0\n[measurements]",
            &["live.gso_segments", "0 is outside"],
        ),
    ]);
}
