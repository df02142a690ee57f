//! What a handler's calls inherit: the trace and the deadline of the call that it handles.

use std::future::Future;

use tokio::time::Instant;

use super::TraceContext;

tokio::task_local! {
    static SCOPE: Scope;
}

/// The trace and the deadline of the call that a handler handles.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) trace: TraceContext,
    pub(crate) deadline: Option<Instant>,
}

/// Returns the trace context of the call that this task handles.
///
/// Tasks that a handler spawns do not have it: [`Context::within`](crate::Context::within) gives it
/// to them.
pub fn current() -> Option<TraceContext> {
    SCOPE.try_with(|scope| scope.trace.clone()).ok()
}

pub(crate) fn current_scope() -> Option<Scope> {
    SCOPE.try_with(Scope::clone).ok()
}

/// Runs a future within a scope.
pub(crate) fn within<F: Future>(scope: Scope, future: F) -> impl Future<Output = F::Output> {
    SCOPE.scope(scope, future)
}
