package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The most bytes of one response.
const largestBody = 1 << 30

// addHTTP adds the paths of plain HTTP/3, which are the same in all peers. A request for /goaway tells `leave`.
func addHTTP(mux *http.ServeMux, leave chan<- struct{}) {
	mux.HandleFunc("GET /bytes/{count}", func(response http.ResponseWriter, request *http.Request) {
		count, err := strconv.Atoi(request.PathValue("count"))
		if err != nil || count < 0 || count > largestBody {
			response.WriteHeader(http.StatusBadRequest)
			return
		}
		response.Header().Set("content-length", strconv.Itoa(count))
		for start := 0; start < count; start += len(pattern) {
			if _, err := response.Write(pattern[:min(len(pattern), count-start)]); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("POST /echo", func(response http.ResponseWriter, request *http.Request) {
		flush := http.NewResponseController(response)
		buffer := make([]byte, 1<<16)
		for {
			count, err := request.Body.Read(buffer)
			if count > 0 {
				if _, err := response.Write(buffer[:count]); err != nil {
					return
				}
				_ = flush.Flush()
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	})
	mux.HandleFunc("GET /headers", func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("content-type", "application/json")
		_ = json.NewEncoder(response).Encode(lowerCase(request.Header))
	})
	mux.HandleFunc("GET /trailers", func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("trailer", "x-trailer")
		_, _ = response.Write([]byte("body"))
		response.Header().Set("x-trailer", "after the body")
	})
	// Begins a response, and never ends it.
	mux.HandleFunc("GET /slow", func(response http.ResponseWriter, request *http.Request) {
		_, _ = response.Write([]byte("begin"))
		_ = http.NewResponseController(response).Flush()
		<-request.Context().Done()
	})
	// The server announces its end while it answers this request.
	mux.HandleFunc("GET /goaway", func(response http.ResponseWriter, _ *http.Request) {
		leave <- struct{}{}
		time.Sleep(200 * time.Millisecond)
		_, _ = response.Write([]byte("end"))
	})
}

// The body of /bytes repeats this.
var pattern = makePattern()

func makePattern() []byte {
	bytes := make([]byte, 251*256)
	for index := range bytes {
		bytes[index] = byte(index % 251)
	}
	return bytes
}
