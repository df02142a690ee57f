package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	"google.golang.org/protobuf/proto"

	pb "weir/peers/testpb"
)

// The bytes before a gRPC message: whether it is compressed, and its length.
const prefix = 5

const largestMessage = 8 << 20

type compressionKey struct{}

// wasCompressed tells whether the request message was compressed on the wire.
func wasCompressed(ctx context.Context) bool {
	return ctx.Value(compressionKey{}) == true
}

// knowCompression reads the message of a unary call before connect-go does, which neither tells whether a message was
// compressed nor leaves a single response uncompressed.
func knowCompression(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		isCompressed, message, err := readMessage(request.Body, request.Header.Get("grpc-encoding"))
		if err != nil {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		var call pb.SimpleRequest
		_ = proto.Unmarshal(message, &call)
		if !call.GetResponseCompressed().GetValue() {
			request.Header.Del("grpc-accept-encoding")
		}
		request.Header.Del("grpc-encoding")
		plain := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
		request.Body = io.NopCloser(io.MultiReader(bytes.NewReader(append(plain, message...)), request.Body))
		request.ContentLength = -1
		ctx := context.WithValue(request.Context(), compressionKey{}, isCompressed)
		handler.ServeHTTP(response, request.WithContext(ctx))
	})
}

func readMessage(body io.Reader, encoding string) (isCompressed bool, message []byte, err error) {
	var head [prefix]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return false, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > largestMessage {
		return false, nil, errors.New("a message of too many bytes")
	}
	message = make([]byte, length)
	if _, err := io.ReadFull(body, message); err != nil {
		return false, nil, err
	}
	if head[0]&1 == 0 {
		return false, message, nil
	}
	if encoding != "gzip" {
		return true, nil, fmt.Errorf("a message compressed by %q", encoding)
	}
	reader, err := gzip.NewReader(bytes.NewReader(message))
	if err != nil {
		return true, nil, err
	}
	message, err = io.ReadAll(io.LimitReader(reader, largestMessage))
	return true, message, err
}

// compressionWatch notes whether the first message of a response was compressed.
type compressionWatch struct {
	inner http.RoundTripper
	// Of the last response.
	isCompressed bool
}

func (watch *compressionWatch) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := watch.inner.RoundTrip(request)
	if err == nil {
		watch.isCompressed = false
		response.Body = &firstByte{ReadCloser: response.Body, watch: watch}
	}
	return response, err
}

type firstByte struct {
	io.ReadCloser
	watch *compressionWatch
	seen  bool
}

func (body *firstByte) Read(buffer []byte) (int, error) {
	count, err := body.ReadCloser.Read(buffer)
	if count > 0 && !body.seen {
		body.seen = true
		body.watch.isCompressed = buffer[0]&1 == 1
	}
	return count, err
}
