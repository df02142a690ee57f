//! The kernel's TCP: what a scenario may ask of it, and its sockets.

mod options;
pub(super) mod socket;

pub use options::{
    NamespaceSetting, Unsupported, kernel_name, namespace_settings, unsupported,
    unsupported_parameters,
};
