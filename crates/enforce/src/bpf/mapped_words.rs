//! Memory that programs and this process share: an array map, mapped.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The words of an array map, shared by the kernel and this process.
#[derive(Debug)]
pub(crate) struct MappedWords {
    memory: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory belongs to this value alone within the process, and its words are atomic.
unsafe impl Send for MappedWords {}

impl MappedWords {
    /// Maps the first `words` words of an array map's values.
    pub(crate) fn map(map: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        // SAFETY: a new mapping of a file, at an address that the kernel chooses.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                words * size_of::<u64>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, words })
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this many words, aligned to a page, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.words) }
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` has made; no reference to it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}
