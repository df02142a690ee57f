//! RFC 9001, appendix A.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn destination() -> ConnectionId {
    ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
}

/// The frames of the client's Initial packet, without padding.
const CLIENT_INITIAL: &str = concat!(
    "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868",
    "04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578",
    "616d706c652e636f6dff01000100000a00080006001d00170018001000070005",
    "04616c706e000500050100000000003300260024001d00209370b2c9caa47fba",
    "baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400",
    "0d0010000e0403050306030203080408050806002d00020101001c0002400100",
    "3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000",
    "75300901100f088394c8f03e51570806048000ffff",
);

/// Protects a packet as its sender and removes the protection as its receiver.
fn protect(side: Side, header: &str, payload: &[u8]) -> Vec<u8> {
    let (client, server) = World::new().peers();
    let [sender, receiver]: [&dyn Provider; 2] = match side {
        Side::Client => [&*client, &*server],
        Side::Server => [&*server, &*client],
    };
    let ours = sender.initial_keys(Version::V1, &destination(), side).local;
    let theirs = receiver
        .initial_keys(Version::V1, &destination(), side.other())
        .remote;
    let header = hex(header);
    let number_length = usize::from(header[0] & 0b11) + 1;
    let number_offset = header.len() - number_length;
    let number = header[number_offset..]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    let mut packet = [&header, payload, &[0; 16]].concat();
    ours.packet.seal(number, header.len(), &mut packet);
    ours.header.protect(number_offset, &mut packet);

    let mut opened = packet.clone();
    let length = theirs.header.unprotect(number_offset, &mut opened);
    assert_eq!(length, Some(number_length));
    let (opened_header, sealed) = opened.split_at_mut(header.len());
    assert_eq!(opened_header, header);
    let length = theirs.packet.open(number, opened_header, sealed).unwrap();
    assert_eq!(&sealed[..length], payload);
    packet
}

#[test]
fn a_2_client_initial() {
    let mut payload = hex(CLIENT_INITIAL);
    payload.resize(1162, 0);
    let packet = protect(
        Side::Client,
        "c300000001088394c8f03e5157080000449e00000002",
        &payload,
    );
    assert_eq!(packet.len(), 1200);
    let begin = hex("c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11");
    assert_eq!(packet[..begin.len()], begin);
    let tag = hex("e221af44860018ab0856972e194cd934");
    assert_eq!(packet[1200 - tag.len()..], tag);
}

#[test]
fn the_client_hello_of_rfc_9001_a_2_offers_its_parameters() {
    let payload = hex(CLIENT_INITIAL);
    // After the headers of the CRYPTO frame and of the message.
    let offer = client_hello::offer(&payload[8..]);
    let parameters = &payload[payload.len() - 0x32..];
    assert_eq!((offer.parameters, offer.early_data), (parameters, false));
}

#[test]
fn a_3_server_initial() {
    let payload = hex(concat!(
        "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739",
        "88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94",
        "0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00",
        "020304",
    ));
    let packet = protect(
        Side::Server,
        "c1000000010008f067a5502a4262b50040750001",
        &payload,
    );
    let expected = hex(concat!(
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a",
        "5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3",
        "dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84",
        "022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4",
        "2158407dd074ee",
    ));
    assert_eq!(packet, expected);
}

#[test]
fn a_4_retry() {
    let packet = hex("ff000000010008f067a5502a4262b5746f6b656e");
    let tag = hex("04a265ba2eff4d829058fb3f0f2496ba");
    check_retry(Version::V1, &packet, &tag);
}

fn check_retry(version: Version, packet: &[u8], tag: &[u8]) {
    let (client, server) = World::new().peers();
    for provider in [&*client as &dyn Provider, &*server] {
        let computed = provider.retry_tag(version, &destination(), packet);
        assert_eq!(computed[..], *tag);
    }
}

/// RFC 9369, appendix A.4.
#[test]
fn a_4_retry_of_version_2() {
    let packet = hex("cf6b3343cf0008f067a5502a4262b5746f6b656e");
    let tag = hex("c8646ce8bfe33952d955543665dcc7b6");
    check_retry(Version::V2, &packet, &tag);
}

/// A corrupted packet does not open, nor does one for another connection.
#[test]
fn initial_packets_are_authenticated() {
    let (client, server) = World::new().peers();
    let other = ConnectionId::new(&[1; 8]).unwrap();
    let ours = client
        .initial_keys(Version::V1, &destination(), Side::Client)
        .local;
    let theirs = server
        .initial_keys(Version::V1, &other, Side::Server)
        .remote;
    assert!(!opens(&*ours.packet, &*theirs.packet));
    assert!(theirs.packet.open(0, &[], &mut [0; 3]).is_err());
}
