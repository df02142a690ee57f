//! Streams: their states, send and reassembly buffers, flow control and priorities.
