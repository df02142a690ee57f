//! Random bytes from a buffer: a handshake asks five times for some bytes, and each time would cost
//! a system call.

use std::cell::RefCell;

use rustls::crypto::{GetRandomFailed, SecureRandom, aws_lc_rs};
use zeroize::Zeroize;

/// The bytes that are fetched at once.
const SIZE: usize = 1024;

thread_local! {
    static BUFFER: RefCell<Buffer> = const { RefCell::new(Buffer::EMPTY) };
}

/// The random bytes of aws-lc-rs, fetched in blocks for each thread. Bytes that were handed out are
/// erased. A forked process does not use its parent's bytes.
#[derive(Debug)]
pub(super) struct BufferedRandom;

impl SecureRandom for BufferedRandom {
    fn fill(&self, output: &mut [u8]) -> Result<(), GetRandomFailed> {
        // The thread may be ending, with its buffer gone.
        BUFFER
            .try_with(|buffer| match buffer.try_borrow_mut() {
                Ok(mut buffer) => buffer.take(output),
                Err(_) => fetch(output),
            })
            .unwrap_or_else(|_| fetch(output))
    }
}

fn fetch(output: &mut [u8]) -> Result<(), GetRandomFailed> {
    aws_lc_rs::default_provider().secure_random.fill(output)
}

struct Buffer {
    /// The unused bytes are at the end.
    bytes: [u8; SIZE],
    left: usize,
    /// The process that fetched them.
    process: u32,
}

impl Buffer {
    const EMPTY: Self = Self {
        bytes: [0; SIZE],
        left: 0,
        process: 0,
    };

    fn take(&mut self, output: &mut [u8]) -> Result<(), GetRandomFailed> {
        if output.len() > SIZE {
            return fetch(output);
        }
        let process = std::process::id();
        if self.left < output.len() || self.process != process {
            self.left = 0;
            fetch(&mut self.bytes)?;
            self.left = SIZE;
            self.process = process;
        }
        let start = SIZE - self.left;
        let taken = &mut self.bytes[start..start + output.len()];
        output.copy_from_slice(taken);
        taken.zeroize();
        self.left -= output.len();
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_byte_is_handed_out_twice() {
        let mut seen = BTreeSet::new();
        for length in (8..200).chain([SIZE, SIZE + 1]) {
            let mut bytes = vec![0; length];
            BufferedRandom.fill(&mut bytes).unwrap();
            for chunk in bytes.chunks_exact(8) {
                assert!(seen.insert(chunk.to_vec()), "64 bits repeat");
            }
        }
    }

    #[test]
    fn used_bytes_are_erased_and_those_of_another_process_not_used() {
        let mut buffer = Buffer::EMPTY;
        let mut output = [0; 32];
        buffer.take(&mut output).unwrap();
        assert_eq!(buffer.bytes[..32], [0; 32]);
        let unused = buffer.bytes[32..64].to_vec();
        buffer.process ^= 1;
        buffer.take(&mut output).unwrap();
        assert_ne!(output[..], unused[..]);
    }
}
