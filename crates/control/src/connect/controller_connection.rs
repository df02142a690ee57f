//! A TLS connection to a controller, which ends when the controller's certificate is not accepted any more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::Error;
use rustls::pki_types::UnixTime;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use weir_net::tls::ClientCredentials;

use super::{Refusal, RefusalCell, controller_name};
use crate::handshake_failure::{is_refusal, of_tls, reason};

/// A connection that remembers a refusal by either end. Heartbeats have it verify the controller again soon
/// after files have changed.
pub(super) struct ControllerConnection {
    tls: TlsStream<TcpStream>,
    credentials: ClientCredentials,
    /// How often the credentials had changed when the controller was last verified.
    changes: u64,
    refusal: RefusalCell,
}

impl ControllerConnection {
    /// `changes` is how often the credentials had changed before the handshake.
    pub(super) fn new(
        tls: TlsStream<TcpStream>,
        credentials: ClientCredentials,
        changes: u64,
        refusal: RefusalCell,
    ) -> Self {
        Self {
            tls,
            credentials,
            changes,
            refusal,
        }
    }

    /// Verifies the controller's certificate again if the files here have changed.
    fn verify_again(&mut self) -> io::Result<()> {
        let changes = self.credentials.reloads().changes;
        if changes == self.changes {
            return Ok(());
        }
        self.verify().map_err(|problem| {
            self.refusal
                .set(Some(Refusal::OfController(problem.clone())));
            io::Error::new(io::ErrorKind::ConnectionAborted, problem)
        })?;
        self.changes = changes;
        Ok(())
    }

    fn verify(&self) -> Result<(), String> {
        let verifier = self.credentials.server_verifier();
        let Some(verifier) = verifier.map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let chain = self.tls.get_ref().1.peer_certificates();
        let (Some((own, intermediates)), Some(name)) =
            (chain.and_then(<[_]>::split_first), controller_name())
        else {
            return Err(of_tls(&Error::NoCertificatesPresented));
        };
        let verified = verifier.verify_server_cert(own, intermediates, &name, &[], UnixTime::now());
        verified.map(drop).map_err(|error| of_tls(&error))
    }
}

impl AsyncRead for ControllerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.verify_again()?;
        let result = ready!(Pin::new(&mut self.tls).poll_read(context, buffer));
        if let Err(error) = &result
            && is_refusal(error)
        {
            self.refusal.set(Some(Refusal::ByController(reason(error))));
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for ControllerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.verify_again()?;
        Pin::new(&mut self.tls).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}
