//! Two connections over a path, in virtual time.

mod congestion;
mod transfers;
mod world;
