//! Copies files to a directory of another machine, over DCQUIC or DCUDP: the library of `weir copy`.
//!
//! A copy that was interrupted goes on where it stopped, and a file appears under its name only when
//! it is complete and its SHA-256 is the sender's. `docs/copy.md` describes the use and the protocol.
//!
//! | module | content |
//! |---|---|
//! | [`protocol`] | messages and their order, without I/O |
//! | `path` | names that stay inside a directory |
//! | `store` | the directory of a server: partial files, locks, renaming |
//! | `source` | the files that a client copies |
//! | `receiver`, `sender` | one connection's server and client |
//! | `transport` | connections over DCQUIC and DCUDP |

mod error;
mod path;
pub mod protocol;
mod receiver;
mod sender;
mod source;
mod store;
mod transport;

pub use error::Error;
pub use path::{PathError, RelativePath};
pub use receiver::{Event, Server, ServerOptions};
pub use sender::{Client, ClientOptions, Outcome, Progress};
pub use source::{SourceFile, Sources, collect};
pub use transport::{ClientSecurity, ServerSecurity};

/// The default port.
pub const DEFAULT_PORT: u16 = 5203;

/// The SHA-256 of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256Digest(pub [u8; 32]);

impl std::fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
