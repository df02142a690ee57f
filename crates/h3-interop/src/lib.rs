//! HTTP/3 on DCQUIC with the programs in `peers/`: quic-go's and aioquic's servers and clients, and a
//! client that breaks rules. The tests are in `tests/peers`; `docs/http3-interop.md` has the results.

mod certificate;
mod hostile;
mod paths;
mod program;
mod requests;
mod server;
mod world;

pub use certificate::CertificateFiles;
pub use hostile::{HostileResult, hostile_cases, hostile_results};
pub use program::{Failed, Program, client_cases, run_client};
pub use requests::{Requester, RequesterKind, run_case};
pub use server::ForeignServer;
pub use world::{SERVER_NAME, WeirServer, client_endpoint};
