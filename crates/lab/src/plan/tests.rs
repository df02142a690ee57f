use weir_scenario::Scenario;

use super::*;

const DUMBBELL: &str = r#"
    title = "A plan"
    source = "a test"
    duration = "1s"

    [dumbbell]
    rate = "1Gbps"
    queue = { kind = "step", ecn_threshold = "20 packets", buffer = "1MB" }
    [dumbbell.senders.sender]
    count = 2
    rtt = "100us"

    [groups.dctcp]
    from = "sender1"
    to = "receiver"
    congestion = "dctcp"
    workload = "bulk"

    [groups.cubic]
    from = "sender2"
    to = "receiver"
    workload = "bulk"
"#;

/// Two switches, each connected to both hosts.
const TWO_WAYS: &str = r#"
    title = "Two ways"
    source = "a test"
    duration = "1s"
    [hosts.a]
    [hosts.b]
    [switches.s]
    [switches.t]
    [queues.q]
    kind = "drop-tail"
    buffer = "1MB"
    [[links]]
    from = "a"
    to = "s"
    rate = "100Mbps"
    delay = "10us"
    queue = "q"
    [[links]]
    from = "a"
    to = "t"
    rate = "100Mbps"
    delay = "10us"
    queue = "q"
    [[links]]
    from = "b"
    to = "s"
    rate = "100Mbps"
    delay = "10us"
    queue = "q"
    [[links]]
    from = "b"
    to = "t"
    rate = "100Mbps"
    delay = "10us"
    queue = "q"
    [groups.g]
    from = "a"
    to = "b"
    workload = "bulk"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text, &[]).unwrap().scenario
}

fn written<'p>(host: &'p HostPlan, path: &str) -> Option<&'p str> {
    let mut settings = host.kernel.iter();
    let found = settings.find(|setting| setting.path == path);
    found.map(|setting| setting.value.as_str())
}

#[test]
fn hosts_have_interfaces_and_neighbours() {
    let scenario = scenario(DUMBBELL);
    let plan = Plan::new(&scenario).unwrap();
    assert_eq!(plan.hosts.len(), 3);
    let addresses: BTreeSet<_> = plan
        .hosts
        .iter()
        .flat_map(|host| &host.nics)
        .map(HostInterface::address)
        .collect();
    assert_eq!(addresses.len(), 3);
    let host = |name: &str| plan.hosts.iter().find(|host| host.name == name).unwrap();
    let (sender, receiver) = (host("sender1"), host("receiver"));
    assert_eq!(sender.neighbours.len(), 1);
    assert_eq!(sender.neighbours[0].address, receiver.nics[0].address());
    assert_eq!(sender.neighbours[0].mac, receiver.nics[0].mac);
    assert_eq!(sender.nics[0].mtu, 1500);
    assert_eq!(written(sender, "ipv4/tcp_ecn"), Some("2"));
}

#[test]
fn a_host_plan_round_trips_as_one_line() {
    let plan = Plan::new(&scenario(DUMBBELL)).unwrap();
    for host in &plan.hosts {
        let line = serde_json::to_string(host).unwrap();
        assert_eq!(&serde_json::from_str::<HostPlan>(&line).unwrap(), host);
    }
}

#[test]
fn each_path_has_its_own_interfaces_at_both_ends() {
    let scenario = scenario(TWO_WAYS);
    let plan = Plan::new(&scenario).unwrap();
    let topology = &scenario.topology;
    let routes = topology.routes();
    let hosts: Vec<_> = topology.host_indices().collect();
    let ends = |flow| {
        plan.ends(
            topology,
            &routes,
            &scenario.groups[0],
            (hosts[0], hosts[1]),
            flow,
        )
    };
    let of = |host: usize, nic: usize| plan.hosts[host].nics[nic].address();
    assert_eq!(ends(0).from, [of(0, 0), of(0, 1)]);
    assert_eq!(ends(0).to, [of(1, 0), of(1, 1)]);
    // The next flow takes the other path.
    assert_eq!(ends(1).from, [of(0, 1), of(0, 0)]);
    assert_eq!(ends(1).to, [of(1, 1), of(1, 0)]);
    assert_eq!(plan.hosts[0].nics[0].gso_segments, 1);
    // The host that accepts the flow answers on the link that the opener chose.
    let by = |host: usize| {
        plan.hosts[host]
            .neighbours
            .iter()
            .map(|entry| entry.interface)
    };
    assert!(by(0).all(|by| by.is_none()));
    assert!(by(1).eq([Some(0), Some(1)]));
}

#[test]
fn conflicting_kernel_settings_of_a_host_are_an_error() {
    let apart = "from = \"sender2\"\n    tcp = { sack = false }";
    let both = DUMBBELL.replace("from = \"sender2\"", apart);
    let error = Plan::new(&scenario(&both)).unwrap_err();
    let PlanError::OneValuePerHost { host, key, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((host.as_str(), key), ("receiver", "tcp.sack"));
}

#[test]
fn later_addresses_are_neighbours_from_the_start() {
    let port = "sender1->switch";
    let fault =
        |at: &str| format!("[[faults]]\nkind = \"address\"\nports = \"{port}\"\nat = \"{at}\"\n");
    let text = format!("{DUMBBELL}{}{}", fault("100ms"), fault("200ms"));
    let scenario = scenario(&text);
    let plan = Plan::new(&scenario).unwrap();
    let receiver = plan.host(scenario.groups[0].to[0]);
    assert_eq!(receiver.neighbours.len(), 4);
}

#[test]
fn ipv6_duplicate_address_detection_is_off() {
    let text = format!("{DUMBBELL}\n[live]\naddress_family = \"ipv6\"\n");
    let plan = Plan::new(&scenario(&text)).unwrap();
    assert!(plan.hosts[0].nics[0].address().is_ipv6());
    assert_eq!(
        written(&plan.hosts[0], "ipv6/conf/all/accept_dad"),
        Some("0")
    );
}

#[test]
fn plug_ins_are_refused() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/aimd.wat");
    let setting = format!("groups.cubic.congestion={{ plugin = \"{file}\" }}");
    let settings = [setting.parse().unwrap()];
    let loaded = Scenario::parse("test.toml", DUMBBELL, &settings).unwrap();
    let error = Plan::new(&loaded.scenario).unwrap_err();
    let expected = PlanError::OnlySimulated {
        key: "groups.cubic.congestion".to_owned(),
    };
    assert_eq!(error, expected);
}

#[test]
fn settings_only_of_the_simulation_are_refused() {
    let poisson = "groups.cubic.workload={ kind = \"poisson\", load = 0.5, of = \"bottleneck\", distribution = [[\"1KB\", 1.0]] }";
    let settings = ["sed.rtt=100us", poisson, "groups.cubic.deadline=1s"];
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let loaded = Scenario::parse("test.toml", DUMBBELL, &settings).unwrap();
    let error = Plan::new(&loaded.scenario).unwrap_err();
    let expected = PlanError::OnlySimulated {
        key: "groups.cubic.deadline".to_owned(),
    };
    assert_eq!(error, expected);
}

#[test]
fn changes_of_parameters_are_refused_and_others_are_not() {
    let plan = |set: &str| {
        let changes = format!("[[changes]]\nat = '1ms'\n{set}\n");
        Plan::new(&scenario(&format!("{DUMBBELL}\n{changes}")))
    };
    let error = plan("groups = 'cubic'\nset.congestion.min_window = 3").unwrap_err();
    let expected = PlanError::OnlySimulated {
        key: "changes.0.set.congestion".to_owned(),
    };
    assert_eq!(error, expected);
    plan("ports = 'bottleneck'\nset.queue.buffer = '1MB'").unwrap();
}

#[test]
fn a_trace_is_refused() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/examples/trace.toml"
    );
    let loaded = Scenario::load(std::path::Path::new(file), &[]).unwrap();
    let error = Plan::new(&loaded.scenario).unwrap_err();
    let expected = PlanError::OnlySimulated {
        key: "groups.trace.workload".to_owned(),
    };
    assert_eq!(error, expected);
}

#[test]
fn an_incast_at_random_times_is_refused() {
    let workload = "groups.cubic.workload={ kind = \"poisson\", mean_interval = \"1ms\", fan_in = 2, \
                    distribution = [[\"1KB\", 1.0]] }";
    let settings = [workload, "groups.cubic.from=sender*"].map(|text| text.parse().unwrap());
    let loaded = Scenario::parse("test.toml", DUMBBELL, &settings).unwrap();
    let error = Plan::new(&loaded.scenario).unwrap_err();
    let expected = PlanError::OnlySimulated {
        key: "groups.cubic.workload.fan_in".to_owned(),
    };
    assert_eq!(error, expected);
}

#[test]
fn ack_every_is_one_setting_per_host() {
    let each = DUMBBELL.replace(
        "from = \"sender2\"",
        "from = \"sender2\"\n    tcp = { ack_every = 1 }",
    );
    let error = Plan::new(&scenario(&each)).unwrap_err();
    assert!(
        matches!(
            error,
            PlanError::OneValuePerHost {
                key: "tcp.ack_every",
                ..
            }
        ),
        "{error}"
    );
    assert!(!Plan::new(&scenario(DUMBBELL)).unwrap().hosts[0].quick_acks);
}

#[test]
fn a_minimum_rto_that_no_socket_takes_is_a_setting_of_the_host() {
    let rto = |min_rto: &str| {
        let tcp = format!(
            "from = \"sender2\"\n    tcp = {{ min_rto = \"{min_rto}\", max_rto = \"500s\" }}"
        );
        Plan::new(&scenario(&DUMBBELL.replace("from = \"sender2\"", &tcp)))
    };
    let of_sender = |plan: &Plan| {
        let sender = plan.hosts.iter().find(|host| host.name == "sender2");
        written(sender.unwrap(), "ipv4/tcp_rto_min_us").map(str::to_owned)
    };
    assert_eq!(of_sender(&rto("5ms").unwrap()), None);
    // The receiver has another group's connections too.
    let error = rto("300ms").unwrap_err();
    assert!(
        matches!(
            error,
            PlanError::OneValuePerHost {
                key: "tcp.min_rto",
                ..
            }
        ),
        "{error}"
    );
    // The kernel does not take it at all.
    assert_eq!(of_sender(&rto("200s").unwrap()), None);
}
