//! Metrics for Prometheus: a registry that the parts of a process share, and an HTTP server that
//! exposes it at `/metrics`.
//!
//! Each part registers its metrics once ([`Registry::shared`]), whatever number of endpoints, flow
//! tables or controllers it has; labels distinguish them. Code increments its own counters; values
//! that must be polled are updated before a scrape ([`Registry::before_scrape`]). Values in a
//! structure are declared as a [`Table`], with a [`Row`] each, and those of a list of structures as a
//! [`SeriesTable`] with labels. Scrapers get OpenMetrics or Prometheus' own format, whichever they
//! prefer ([`TextFormat`]).
//!
//! ```no_run
//! use weir_metrics::prometheus::counter::Counter;
//! use weir_metrics::{Exporter, Registry};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! #[derive(Clone)]
//! struct Mine {
//!     requests: Counter,
//! }
//!
//! let registry = Registry::new();
//! let mine = registry.shared(|registry| {
//!     let requests = Counter::default();
//!     registry.register("mine_requests", "Requests answered", &[], requests.clone());
//!     Mine { requests }
//! });
//! mine.requests.inc();
//! let exporter = Exporter::bind(weir_metrics::parse_address("9100")?, registry).await?;
//! println!("http://{}/metrics", exporter.local_address());
//! exporter.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod address;
mod description;
mod exporter;
mod registration;
mod registry;
mod series;
mod table;
mod text_format;
mod timestamp;

pub use address::{AddressError, parse_address};
pub use description::Description;
pub use exporter::{Exporter, ExporterError};
pub use registration::Registration;
pub use registry::Registry;
pub use series::{HistogramValue, SeriesRow, SeriesTable, SeriesValue};
pub use table::{Kind, Row, Table};
pub use text_format::TextFormat;
pub use timestamp::Timestamp;

/// The library of the metric types.
pub mod prometheus {
    pub use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
    pub use prometheus_client::metrics::{counter, family, gauge, histogram};
    pub use prometheus_client::registry::Unit;
}
