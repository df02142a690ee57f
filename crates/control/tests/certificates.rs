//! Certificates that expire, are renewed, revoked, half written, or of a foreign authority.
#![allow(clippy::unwrap_used, reason = "a test ends by it")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use support::plane::{flow, ports};
use support::{Certificates, DAY, Process, config, wait_for};
use tokio::runtime::Runtime;
use weir_control::certificates::{Authority, CertificatesError};
use weir_control::{
    AgentChannel, AgentOptions, AgentState, Client, ControllerOptions, Credentials, EpochFile, Role,
};
use weir_metrics::Registry;
use weir_net::tls::Reload;
use weir_sed::Demand;
use weir_units::{ByteSize, Duration as Span};

/// A controller that refuses the certificates in `crl.pem`, and its authority.
struct World {
    runtime: Runtime,
    certificates: Certificates,
    authority: Authority,
    registry: Registry,
    controller: Process,
}

/// A minute: the tests reload by themselves, or set another interval.
const SELDOM: Span = Span::from_secs(60);
const OFTEN: Span = Span::from_millis(20);

impl World {
    fn new(reload_interval: Span) -> Self {
        let certificates = Certificates::new();
        let authority = Authority::existing(certificates.path()).unwrap();
        let registry = Registry::new();
        let credentials = with_crl(&certificates, "controller").reload_every(reload_interval);
        let controller = Process::start_options(ControllerOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            credentials,
            state: EpochFile::ephemeral().unwrap(),
            config: config(),
            rules: Vec::new(),
            flows_per_client: 10,
            policies: None,
            metrics: Some(registry.clone()),
        });
        Self {
            runtime: Runtime::new().unwrap(),
            certificates,
            authority,
            registry,
            controller,
        }
    }

    fn issue(&self, name: &str, role: Role, lifetime: Duration) {
        let issued = self.authority.issue(name, &[role], &[], lifetime);
        issued.unwrap();
    }

    /// Connects as an application, and registers a flow.
    fn register(&self, credentials: &Credentials) -> Result<(), String> {
        let controller = self.controller.address.to_string();
        let demand = Demand {
            size: ByteSize::from_bytes(1000),
            within: Span::from_secs(1),
        };
        self.runtime.block_on(async {
            let client = Client::connect(&controller, credentials).await;
            let client = client.map_err(|error| error.to_string())?;
            let registered = client.register(flow(1), demand).await;
            registered.map_err(|error| error.to_string())
        })
    }

    fn agent(&self, credentials: Credentials) -> AgentChannel {
        let _entered = self.runtime.enter();
        AgentChannel::start(AgentOptions {
            controllers: vec![self.controller.address.to_string()],
            credentials,
            name: "tor".to_owned(),
            ports: ports(),
            wake: None,
            metrics: None,
        })
    }

    fn refused_clients(&self) -> u64 {
        let metrics = self.registry.encode();
        let name = "weir_sed_refused_clients_total ";
        let value = { metrics.lines() }.find_map(|line| line.strip_prefix(name));
        value.unwrap().parse().unwrap()
    }

    fn reload(&self) -> Result<Reload, String> {
        let reloaded = self.controller.handle.reload_credentials();
        reloaded.map_err(|error| error.to_string())
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.certificates.path().join(name)
    }
}

fn with_crl(certificates: &Certificates, name: &str) -> Credentials {
    let list = certificates.path().join("crl.pem");
    certificates.of(name).with_crl(&list).unwrap()
}

fn is_attached(channel: &AgentChannel) -> bool {
    matches!(&*channel.state().borrow(), AgentState::Attached { .. })
}

fn has_failed_with(channel: &AgentChannel, words: &str) -> bool {
    match &*channel.state().borrow() {
        AgentState::Failed(reason) => reason.contains(words),
        _ => false,
    }
}

#[test]
fn an_expired_controller_is_refused_until_its_renewed_files_are_there() {
    let world = World::new(OFTEN);
    let application = world.certificates.of("application");
    world.register(&application).unwrap();
    world.issue("controller", Role::Controller, Duration::ZERO);
    wait_for("an expired certificate", || {
        let registered = world.register(&application);
        registered.is_err_and(|error| error.contains("its certificate has expired"))
    });
    world.issue("controller", Role::Controller, DAY);
    wait_for("a renewed certificate", || {
        world.register(&application).is_ok()
    });
}

#[test]
fn an_expired_agent_is_refused_until_its_renewed_files_are_there() {
    let world = World::new(SELDOM);
    let tor = || Role::Switch("tor".to_owned());
    world.issue("switch", tor(), Duration::ZERO);
    // The last second of its life.
    std::thread::sleep(Duration::from_millis(1100));
    let agent = world.agent(world.certificates.of("switch").reload_every(OFTEN));
    wait_for("a refusal", || has_failed_with(&agent, "has expired"));
    wait_for("its count", || world.refused_clients() > 0);
    world.issue("switch", tor(), DAY);
    wait_for("a renewed certificate", || is_attached(&agent));
}

#[test]
fn half_written_and_mismatched_files_change_nothing() {
    let world = World::new(SELDOM);
    let application = world.certificates.of("application");
    assert_eq!(world.reload(), Ok(Reload::Unchanged));
    let certificate = world.file("controller.pem");
    let whole = fs::read_to_string(&certificate).unwrap();
    fs::write(&certificate, &whole[..whole.len() / 2]).unwrap();
    let error = world.reload().unwrap_err();
    assert!(error.contains("controller.pem"), "{error}");
    world.register(&application).unwrap();
    // The certificate of before with the next key.
    world.issue("controller", Role::Controller, DAY);
    let next = fs::read_to_string(&certificate).unwrap();
    fs::write(&certificate, &whole).unwrap();
    assert!(world.reload().is_err());
    world.register(&application).unwrap();
    fs::write(&certificate, next).unwrap();
    assert_eq!(world.reload(), Ok(Reload::Changed));
    world.register(&application).unwrap();
    fs::write(world.file("crl.pem"), "").unwrap();
    let error = world.reload().unwrap_err();
    assert!(error.contains("crl.pem"), "{error}");
    world.register(&application).unwrap();
}

#[test]
fn a_revoked_agent_is_disconnected_and_stays_away_until_it_has_another_certificate() {
    let world = World::new(SELDOM);
    let agent = world.agent(world.certificates.of("switch").reload_every(OFTEN));
    wait_for("an attached agent", || is_attached(&agent));
    let application = world.certificates.of("application");
    world.register(&application).unwrap();
    assert_eq!(world.refused_clients(), 0);
    // Also the one that this replaces.
    let tor = || Role::Switch("tor".to_owned());
    world.issue("switch", tor(), DAY);
    assert_eq!(world.authority.revoke("switch").unwrap().added, 2);
    assert_eq!(world.authority.revoke("switch").unwrap().added, 0);
    assert_eq!(world.reload(), Ok(Reload::Changed));
    wait_for("the end of its connection, and a refusal", || {
        has_failed_with(&agent, "is revoked")
    });
    wait_for("both counts", || world.refused_clients() >= 2);
    world.register(&application).unwrap();
    world.issue("switch", tor(), DAY);
    wait_for("another certificate", || is_attached(&agent));
    // The list keeps what it had.
    assert_eq!(world.authority.revoke("operator").unwrap().added, 1);
    assert_eq!(world.reload(), Ok(Reload::Changed));
    assert_eq!(world.authority.revoke("switch").unwrap().added, 1);
}

#[test]
fn a_revoked_controller_is_refused() {
    let world = World::new(SELDOM);
    let application = with_crl(&world.certificates, "application").reload_every(OFTEN);
    world.register(&application).unwrap();
    world.authority.revoke("controller").unwrap();
    wait_for("a refusal", || {
        let registered = world.register(&application);
        registered.is_err_and(|error| error.contains("its certificate is revoked"))
    });
}

#[test]
fn an_agent_leaves_a_controller_that_is_revoked_while_it_is_attached() {
    let world = World::new(SELDOM);
    let agent = world.agent(with_crl(&world.certificates, "switch").reload_every(OFTEN));
    wait_for("an attached agent", || is_attached(&agent));
    world.authority.revoke("controller").unwrap();
    wait_for("the end of its connection", || {
        has_failed_with(&agent, "its certificate is revoked")
    });
    world.issue("controller", Role::Controller, DAY);
    assert_eq!(world.reload(), Ok(Reload::Changed));
    wait_for("another certificate", || is_attached(&agent));
}

#[test]
fn a_certificate_of_a_foreign_authority_is_called_so_at_both_ends() {
    let world = World::new(SELDOM);
    let others = Certificates::new();
    let said = world.register(&others.of("application")).unwrap_err();
    assert!(said.contains("no controller"), "{said}");
    let here = "foreign authority: the authority in authority.pem here";
    assert!(said.contains(here), "{said}");
    wait_for("the controller's count", || world.refused_clients() > 0);
    // A client that trusts the controller.
    let directory = tempfile::tempdir().unwrap();
    let copy = |from: &Path, file: &str| {
        fs::copy(from.join(file), directory.path().join(file)).unwrap();
    };
    copy(world.certificates.path(), "authority.pem");
    copy(others.path(), "application.pem");
    copy(others.path(), "application.key");
    let mixed = Credentials::from_directory(directory.path(), "application").unwrap();
    let before = world.refused_clients();
    let said = world.register(&mixed).unwrap_err();
    let there = "foreign authority: the authority in the other end's authority.pem";
    assert!(said.contains(there), "{said}");
    wait_for("the controller's count", || {
        world.refused_clients() > before
    });
}

#[test]
fn a_refused_role_is_counted() {
    let world = World::new(SELDOM);
    let said = world.register(&world.certificates.of("operator"));
    assert!(said.unwrap_err().contains("application.weir"));
    assert_eq!(world.refused_clients(), 1);
}

#[test]
fn keys_are_secret_and_an_authority_is_not_replaced() {
    let certificates = Certificates::new();
    let authority = Authority::open(certificates.path()).unwrap();
    for renewed in [false, true] {
        if renewed {
            authority
                .issue("controller", &[Role::Controller], &[], DAY)
                .unwrap();
        }
        for name in ["authority", "controller", "switch"] {
            let key = certificates.path().join(format!("{name}.key"));
            assert_eq!(fs::metadata(key).unwrap().mode() & 0o777, 0o600, "{name}");
        }
    }
    let unknown = authority.revoke("tor9").unwrap_err();
    assert!(matches!(unknown, CertificatesError::NotIssued { .. }));
    fs::remove_file(certificates.path().join("authority.key")).unwrap();
    let error = Authority::open(certificates.path()).unwrap_err();
    assert!(error.to_string().contains("authority.key"), "{error}");
    assert!(Authority::existing(certificates.path()).is_err());
}
