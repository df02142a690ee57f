//! The quiche server, which echoes streams and datagrams.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use quiche::{Config, Connection};
use tokio::task::AbortHandle;
use weir_traffic_peers::quiche::{Application, Server as QuicheLoop, Service};

use super::super::key_log::KeyLines;
use super::super::{ConnectionStatus, Local, Result, Server, Setup};
use super::{facts, log_keys};

/// Bytes read from a stream at once.
const READ_BUFFER: usize = 64 * 1024;

pub(super) fn serve(setup: &Setup, config: Config) -> Result<Box<dyn Server>> {
    let facts = Rc::<RefCell<Vec<ConnectionStatus>>>::default();
    let service = Service {
        retry: setup.retry,
        spare_ids: true,
    };
    let echo = Echo {
        facts: Rc::clone(&facts),
        key_log: setup.key_log.clone(),
    };
    let server = QuicheLoop::bind(setup.bind(), config, service, echo)?;
    Ok(Box::new(QuicheServer {
        address: server.address(),
        facts,
        task: tokio::task::spawn_local(server.run()).abort_handle(),
    }))
}

struct QuicheServer {
    address: SocketAddr,
    facts: Rc<RefCell<Vec<ConnectionStatus>>>,
    task: AbortHandle,
}

impl Server for QuicheServer {
    fn address(&self) -> Result<SocketAddr> {
        Ok(self.address)
    }

    fn newest(&self) -> Option<ConnectionStatus> {
        self.facts.borrow().last().cloned()
    }

    fn update_keys(&self) -> Local<'_, Result<()>> {
        Box::pin(async { Err("quiche begins no key updates".into()) })
    }
}

impl Drop for QuicheServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The echo application.
struct Echo {
    /// The state of each connection so far.
    facts: Rc<RefCell<Vec<ConnectionStatus>>>,
    key_log: Option<Arc<KeyLines>>,
}

struct Session {
    number: usize,
    /// By stream ID: bytes still to be echoed, and whether the client has finished the stream.
    echoes: BTreeMap<u64, (Vec<u8>, bool)>,
    got_early_data: bool,
}

impl Application for Echo {
    type Session = Session;

    fn begin(&mut self, connection: &mut Connection) -> Session {
        log_keys(connection, self.key_log.as_ref());
        let mut all = self.facts.borrow_mut();
        all.push(facts(connection));
        Session {
            number: all.len() - 1,
            echoes: BTreeMap::new(),
            got_early_data: false,
        }
    }

    fn receive(&mut self, connection: &mut Connection, session: &mut Session) {
        while connection.path_event_next().is_some() {}
        let mut buffer = [0; READ_BUFFER];
        for stream in connection.readable() {
            let (pending, ended) = session.echoes.entry(stream).or_default();
            while let Ok((length, last)) = connection.stream_recv(stream, &mut buffer) {
                session.got_early_data |= connection.is_in_early_data();
                pending.extend_from_slice(buffer.get(..length).unwrap_or_default());
                *ended |= last;
                if last {
                    break;
                }
            }
        }
        while let Ok(length) = connection.dgram_recv(&mut buffer) {
            // A datagram that does not fit counts as lost.
            let _ = connection.dgram_send(buffer.get(..length).unwrap_or_default());
        }
        if let Some(place) = self.facts.borrow_mut().get_mut(session.number) {
            *place = ConnectionStatus {
                early_data: Some(session.got_early_data),
                ..facts(connection)
            };
        }
    }

    fn send(&mut self, connection: &mut Connection, session: &mut Session) -> bool {
        let mut progress = false;
        session.echoes.retain(|stream, (pending, ended)| {
            if pending.is_empty() && !*ended {
                return true;
            }
            match connection.stream_send(*stream, pending, *ended) {
                Ok(taken) => {
                    progress |= taken > 0;
                    pending.drain(..taken);
                    !(pending.is_empty() && *ended)
                }
                Err(error) => error == quiche::Error::Done,
            }
        });
        progress
    }
}
