//! SED's controller and its agents as processes.
#[allow(missing_docs, clippy::all)]
mod v1 { tonic::include_proto!("weir.sed.v1"); }
