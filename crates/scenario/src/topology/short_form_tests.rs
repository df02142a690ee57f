//! What the short forms of networks expand to.

use weir_units::Rate;

use crate::{LinkClass, Scenario, Topology};

fn load(network: &str) -> Result<Topology, String> {
    let text = format!(
        "title = 't'\nsource = 's'\nduration = '1s'\n{network}\n\
         [groups.g]\nfrom = '*1'\nto = '*2'\nworkload = 'bulk'\n"
    );
    let loaded = Scenario::parse("test.toml", &text, &[]).map_err(|error| error.to_string())?;
    let written = toml::to_string(&loaded.scenario).unwrap();
    let again = Scenario::parse("written.toml", &written, &[])
        .unwrap()
        .scenario;
    assert_eq!(
        again, loaded.scenario,
        "it survives being written in the general form"
    );
    Ok(loaded.scenario.topology)
}

fn topology(network: &str) -> Topology {
    load(network).unwrap_or_else(|error| panic!("{error}"))
}

fn class(topology: &Topology, name: &str) -> LinkClass {
    topology
        .link_class(name)
        .unwrap_or_else(|| panic!("{name}"))
}

/// Returns the number of links of a class, and the rate of all together.
fn capacity(topology: &Topology, name: &str) -> (usize, Rate) {
    let ports = class(topology, name).ports;
    let rates = ports
        .iter()
        .map(|port| topology.port(*port).rate.bits_per_second());
    (ports.len(), Rate::from_bits_per_second(rates.sum()))
}

/// Returns the number of paths between two hosts.
fn paths(topology: &Topology, from: &str, to: &str) -> usize {
    let host = |name: &str| {
        let mut hosts = topology.host_indices();
        hosts
            .find(|host| topology.host(*host).name == name)
            .unwrap()
    };
    let (routes, to) = (topology.routes(), host(to));
    let mut paths = 0;
    let mut open = routes.from_host(host(from), to);
    while let Some(port) = open.pop() {
        match topology.port(port).to.switch() {
            Some(switch) => open.extend(routes.from_switch(switch, to)),
            None => paths += 1,
        }
    }
    paths
}

const LEAF_SPINE: &str =
    "leaves = 4, spines = 2, hosts = 8, rate = '10Gbps', delay = '1us', queue = 'unlimited'";

#[test]
fn a_leaf_spine_network_has_its_oversubscription() {
    let gbps = Rate::from_gbps;
    for (more, links, uplinks) in [
        ("", 8, gbps(320)),
        (", oversubscription = 4", 8, gbps(80)),
        (", oversubscription = 0.5", 8, gbps(640)),
        (", uplink_rate = '25Gbps'", 8, gbps(200)),
        (", uplinks = 4, oversubscription = 2", 32, gbps(160)),
    ] {
        let topology = topology(&format!("leaf_spine = {{ {LEAF_SPINE}{more} }}"));
        assert_eq!(capacity(&topology, "hosts"), (32, gbps(320)), "{more}");
        assert_eq!(
            capacity(&topology, "leaf->spine"),
            (links, uplinks),
            "{more}"
        );
        assert_eq!(
            capacity(&topology, "spine->leaf"),
            (links, uplinks),
            "{more}"
        );
        assert_eq!(paths(&topology, "host1", "host8"), 1);
        assert_eq!(
            paths(&topology, "host1", "host9"),
            links / 4 * links / 4 / 2,
            "{more}"
        );
    }
}

#[test]
fn a_fat_tree_has_a_path_by_each_core() {
    let topology =
        topology("fat_tree = { k = 4, rate = '10Gbps', delay = '1us', queue = 'unlimited' }");
    assert_eq!((topology.hosts.len(), topology.switches.len()), (16, 20));
    for name in [
        "hosts",
        "edge->aggregation",
        "aggregation->core",
        "core->aggregation",
    ] {
        assert_eq!(
            capacity(&topology, name),
            (16, Rate::from_gbps(160)),
            "{name}"
        );
    }
    for (to, count) in [("host2", 1), ("host4", 2), ("host5", 4), ("host16", 4)] {
        assert_eq!(paths(&topology, "host1", to), count, "{to}");
    }
    // Each switch has k ports.
    for switch in topology.switch_indices() {
        assert_eq!(topology.ports_of(crate::Node::Switch(switch)).count(), 4);
    }
}

#[test]
fn a_parking_lot_has_a_bottleneck_at_each_hop() {
    let topology = topology(
        "parking_lot = { hops = 3, pairs = 2, rate = '10Gbps', delay = '5us', queue = 'unlimited' }",
    );
    assert_eq!(topology.hosts.len(), 2 + 2 + 3 + 3);
    for number in 1..=3 {
        let port = topology
            .port_by_name(&format!("bottleneck{number}"))
            .unwrap();
        assert_eq!(
            topology.name(topology.port(port).to),
            format!("switch{}", number + 1)
        );
        let entry = class(&topology, &format!("entry{number}->switch{number}"));
        let exit = class(&topology, &format!("switch{}->exit{number}", number + 1));
        assert_eq!((entry.ports.len(), exit.ports.len()), (1, 1));
    }
    assert_eq!(class(&topology, "sender->switch1").ports.len(), 2);
    assert_eq!(class(&topology, "switch4->receiver").ports.len(), 2);
}

#[test]
fn parallel_links_share_the_flows() {
    let network = "[hosts.a]\ncount = 2\n[switches.left]\n[switches.right]\n\
        [[links]]\nfrom = 'a1'\nto = 'left'\nrate = '1Gbps'\ndelay = '1us'\n\
        [[links]]\nfrom = 'a2'\nto = 'right'\nrate = '1Gbps'\ndelay = '1us'\n\
        [[links]]\nfrom = 'left'\nto = 'right'\ncount = 3\nrate = '1Gbps'\ndelay = '1us'\n";
    let routed = format!("{network}[[routes]]\nswitch = 'left'\nto = 'a2'\nvia = 'right'\n");
    for network in [network, &routed] {
        let topology = topology(network);
        assert_eq!(paths(&topology, "a1", "a2"), 3);
        assert_eq!(class(&topology, "left->right").ports.len(), 3);
        let port = topology.port_by_name("left->right:2").unwrap();
        assert_eq!(topology.port(port.reverse()).name, "right->left:2");
    }
    let more =
        format!("{network}[[links]]\nfrom = 'right'\nto = 'left'\nrate = '1Gbps'\ndelay = '1us'\n");
    let error = load(&more).unwrap_err();
    assert!(
        error.contains("`right->left` is the name of another port"),
        "{error}"
    );
    assert!(error.contains("`count`"), "{error}");
}

#[test]
fn mistakes_in_short_forms_have_their_keys() {
    for (network, words) in [
        (
            format!("leaf_spine = {{ {LEAF_SPINE}, oversubscription = 2, uplink_rate = '1Gbps' }}"),
            "test.toml:4: leaf_spine.uplink_rate: `oversubscription` and `uplink_rate` both say",
        ),
        (
            format!("leaf_spine = {{ {LEAF_SPINE}, uplink = 2 }}"),
            "did you mean `uplinks`?",
        ),
        (
            "leaf_spine = { leaves = 2, spines = 2, hosts = 2, rate = '10kbps', delay = '1us', queue = 'unlimited', \
             oversubscription = 100 }"
                .to_owned(),
            "leaf_spine.oversubscription: each link between a leaf and a spine would have 100bps",
        ),
        (
            "leaf_spine = { leaves = 1000, spines = 2, hosts = 100, rate = '1Gbps', delay = '1us', queue = 'unlimited' }"
                .to_owned(),
            "20001 hosts are too many",
        ),
        (
            "fat_tree = { k = 5, rate = '10Gbps', delay = '1us', queue = 'unlimited' }".to_owned(),
            "fat_tree.k: switches with 5 ports have no half of them for either side; set `k` to 4 or 6",
        ),
        (
            "fat_tree = { k = 34, rate = '10Gbps', delay = '1us', queue = 'unlimited' }".to_owned(),
            "34 is outside what makes sense: expected a whole number from 2 to 32",
        ),
        (
            "fat_tree = { k = 4, rate = '10Gbps', delay = '1us', queue = 'q' }\n[parking_lot]\n".to_owned(),
            "test.toml:5: parking_lot: the network is described twice; write one of `[dumbbell]`, `[star]`, `[leaf_spine]`",
        ),
        (
            "[parking_lot]\nhops = 0\nrate = '1Gbps'\ndelay = '1us'\nqueue = 'unlimited'".to_owned(),
            "parking_lot.hops: 0 is outside",
        ),
    ] {
        let error = load(&network).unwrap_err();
        assert!(error.contains(words), "{words}:\n{error}");
    }
}

#[test]
fn a_fault_may_name_a_class_of_links() {
    let text = format!(
        "title = 't'\nsource = 's'\nduration = '1s'\nleaf_spine = {{ {LEAF_SPINE} }}\n\
         [groups.g]\nfrom = 'rack1'\nto = 'rack2'\nworkload = 'bulk'\n\
         [[faults]]\nkind = 'down'\nports = ['leaf->spine1', 'spine1->leaf']\nat = '1ms'\n\
         [[faults]]\nkind = 'loss'\nports = 'hosts'\nprobability = 0.1\nat = '1ms'\n\
         [measurements]\nports = 'spine->leaf'\n"
    );
    let scenario = Scenario::parse("test.toml", &text, &[]).unwrap().scenario;
    let names = |ports: &[crate::PortIndex]| {
        let names = ports
            .iter()
            .map(|port| scenario.topology.port(*port).name.clone());
        names.collect::<Vec<_>>()
    };
    let down = names(&scenario.faults[0].ports);
    assert_eq!(down.len(), 8);
    assert_eq!(down[..2], ["leaf1->spine1", "leaf2->spine1"]);
    assert_eq!(down[4], "spine1->leaf1");
    assert_eq!(scenario.faults[1].ports.len(), 32);
    assert_eq!(scenario.measurements.ports.len(), 8);
    let unknown = text.replace("'hosts'", "'leaf->core'");
    let error = Scenario::parse("test.toml", &unknown, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("there is no port `leaf->core`"), "{error}");
}

#[test]
fn random_links_of_a_class_fail_both_ways() {
    let text = |seed: u64, random: &str| {
        format!(
            "title = 't'\nsource = 's'\nseed = {seed}\nduration = '1s'\n\
             leaf_spine = {{ leaves = 8, spines = 4, hosts = 2, rate = '10Gbps', delay = '1us', queue = 'unlimited' }}\n\
             [groups.g]\nfrom = 'rack1'\nto = 'rack2'\nworkload = 'bulk'\n\
             [[faults]]\nkind = 'down'\nports = 'leaf->spine'\nrandom = {random}\nat = '1ms'\n\
             [[faults]]\nkind = 'loss'\nprobability = 0.1\nports = 'leaf->spine'\nrandom = {random}\nboth_ways = true\nat = '1ms'\n"
        )
    };
    let faults = |seed: u64, random: &str| {
        let loaded = Scenario::parse("t.toml", &text(seed, random), &[]);
        loaded.map(|loaded| {
            let written = toml::to_string(&loaded.scenario).unwrap();
            let again = Scenario::parse("written.toml", &written, &[]).unwrap();
            assert_eq!(again.scenario, loaded.scenario);
            let ports = |fault: usize| loaded.scenario.faults[fault].ports.clone();
            (ports(0), ports(1))
        })
    };
    let (down, loss) = faults(1, "2").unwrap();
    assert_eq!((down.len(), loss.len()), (2, 4));
    assert!(loss[..2].iter().all(|port| loss.contains(&port.reverse())));
    assert_eq!(faults(1, "2").unwrap(), (down.clone(), loss));
    let others = (2..12).map(|seed| faults(seed, "2").unwrap().0);
    assert!(others.filter(|other| *other != down).count() >= 8);
    // Over many seeds each of the 32 links fails about equally often.
    let mut counts = std::collections::HashMap::<_, u32>::new();
    for seed in 0..400 {
        for port in faults(seed, "8").unwrap().0 {
            *counts.entry(port).or_default() += 1;
        }
    }
    assert_eq!(counts.len(), 32);
    assert!(
        counts.values().all(|count| (60..=140).contains(count)),
        "{counts:?}"
    );
    let error = faults(1, "33").unwrap_err().to_string();
    assert!(
        error.contains("faults.0.random: 33 of 32 ports cannot be chosen"),
        "{error}"
    );
}
