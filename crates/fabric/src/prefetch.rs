//! Fetching into the processor's cache what an event will need, while an earlier one is handled. A network
//! of thousands of hosts does not fit the inner caches.

/// The size of a cache line.
const LINE: usize = 64;

/// Has the processor fetch a value into its cache, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    let bytes = size_of::<T>();
    let first = std::ptr::from_ref(value).cast::<u8>();
    let mut offset = 0;
    while offset < bytes {
        prefetch_line(first.wrapping_add(offset));
        offset += LINE;
    }
    // It need not begin with a cache line, except for a word.
    if bytes > size_of::<u64>() {
        prefetch_line(first.wrapping_add(bytes - 1));
    }
}

/// Has the processor fetch the cache line at an address.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn prefetch_line(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads and writes nothing that a program can see, and faults at no address. Every
    // x86-64 processor has the instruction.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

/// Has the processor fetch the cache line at an address.
#[inline(always)]
#[cfg(target_arch = "aarch64")]
pub fn prefetch_line(address: *const u8) {
    // SAFETY: a prefetch reads and writes nothing that a program can see, and faults at no address.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
}

/// Does nothing on this processor.
#[inline(always)]
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn prefetch_line(_: *const u8) {}
