//! Arrival times.

use proptest::prelude::*;

use super::*;

fn bytes(count: u64) -> ByteSize {
    ByteSize::from_bytes(count)
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn arrival(link: &mut Link, ready: Time, length: ByteSize) -> Time {
    link.transmit(ready, length).1
}

#[test]
fn transmission_and_propagation_add_up() {
    let mut link = Link::new(Rate::from_gbps(1), Duration::from_micros(25));
    assert_eq!(arrival(&mut link, at(100), bytes(1500)), at(37_100));
    assert_eq!(arrival(&mut link, at(100), bytes(500)), at(41_100));
    assert_eq!(
        link.transmit(at(50_000), bytes(1500)),
        (at(50_000), at(87_000))
    );
}

#[test]
fn framing_takes_time_on_the_wire() {
    let mut link = Link::new(Rate::from_gbps(1), Duration::ZERO).with_framing(bytes(38));
    arrival(&mut link, Time::ZERO, bytes(1500));
    assert_eq!(link.free_at(), at(1538 * 8));
}

#[test]
fn rounding_errors_do_not_accumulate() {
    let mut link = Link::new(Rate::from_gbps(100), Duration::ZERO);
    for _ in 0..1_000_000 {
        arrival(&mut link, Time::ZERO, bytes(64));
    }
    assert_eq!(link.free_at(), at(5_120_000));
}

#[test]
fn an_unbounded_link_only_delays() {
    let mut link = Link::new(Rate::MAX, Duration::from_nanos(5));
    let arrivals = [(); 3].map(|()| arrival(&mut link, at(9), bytes(1500)));
    assert_eq!(arrivals, [at(14); 3]);
}

#[test]
fn a_stopped_link_starts_when_it_gets_a_rate() {
    let mut link = Link::new(Rate::ZERO, Duration::ZERO);
    assert_eq!(link.free_at(), Time::MAX);
    link.set_rate(at(70), Rate::from_gbps(8), None, Time::ZERO);
    assert_eq!(link.free_at(), at(70));
    assert_eq!(arrival(&mut link, at(10), bytes(100)), at(170));
}

#[test]
fn at_rate_zero_a_packet_never_arrives() {
    let mut link = Link::new(Rate::ZERO, Duration::ZERO);
    assert_eq!(arrival(&mut link, Time::ZERO, bytes(100)), Time::MAX);
}

#[test]
fn a_new_rate_applies_to_the_next_packet() {
    let mut link = Link::new(Rate::from_gbps(8), Duration::ZERO);
    assert_eq!(arrival(&mut link, Time::ZERO, bytes(1000)), at(1000));
    link.set_rate(at(500), Rate::from_gbps(4), None, Time::ZERO);
    assert_eq!(arrival(&mut link, at(500), bytes(1000)), at(3000));
}

#[test]
fn a_shorter_delay_does_not_reorder() {
    let mut link = Link::new(Rate::from_gbps(8), Duration::from_nanos(5000));
    assert_eq!(arrival(&mut link, Time::ZERO, bytes(1000)), at(6000));
    link.set_delay(Duration::from_nanos(10), at(6000));
    assert_eq!(arrival(&mut link, Time::ZERO, bytes(1000)), at(6000));
    assert_eq!(arrival(&mut link, at(9000), bytes(1000)), at(10_010));
}

proptest! {
    #[test]
    fn transmission_times_are_exact_for_any_rate_and_size(
        rate in prop_oneof![1u64..10_000, any::<u64>()],
        sizes in prop::collection::vec(prop_oneof![Just(1500u64), Just(64), 0..u64::MAX >> 20], 1..50),
    ) {
        let mut link = Link::new(Rate::from_bits_per_second(rate.clamp(1, u64::MAX - 1)), Duration::ZERO);
        let rate = u128::from(link.rate().bits_per_second());
        // In units of a nanosecond divided by the rate.
        let mut work = 0u128;
        for size in sizes {
            work += u128::from(size) * 8_000_000_000;
            let end = u64::try_from(work.div_ceil(rate)).unwrap_or(u64::MAX);
            prop_assert_eq!(arrival(&mut link, Time::ZERO, bytes(size)), at(end));
            if end == u64::MAX {
                break;
            }
        }
    }
}

proptest! {
    #[test]
    fn a_product_with_the_reciprocal_is_the_quotient(
        length in 0_u64..1 << 31,
        framing in 0_u64..100,
        rate in prop_oneof![1_u64..1000, 1..100_000_000_000_u64, 1..u64::MAX],
    ) {
        let TransmissionTime { time, rest, .. } =
            TransmissionRate::new(Rate::from_bits_per_second(rate)).time(bytes(length), bytes(framing));
        let bits = u128::from(length + framing) * 8 * 1_000_000_000;
        prop_assert_eq!(u128::from(time.as_nanos()), bits / u128::from(rate));
        prop_assert_eq!(u128::from(rest), bits % u128::from(rate));
    }

    #[test]
    fn links_that_share_their_settings_change_apart(rates in prop::collection::vec(1_u64..12, 1..40)) {
        let mut shared = SharedLinkSettings::default();
        let link = |rate: &u64| Link::new(Rate::from_gbps(*rate), Duration::from_micros(1));
        let mut links: Vec<Link> = rates.iter().map(link).collect();
        links.iter_mut().for_each(|link| shared.share(link));
        links[0].set_mtu(bytes(9000));
        prop_assert_eq!(links[0].mtu(), bytes(9000));
        for (link, rate) in links.iter().zip(&rates).skip(1) {
            prop_assert_eq!((link.rate(), link.mtu()), (Rate::from_gbps(*rate), ByteSize::MAX));
        }
        prop_assert!(shared.0.len() <= REMEMBERED);
    }
}
