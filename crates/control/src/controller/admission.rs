//! Which clients may connect: those with a certificate of the authority that has not been revoked. Open
//! connections end when their certificate is not accepted any more.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use weir_net::tls::{Reload, ServerCredentials, TlsError};

use super::client_connection::ClientConnection;
use super::peer::Peer;
use super::refused_clients::RefusedClients;
use crate::handshake_failure::{of_tls, reason};

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a refused client may take to read why.
const FAREWELL: Duration = Duration::from_secs(1);

/// The certificates that are accepted, and the connections that are open with them.
#[derive(Debug)]
pub(super) struct Admission {
    credentials: ServerCredentials,
    refused: RefusedClients,
    open: Mutex<Vec<OpenConnection>>,
}

#[derive(Debug)]
struct OpenConnection {
    address: IpAddr,
    chain: Arc<[CertificateDer<'static>]>,
    /// The connection ends when this is dropped.
    end: oneshot::Sender<Infallible>,
}

type Handshake = Result<TlsStream<TcpStream>, (io::Error, TcpStream)>;

impl Admission {
    pub(super) fn new(credentials: ServerCredentials, refused: RefusedClients) -> Self {
        Self {
            credentials,
            refused,
            open: Mutex::default(),
        }
    }

    /// Reads the certificates and lists again. Connections whose certificate is not accepted any more end.
    pub(super) fn reload(&self) -> Result<Reload, TlsError> {
        let reload = self.credentials.reload()?;
        if reload == Reload::Changed {
            self.end_refused()?;
        }
        Ok(reload)
    }

    /// Completes the handshake of a client, unless it is refused.
    pub(super) async fn admit(
        &self,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Option<ClientConnection> {
        let address = address.ip().to_canonical();
        let changes = self.credentials.reloads().changes;
        let refusal = match timeout(HANDSHAKE, self.handshake(stream)).await {
            Ok(Ok(tls)) => return self.register(address, tls, changes),
            Ok(Err((error, stream))) => {
                let reason = reason(&error);
                tokio::spawn(timeout(FAREWELL, farewell(stream)));
                reason
            }
            Err(_) => "its TLS handshake took too long".to_owned(),
        };
        self.refused.note(address, &refusal);
        None
    }

    async fn handshake(&self, stream: TcpStream) -> Handshake {
        if let Err(error) = stream.set_nodelay(true) {
            return Err((error, stream));
        }
        match self.credentials.over_tcp() {
            Ok(config) => {
                let accepting = TlsAcceptor::from(config).accept(stream);
                accepting.into_fallible().await
            }
            Err(error) => Err((io::Error::other(error), stream)),
        }
    }

    /// Notes a connection as open. `changes` is how often the credentials had changed before its
    /// handshake.
    fn register(
        &self,
        address: IpAddr,
        tls: TlsStream<TcpStream>,
        changes: u64,
    ) -> Option<ClientConnection> {
        let chain: Arc<[_]> = tls.get_ref().1.peer_certificates()?.into();
        let peer = Peer::new(address, chain.clone())?;
        let (end, ended) = oneshot::channel();
        let mut open = self.open();
        open.retain(|connection| !connection.end.is_closed());
        open.push(OpenConnection {
            address,
            chain,
            end,
        });
        drop(open);
        // A reload meanwhile has not seen it.
        if self.credentials.reloads().changes != changes
            && let Err(error) = self.end_refused()
        {
            tracing::warn!(%error, "open connections are not verified again");
        }
        Some(ClientConnection::new(tls, peer, ended))
    }

    /// Ends the connections whose certificate is not accepted any more.
    fn end_refused(&self) -> Result<(), TlsError> {
        let Some(verifier) = self.credentials.client_verifier()? else {
            return Ok(());
        };
        self.open().retain(|connection| {
            if connection.end.is_closed() {
                return false;
            }
            let result = verify(&*verifier, &connection.chain);
            if let Err(error) = &result {
                self.refused.note(connection.address, &of_tls(error));
            }
            result.is_ok()
        });
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, Vec<OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verify(
    verifier: &dyn ClientCertVerifier,
    chain: &[CertificateDer<'static>],
) -> Result<(), rustls::Error> {
    let Some((own, intermediates)) = chain.split_first() else {
        return Err(rustls::Error::NoCertificatesPresented);
    };
    let verified = verifier.verify_client_cert(own, intermediates, UnixTime::now());
    verified.map(drop)
}

/// Waits until a refused client has closed its connection. If it were closed here while data of the client
/// are on their way, the client would get a reset instead of the alert that says why.
async fn farewell(mut stream: TcpStream) {
    if stream.shutdown().await.is_ok() {
        let mut unread = [0; 1024];
        while matches!(stream.read(&mut unread).await, Ok(1..)) {}
    }
}
