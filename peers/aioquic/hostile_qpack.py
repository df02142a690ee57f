"""Errors in QPACK."""

import http3
from expected import TOO_MUCH, Expected, closed
from hostile_case import Case, on_request, right_request
from raw import Connection, Outcome

DECOMPRESSION = closed("QPACK_DECOMPRESSION_FAILED")
ENCODER_ERROR = closed("QPACK_ENCODER_STREAM_ERROR")
DECODER_ERROR = closed("QPACK_DECODER_STREAM_ERROR")
# RFC 9204, appendix A: the static table has 99 entries; 85 is a long content-security-policy.
BEYOND_STATIC = 99
LONG_ENTRY = 85
LONG_ENTRY_BYTES = len("content-security-policy") + len("script-src 'none'; object-src 'none'; base-uri 'none'") + 32
BOMB_REFERENCES = 60_000
# A table of so many bytes, with one entry of nearly all of them.
BOMB_TABLE = 4096


def broken(name: str, section: bytes, source: str, expected: Expected = DECOMPRESSION) -> Case:
    return on_request(name, expected, source, lambda _: http3.frame(http3.HEADERS, section))


async def required_insert_count(peer: Connection) -> Outcome:
    """A Required Insert Count that cannot be, whichever table the server allows."""
    peer.open_streams()
    capacity = (await peer.server_settings()).get(http3.QPACK_MAX_TABLE_CAPACITY, 0)
    count = 2 * (capacity // 32) + 1
    return await peer.outcome(peer.request(http3.frame(http3.HEADERS, http3.prefixed(count, 8) + b"\0"), end=True))


async def bomb(peer: Connection) -> Outcome:
    """Few bytes that stand for many: references to a long entry, in the dynamic table where the server allows one."""
    peer.open_streams()
    settings = await peer.server_settings()
    fields = b"".join(http3.literal(name, value) for name, value in peer.fields("GET", "/bytes/10"))
    capacity = settings.get(http3.QPACK_MAX_TABLE_CAPACITY, 0)
    if capacity >= BOMB_TABLE:
        value = b"x" * (BOMB_TABLE - 64)
        # Set Dynamic Table Capacity; Insert with Literal Name.
        peer.send(peer.encoder, http3.prefixed(BOMB_TABLE, 5, 0x20) + http3.prefixed(1, 5, 0x40) + b"x")
        peer.send(peer.encoder, http3.prefixed(len(value), 7) + value)
        # Required Insert Count 1, Base 1; then the entry with relative index 0.
        section = b"\x02\0" + fields + http3.prefixed(0, 6, 0x80) * BOMB_REFERENCES
        size = BOMB_REFERENCES * (len(value) + 1 + 32)
    else:
        section = http3.STATIC_ONLY + fields + http3.prefixed(LONG_ENTRY, 6, 0xC0) * BOMB_REFERENCES
        size = BOMB_REFERENCES * LONG_ENTRY_BYTES
    limit = settings.get(http3.MAX_FIELD_SECTION_SIZE, "unlimited")
    peer.note = f"{len(section)} bytes for {size}, limit {limit}"
    # It may take long.
    return await peer.outcome(peer.request(http3.frame(http3.HEADERS, section), end=True), 10)


def encoder(data: bytes):
    async def run(peer: Connection) -> Outcome:
        peer.open_streams()
        peer.send(peer.encoder, data)
        return await right_request(peer)

    return run


def decoder(data: bytes):
    async def run(peer: Connection) -> Outcome:
        peer.open_streams()
        peer.send(peer.decoder, data)
        return await right_request(peer)

    return run


CASES = (
    Case("qpack_required_insert_count", DECOMPRESSION, "RFC 9204, 4.5.1.1", required_insert_count),
    broken("qpack_static_index_beyond", http3.STATIC_ONLY + http3.prefixed(BEYOND_STATIC, 6, 0xC0), "RFC 9204, 3.1"),
    # Such a reference needs a Required Insert Count.
    broken("qpack_dynamic_reference", http3.STATIC_ONLY + http3.prefixed(0, 6, 0x80), "RFC 9204, 2.2.3"),
    broken("qpack_post_base_reference", http3.STATIC_ONLY + http3.prefixed(0, 4, 0x10), "RFC 9204, 2.2.3"),
    broken("qpack_negative_base", b"\0\x80", "RFC 9204, 4.5.1.2"),
    broken("qpack_huge_integer", http3.STATIC_ONLY + b"\xff" * 12 + b"\x7f", "RFC 9204, 4.1.1"),
    broken("qpack_string_beyond_section", http3.STATIC_ONLY + b"\x27\xff\xff\x03x", "RFC 9204, 2.2"),
    # The frame lacks a field, too.
    broken(
        "qpack_section_empty",
        b"",
        "RFC 9204, 4.5.1; RFC 9114, 7.1",
        closed("QPACK_DECOMPRESSION_FAILED", "H3_FRAME_ERROR"),
    ),
    # The padding of a Huffman code has at most 7 bits, and they are ones.
    broken("qpack_huffman_padding", http3.STATIC_ONLY + b"\x29\x00\x01x", "RFC 9204, 4.1.2; RFC 7541, 5.2"),
    Case("qpack_bomb", TOO_MUCH, "RFC 9114, 4.2.2 and 10.5.1", bomb),
    Case("qpack_capacity_beyond_limit", ENCODER_ERROR, "RFC 9204, 4.3.1", encoder(http3.prefixed(1 << 40, 5, 0x20))),
    # Insert with Name Reference, to an entry that is not there.
    Case("qpack_insert_of_nothing", ENCODER_ERROR, "RFC 9204, 2.2.3", encoder(b"\xff\xff\x7f\x01x")),
    Case("qpack_increment_zero", DECODER_ERROR, "RFC 9204, 4.4.3", decoder(b"\0")),
    Case("qpack_increment_beyond", DECODER_ERROR, "RFC 9204, 4.4.3", decoder(http3.prefixed(1000, 6))),
    Case("qpack_acknowledgment_of_nothing", DECODER_ERROR, "RFC 9204, 4.4.1", decoder(http3.prefixed(0, 7, 0x80))),
)
