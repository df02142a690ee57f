//! The server: whom it takes in, and how it asks for proof of the address first.

use std::net::SocketAddr;
use std::rc::Rc;

use quiche::{Config, ConnectionId, Header, RecvInfo, Type};
use weir_traffic_peers::quiche::new_connection_id;

use super::super::{Facts, Local, Result, Server, Setup};
use super::core::Core;
use super::link::Link;

/// Begins our tokens. They are for tests: whoever sees one could make another.
const TOKEN: &[u8] = b"weir-interop";

pub(super) fn serve(setup: &Setup, config: Config) -> Result<Box<dyn Server>> {
    let retry = setup.retry;
    let stranger = move |core: &Core, header: &Header<'_>, info| take_in(core, header, info, retry);
    let core = Core::start(setup, config, Some(Box::new(stranger)))?;
    Ok(Box::new(QuicheServer(core)))
}

fn take_in(
    core: &Core,
    header: &Header<'_>,
    info: RecvInfo,
    retry: bool,
) -> Result<Option<Rc<Link>>> {
    let mut reply = [0; 256];
    // Only the version says what the other bits mean (RFC 8999).
    if header.ty != Type::Short && !quiche::version_is_supported(header.version) {
        let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut reply)?;
        core.send_stateless(info.from, reply.get(..length).unwrap_or_default());
        return Ok(None);
    }
    if header.ty != Type::Initial {
        return Ok(None);
    }
    let token = header.token.as_deref().unwrap_or_default();
    let original = token.strip_prefix(TOKEN).map(ConnectionId::from_ref);
    if retry && original.is_none() {
        let token = [TOKEN, &header.dcid].concat();
        let id = new_connection_id()?;
        let length = quiche::retry(
            &header.scid,
            &header.dcid,
            &id,
            &token,
            header.version,
            &mut reply,
        )?;
        core.send_stateless(info.from, reply.get(..length).unwrap_or_default());
        return Ok(None);
    }
    // After a Retry packet the client uses the ID that it gave.
    let id = match &original {
        Some(_) => header.dcid.clone().into_owned(),
        None => new_connection_id()?,
    };
    let mut config = core.config.borrow_mut();
    let connection = quiche::accept(&id, original.as_ref(), info.to, info.from, &mut config)?;
    let link = core.add(connection);
    link.set_first_id(header.dcid.clone().into_owned());
    Ok(Some(link))
}

struct QuicheServer(Rc<Core>);

impl Server for QuicheServer {
    fn address(&self) -> Result<SocketAddr> {
        self.0.address()
    }

    fn newest(&self) -> Option<Facts> {
        self.0.links.borrow().last().map(|link| link.facts())
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        Box::pin(async { Err("quiche begins no key updates".into()) })
    }
}

impl Drop for QuicheServer {
    fn drop(&mut self) {
        self.0.stop();
    }
}
