"""HTTP/3's frames and QPACK's field sections as bytes, right or wrong, and the numbers of RFC 9114 and RFC 9204."""

# Frame types.
DATA, HEADERS, CANCEL_PUSH, SETTINGS, PUSH_PROMISE, GOAWAY, MAX_PUSH_ID = 0, 1, 3, 4, 5, 7, 13
# Types that HTTP/2 has and HTTP/3 forbids.
HTTP2_FRAMES = (2, 6, 8, 9)
# Types that a receiver ignores.
RESERVED_TYPES = tuple(0x1F * number + 0x21 for number in (0, 1, 1000, 1 << 40))

# Types of unidirectional streams.
CONTROL, PUSH, ENCODER, DECODER = 0, 1, 2, 3

# Settings.
QPACK_MAX_TABLE_CAPACITY, MAX_FIELD_SECTION_SIZE, QPACK_BLOCKED_STREAMS = 1, 6, 7

CODES = {
    0x100: "H3_NO_ERROR",
    0x101: "H3_GENERAL_PROTOCOL_ERROR",
    0x102: "H3_INTERNAL_ERROR",
    0x103: "H3_STREAM_CREATION_ERROR",
    0x104: "H3_CLOSED_CRITICAL_STREAM",
    0x105: "H3_FRAME_UNEXPECTED",
    0x106: "H3_FRAME_ERROR",
    0x107: "H3_EXCESSIVE_LOAD",
    0x108: "H3_ID_ERROR",
    0x109: "H3_SETTINGS_ERROR",
    0x10A: "H3_MISSING_SETTINGS",
    0x10B: "H3_REQUEST_REJECTED",
    0x10C: "H3_REQUEST_CANCELLED",
    0x10D: "H3_REQUEST_INCOMPLETE",
    0x10E: "H3_MESSAGE_ERROR",
    0x10F: "H3_CONNECT_ERROR",
    0x110: "H3_VERSION_FALLBACK",
    0x200: "QPACK_DECOMPRESSION_FAILED",
    0x201: "QPACK_ENCODER_STREAM_ERROR",
    0x202: "QPACK_DECODER_STREAM_ERROR",
}
NUMBERS = {name: code for code, name in CODES.items()}
REQUEST_CANCELLED = NUMBERS["H3_REQUEST_CANCELLED"]

Fields = list[tuple[bytes, bytes]]


def integer(value: int) -> bytes:
    """A variable-length integer (RFC 9000, section 16)."""
    for length, mark in ((1, 0), (2, 1), (4, 2), (8, 3)):
        if value < 1 << (8 * length - 2):
            return (value | mark << (8 * length - 2)).to_bytes(length, "big")
    raise ValueError(value)


def pull_integer(data: bytes) -> tuple[int, bytes] | None:
    """An integer and the bytes after it, or None where bytes are missing."""
    if not data or len(data) < (length := 1 << (data[0] >> 6)):
        return None
    return int.from_bytes(data[:length], "big") & ((1 << (8 * length - 2)) - 1), data[length:]


def pull_frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    """A frame's type, its payload and the bytes after it, or None where bytes are missing."""
    if (kind := pull_integer(data)) is None or (length := pull_integer(kind[1])) is None:
        return None
    size, rest = length
    return (kind[0], rest[:size], rest[size:]) if len(rest) >= size else None


def frame(kind: int, payload: bytes = b"") -> bytes:
    return integer(kind) + integer(len(payload)) + payload


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(SETTINGS, b"".join(integer(name) + integer(value) for name, value in pairs))


def prefixed(value: int, bits: int, high: int = 0) -> bytes:
    """QPACK's integer in the low `bits` of a byte and the bytes after it (RFC 9204, section 4.1.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([high | value])
    out = [high | most]
    value -= most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


# Required Insert Count 0 and Base 0.
STATIC_ONLY = b"\0\0"


def literal(name: bytes, value: bytes) -> bytes:
    """A field line with a literal name."""
    return prefixed(len(name), 3, 0x20) + name + prefixed(len(value), 7) + value


def section(fields: Fields) -> bytes:
    return STATIC_ONLY + b"".join(literal(name, value) for name, value in fields)


def headers(fields: Fields) -> bytes:
    return frame(HEADERS, section(fields))


def pattern(start: int, size: int) -> bytes:
    """A part of the body that /bytes returns."""
    first = start % 251
    return (bytes(range(251)) * ((first + size) // 251 + 1))[first : first + size]
