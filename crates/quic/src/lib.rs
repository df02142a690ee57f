//! The DCQUIC engine: QUIC v1 as state machines, without clocks, sockets or tasks.
