package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"

	pb "weir/peers/testpb"
)

// The cases of gRPC's interoperability tests that need no credentials.
var grpcCases = []testCase{
	{"empty_unary", emptyUnary},
	{"large_unary", largeUnary},
	{"client_compressed_unary", clientCompressedUnary},
	{"server_compressed_unary", serverCompressedUnary},
	{"client_streaming", clientStreaming},
	{"server_streaming", serverStreaming},
	{"ping_pong", pingPong},
	{"empty_stream", emptyStream},
	{"half_duplex", halfDuplexCase},
	{"custom_metadata", customMetadata},
	{"status_code_and_message", statusCodeAndMessage},
	{"special_status_message", specialStatusMessage},
	{"unimplemented_method", unimplementedMethod},
	{"unimplemented_service", unimplementedService},
	{"cancel_after_begin", cancelAfterBegin},
	{"cancel_after_first_response", cancelAfterFirstResponse},
	{"timeout_on_sleeping_server", timeoutOnSleepingServer},
}

const (
	largeRequest  = 271828
	largeResponse = 314159
)

var (
	requestSizes  = []int{27182, 8, 1828, 45904}
	responseSizes = []int32{31415, 9, 2653, 58979}
)

type (
	duplexClient = connect.Client[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]
	duplexStream = connect.BidiStreamForClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]
)

func newClient[Request, Response any](
	peer *peer, path string, options ...connect.ClientOption,
) *connect.Client[Request, Response] {
	return connect.NewClient[Request, Response](peer.http, peer.url+path, append(options, connect.WithGRPC())...)
}

func duplex(peer *peer) *duplexClient {
	return newClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse](peer, service+"FullDuplexCall")
}

func body(size int) *pb.Payload {
	return &pb.Payload{Body: make([]byte, size)}
}

func outputRequest(requestSize int, responseSizes ...int32) *pb.StreamingOutputCallRequest {
	request := &pb.StreamingOutputCallRequest{Payload: body(requestSize)}
	for _, size := range responseSizes {
		request.ResponseParameters = append(request.ResponseParameters, &pb.ResponseParameters{Size: size})
	}
	return request
}

func emptyUnary(ctx context.Context, peer *peer) error {
	client := newClient[pb.Empty, pb.Empty](peer, service+"EmptyCall")
	_, err := client.CallUnary(ctx, connect.NewRequest(&pb.Empty{}))
	return err
}

// unary makes a large unary call; `change` may change the request.
func unary(ctx context.Context, peer *peer, change func(*pb.SimpleRequest), options ...connect.ClientOption) error {
	request := &pb.SimpleRequest{ResponseSize: largeResponse, Payload: body(largeRequest)}
	change(request)
	client := newClient[pb.SimpleRequest, pb.SimpleResponse](peer, service+"UnaryCall", options...)
	response, err := client.CallUnary(ctx, connect.NewRequest(request))
	if err != nil {
		return err
	}
	return checkSize(response.Msg.Payload, largeResponse)
}

func checkSize(payload *pb.Payload, size int32) error {
	if len(payload.GetBody()) != int(size) {
		return fmt.Errorf("a response of %d bytes and not %d", len(payload.GetBody()), size)
	}
	return nil
}

func largeUnary(ctx context.Context, peer *peer) error {
	return unary(ctx, peer, func(*pb.SimpleRequest) {})
}

func clientCompressedUnary(ctx context.Context, peer *peer) error {
	expect := func(value bool) func(*pb.SimpleRequest) {
		return func(request *pb.SimpleRequest) { request.ExpectCompressed = &pb.BoolValue{Value: value} }
	}
	// A server that cannot tell what was compressed would accept this one.
	if err := checkCode(unary(ctx, peer, expect(true)), connect.CodeInvalidArgument); err != nil {
		return err
	}
	if err := unary(ctx, peer, expect(true), connect.WithSendGzip()); err != nil {
		return fmt.Errorf("compressed: %w", err)
	}
	return unary(ctx, peer, expect(false))
}

func serverCompressedUnary(ctx context.Context, plain *peer) error {
	watch := &compressionWatch{inner: plain.http.Transport}
	watched := &peer{url: plain.url, http: &http.Client{Transport: watch}}
	for _, want := range []bool{true, false} {
		err := unary(ctx, watched, func(request *pb.SimpleRequest) {
			request.ResponseCompressed = &pb.BoolValue{Value: want}
		})
		if err != nil {
			return err
		}
		if watch.isCompressed != want {
			return fmt.Errorf("compressed: %v, and not %v", watch.isCompressed, want)
		}
	}
	return nil
}

func clientStreaming(ctx context.Context, peer *peer) error {
	client := newClient[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse](peer, service+"StreamingInputCall")
	stream := client.CallClientStream(ctx)
	for _, size := range requestSizes {
		if err := stream.Send(&pb.StreamingInputCallRequest{Payload: body(size)}); err != nil {
			return err
		}
	}
	response, err := stream.CloseAndReceive()
	if err != nil {
		return err
	}
	if size := response.Msg.AggregatedPayloadSize; size != 74922 {
		return fmt.Errorf("the server got %d bytes", size)
	}
	return nil
}

func serverStreaming(ctx context.Context, peer *peer) error {
	client := newClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse](peer, service+"StreamingOutputCall")
	stream, err := client.CallServerStream(ctx, connect.NewRequest(outputRequest(0, responseSizes...)))
	if err != nil {
		return err
	}
	defer stream.Close()
	for _, size := range responseSizes {
		if !stream.Receive() {
			return fmt.Errorf("the stream ended early: %w", stream.Err())
		}
		if err := checkSize(stream.Msg().Payload, size); err != nil {
			return err
		}
	}
	if stream.Receive() {
		return errors.New("a response too many")
	}
	return stream.Err()
}

func pingPong(ctx context.Context, peer *peer) error {
	stream := duplex(peer).CallBidiStream(ctx)
	defer stream.CloseResponse()
	for index, size := range requestSizes {
		if err := stream.Send(outputRequest(size, responseSizes[index])); err != nil {
			return err
		}
		response, err := stream.Receive()
		if err != nil {
			return err
		}
		if err := checkSize(response.Payload, responseSizes[index]); err != nil {
			return err
		}
	}
	return endOf(stream)
}

// endOf ends the requests, and expects the end of the responses.
func endOf(stream *duplexStream) error {
	if err := stream.CloseRequest(); err != nil {
		return err
	}
	_, err := stream.Receive()
	if err == nil {
		return errors.New("a response too many")
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func emptyStream(ctx context.Context, peer *peer) error {
	stream := duplex(peer).CallBidiStream(ctx)
	defer stream.CloseResponse()
	if err := stream.Send(nil); err != nil {
		return err
	}
	return endOf(stream)
}

func halfDuplexCase(ctx context.Context, peer *peer) error {
	client := newClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse](peer, service+"HalfDuplexCall")
	stream := client.CallBidiStream(ctx)
	defer stream.CloseResponse()
	for index, size := range requestSizes {
		if err := stream.Send(outputRequest(size, responseSizes[index])); err != nil {
			return err
		}
	}
	if err := stream.CloseRequest(); err != nil {
		return err
	}
	for _, size := range responseSizes {
		response, err := stream.Receive()
		if err != nil {
			return err
		}
		if err := checkSize(response.Payload, size); err != nil {
			return err
		}
	}
	if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the stream did not end: %w", err)
	}
	return nil
}

const initialValue = "test_initial_metadata_value"

var trailingValue = []byte{0xab, 0xab, 0xab}

func addMetadata(header http.Header) {
	header.Set(echoInitial, initialValue)
	header.Set(echoTrailing, connect.EncodeBinaryHeader(trailingValue))
}

func checkMetadata(header, trailer http.Header) error {
	if found := header.Get(echoInitial); found != initialValue {
		return fmt.Errorf("initial metadata %q", found)
	}
	found, err := connect.DecodeBinaryHeader(trailer.Get(echoTrailing))
	if err != nil || string(found) != string(trailingValue) {
		return fmt.Errorf("trailing metadata %q: %v", found, err)
	}
	return nil
}

func customMetadata(ctx context.Context, peer *peer) error {
	client := newClient[pb.SimpleRequest, pb.SimpleResponse](peer, service+"UnaryCall")
	request := connect.NewRequest(&pb.SimpleRequest{ResponseSize: largeResponse, Payload: body(largeRequest)})
	addMetadata(request.Header())
	response, err := client.CallUnary(ctx, request)
	if err != nil {
		return err
	}
	if err := checkMetadata(response.Header(), response.Trailer()); err != nil {
		return fmt.Errorf("unary: %w", err)
	}
	stream := duplex(peer).CallBidiStream(ctx)
	defer stream.CloseResponse()
	addMetadata(stream.RequestHeader())
	if err := stream.Send(outputRequest(largeRequest, largeResponse)); err != nil {
		return err
	}
	if _, err := stream.Receive(); err != nil {
		return err
	}
	if err := endOf(stream); err != nil {
		return err
	}
	if err := checkMetadata(stream.ResponseHeader(), stream.ResponseTrailer()); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

func checkCode(err error, code connect.Code) error {
	if err == nil || connect.CodeOf(err) != code {
		return fmt.Errorf("status %v and not %v: %w", connect.CodeOf(err), code, err)
	}
	return nil
}

func checkStatus(err error, code connect.Code, message string) error {
	if err := checkCode(err, code); err != nil {
		return err
	}
	var status *connect.Error
	if !errors.As(err, &status) || status.Message() != message {
		return fmt.Errorf("message %q and not %q", status.Message(), message)
	}
	if !connect.IsWireError(err) {
		return errors.New("the status is not the server's")
	}
	return nil
}

func statusCodeAndMessage(ctx context.Context, peer *peer) error {
	const message = "test status message"
	status := &pb.EchoStatus{Code: 2, Message: message}
	client := newClient[pb.SimpleRequest, pb.SimpleResponse](peer, service+"UnaryCall")
	_, err := client.CallUnary(ctx, connect.NewRequest(&pb.SimpleRequest{ResponseStatus: status}))
	if err := checkStatus(err, connect.CodeUnknown, message); err != nil {
		return fmt.Errorf("unary: %w", err)
	}
	stream := duplex(peer).CallBidiStream(ctx)
	defer stream.CloseResponse()
	if err := stream.Send(&pb.StreamingOutputCallRequest{ResponseStatus: status}); err != nil {
		return err
	}
	if err := stream.CloseRequest(); err != nil {
		return err
	}
	_, err = stream.Receive()
	if err := checkStatus(err, connect.CodeUnknown, message); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

func specialStatusMessage(ctx context.Context, peer *peer) error {
	const message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
	client := newClient[pb.SimpleRequest, pb.SimpleResponse](peer, service+"UnaryCall")
	_, err := client.CallUnary(ctx, connect.NewRequest(&pb.SimpleRequest{
		ResponseStatus: &pb.EchoStatus{Code: 2, Message: message},
	}))
	return checkStatus(err, connect.CodeUnknown, message)
}

func unimplementedMethod(ctx context.Context, peer *peer) error {
	client := newClient[pb.Empty, pb.Empty](peer, service+"UnimplementedCall")
	_, err := client.CallUnary(ctx, connect.NewRequest(&pb.Empty{}))
	return checkCode(err, connect.CodeUnimplemented)
}

func unimplementedService(ctx context.Context, peer *peer) error {
	client := newClient[pb.Empty, pb.Empty](peer, "/grpc.testing.UnimplementedService/UnimplementedCall")
	_, err := client.CallUnary(ctx, connect.NewRequest(&pb.Empty{}))
	return checkCode(err, connect.CodeUnimplemented)
}

func cancelAfterBegin(ctx context.Context, peer *peer) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	client := newClient[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse](peer, service+"StreamingInputCall")
	stream := client.CallClientStream(cancelled)
	if err := stream.Send(nil); err != nil {
		return err
	}
	// So that the request is under way.
	time.Sleep(50 * time.Millisecond)
	cancel()
	_, err := stream.CloseAndReceive()
	if err := checkCode(err, connect.CodeCanceled); err != nil {
		return err
	}
	// The connection goes on.
	return emptyUnary(ctx, peer)
}

func cancelAfterFirstResponse(ctx context.Context, peer *peer) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := duplex(peer).CallBidiStream(cancelled)
	defer stream.CloseResponse()
	if err := stream.Send(outputRequest(requestSizes[0], responseSizes[0])); err != nil {
		return err
	}
	if _, err := stream.Receive(); err != nil {
		return err
	}
	cancel()
	_, err := stream.Receive()
	if err := checkCode(err, connect.CodeCanceled); err != nil {
		return err
	}
	return emptyUnary(ctx, peer)
}

func timeoutOnSleepingServer(ctx context.Context, peer *peer) error {
	// The handshake takes none of the time of the call.
	if err := emptyUnary(ctx, peer); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	stream := duplex(peer).CallBidiStream(short)
	defer stream.CloseResponse()
	// The time may be over before the request is sent.
	if err := stream.Send(outputRequest(requestSizes[0])); err != nil && !errors.Is(err, io.EOF) {
		return checkCode(err, connect.CodeDeadlineExceeded)
	}
	_, err := stream.Receive()
	if err := checkCode(err, connect.CodeDeadlineExceeded); err != nil {
		return err
	}
	return emptyUnary(ctx, peer)
}
