//! Request/response and bulk measurements over any transport.
