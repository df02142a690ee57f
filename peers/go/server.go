package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// The time that open requests have after a GOAWAY frame.
const grace = 2 * time.Second

// serve answers gRPC and plain HTTP/3 until SIGTERM, which ends connections by GOAWAY, or until the end of its
// standard input.
func serve(listen, certificateFile, keyFile string) error {
	certificate, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	leave := make(chan struct{}, 1)
	mux := http.NewServeMux()
	addTestService(mux)
	addHTTP(mux, leave)
	server := &http3.Server{
		Handler: mux,
		// Without one quic-go 0.59 panics where a trailer cannot be sent.
		Logger: slog.New(slog.DiscardHandler),
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{
			Certificates: []tls.Certificate{certificate},
		}),
	}
	fmt.Printf("listening on %s\n", socket.LocalAddr())

	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	go func() {
		select {
		case <-signals:
		case <-leave:
		}
		limit, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		_ = server.Shutdown(limit)
		os.Exit(0)
	}()
	err = server.Serve(socket)
	if err == http.ErrServerClosed {
		// The other goroutine ends the process.
		select {}
	}
	return err
}
