//! The certificate of an example's server, which its client pins.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use weir_h3::APPLICATION_PROTOCOL;
use weir_net::tls::{ClientTls, Fingerprint, Identity};
use weir_net::{Connection, Endpoint};

use super::Failure;

const CERTIFICATE: &str = "certificate.der";
const KEY: &str = "key.der";

/// The name in the certificate.
pub(crate) const SERVER_NAME: &str = "localhost";

/// Where the server's certificate is kept.
#[derive(Args)]
pub(crate) struct Certificate {
    /// The directory of the server's self-signed certificate
    #[arg(long, default_value_os_t = std::env::temp_dir().join("weir-h3"))]
    certificate: PathBuf,
}

impl Certificate {
    /// Reads the certificate, or makes one; returns its fingerprint as well.
    pub(crate) fn identity(&self) -> Result<(Identity, Fingerprint), Failure> {
        let (certificate, key) = (
            self.certificate.join(CERTIFICATE),
            self.certificate.join(KEY),
        );
        if !certificate.exists() {
            let identity = Identity::self_signed([SERVER_NAME])?;
            let directory = &mut DirBuilder::new();
            directory
                .recursive(true)
                .mode(0o700)
                .create(&self.certificate)?;
            write_secret(&key, identity.private_key().secret_der())?;
            let der = identity.chain().first().ok_or("no certificate")?;
            std::fs::write(&certificate, der)?;
        }
        let identity = Identity::from_files(certificate, key)?;
        let fingerprint = identity.fingerprint();
        Ok((identity, fingerprint))
    }

    fn fingerprint(&self) -> Result<Fingerprint, Failure> {
        let certificate = std::fs::read(self.certificate.join(CERTIFICATE));
        let certificate = certificate
            .map_err(|error| format!("{error}: does the server run with this directory?"))?;
        Ok(Fingerprint::of(&certificate))
    }
}

fn write_secret(path: &Path, secret: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(secret)
}

/// Which server is asked.
#[derive(Args)]
pub(crate) struct Server {
    /// The server's address
    #[arg(long = "at", default_value = "127.0.0.1:4433")]
    address: std::net::SocketAddr,
    /// The fingerprint that the server prints, instead of the certificate in the directory
    #[arg(long)]
    pin: Option<Fingerprint>,
    #[command(flatten)]
    kept: Certificate,
}

impl Server {
    /// Connects to it.
    pub(crate) async fn connect(&self) -> Result<(Endpoint, Connection), Failure> {
        let pin = self.pin.map_or_else(|| self.kept.fingerprint(), Ok)?;
        let tls = ClientTls::pinned(pin).application_protocols([APPLICATION_PROTOCOL]);
        let endpoint = Endpoint::builder().client(tls.build()?).bind_any()?;
        let connection = endpoint.connect(self.address, SERVER_NAME)?.await?;
        Ok((endpoint, connection))
    }
}
