//! The kernel's view of a TCP connection: `TCP_INFO`.

use std::os::fd::{AsRawFd, OwnedFd};

use weir_units::{ByteSize, Duration};

use crate::path::{PathSample, Probe};

/// Offsets in `struct tcp_info` of `linux/tcp.h`, which only ever grows at its end. The structs of
/// libc end before `tcpi_delivered_ce`.
mod offset {
    pub(super) const SND_MSS: usize = 16;
    pub(super) const PMTU: usize = 60;
    pub(super) const RTT: usize = 68;
    pub(super) const RTTVAR: usize = 72;
    pub(super) const SND_CWND: usize = 80;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const DELIVERED_CE: usize = 196;
}

/// Longer than the struct is in any kernel so far.
const CAPACITY: usize = 512;

/// Reads `TCP_INFO` of a connection. Keeps a descriptor of its own, so that it can be asked after
/// the stream is gone.
pub(super) struct TcpProbe {
    socket: OwnedFd,
}

impl TcpProbe {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }
}

impl Probe for TcpProbe {
    fn sample(&self) -> Option<PathSample> {
        let mut buffer = [0_u8; CAPACITY];
        let mut length = CAPACITY as libc::socklen_t;
        // SAFETY: the descriptor is open as long as `self`; `buffer` is writable for `length`
        // bytes, and the kernel writes no more than that.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                buffer.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return None;
        }
        parse(buffer.get(..usize::try_from(length).ok()?)?)
    }
}

/// `None` where the kernel's struct ends before what every Linux since 2.6 has.
fn parse(info: &[u8]) -> Option<PathSample> {
    let mss = u64::from(word(info, offset::SND_MSS)?);
    Some(PathSample {
        retransmits: word(info, offset::TOTAL_RETRANS)?.into(),
        ce_marked: word(info, offset::DELIVERED_CE).map(u64::from),
        rtt: Duration::from_micros(word(info, offset::RTT)?.into()),
        rtt_variation: Duration::from_micros(word(info, offset::RTTVAR)?.into()),
        cwnd: ByteSize::from_bytes(mss * u64::from(word(info, offset::SND_CWND)?)),
        path_mtu: ByteSize::from_bytes(word(info, offset::PMTU)?.into()),
    })
}

fn word(info: &[u8], offset: usize) -> Option<u32> {
    let bytes = info.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_offsets_are_the_kernels() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let sample = TcpProbe::new(stream.into()).sample().unwrap();
        let mtu = sample.path_mtu.bytes();
        assert!((1280..=65_536).contains(&mtu), "{sample:?}");
        // The initial window of Linux is ten segments; here one may be as small as half an MTU.
        assert!(
            (4 * mtu..=10 * mtu).contains(&sample.cwnd.bytes()),
            "{sample:?}"
        );
        assert_eq!(sample.retransmits, 0);
        assert!(sample.rtt < Duration::from_secs(1));
    }

    #[test]
    fn an_older_kernels_struct_has_no_marks() {
        assert_eq!(parse(&[0; 196]).unwrap().ce_marked, None);
        assert_eq!(parse(&[0; 200]).unwrap().ce_marked, Some(0));
        assert_eq!(parse(&[0; 60]), None);
    }
}
