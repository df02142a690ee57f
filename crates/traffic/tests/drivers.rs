//! The presets of this crate pass the conformance test of `weir_traffic::calls::driver`.

use weir_traffic::calls::driver::{Driver, ServerOptions};
use weir_traffic::calls::identity::new_identity;
use weir_traffic::calls::{
    DcquicPreset, Error, TcpPreset, TcpTlsPreset, TransportSpecification, conformance,
    standard_drivers,
};

#[test]
fn tcp_conforms() {
    conformance::check(&TcpPreset, &TransportSpecification::named("tcp")).unwrap();
}

#[test]
fn tcp_with_tls_conforms() {
    conformance::check(&TcpTlsPreset, &TransportSpecification::named("tcp-tls")).unwrap();
}

#[test]
fn dcquic_conforms() {
    for settings in [
        "dcquic",
        "dcquic@8972/dctcp",
        "dcquic@65507",
        "dcquic/bbr+spin",
    ] {
        conformance::check(&DcquicPreset, &settings.parse().unwrap()).unwrap();
    }
}

#[test]
fn a_named_congestion_control_is_used() {
    let specification: TransportSpecification = "tcp/reno".parse().unwrap();
    conformance::check(&TcpPreset, &specification).unwrap();
}

#[tokio::test]
async fn unsupported_settings_are_refused() {
    for text in [
        "tcp@1452",
        "tcp-tls@8972",
        "tcp+spin",
        "tcp/no-such-control",
    ] {
        let specification: TransportSpecification = text.parse().unwrap();
        let drivers = standard_drivers();
        let driver: &dyn Driver = drivers.get(&specification.driver).unwrap();
        let refused = driver.listen(&ServerOptions {
            specification,
            bind: ([127, 0, 0, 1], 0).into(),
            identity: new_identity().unwrap(),
            early_data: false,
        });
        assert!(refused.is_err(), "{text}");
    }
}

#[test]
fn an_unknown_transport_is_named_with_the_known_ones() {
    let drivers = standard_drivers();
    let Err(Error::UnknownTransport { name, known }) = drivers.get("sctp") else {
        panic!("sctp was found");
    };
    assert_eq!(name, "sctp");
    assert_eq!(known, "dcquic, tcp-tls, tcp");
}

#[tokio::test]
async fn standing_servers_report_an_address_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let identity = new_identity().unwrap();
    let refused = weir_traffic::calls::standing::listen(
        &standard_drivers(),
        &[TransportSpecification::named("tcp-tls")],
        taken.local_addr().unwrap(),
        &identity,
    );
    let Err(error) = refused else {
        panic!("the address was taken twice");
    };
    assert!(error.to_string().contains("is in use"), "{error}");
}
