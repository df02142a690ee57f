//! Round trips of tokens, and tokens that must be refused.

use proptest::prelude::*;
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;

use super::*;

const LIFETIME: Duration = Duration::from_secs(3600);

fn key() -> TokenKey {
    TokenKey::new(&[7; 32])
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(1)
}

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

fn bearer() -> TokenHolder {
    TokenHolder {
        remote: SocketAddr::from(([192, 0, 2, 1], 4433)),
        version: Version::V1,
        destination: id(1),
    }
}

fn now() -> Time {
    Time::from_nanos(1_700_000_000_000_000_000)
}

/// The sender of the answer to a Retry packet.
fn retry_holder() -> TokenHolder {
    TokenHolder {
        destination: id(2),
        ..bearer()
    }
}

fn retry_token() -> Vec<u8> {
    key().seal(&Token::retry(now(), &bearer(), id(2)), &mut rng())
}

fn address_token() -> Vec<u8> {
    let token = Token::later(now(), Version::V1, bearer().remote.ip());
    key().seal(&token, &mut rng())
}

fn check(token: &[u8], bearer: &TokenHolder, now: Time) -> TokenCheck {
    key().check(token, bearer, now, LIFETIME)
}

#[test]
fn a_retry_token_is_bound_to_every_field_of_the_retried_packet() {
    let token = retry_token();
    let good = TokenCheck::Retried {
        original_destination: id(1),
        retry_source: id(2),
    };
    assert_eq!(check(&token, &retry_holder(), now()), good);
    assert_eq!(check(&token, &retry_holder(), now() + RETRY_LIFETIME), good);
    let mapped = SocketAddr::from((std::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped(), 4433));
    let as_ipv6 = TokenHolder {
        remote: mapped,
        ..retry_holder()
    };
    assert_eq!(check(&token, &as_ipv6, now()), good);
    let others = [
        TokenHolder {
            remote: SocketAddr::from(([192, 0, 2, 1], 4434)),
            ..retry_holder()
        },
        TokenHolder {
            remote: SocketAddr::from(([192, 0, 2, 2], 4433)),
            ..retry_holder()
        },
        TokenHolder {
            version: Version::V2,
            ..retry_holder()
        },
        bearer(),
    ];
    for other in others {
        assert_eq!(check(&token, &other, now()), TokenCheck::InvalidRetry);
    }
    let late = now() + RETRY_LIFETIME + Duration::from_nanos(1);
    assert_eq!(
        check(&token, &retry_holder(), late),
        TokenCheck::InvalidRetry
    );
    let early = Time::from_nanos(now().as_nanos() - CLOCK_SKEW.as_nanos() - 1);
    assert_eq!(
        check(&token, &retry_holder(), early),
        TokenCheck::InvalidRetry
    );
}

#[test]
fn a_new_token_is_bound_to_the_ip_address_and_version() {
    let token = address_token();
    let other_port = TokenHolder {
        remote: SocketAddr::from(([192, 0, 2, 1], 1)),
        destination: id(9),
        ..bearer()
    };
    for at in [now(), now() + LIFETIME] {
        let verdict = check(&token, &other_port, at);
        assert!(matches!(verdict, TokenCheck::Known { issued, .. } if issued == now()));
    }
    let other_ip = TokenHolder {
        remote: SocketAddr::from(([192, 0, 2, 3], 4433)),
        ..bearer()
    };
    let other_version = TokenHolder {
        version: Version::V2,
        ..bearer()
    };
    for (bearer, at) in [
        (other_ip, now()),
        (other_version, now()),
        (bearer(), now() + LIFETIME + Duration::from_nanos(1)),
    ] {
        assert_eq!(check(&token, &bearer, at), TokenCheck::Nothing);
    }
}

#[test]
fn tokens_sealed_with_another_key_are_ignored() {
    let other = TokenKey::new(&[8; 32]);
    for token in [retry_token(), address_token()] {
        let verdict = other.check(&token, &retry_holder(), now(), LIFETIME);
        assert_eq!(verdict, TokenCheck::Nothing);
    }
    assert_eq!(check(&[], &bearer(), now()), TokenCheck::Nothing);
    assert_eq!(check(&[0; 2000], &bearer(), now()), TokenCheck::Nothing);
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 0..=ConnectionId::MAX_LENGTH)
        .prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn token() -> impl Strategy<Value = Token> {
    let address = (any::<IpAddr>(), any::<u16>());
    let kind = prop_oneof![
        (address, connection_id(), connection_id()).prop_map(
            |((ip, port), original_destination, retry_source)| TokenKind::Retry {
                remote: SocketAddr::new(ip.to_canonical(), port),
                original_destination,
                retry_source,
            }
        ),
        any::<IpAddr>().prop_map(|ip| TokenKind::NewConnection {
            ip: ip.to_canonical()
        }),
    ];
    let version = prop::sample::select(vec![Version::V1, Version::V2]);
    (any::<u64>(), version, kind).prop_map(|(issued, version, kind)| Token {
        issued: Time::from_nanos(issued),
        version,
        kind,
    })
}

proptest! {
    #[test]
    fn tokens_round_trip(token in token(), seed: u64) {
        let sealed = key().seal(&token, &mut ChaCha12Rng::seed_from_u64(seed));
        let (opened, id) = key().open(&sealed).unwrap();
        prop_assert_eq!(opened, token);
        prop_assert_eq!(&id[..], &sealed[..NONCE_LENGTH]);
    }

    #[test]
    fn any_flipped_bit_is_refused(token in token(), bit in any::<prop::sample::Index>()) {
        let mut sealed = key().seal(&token, &mut rng());
        let bit = bit.index(sealed.len() * 8);
        sealed[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(key().open(&sealed).is_none());
    }

    #[test]
    fn checking_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
        prop_assert!(key().open(&bytes).is_none());
        Token::decode(&bytes);
    }
}
