//! Servers that break the rules of HTTP/3, byte by byte, or are merely unusual.

use bytes::Bytes;
use futures_util::future::join;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use weir_h3::{APPLICATION_PROTOCOL, Client, Error, ErrorCode};
use weir_net::tls::{Identity, ServerTls};
use weir_net::{Connection, Endpoint, Executed, RecvStream, SendStream};

use crate::support::{client_endpoint, fetch, get, loopback, read, request, run};

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const PUSH_PROMISE: u8 = 0x5;
const GOAWAY: u8 = 0x7;

/// Field sections: `:status: 200`, and `content-length: 5` or trailers behind it (RFC 9204, appendix A).
const OK: &[u8] = b"\0\0\xd9";
const OK_WITH_LENGTH: &[u8] = b"\0\0\xd9\x54\x015";
const TRAILERS: &[u8] = b"\0\0\x21x\x01y";

/// A connection between a server that does what the test says and a client.
struct Pair {
    server: Connection,
    control: SendStream,
    client: Client,
    _endpoints: [Endpoint; 2],
}

impl Pair {
    async fn new() -> Self {
        let identity = Identity::self_signed(["localhost"]).unwrap();
        let client_endpoint = client_endpoint(identity.fingerprint());
        let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
        let server_endpoint = Endpoint::builder()
            .server(tls.build().unwrap())
            .bind(loopback())
            .unwrap();
        let address = server_endpoint.local_address();
        let connecting = client_endpoint.connect(address, "localhost").unwrap();
        let accepting = async { server_endpoint.accept().await.unwrap().await.unwrap() };
        let (connected, server) = join(connecting, accepting).await;
        let client = Client::new(connected.unwrap()).await.unwrap();
        let mut control = server.open_uni().await.unwrap();
        control.write_all(b"\0\x04\0").await.unwrap();
        control.flush();
        Self {
            server,
            control,
            client,
            _endpoints: [server_endpoint, client_endpoint],
        }
    }

    /// Sends bytes on the control stream.
    async fn tell(&mut self, bytes: &[u8]) {
        self.control.write_all(bytes).await.unwrap();
        self.control.flush();
    }

    /// Accepts a request, and responds with these bytes.
    async fn respond(&self, bytes: &[u8]) -> (SendStream, RecvStream) {
        let (mut send, recv) = self.server.accept_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        send.flush();
        (send, recv)
    }

    /// A request that gets these bytes, and an end.
    async fn fetch(&self, bytes: &[u8]) -> Result<Bytes, Error> {
        let respond = async {
            let (mut send, recv) = self.respond(bytes).await;
            // The client may have stopped it.
            let _ = send.finish();
            recv
        };
        join(fetch(&self.client, get("/")), respond).await.0
    }

    /// Checks that the connection goes on.
    async fn goes_on(&self) {
        let answer = [frame(HEADERS, OK), frame(DATA, b"hello")].concat();
        assert_eq!(self.fetch(&answer).await.unwrap(), "hello");
    }

    /// Checks with which code the client closes the connection.
    async fn is_closed_with(&self, code: ErrorCode) {
        let error = self.server.closed().await;
        assert_eq!(error.peer_code().map(ErrorCode), Some(code), "{error}");
    }
}

fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap() | 0x8000_0000;
    [&[frame_type], &length.to_be_bytes()[..], payload].concat()
}

const FRAME_UNEXPECTED: ErrorCode = ErrorCode(0x105);
const FRAME_ERROR: ErrorCode = ErrorCode(0x106);
const ID_ERROR: ErrorCode = ErrorCode(0x108);

#[test]
fn a_response_counts_whatever_follows_it() {
    run(async {
        let pair = Pair::new().await;
        let answer = [frame(HEADERS, OK_WITH_LENGTH), frame(DATA, b"hello")].concat();
        // The server does not want the rest of a body that never ends.
        let endless = StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<Bytes>, std::io::Error>,
        >());
        let upload = request(Method::POST, "/", "").map(|_| endless);
        let respond = async {
            let (mut send, mut recv) = pair.respond(&answer).await;
            send.finish().unwrap();
            recv.stop(0x100);
        };
        let (response, ()) = join(pair.client.send(upload), respond).await;
        assert_eq!(read(response.unwrap()).await.unwrap().0, "hello");
        // A reset after the end, which has arrived by then, changes nothing.
        let respond = async {
            let (mut send, recv) = pair.respond(&answer).await;
            send.finish().unwrap();
            (send, recv)
        };
        let (response, (mut send, _recv)) = join(pair.client.send(get("/")), respond).await;
        let mut body = response.unwrap().into_body();
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.frame().await.is_none());
        let _ = send.reset(0x102);
        assert_eq!(data, "hello");
        pair.goes_on().await;
    });
}

#[test]
fn a_response_that_is_reset_is_not_complete() {
    run(async {
        let pair = Pair::new().await;
        let begin = [frame(HEADERS, OK), frame(DATA, b"hello")].concat();
        let respond = async { pair.respond(&begin).await };
        let (response, (mut send, _recv)) = join(pair.client.send(get("/")), respond).await;
        let mut body = response.unwrap().into_body();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "hello"
        );
        send.reset(0x102).unwrap();
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INTERNAL_ERROR), "{error}");
        pair.goes_on().await;
    });
}

#[test]
fn an_end_without_a_response_fails_its_request_only() {
    run(async {
        let pair = Pair::new().await;
        for bytes in [
            Vec::new(),
            frame(0x21, b"grease"),
            frame(HEADERS, b"\0\0\xd8"),
        ] {
            let error = pair.fetch(&bytes).await.unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{error}");
            assert_eq!(error.executed(), Executed::Maybe);
        }
        pair.goes_on().await;
    });
}

#[test]
fn a_server_opens_no_bidirectional_streams() {
    run(async {
        let pair = Pair::new().await;
        let (mut send, _recv) = pair.server.open_bi().await.unwrap();
        send.write_all(&frame(HEADERS, OK)).await.unwrap();
        send.flush();
        pair.is_closed_with(ErrorCode(0x103)).await;
    });
}

#[test]
fn pushes_are_not_allowed() {
    run(async {
        let pair = Pair::new().await;
        let promise = [frame(PUSH_PROMISE, b"\0\0\0"), frame(HEADERS, OK)].concat();
        assert!(pair.fetch(&promise).await.is_err());
        pair.is_closed_with(ID_ERROR).await;

        let pair = Pair::new().await;
        let mut push = pair.server.open_uni().await.unwrap();
        push.write_all(b"\x01\0").await.unwrap();
        push.flush();
        pair.is_closed_with(ID_ERROR).await;
    });
}

#[test]
fn wrong_identifiers_in_goaway_end_the_connection() {
    run(async {
        for go_away in [
            frame(GOAWAY, &[3]),
            [frame(GOAWAY, &[4]), frame(GOAWAY, &[8])].concat(),
        ] {
            let mut pair = Pair::new().await;
            pair.tell(&go_away).await;
            pair.is_closed_with(ID_ERROR).await;
        }
        let mut pair = Pair::new().await;
        pair.tell(&frame(GOAWAY, b"\x04garbage")).await;
        pair.is_closed_with(FRAME_ERROR).await;
    });
}

#[test]
fn what_a_goaway_leaves_out_fails_at_once() {
    run(async {
        let mut pair = Pair::new().await;
        let first = tokio::spawn({
            let client = pair.client.clone();
            async move { fetch(&client, get("/first")).await }
        });
        let (mut send, _recv) = pair.respond(&[]).await;
        let second = tokio::spawn({
            let client = pair.client.clone();
            async move { fetch(&client, get("/second")).await }
        });
        let _second = pair.respond(&[]).await;
        // The server says nothing of the second request.
        pair.tell(&frame(GOAWAY, &[4])).await;
        let error = second.await.unwrap().unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error}");
        let error = pair.client.send(get("/third")).await.unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error}");
        // The first one goes on.
        let answer = [frame(HEADERS, OK), frame(DATA, b"hello")].concat();
        send.write_all(&answer).await.unwrap();
        send.finish().unwrap();
        assert_eq!(first.await.unwrap().unwrap(), "hello");
    });
}

#[test]
fn a_second_goaway_may_leave_out_more() {
    run(async {
        let mut pair = Pair::new().await;
        let request = tokio::spawn({
            let client = pair.client.clone();
            async move { fetch(&client, get("/")).await }
        });
        let _request = pair.respond(&[]).await;
        pair.tell(&frame(GOAWAY, &[4])).await;
        pair.client.draining().await;
        pair.tell(&frame(GOAWAY, &[0])).await;
        let error = request.await.unwrap().unwrap_err();
        assert_eq!(error.executed(), Executed::No, "{error}");
    });
}

#[test]
fn a_response_header_that_is_too_large_is_refused() {
    run(async {
        let pair = Pair::new().await;
        // A literal field with the name "x" and 70,000 bytes.
        let field = [b"\x21x\x7f\xf1\xa1\x04", &[b'y'; 70_000][..]].concat();
        let large = frame(HEADERS, &[OK, &field].concat());
        let error = pair.fetch(&large).await.unwrap_err();
        let is_too_large = matches!(error, Error::HeaderTooLarge { limit: 65_536, .. });
        assert!(is_too_large, "{error}");
        let larger = [&[HEADERS][..], &0xbfff_ffff_u32.to_be_bytes()].concat();
        let (response, (mut send, _recv)) =
            join(pair.client.send(get("/")), pair.respond(&larger)).await;
        let error = response.unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{error}");
        assert_eq!(send.stopped().await, Ok(Some(ErrorCode::EXCESSIVE_LOAD.0)));
        pair.goes_on().await;
    });
}

#[test]
fn frames_out_of_order_end_the_connection() {
    run(async {
        for wrong in [
            [
                frame(HEADERS, OK),
                frame(HEADERS, TRAILERS),
                frame(DATA, b"x"),
            ]
            .concat(),
            [frame(DATA, b"x"), frame(HEADERS, OK)].concat(),
            [frame(HEADERS, OK), frame(GOAWAY, &[0])].concat(),
        ] {
            let pair = Pair::new().await;
            assert!(pair.fetch(&wrong).await.is_err());
            pair.is_closed_with(FRAME_UNEXPECTED).await;
        }
        let pair = Pair::new().await;
        let cut = [frame(HEADERS, OK), vec![DATA, 10, b'x']].concat();
        assert!(pair.fetch(&cut).await.is_err());
        pair.is_closed_with(FRAME_ERROR).await;
    });
}

#[test]
fn interim_responses_are_passed_over() {
    run(async {
        let pair = Pair::new().await;
        // 103 and 100 of the static table, 102 as a literal, 104 in Huffman code.
        let answer = [
            frame(HEADERS, b"\0\0\xd8\x21x\x01y"),
            frame(HEADERS, b"\0\0\xff\0"),
            frame(HEADERS, b"\0\0\x5f\x09\x03102"),
            frame(HEADERS, b"\0\0\x5f\x09\x82\x08\x1a"),
            frame(HEADERS, OK),
            frame(DATA, b"hello"),
            frame(HEADERS, TRAILERS),
        ]
        .concat();
        let respond = async {
            let (mut send, recv) = pair.server.accept_bi().await.unwrap();
            for piece in answer.chunks(3) {
                send.write_all(piece).await.unwrap();
                send.flush();
                tokio::task::yield_now().await;
            }
            send.finish().unwrap();
            recv
        };
        let (response, _recv) = join(pair.client.send(get("/")), respond).await;
        let response = response.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let (body, trailers) = read(response).await.unwrap();
        assert_eq!(body, "hello");
        assert_eq!(trailers.unwrap()["x"], "y");
        pair.goes_on().await;
    });
}

#[test]
fn malformed_responses_fail_their_requests_only() {
    run(async {
        let pair = Pair::new().await;
        for header in [
            // Without a status, with two, with one behind another field, with a path.
            &b"\0\0\x21x\x01y"[..],
            b"\0\0\xd9\xd9",
            b"\0\0\x21x\x01y\xd9",
            b"\0\0\xd9\xc1",
            // With "Transfer-Encoding", or a length that is none.
            b"\0\0\xd9\x27\x0atransfer-encoding\x07chunked",
            b"\0\0\xd9\x54\x03ten",
        ] {
            let answer = [frame(HEADERS, header), frame(DATA, b"hello")].concat();
            let error = pair.fetch(&answer).await.unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{header:?}: {error}");
        }
        let trailers = [frame(HEADERS, OK), frame(HEADERS, OK)].concat();
        assert!(pair.fetch(&trailers).await.is_err());
        pair.goes_on().await;
    });
}

#[test]
fn a_length_that_is_wrong_is_an_error() {
    run(async {
        let pair = Pair::new().await;
        for body in ["four", "six..."] {
            let answer = [frame(HEADERS, OK_WITH_LENGTH), frame(DATA, body.as_bytes())].concat();
            let error = pair.fetch(&answer).await.unwrap_err();
            assert!(
                matches!(error, Error::ContentLength { expected: 5, .. }),
                "{error}"
            );
        }
        pair.goes_on().await;
    });
}

#[test]
fn a_body_in_many_pieces_arrives() {
    run(async {
        let pair = Pair::new().await;
        let mut answer = frame(HEADERS, OK);
        for byte in 0..2000u32 {
            answer.extend(frame(DATA, &[]));
            answer.extend(frame(DATA, &[byte as u8]));
            // Unknown frames; 0x41 begins a stream of WebTransport, which nobody negotiated.
            answer.extend(frame(0x21, b"grease"));
            answer.extend([&[0x40, 0x41][..], &[1, 0]].concat());
        }
        let body = pair.fetch(&answer).await.unwrap();
        let expected: Vec<u8> = (0..2000u32).map(|byte| byte as u8).collect();
        assert!(body == expected);
        pair.goes_on().await;
    });
}
