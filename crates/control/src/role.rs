//! Roles, by the names in certificates: which peer may send which requests.

use std::fmt;
use std::net::IpAddr;

use rustls::pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// The role of a certificate's holder, as a DNS name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// `controller.weir`: serves agents, applications and operators.
    Controller,
    /// `NAME.switch.weir`: reports the events of that switch, and obeys orders.
    Switch(String),
    /// `application.weir`: registers its own flows, those of the address it connects from and of the
    /// addresses in its certificate.
    Application,
    /// `operator.weir`: reads the status.
    Operator,
    /// `NAME.host.weir`: puts versions of the policy in force on that host.
    Host(String),
    /// `NAME.publisher.weir`: pushes versions of the policy, under that name.
    Publisher(String),
}

/// What follows the name of a publisher.
const PUBLISHER: &str = ".publisher.weir";

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller => formatter.write_str("controller.weir"),
            Self::Switch(name) => write!(formatter, "{name}.switch.weir"),
            Self::Application => formatter.write_str("application.weir"),
            Self::Operator => formatter.write_str("operator.weir"),
            Self::Host(name) => write!(formatter, "{name}.host.weir"),
            Self::Publisher(name) => write!(formatter, "{name}{PUBLISHER}"),
        }
    }
}

impl Role {
    /// Whether a certificate, whose signatures have been verified, has this role.
    pub(crate) fn is_held(&self, certificate: &CertificateDer<'_>) -> bool {
        is_valid_for(certificate, ServerName::try_from(self.to_string()).ok())
    }

    /// Returns the name of the publisher whose certificate, with verified signatures, this is.
    pub(crate) fn publisher_of(certificate: &CertificateDer<'_>) -> Option<String> {
        let certificate = EndEntityCert::try_from(certificate).ok()?;
        let mut names = certificate.valid_dns_names();
        let name = names.find_map(|name| name.strip_suffix(PUBLISHER).map(str::to_owned))?;
        // A wildcard is nobody's name.
        (!name.is_empty() && !name.contains('*')).then_some(name)
    }
}

/// Whether a certificate contains this address.
pub(crate) fn has_address(certificate: &CertificateDer<'_>, address: IpAddr) -> bool {
    is_valid_for(certificate, Some(ServerName::from(address)))
}

fn is_valid_for(certificate: &CertificateDer<'_>, name: Option<ServerName<'_>>) -> bool {
    let (Some(name), Ok(certificate)) = (name, EndEntityCert::try_from(certificate)) else {
        return false;
    };
    certificate.verify_is_valid_for_subject_name(&name).is_ok()
}
