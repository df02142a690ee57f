use crate::{HostIndex, Node, PathFault, Scenario, SwitchIndex, Topology};

fn topology(network: &str) -> Topology {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\nduration = \"1s\"\n{network}\n\
         [groups.g]\nfrom = \"a*\"\nto = \"b*\"\nworkload = \"bulk\"\n"
    );
    let loaded = Scenario::parse("test.toml", &text, &[]);
    loaded
        .unwrap_or_else(|error| panic!("{error}"))
        .scenario
        .topology
}

fn host(topology: &Topology, name: &str) -> HostIndex {
    let mut hosts = topology.host_indices();
    hosts
        .find(|host| topology.host(*host).name == name)
        .unwrap()
}

fn switch(topology: &Topology, name: &str) -> SwitchIndex {
    let mut switches = (0..topology.switches.len() as u32).map(SwitchIndex);
    switches
        .find(|switch| topology.switch(*switch).name == name)
        .unwrap()
}

/// Returns the names of the egress ports of the host or switch `at` for packets to `to`.
fn next(topology: &Topology, at: &str, to: &str) -> Vec<String> {
    let (routes, to) = (topology.routes(), host(topology, to));
    let is_host = topology.hosts.iter().any(|host| host.name == at);
    let ports = if is_host {
        routes.from_host(host(topology, at), to)
    } else {
        routes.from_switch(switch(topology, at), to).to_vec()
    };
    ports
        .iter()
        .map(|port| topology.port(*port).name.clone())
        .collect()
}

fn link(from: &str, to: &str) -> String {
    format!("[[links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1Gbps\"\ndelay = \"1us\"\n")
}

fn leaf_spine(more: &str) -> Topology {
    let links = [
        link("a", "left"),
        link("left", "spine*"),
        link("spine*", "right"),
        link("right", "b"),
    ];
    topology(&format!(
        "[hosts.a]\ncount = 2\n[hosts.b]\ncount = 2\n[switches.left]\n[switches.right]\n\
         [switches.spine1]\n[switches.spine2]\n{}{more}",
        links.concat()
    ))
}

#[test]
fn all_shortest_paths_are_taken() {
    let topology = leaf_spine("");
    assert_eq!(next(&topology, "a1", "b2"), ["a1->left"]);
    assert_eq!(
        next(&topology, "left", "b2"),
        ["left->spine1", "left->spine2"]
    );
    assert_eq!(next(&topology, "spine1", "b2"), ["spine1->right"]);
    assert_eq!(next(&topology, "right", "b2"), ["right->b2"]);
    assert_eq!(next(&topology, "left", "a2"), ["left->a2"]);
    assert_eq!(next(&topology, "spine2", "a2"), ["spine2->left"]);
    let checked = topology
        .routes()
        .check_paths(host(&topology, "a1"), host(&topology, "a2"));
    assert_eq!(checked, Ok(()));
}

#[test]
fn explicit_routes_apply_only_to_their_destinations() {
    let route = "[[routes]]\nswitch = \"left\"\nto = \"b1\"\nvia = \"spine2\"\n";
    let topology = leaf_spine(route);
    assert_eq!(next(&topology, "left", "b1"), ["left->spine2"]);
    assert_eq!(
        next(&topology, "left", "b2"),
        ["left->spine1", "left->spine2"]
    );
    assert_eq!(
        next(&topology, "right", "a1"),
        ["right->spine1", "right->spine2"]
    );
}

#[test]
fn hosts_may_have_several_links_and_need_no_switch() {
    let links = [
        link("a", "s"),
        link("a", "t"),
        link("s", "t"),
        link("t", "b"),
        link("b", "c"),
    ];
    let topology = topology(&format!(
        "[hosts.a]\n[hosts.b]\n[hosts.c]\n[switches.s]\n[switches.t]\n{}",
        links.concat()
    ));
    assert_eq!(next(&topology, "a", "b"), ["a->t"]);
    assert_eq!(next(&topology, "b", "a"), ["b->t"]);
    assert_eq!(next(&topology, "b", "c"), ["b->c"]);
    assert_eq!(next(&topology, "s", "a"), ["s->a"]);
    // Hosts do not forward.
    assert!(next(&topology, "a", "c").is_empty());
    let checked = topology
        .routes()
        .check_paths(host(&topology, "a"), host(&topology, "c"));
    assert_eq!(checked, Err(PathFault::DeadEnd));
}

#[test]
fn each_link_of_a_host_can_be_reached() {
    let links = [
        link("a", "s"),
        link("a", "t"),
        link("s", "t"),
        link("s", "u"),
        link("t", "b"),
    ];
    let topology = topology(&format!(
        "[hosts.a]\n[hosts.b]\n[switches.s]\n[switches.t]\n[switches.u]\n{}",
        links.concat()
    ));
    let (a, routes) = (host(&topology, "a"), topology.routes());
    let ways = |switch: &str, uplink: &str| -> Vec<String> {
        let mut switches = topology.switch_indices();
        let switch = switches.find(|index| topology.switch(*index).name == switch);
        let uplink = topology.port_by_name(uplink).unwrap();
        let ways = routes.to_uplink(switch.unwrap(), a, uplink);
        let names = ways.iter().map(|port| topology.port(*port).name.clone());
        names.collect()
    };
    // The shortest path to the host, and the longer one.
    assert_eq!(ways("t", "a->t"), ["t->a"]);
    assert_eq!(ways("t", "a->s"), ["t->s"]);
    assert_eq!(ways("s", "a->s"), ["s->a"]);
    assert_eq!(ways("u", "a->s"), ["u->s"]);
    assert_eq!(ways("u", "a->t"), ["u->s"]);
    assert_eq!(ways("s", "a->t"), ["s->t"]);
}

#[test]
fn a_dumbbell_with_several_receivers_has_two_switches() {
    let topology = topology(
        "[dumbbell]\nrate = \"1Gbps\"\nqueue = \"unlimited\"\ndelay = \"3us\"\n\
         [dumbbell.receivers]\ncount = 2\ndelay = \"4us\"\n[dumbbell.senders.a]\nrtt = \"20us\"\n\
         [dumbbell.senders.b]\ndelay = \"1us\"\n",
    );
    assert_eq!(next(&topology, "a", "receiver2"), ["a->left"]);
    assert_eq!(next(&topology, "left", "receiver2"), ["bottleneck"]);
    assert_eq!(next(&topology, "right", "receiver2"), ["right->receiver2"]);
    assert_eq!(next(&topology, "right", "a"), ["right->left"]);
    // 3 + 3 + 4 us one way.
    let sender = topology.port_by_name("a->left").unwrap();
    assert_eq!(
        topology.port(sender).delay,
        weir_units::Duration::from_micros(3)
    );
    assert_eq!(topology.port(sender.reverse()).name, "left->a");
}

#[test]
fn ten_thousand_hosts_can_be_routed() {
    let topology = topology(
        "[star]\nrate = \"1Gbps\"\ndelay = \"1us\"\nqueue = \"unlimited\"\n\
         [star.hosts.a]\ncount = 9999\n[star.hosts.b]\n",
    );
    let routes = topology.routes();
    for host in topology.host_indices() {
        let [port] = routes.from_switch(SwitchIndex(0), host) else {
            panic!("{host:?}");
        };
        assert_eq!(topology.port(*port).to, Node::Host(host));
    }
}
