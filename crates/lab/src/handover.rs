//! Messages between director and hosts. Each is one line of JSON, with descriptors attached where
//! interfaces are handed over (`SCM_RIGHTS`, unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::Serialize;

/// The largest number of descriptors that the kernel carries with one message (`SCM_MAX_FD`).
pub(crate) const MOST: usize = 253;

/// Sends a message with the given descriptors.
pub(crate) fn send(
    stream: &UnixStream,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let mut rest = &line[..];
    while !rest.is_empty() {
        let slice = [IoSlice::new(rest)];
        let sent = rustix::net::sendmsg(stream, &slice, &mut ancillary, SendFlags::NOSIGNAL)?;
        rest = rest.get(sent..).unwrap_or_default();
        // The descriptors went with the first byte.
        ancillary.clear();
    }
    Ok(())
}

/// Receives a line and its descriptors. An empty line means that the peer has closed its end.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let (mut line, mut descriptors) = (Vec::new(), Vec::new());
    while !line.ends_with(b"\n") {
        let mut bytes = [0; 4096];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        if received.bytes == 0 {
            break;
        }
        line.extend_from_slice(bytes.get(..received.bytes).unwrap_or_default());
    }
    Ok((line, descriptors))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_line_and_its_descriptors_arrive_together() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&one, &"here", &[writer.as_fd()]).unwrap();
        drop(writer);
        let (line, descriptors) = receive(&other).unwrap();
        assert_eq!(line, b"\"here\"\n");
        let mut file = std::fs::File::from(descriptors.into_iter().next().unwrap());
        file.write_all(b"x").unwrap();
        drop(file);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }

    #[test]
    fn a_long_line_arrives_complete_and_end_of_file_is_empty() {
        let (one, other) = UnixStream::pair().unwrap();
        let long = "x".repeat(100_000);
        let sent = long.clone();
        let sender = std::thread::spawn(move || send(&one, &sent, &[]).unwrap());
        let (line, _) = receive(&other).unwrap();
        sender.join().unwrap();
        assert_eq!(serde_json::from_slice::<String>(&line).unwrap(), long);
        assert!(receive(&other).unwrap().0.is_empty());
    }
}
