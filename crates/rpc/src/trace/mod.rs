//! W3C Trace Context: identifiers that follow a request from server to server.

mod scope;
mod trace_context;
mod trace_state;

pub use scope::current;
pub(crate) use scope::{Scope, current_scope, within};
pub use trace_context::{SpanId, TraceContext, TraceId, TraceParentError};
pub use trace_state::{TraceState, TraceStateError};
