//! TAP interfaces.

use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;

use super::interface::name_bytes;
use super::{PortError, write};

const DEVICE: &str = "/dev/net/tun";
const CAPABILITY: &str = "cap_net_admin";
/// The work that the kernel may leave to us for TCP: checksums and segmentation of super-packets, also
/// of those with CWR.
const TCP_OFFLOADS: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// The same for UDP; since Linux 6.2.
const UDP_OFFLOADS: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// An Ethernet interface whose other end is this value: it receives what the kernel sends by the
/// interface, and the kernel receives what it sends. The interface is removed with the last copy of the
/// file descriptor.
///
/// The descriptor can be sent to another process (SCM_RIGHTS) and out of the network namespace; the
/// interface stays in its namespace.
#[derive(Debug)]
pub struct Tap {
    device: OwnedFd,
}

impl Tap {
    /// Creates the interface `name` in the calling thread's network namespace, down and without address.
    ///
    /// # Errors
    /// No `/dev/net/tun`, no permission, a name that is in use or invalid.
    pub fn create(name: &str) -> Result<Self, PortError> {
        let name_bytes = name_bytes(name)?;
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DEVICE)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => PortError::NoTunDevice,
                _ => PortError::of("opening /dev/net/tun", CAPABILITY, error),
            })?;
        let tap = Self {
            device: device.into(),
        };
        tap.attach(name_bytes).map_err(|error| match error {
            error if error.raw_os_error() == Some(libc::EBUSY) => {
                PortError::NameTaken(name.to_owned())
            }
            error => PortError::of("making a TAP interface", CAPABILITY, error),
        })?;
        tap.offload()?;
        Ok(tap)
    }

    /// Reads the next frame that the kernel has sent, virtio-net header first. Returns the length of
    /// both; `None` if there is no frame now. Bytes beyond `buffer` are cut off: use a buffer of
    /// [`SuperFrame::LARGEST`](crate::offload::SuperFrame::LARGEST).
    ///
    /// # Errors
    /// The system's error: the interface is gone, for instance.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        read(self.device.as_fd(), buffer)
    }

    /// Writes a frame to the kernel, virtio-net header first, in pieces; returns `false` if it has no
    /// room for the frame now.
    ///
    /// # Errors
    /// The system's error: the interface is down, or the header does not fit the frame.
    pub fn send(&self, frame: &[IoSlice<'_>]) -> io::Result<bool> {
        write(self.device.as_fd(), frame)
    }

    fn attach(&self, name: [libc::c_char; libc::IFNAMSIZ]) -> io::Result<()> {
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let request = libc::ifreq {
            ifr_name: name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_flags: flags as libc::c_short,
            },
        };
        // SAFETY: TUNSETIFF reads and writes an `ifreq`, which lives until the call returns.
        let result = unsafe {
            libc::ioctl(
                self.device.as_raw_fd(),
                libc::TUNSETIFF,
                std::ptr::from_ref(&request),
            )
        };
        succeeded(result)
    }

    /// Requests all offloads that the kernel supports.
    fn offload(&self) -> Result<(), PortError> {
        let set = |offloads: libc::c_uint| {
            // SAFETY: TUNSETOFFLOAD takes a number and touches no memory of ours.
            let result = unsafe {
                libc::ioctl(
                    self.device.as_raw_fd(),
                    libc::TUNSETOFFLOAD,
                    libc::c_ulong::from(offloads),
                )
            };
            succeeded(result)
        };
        set(TCP_OFFLOADS | UDP_OFFLOADS)
            .or_else(|_| set(TCP_OFFLOADS))
            .map_err(|_| PortError::NoOffload("TAP interfaces"))
    }
}

/// Reads one frame; returns `None` if there is none.
fn read(port: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match rustix::io::read(port, &mut *buffer) {
            Ok(length) => return Ok(Some(length)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// The descriptor of a TAP interface that [`Tap::create`] made, perhaps in another process.
impl From<OwnedFd> for Tap {
    fn from(device: OwnedFd) -> Self {
        Self { device }
    }
}

impl From<Tap> for OwnedFd {
    fn from(tap: Tap) -> Self {
        tap.device
    }
}
