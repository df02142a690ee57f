//! A conformance test for implementations of [`driver`](crate::calls::driver): client and server in
//! one process, every supported phase, and replies of many sizes compared byte by byte.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::task::LocalSet;
use tokio::time::timeout;
use weir_net::tls::Identity;
use weir_units::Duration;

use crate::calls::driver::{
    ClientMemory, ClientOptions, Driver, Phase, RequestClient, ServerOptions,
};
use crate::calls::error::Error;
use crate::calls::identity::{certificate, new_identity};
use crate::calls::payload::{Body, Library, Request};
use crate::calls::specification::TransportSpecification;
use crate::tls::Trust;
use crate::transport::Start;

/// Empty, the smallest, the paper's two, and one that exceeds any window or document.
const SIZES: [u64; 6] = [0, 1, 100, 10_000, 100_000, 20_000_000];

/// The time limit of the whole test.
const LIMIT: Duration = Duration::from_secs(60);

/// Tests a driver with the given settings.
///
/// # Errors
/// The first violation, as the error that it caused.
pub fn check(driver: &dyn Driver, specification: &TransportSpecification) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("starting the runtime"))?;
    LocalSet::new().block_on(&runtime, async {
        let steps = async {
            fresh_and_established(driver, specification).await?;
            rejects_untrusted_certificate(driver, specification).await?;
            if driver.supports(Phase::Resumed) {
                let start = Start::Resumed;
                remembered(driver, specification, ClientMemory::Tickets, start).await?;
            }
            if driver.supports(Phase::Known) {
                remembered(driver, specification, ClientMemory::Secrets, Start::Known).await?;
            }
            Ok(())
        };
        timeout(LIMIT.into(), steps).await.unwrap_or_else(|_| {
            Err(Error::Stalled {
                what: specification.to_string(),
                limit: LIMIT,
            })
        })
    })
}

/// Starts a server and creates a client that trusts `identity`.
fn pair(
    driver: &dyn Driver,
    specification: &TransportSpecification,
    identity: &Identity,
    believed: &Identity,
    memory: ClientMemory,
) -> Result<Box<dyn RequestClient>, Error> {
    let listening = driver.listen(&ServerOptions {
        specification: specification.clone(),
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        identity: identity.clone(),
        early_data: memory == ClientMemory::Tickets,
    })?;
    tokio::task::spawn_local(listening.serve);
    driver.client(&ClientOptions {
        specification: specification.clone(),
        server: listening.address,
        trust: Trust::Certificate(certificate(believed)),
        memory,
    })
}

async fn fresh_and_established(
    driver: &dyn Driver,
    specification: &TransportSpecification,
) -> Result<(), Error> {
    let identity = new_identity()?;
    let library = Library::default();
    let client = pair(
        driver,
        specification,
        &identity,
        &identity,
        ClientMemory::Nothing,
    )?;
    client.open(Start::Full, None).await?.close().await?;
    for size in SIZES {
        let request = Request { size };
        let mut body = Body::comparing(request, &library);
        let mut connection = client.open(Start::Full, Some((request, &mut body))).await?;
        body.verify()?;
        for size in SIZES {
            let request = Request { size };
            let mut body = Body::comparing(request, &library);
            connection.call(request, &mut body).await?;
            body.verify()?;
        }
        connection.close().await?;
    }
    Ok(())
}

async fn remembered(
    driver: &dyn Driver,
    specification: &TransportSpecification,
    memory: ClientMemory,
    later: Start,
) -> Result<(), Error> {
    let identity = new_identity()?;
    let library = Library::default();
    let client = pair(driver, specification, &identity, &identity, memory)?;
    let mut start = Start::Full;
    for size in SIZES.into_iter().filter(|size| *size > 0) {
        let request = Request { size };
        let mut body = Body::comparing(request, &library);
        let connection = client.open(start, Some((request, &mut body))).await?;
        body.verify()?;
        connection.close().await?;
        start = later;
    }
    Ok(())
}

/// Checks that a client rejects a server whose certificate it does not trust.
async fn rejects_untrusted_certificate(
    driver: &dyn Driver,
    specification: &TransportSpecification,
) -> Result<(), Error> {
    if !driver.is_authenticated() {
        return Ok(());
    }
    let stranger = new_identity()?;
    let client = pair(
        driver,
        specification,
        &stranger,
        &new_identity()?,
        ClientMemory::Nothing,
    )?;
    match client.open(Start::Full, None).await {
        Ok(_) => Err(Error::Certificate(
            "a server with another certificate was believed".to_owned(),
        )),
        Err(_) => Ok(()),
    }
}
