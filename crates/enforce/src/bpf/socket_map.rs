//! Maps with sockets as keys (`BPF_MAP_TYPE_SK_STORAGE`), by the bpf(2) system call.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

// From linux/bpf.h.
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_MAP_TYPE_SK_STORAGE: u32 = 24;

/// The value of a map.
///
/// # Safety
/// Any bytes are a valid value, and it has no padding.
pub(super) unsafe trait Plain: Default {}

/// A map from sockets to values.
#[derive(Debug)]
pub(super) struct SocketMap<V> {
    map: OwnedFd,
    values: PhantomData<fn(V) -> V>,
}

/// The part of `union bpf_attr` for an element of a map.
#[repr(C)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The part of `union bpf_attr` for a request of a description.
#[repr(C)]
struct InfoRequest {
    object: u32,
    length: u32,
    description: u64,
}

/// The beginning of `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapDescription {
    kind: u32,
    id: u32,
    key_size: u32,
    value_size: u32,
}

impl<V: Plain> SocketMap<V> {
    /// Takes a map's file descriptor, if its values have the size of `V`.
    pub(super) fn new(map: OwnedFd) -> io::Result<Self> {
        let description = describe(map.as_fd())?;
        let size = size_of::<V>();
        if description.kind != BPF_MAP_TYPE_SK_STORAGE || description.value_size as usize != size {
            let message = "the file descriptor is of another BPF map";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self {
            map,
            values: PhantomData,
        })
    }

    /// Returns the value of a socket, if it has one.
    pub(super) fn get(&self, socket: BorrowedFd<'_>) -> io::Result<Option<V>> {
        let mut value = V::default();
        let address = std::ptr::from_mut(&mut value) as u64;
        // SAFETY: the kernel writes a value, which `new` has checked to have the size of `V`, and for
        // which any bytes are valid.
        match unsafe { self.element(BPF_MAP_LOOKUP_ELEM, socket, address) } {
            Ok(()) => Ok(Some(value)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the value of a socket.
    pub(super) fn set(&self, socket: BorrowedFd<'_>, value: &V) -> io::Result<()> {
        let address = std::ptr::from_ref(value) as u64;
        // SAFETY: the kernel reads a value, which `new` has checked to have the size of `V`.
        unsafe { self.element(BPF_MAP_UPDATE_ELEM, socket, address) }
    }

    /// # Safety
    /// `value` is the address of a `V`, which the command may write if it is a look-up.
    unsafe fn element(
        &self,
        command: libc::c_int,
        socket: BorrowedFd<'_>,
        value: u64,
    ) -> io::Result<()> {
        let key: libc::c_int = socket.as_raw_fd();
        let attributes = MapElement {
            map: self.map.as_raw_fd() as u32,
            padding: 0,
            key: std::ptr::from_ref(&key) as u64,
            value,
            flags: 0,
        };
        // SAFETY: the command takes these attributes; the key lives as long as the call, and the
        // caller guarantees the value.
        unsafe { bpf(command, &attributes) }
    }
}

fn describe(map: BorrowedFd<'_>) -> io::Result<MapDescription> {
    let mut description = MapDescription::default();
    let question = InfoRequest {
        object: map.as_raw_fd() as u32,
        length: size_of::<MapDescription>() as u32,
        description: std::ptr::from_mut(&mut description) as u64,
    };
    // SAFETY: the command takes these attributes; the kernel writes at most `length` bytes, and any
    // bytes are a valid description.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &question) }?;
    Ok(description)
}

/// # Safety
/// `attributes` are the command's, and the addresses in them are valid for it.
unsafe fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<()> {
    let address = std::ptr::from_ref(attributes);
    // SAFETY: the size is that of the attributes; the caller guarantees the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, address, size_of::<A>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

impl<V> AsFd for SocketMap<V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl<V> From<SocketMap<V>> for OwnedFd {
    fn from(map: SocketMap<V>) -> Self {
        map.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    #[repr(C)]
    struct FourByteKey(u32);

    // SAFETY: a number.
    unsafe impl Plain for FourByteKey {}

    #[test]
    fn a_file_that_is_no_map_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(SocketMap::<FourByteKey>::new(file.into()).is_err());
    }
}
