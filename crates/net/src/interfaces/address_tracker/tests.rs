use proptest::prelude::*;

use super::*;

/// Parses `10.0.0.1` or `10.0.0.1%eth0`, which must leave by that interface.
fn bind_address(text: &str) -> BindAddress {
    let (ip, interface) = match text.split_once('%') {
        Some((ip, interface)) => (ip, Some(interface.to_owned())),
        None => (text, None),
    };
    BindAddress {
        address: (ip.parse::<IpAddr>().unwrap(), 4433).into(),
        interface,
    }
}

fn bind_addresses(texts: &[&str]) -> Vec<(BindAddress, bool)> {
    texts
        .iter()
        .map(|text| (bind_address(text), true))
        .collect()
}

fn usable(texts: &[&str]) -> Usable {
    let split = |text: &&str| {
        let (ip, interface) = text.split_once('%').unwrap();
        (ip.parse().unwrap(), interface.to_owned())
    };
    texts.iter().map(split).collect()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const TWO: [&str; 2] = ["10.0.1.1%eth1", "10.0.2.1%eth2"];

#[test]
fn a_removed_address_is_closed_and_reopened() {
    let mut decisions = AddressTracker::default();
    let mut ours = bind_addresses(&["10.0.1.1", "10.0.2.1%eth2"]);
    assert!(decisions.decide(&ours, &usable(&TWO)).is_empty());
    let one = usable(&["10.0.2.1%eth2"]);
    assert_eq!(decisions.decide(&ours, &one), [AddressAction::Close(0)]);
    ours[0].1 = false;
    assert!(decisions.decide(&ours, &one).is_empty());
    assert_eq!(
        decisions.decide(&ours, &usable(&TWO)),
        [AddressAction::Reopen(0)]
    );
}

#[test]
fn the_last_address_is_kept_open() {
    let mut decisions = AddressTracker::default();
    let mut ours = bind_addresses(&["10.0.1.1", "10.0.2.1"]);
    decisions.decide(&ours, &usable(&TWO));
    assert_eq!(
        decisions.decide(&ours, &usable(&[])),
        [AddressAction::Close(0)]
    );
    ours[0].1 = false;
    assert!(decisions.decide(&ours, &usable(&[])).is_empty());
    // The other one comes back: now it can go.
    let one = usable(&["10.0.1.1%eth1"]);
    let expected = [AddressAction::Reopen(0), AddressAction::Close(1)];
    assert_eq!(decisions.decide(&ours, &one), expected);
    let mut alone = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1"]);
    alone.decide(&ours, &one);
    assert!(alone.decide(&ours, &usable(&[])).is_empty());
}

#[test]
fn an_address_of_another_family_is_no_replacement() {
    let mut decisions = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1", "fd00::1"]);
    decisions.decide(&ours, &usable(&["10.0.1.1%eth1", "fd00::1%eth1"]));
    assert!(
        decisions
            .decide(&ours, &usable(&["fd00::1%eth1"]))
            .is_empty()
    );
}

#[test]
fn an_address_is_replaced_by_a_new_one_on_its_interface() {
    let mut decisions = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1", "10.0.2.1"]);
    decisions.decide(&ours, &usable(&TWO));
    let renewed = usable(&["10.0.1.9%eth1", "10.0.2.1%eth2"]);
    let expected = [AddressAction::Replace(0, ip("10.0.1.9"))];
    assert_eq!(decisions.decide(&ours, &renewed), expected);
    // An address on another interface replaces one only where that is the endpoint's only address.
    let mut elsewhere = AddressTracker::default();
    elsewhere.decide(&ours, &usable(&TWO));
    let moved = usable(&["10.0.3.1%eth3", "10.0.2.1%eth2"]);
    assert_eq!(elsewhere.decide(&ours, &moved), [AddressAction::Close(0)]);
}

#[test]
fn the_only_address_is_replaced_by_any_of_equal_scope() {
    let mut decisions = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1"]);
    decisions.decide(&ours, &usable(&["10.0.1.1%eth0"]));
    let poor = usable(&["127.0.0.1%lo", "169.254.3.4%eth0", "fd00::1%eth0"]);
    assert!(decisions.decide(&ours, &poor).is_empty());
    let moved = usable(&["127.0.0.1%lo", "192.0.2.5%ens4"]);
    let expected = [AddressAction::Replace(0, ip("192.0.2.5"))];
    assert_eq!(decisions.decide(&ours, &moved), expected);
    let mut bound = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1%eth0"]);
    bound.decide(&ours, &usable(&["10.0.1.1%eth0"]));
    assert!(bound.decide(&ours, &moved).is_empty());
}

#[test]
fn two_sockets_do_not_take_the_same_replacement() {
    let mut decisions = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1", "10.0.1.2"]);
    decisions.decide(&ours, &usable(&["10.0.1.1%eth0", "10.0.1.2%eth0"]));
    let expected = [
        AddressAction::Replace(0, ip("10.0.1.9")),
        AddressAction::Close(1),
    ];
    assert_eq!(
        decisions.decide(&ours, &usable(&["10.0.1.9%eth0"])),
        expected
    );
}

#[test]
fn addresses_never_reported_are_left_unchanged() {
    let mut decisions = AddressTracker::default();
    let ours = bind_addresses(&["127.0.0.2", "127.0.0.3", "0.0.0.0"]);
    assert!(
        decisions
            .decide(&ours, &usable(&["127.0.0.1%lo"]))
            .is_empty()
    );
    assert!(decisions.decide(&ours, &usable(&[])).is_empty());
}

#[test]
fn an_address_on_another_interface_does_not_match_the_socket() {
    let mut decisions = AddressTracker::default();
    let ours = bind_addresses(&["10.0.1.1%eth1", "10.0.2.1"]);
    decisions.decide(&ours, &usable(&TWO));
    let swapped = usable(&["10.0.1.1%eth2", "10.0.2.1%eth2"]);
    assert_eq!(decisions.decide(&ours, &swapped), [AddressAction::Close(0)]);
}

#[test]
fn a_departed_address_is_reported_once() {
    let mut decisions = AddressTracker::default();
    assert!(decisions.departed(&usable(&TWO)).is_empty());
    let one = usable(&["10.0.2.1%eth2"]);
    assert_eq!(decisions.departed(&one), [ip("10.0.1.1")]);
    assert!(decisions.departed(&one).is_empty());
}

fn any_usable() -> impl Strategy<Value = Usable> {
    let address = (1_u8..4, 0_usize..3);
    prop::collection::btree_set(address, 0..6).prop_map(|addresses| {
        let one = |(host, link): (u8, usize)| {
            (
                IpAddr::from([10, 0, 0, host]),
                ["eth0", "eth1", "eth2"][link].to_owned(),
            )
        };
        addresses.into_iter().map(one).collect()
    })
}

proptest! {
    /// For any interface changes: carrying out the decisions always leaves a socket open, never two
    /// at one address, and after one round per address nothing more to do.
    #[test]
    fn decisions_converge(history in prop::collection::vec(any_usable(), 1..12)) {
        let mut decisions = AddressTracker::default();
        let mut ours = bind_addresses(&["10.0.0.1", "10.0.0.2%eth1"]);
        for usable in history {
            for _ in 0..ours.len() {
                for action in decisions.decide(&ours, &usable) {
                    carry_out(&mut ours, action);
                    prop_assert_ne!(ours[0].0.address, ours[1].0.address);
                    prop_assert!(ours.iter().any(|(_, open)| *open));
                }
            }
            prop_assert_eq!(decisions.decide(&ours, &usable), []);
        }
    }
}

fn carry_out(ours: &mut [(BindAddress, bool)], action: AddressAction) {
    match action {
        AddressAction::Close(index) => ours[index].1 = false,
        AddressAction::Reopen(index) => ours[index].1 = true,
        AddressAction::Replace(index, ip) => {
            ours[index].0.address.set_ip(ip);
            ours[index].1 = true;
        }
    }
}
