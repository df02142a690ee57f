//! A path: an address pair and all that belongs to it.
