package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// The most time that one case may take.
const limit = 30 * time.Second

type testCase struct {
	name string
	run  func(context.Context, *peer) error
}

func allCases() []testCase {
	return slices.Concat(httpCases, grpcCases)
}

// peer is the server under test.
type peer struct {
	address string
	url     string
	tls     *tls.Config
	http    *http.Client
}

// dial opens a connection of its own.
func (peer *peer) dial(ctx context.Context) (*http3.ClientConn, error) {
	config := peer.tls.Clone()
	config.NextProtos = []string{http3.NextProtoH3}
	connection, err := quic.DialAddr(ctx, peer.address, config, nil)
	if err != nil {
		return nil, err
	}
	return (&http3.Transport{}).NewClientConn(connection), nil
}

// runCases runs cases one after the other over one connection, and prints a line for each. "http" and "grpc" are all
// of that kind.
func runCases(address, caFile, name string, names []string) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return fmt.Errorf("%s has no certificate", caFile)
	}
	config := &tls.Config{RootCAs: roots, ServerName: name}
	transport := &http3.Transport{
		TLSClientConfig: config,
		Dial: func(ctx context.Context, _ string, tls *tls.Config, quicConfig *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, address, tls, quicConfig)
		},
	}
	defer transport.Close()
	peer := &peer{address: address, url: "https://" + name, tls: config, http: &http.Client{Transport: transport}}

	var chosen []testCase
	for _, name := range names {
		switch name {
		case "http":
			chosen = append(chosen, httpCases...)
		case "grpc":
			chosen = append(chosen, grpcCases...)
		default:
			index := slices.IndexFunc(allCases(), func(one testCase) bool { return one.name == name })
			if index < 0 {
				return fmt.Errorf("no case %q: see `peers cases`", name)
			}
			chosen = append(chosen, allCases()[index])
		}
	}
	failed := 0
	for _, one := range chosen {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := one.run(ctx, peer)
		cancel()
		if err != nil {
			failed++
			fmt.Printf("%s: failed: %v\n", one.name, err)
		} else {
			fmt.Printf("%s: passed\n", one.name)
		}
	}
	if failed > 0 {
		return errors.New(fmt.Sprint(failed, " of ", len(chosen), " cases failed"))
	}
	return nil
}
