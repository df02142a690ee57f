"""Malformed requests."""

import http3
from expected import MALFORMED
from hostile_case import on_request
from hostile_frames import post

SOURCE = "RFC 9114, 4.3.1"
METHOD, SCHEME, PATH = (b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/bytes/10")
AUTHORITY = (b":authority", b"localhost")
RIGHT = [METHOD, SCHEME, AUTHORITY, PATH]


def malformed(name: str, fields: http3.Fields, source: str = SOURCE):
    return on_request(name, MALFORMED, source, lambda _: http3.headers(fields))


def body(name: str, length: bytes, size: int):
    """A request whose content-length is not its body's."""
    return on_request(
        name,
        MALFORMED,
        "RFC 9114, 4.1.2",
        lambda peer: post(peer, (b"content-length", length)) + http3.frame(http3.DATA, b"x" * size),
    )


CASES = (
    malformed("method_missing", [SCHEME, AUTHORITY, PATH]),
    malformed("scheme_missing", [METHOD, AUTHORITY, PATH]),
    malformed("path_missing", [METHOD, SCHEME, AUTHORITY]),
    malformed("path_empty", [METHOD, SCHEME, AUTHORITY, (b":path", b"")]),
    malformed("authority_missing", [METHOD, SCHEME, PATH]),
    malformed("authority_and_host_differ", [*RIGHT, (b"host", b"other.example")]),
    malformed("method_twice", [METHOD, *RIGHT]),
    malformed("path_twice", [*RIGHT, PATH]),
    malformed("pseudo_header_after_regular", [METHOD, SCHEME, (b"x-test", b"value"), AUTHORITY, PATH], "RFC 9114, 4.3"),
    malformed("pseudo_header_unknown", [*RIGHT, (b":unknown", b"value")], "RFC 9114, 4.3"),
    malformed("pseudo_header_of_response", [*RIGHT, (b":status", b"200")], "RFC 9114, 4.3"),
    malformed("name_uppercase", [*RIGHT, (b"X-Test", b"value")], "RFC 9114, 4.2"),
    malformed("name_with_space", [*RIGHT, (b"x test", b"value")], "RFC 9114, 10.3"),
    malformed("name_empty", [*RIGHT, (b"", b"value")], "RFC 9114, 10.3"),
    malformed("value_with_newline", [*RIGHT, (b"x-test", b"a\r\nb: c")], "RFC 9114, 10.3"),
    malformed("value_with_zero", [*RIGHT, (b"x-test", b"a\0b")], "RFC 9114, 10.3"),
    malformed("connection_header", [*RIGHT, (b"connection", b"close")], "RFC 9114, 4.2"),
    malformed("transfer_encoding_header", [*RIGHT, (b"transfer-encoding", b"chunked")], "RFC 9114, 4.2"),
    malformed("te_other_than_trailers", [*RIGHT, (b"te", b"gzip")], "RFC 9114, 4.2"),
    malformed("connect_with_path", [(b":method", b"CONNECT"), SCHEME, AUTHORITY, PATH], "RFC 9114, 4.4"),
    on_request(
        "pseudo_header_in_trailers",
        MALFORMED,
        "RFC 9114, 4.3",
        lambda peer: post(peer) + http3.frame(http3.DATA, b"body") + http3.headers([(b":method", b"GET")]),
    ),
    body("content_length_too_large", b"10", 5),
    body("content_length_too_small", b"5", 10),
    body("content_length_no_number", b"ten", 10),
)
