//! The connections of a control group, redirected to `weir tunnel client`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use weir_enforce::redirect::{Listeners, Originals, Redirection, Target};
use weir_tunnel::{Destination, OriginalDestinations, Redirected};

use crate::failure::Failure;

/// Which connections are redirected.
#[derive(Debug, Args)]
pub(super) struct RedirectionArguments {
    /// Control group whose TCP connections to --redirect go through the tunnel by themselves
    #[arg(long, value_name = "CGROUP", requires = "redirect")]
    cgroup: Option<PathBuf>,

    /// Destinations that connections of --cgroup are redirected for (repeatable)
    #[arg(long, value_name = "NETWORK[:PORTS]", requires = "cgroup")]
    redirect: Vec<Target>,

    /// Destinations among those of --redirect that are reached directly (repeatable)
    #[arg(long, value_name = "NETWORK[:PORTS]", requires = "cgroup")]
    except: Vec<Target>,
}

/// Connections that are redirected, until this is dropped.
#[derive(Debug)]
pub(super) struct Attached(Redirection);

/// The table of the programs.
struct Table(Originals);

impl OriginalDestinations for Table {
    fn take(&self, source: SocketAddr) -> Option<SocketAddr> {
        self.0.take(source)
    }
}

impl RedirectionArguments {
    /// Returns whether connections are redirected.
    pub(super) fn is_wanted(&self) -> bool {
        self.cgroup.is_some()
    }

    /// Begins to redirect connections to listeners, whose backlog they wait in until the client accepts them.
    pub(super) fn attach(
        &self,
        via: &Destination,
    ) -> Result<Option<(Attached, Redirected)>, Failure> {
        let Some(cgroup) = &self.cgroup else {
            return Ok(None);
        };
        let ipv4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Failure::of)?;
        // Machines without IPv6 have none of its connections either.
        let ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok();
        let port = |listener: &TcpListener| listener.local_addr().ok().map(|local| local.port());
        let listeners = Listeners {
            ipv4: port(&ipv4),
            ipv6: ipv6.as_ref().and_then(port),
        };
        let except = self.except.iter().cloned().map(Target::left_alone);
        let redirect = self.redirect.iter().cloned().map(Target::redirected);
        let rules: Vec<_> = except.chain(redirect).collect();
        let attached = Redirection::attach(cgroup, listeners, &rules)
            .map_err(|error| Failure::option("cgroup", error))?;
        let redirected = Redirected {
            listeners: [Some(ipv4), ipv6].into_iter().flatten().collect(),
            destinations: Arc::new(Table(attached.originals())),
            via: via.clone(),
        };
        Ok(Some((Attached(attached), redirected)))
    }

    /// Returns the line that tells what is redirected.
    pub(super) fn announcement(&self) -> Option<String> {
        let cgroup = self.cgroup.as_ref()?;
        let targets: Vec<_> = self.redirect.iter().map(Target::to_string).collect();
        Some(format!(
            "connections of {} to {} are redirected\n",
            cgroup.display(),
            targets.join(", ")
        ))
    }
}

impl Attached {
    /// Redirects no connections any more.
    pub(super) fn detach(&mut self) {
        self.0.detach();
    }
}
