package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"

	pb "weir/peers/testpb"
)

const service = "/grpc.testing.TestService/"

// Metadata that the server returns.
const (
	echoInitial  = "x-grpc-test-echo-initial"
	echoTrailing = "x-grpc-test-echo-trailing-bin"
)

type (
	unaryRequest  = connect.Request[pb.SimpleRequest]
	unaryResponse = connect.Response[pb.SimpleResponse]
	inputStream   = connect.ClientStream[pb.StreamingInputCallRequest]
	inputResponse = connect.Response[pb.StreamingInputCallResponse]
	serverStream  = connect.BidiStream[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]
)

type outputStream interface {
	Send(*pb.StreamingOutputCallResponse) error
}

func addTestService(mux *http.ServeMux) {
	mux.Handle(service+"EmptyCall", connect.NewUnaryHandler(service+"EmptyCall",
		func(_ context.Context, request *connect.Request[pb.Empty]) (*connect.Response[pb.Empty], error) {
			response := connect.NewResponse(&pb.Empty{})
			echoMetadata(request.Header(), response.Header(), response.Trailer())
			return response, nil
		}))
	mux.Handle(service+"UnaryCall", knowCompression(connect.NewUnaryHandler(service+"UnaryCall", unaryCall)))
	mux.Handle(service+"StreamingInputCall", connect.NewClientStreamHandler(service+"StreamingInputCall", streamingInput))
	mux.Handle(service+"StreamingOutputCall", connect.NewServerStreamHandler(service+"StreamingOutputCall",
		func(ctx context.Context, request *connect.Request[pb.StreamingOutputCallRequest],
			stream *connect.ServerStream[pb.StreamingOutputCallResponse]) error {
			echoMetadata(request.Header(), stream.ResponseHeader(), stream.ResponseTrailer())
			return answer(ctx, request.Msg, stream)
		}))
	mux.Handle(service+"FullDuplexCall", connect.NewBidiStreamHandler(service+"FullDuplexCall", fullDuplex))
	mux.Handle(service+"HalfDuplexCall", connect.NewBidiStreamHandler(service+"HalfDuplexCall", halfDuplex))
	writer := connect.NewErrorWriter()
	unimplemented := func(response http.ResponseWriter, request *http.Request) {
		_ = writer.Write(response, request, connect.NewError(connect.CodeUnimplemented, errors.New("no such method")))
	}
	mux.HandleFunc(service, unimplemented)
	mux.HandleFunc("/grpc.testing.UnimplementedService/", unimplemented)
}

func echoMetadata(request, header, trailer http.Header) {
	if values := request.Values(echoInitial); len(values) > 0 {
		header[http.CanonicalHeaderKey(echoInitial)] = values
	}
	if values := request.Values(echoTrailing); len(values) > 0 {
		trailer[http.CanonicalHeaderKey(echoTrailing)] = values
	}
}

func unaryCall(ctx context.Context, request *unaryRequest) (*unaryResponse, error) {
	response := connect.NewResponse(&pb.SimpleResponse{})
	if expected := request.Msg.ExpectCompressed; expected != nil && expected.Value != wasCompressed(ctx) {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("expect_compressed does not hold"))
	}
	if err := asked(request.Msg.ResponseStatus); err != nil {
		echoMetadata(request.Header(), err.Meta(), err.Meta())
		return nil, err
	}
	payload, err := payload(request.Msg.ResponseSize)
	if err != nil {
		return nil, err
	}
	response.Msg.Payload = payload
	echoMetadata(request.Header(), response.Header(), response.Trailer())
	return response, nil
}

func streamingInput(_ context.Context, stream *inputStream) (*inputResponse, error) {
	size := 0
	for stream.Receive() {
		size += len(stream.Msg().GetPayload().GetBody())
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(size)}), nil
}

func fullDuplex(ctx context.Context, stream *serverStream) error {
	echoMetadata(stream.RequestHeader(), stream.ResponseHeader(), stream.ResponseTrailer())
	for {
		request, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := answer(ctx, request, stream); err != nil {
			return err
		}
	}
}

func halfDuplex(ctx context.Context, stream *serverStream) error {
	var requests []*pb.StreamingOutputCallRequest
	for {
		request, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		requests = append(requests, request)
	}
	for _, request := range requests {
		if err := answer(ctx, request, stream); err != nil {
			return err
		}
	}
	return nil
}

// answer sends the responses that a request asks for.
func answer(ctx context.Context, request *pb.StreamingOutputCallRequest, stream outputStream) error {
	if err := asked(request.ResponseStatus); err != nil {
		return err
	}
	for _, parameters := range request.ResponseParameters {
		select {
		case <-time.After(time.Duration(parameters.IntervalUs) * time.Microsecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		payload, err := payload(parameters.Size)
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: payload}); err != nil {
			return err
		}
	}
	return nil
}

// asked returns the error that the client asked for.
func asked(status *pb.EchoStatus) *connect.Error {
	if status.GetCode() == 0 {
		return nil
	}
	return connect.NewError(connect.Code(status.Code), errors.New(status.Message))
}

func payload(size int32) (*pb.Payload, error) {
	if size < 0 || size > largestBody {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no such size"))
	}
	return &pb.Payload{Body: make([]byte, size)}, nil
}
