package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var httpCases = []testCase{
	{"http_get", httpGet},
	{"http_post", httpPost},
	{"http_several", httpSeveral},
	{"http_headers", httpHeaders},
	{"http_trailers", httpTrailers},
	{"http_not_found", httpNotFound},
	{"http_cancel", httpCancel},
	{"http_goaway", httpGoaway},
}

func httpGet(ctx context.Context, peer *peer) error {
	for _, count := range []int{0, 1, 1000, 1_000_000} {
		body, _, err := peer.get(ctx, fmt.Sprintf("/bytes/%d", count))
		if err != nil {
			return err
		}
		if err := checkPattern(body, count); err != nil {
			return err
		}
	}
	return nil
}

func httpPost(ctx context.Context, peer *peer) error {
	sent := bytes.Repeat(pattern, 17)[:1_000_000]
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, peer.url+"/echo", bytes.NewReader(sent))
	if err != nil {
		return err
	}
	body, _, err := peer.do(request)
	if err != nil {
		return err
	}
	if !bytes.Equal(body, sent) {
		return fmt.Errorf("the echo of %d bytes has %d bytes or differs", len(sent), len(body))
	}
	return nil
}

func httpSeveral(ctx context.Context, peer *peer) error {
	const requests = 50
	results := make(chan error, requests)
	for number := range requests {
		go func() {
			count := 1000*number + 1
			body, _, err := peer.get(ctx, fmt.Sprintf("/bytes/%d", count))
			if err == nil {
				err = checkPattern(body, count)
			}
			results <- err
		}()
	}
	var all error
	for range requests {
		all = errors.Join(all, <-results)
	}
	return all
}

func httpHeaders(ctx context.Context, peer *peer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, peer.url+"/headers", nil)
	if err != nil {
		return err
	}
	long := strings.Repeat("long", 1000)
	request.Header.Set("x-test", "value")
	request.Header.Set("x-long", long)
	request.Header.Set("x-empty", "")
	request.Header.Add("x-twice", "one")
	request.Header.Add("x-twice", "two")
	body, _, err := peer.do(request)
	if err != nil {
		return err
	}
	var echo map[string][]string
	if err := json.Unmarshal(body, &echo); err != nil {
		return err
	}
	all := map[string]string{"x-test": "value", "x-long": long, "x-empty": "", "x-twice": "one, two"}
	for name, expected := range all {
		values, present := echo[name]
		if found := strings.Join(values, ", "); !present || found != expected {
			return fmt.Errorf("the server read %q as %s", found, name)
		}
	}
	return nil
}

func httpTrailers(ctx context.Context, peer *peer) error {
	body, response, err := peer.get(ctx, "/trailers")
	if err != nil {
		return err
	}
	if value := response.Trailer.Get("x-trailer"); string(body) != "body" || value != "after the body" {
		return fmt.Errorf("got %q with x-trailer %q", body, value)
	}
	return nil
}

func httpNotFound(ctx context.Context, peer *peer) error {
	_, _, err := peer.get(ctx, "/absent")
	if err == nil || err.Error() != "status 404" {
		return fmt.Errorf("got %v and not status 404", err)
	}
	return nil
}

func httpCancel(ctx context.Context, peer *peer) error {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(cancelled, http.MethodGet, peer.url+"/slow", nil)
	if err != nil {
		return err
	}
	response, err := peer.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	begin := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, begin); err != nil {
		return err
	}
	cancel()
	if _, err := io.ReadAll(response.Body); err == nil {
		return errors.New("the cancelled response ended well")
	}
	// The connection goes on.
	body, _, err := peer.get(ctx, "/bytes/1000")
	if err != nil {
		return err
	}
	return checkPattern(body, 1000)
}

// httpGoaway checks that the request during which the server says GOAWAY is answered, and that the connection then
// takes no further ones.
func httpGoaway(ctx context.Context, peer *peer) error {
	connection, err := peer.dial(ctx)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, peer.url+"/goaway", nil)
	if err != nil {
		return err
	}
	response, err := connection.RoundTrip(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "end" {
		return fmt.Errorf("got %q, %v", body, err)
	}
	// The frame may arrive after the response.
	for range 50 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, peer.url+"/bytes/1", nil)
		if err != nil {
			return err
		}
		response, err := connection.RoundTrip(request)
		if err != nil {
			// The server may also close the connection, which has no request left.
			var closed *quic.ApplicationError
			if strings.Contains(err.Error(), "graceful shutdown") ||
				errors.As(err, &closed) && closed.ErrorCode == quic.ApplicationErrorCode(http3.ErrCodeNoError) {
				return nil
			}
			return fmt.Errorf("after GOAWAY: %w", err)
		}
		_ = response.Body.Close()
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("the connection still takes requests")
}

func (peer *peer) get(ctx context.Context, path string) ([]byte, *http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, peer.url+path, nil)
	if err != nil {
		return nil, nil, err
	}
	return peer.do(request)
}

func (peer *peer) do(request *http.Request) ([]byte, *http.Response, error) {
	response, err := peer.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	return body, response, err
}

func checkPattern(body []byte, count int) error {
	if len(body) != count {
		return fmt.Errorf("got %d bytes and not %d", len(body), count)
	}
	for index, value := range body {
		if value != byte(index%251) {
			return fmt.Errorf("byte %d is wrong", index)
		}
	}
	return nil
}

func lowerCase(header http.Header) map[string][]string {
	lower := make(map[string][]string, len(header))
	for name, values := range header {
		lower[strings.ToLower(name)] = values
	}
	return lower
}
