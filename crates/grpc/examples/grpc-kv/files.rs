//! The certificate that all servers have, and that clients pin.

use std::path::Path;

use weir_grpc::APPLICATION_PROTOCOL;
use weir_net::tls::{ClientCredentials, ClientTls, Fingerprint, Identity, ServerTls};

use super::Failure;

const CERTIFICATE: &str = "certificate.der";
const KEY: &str = "key.der";

/// The name in the certificate.
pub(crate) const SERVER_NAME: &str = "localhost";

/// Writes a certificate and its key to a directory, unless it has them.
pub(crate) fn prepare(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    if directory.join(CERTIFICATE).exists() {
        return Ok(());
    }
    let identity = Identity::self_signed([SERVER_NAME])?;
    std::fs::write(directory.join(KEY), identity.private_key().secret_der())?;
    let certificate = identity.chain().first().ok_or("no certificate")?;
    std::fs::write(directory.join(CERTIFICATE), certificate)?;
    Ok(())
}

pub(crate) fn server(directory: &Path) -> Result<ServerTls, Failure> {
    let identity = Identity::from_files(directory.join(CERTIFICATE), directory.join(KEY))?;
    Ok(ServerTls::new(identity))
}

pub(crate) fn client(directory: &Path) -> Result<ClientCredentials, Failure> {
    let certificate = std::fs::read(directory.join(CERTIFICATE))
        .map_err(|error| format!("{error}: does the cluster run with this directory?"))?;
    let tls = ClientTls::pinned(Fingerprint::of(&certificate));
    Ok(tls.application_protocols([APPLICATION_PROTOCOL]).build()?)
}
