//! The congestion controls and their registration.

use std::io;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::error::BpfError;
use super::loader::{self, LoadedProgram};
use super::parameters::{Algorithm, Parameters};
use super::socket::{Deadlines, Observations};

/// `TCP_CA_NAME_MAX` of net/tcp.h without the terminating zero.
const LONGEST_NAME: usize = 15;

/// DCTCP (RFC 8257).
#[derive(Debug)]
pub enum Dctcp {}

impl Dctcp {
    /// Registers DCTCP as `name` for the machine's TCP sockets.
    ///
    /// # Errors
    /// See [`BpfError`]: the name or a parameter is invalid, this build has no programs, the process may
    /// not load any, or the kernel does not support them.
    pub fn register(name: &str, parameters: &Parameters) -> Result<RegisteredAlgorithm, BpfError> {
        register(Algorithm::Dctcp, name, parameters)
    }
}

/// D2TCP (Vamanan et al., SIGCOMM 2012): DCTCP that backs off less when a deadline is near, and more
/// when it is far. [`RegisteredAlgorithm::deadlines`] sets the deadlines of sockets.
#[derive(Debug)]
pub enum D2tcp {}

impl D2tcp {
    /// Registers D2TCP as `name` for the machine's TCP sockets.
    ///
    /// # Errors
    /// As for [`Dctcp::register`].
    pub fn register(name: &str, parameters: &Parameters) -> Result<RegisteredAlgorithm, BpfError> {
        register(Algorithm::D2tcp, name, parameters)
    }
}

fn register(
    algorithm: Algorithm,
    name: &str,
    parameters: &Parameters,
) -> Result<RegisteredAlgorithm, BpfError> {
    check_name(name)?;
    let fixed = parameters.fixed()?;
    loader::check_permission()?;
    if kernel_offers(name)? {
        return Err(BpfError::NameTaken {
            name: name.to_owned(),
        });
    }
    let loaded = loader::load(algorithm, name, fixed)?;
    Ok(RegisteredAlgorithm {
        name: name.to_owned(),
        algorithm,
        loaded,
    })
}

fn check_name(name: &str) -> Result<(), BpfError> {
    // The characters that the kernel's `bpf_obj_name_cpy` accepts.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    if (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(BpfError::Name {
        name: name.to_owned(),
    })
}

/// A congestion control that the kernel offers until this is dropped or the process ends; nothing is
/// pinned. Sockets that use it then keep it until they close.
#[derive(Debug)]
pub struct RegisteredAlgorithm {
    name: String,
    algorithm: Algorithm,
    loaded: LoadedProgram,
}

impl RegisteredAlgorithm {
    /// The name by which sockets select it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns access to the estimates for a socket.
    ///
    /// # Errors
    /// [`BpfError::System`]: the process has no file descriptor left.
    pub fn observations(&self) -> Result<Observations, BpfError> {
        Observations::try_from(self.loaded.observations()?).map_err(handle_failed)
    }

    /// Returns access to sockets' deadlines for D2TCP; `None` for DCTCP, which has none.
    ///
    /// # Errors
    /// [`BpfError::System`]: the process has no file descriptor left.
    pub fn deadlines(&self) -> Result<Option<Deadlines>, BpfError> {
        Ok(match self.algorithm {
            Algorithm::Dctcp => None,
            Algorithm::D2tcp => {
                Some(Deadlines::try_from(self.loaded.deadlines()?).map_err(handle_failed)?)
            }
        })
    }
}

fn handle_failed(source: io::Error) -> BpfError {
    BpfError::System {
        doing: "taking a BPF map",
        source,
    }
}

/// Returns whether the kernel has a congestion control called `name`, also as a module that it loads
/// on request (which needs `CAP_NET_ADMIN`). If it has `dctcp`, ours is not needed.
///
/// # Errors
/// [`BpfError::System`]: no socket can be created here.
pub fn kernel_offers(name: &str) -> Result<bool, BpfError> {
    let failed = |source: Errno| BpfError::System {
        doing: "asking the kernel for a congestion control",
        source: io::Error::from(source),
    };
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).map_err(failed)?;
    match sockopt::set_tcp_congestion(&socket, name) {
        Ok(()) => Ok(true),
        // EPERM: it exists, but needs CAP_NET_ADMIN.
        Err(Errno::PERM) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(failed(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused() {
        let default = Parameters::default();
        let wrong = [
            Parameters { g: 0.0, ..default },
            Parameters { g: 1.5, ..default },
            Parameters {
                g: f64::NAN,
                ..default
            },
            Parameters {
                initial_alpha: -0.1,
                ..default
            },
            Parameters {
                min_window: 0,
                ..default
            },
        ];
        for parameters in wrong {
            let error = Dctcp::register("weir_test", &parameters).unwrap_err();
            assert!(matches!(error, BpfError::Parameter { .. }), "{error}");
        }
    }

    #[test]
    fn names_are_checked_first() {
        for name in ["", "sixteen_bytes_xx", "with-dash", "with space", "n\0l"] {
            let error = D2tcp::register(name, &Parameters::default()).unwrap_err();
            assert!(matches!(error, BpfError::Name { .. }), "{name:?}: {error}");
        }
        assert!(check_name("dctcp_4194304").is_ok());
        assert!(check_name("fifteen_bytes_x").is_ok());
    }

    #[test]
    fn the_kernel_offers_reno_but_no_unknown_algorithm() {
        assert!(kernel_offers("reno").unwrap());
        assert!(!kernel_offers("weir_no_such").unwrap());
    }

    #[cfg(not(bpf_programs))]
    #[test]
    fn a_build_without_programs_names_the_missing_package() {
        let error = Dctcp::register("weir_test", &Parameters::default()).unwrap_err();
        assert!(
            error.to_string().contains("apt-get install clang"),
            "{error}"
        );
    }
}
