//! DCQUIC endpoints and streams on tokio.
