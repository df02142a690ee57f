// Peers over quic-go, for tests of Weir's HTTP/3 and gRPC: see ../README.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

//go:generate go run ./generate ../../proto grpc/testing/testing.proto testpb

const usage = `usage: peers server --listen 127.0.0.1:0 --certificate FILE --key FILE
       peers client --to ADDRESS --ca FILE [--name localhost] --case NAME,…
       peers cases`

func main() {
	// Test machines keep the kernel's small default buffers.
	_ = os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	if len(os.Args) < 2 {
		fail(2, usage)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	flags.Usage = func() { fail(2, usage) }
	var err error
	switch os.Args[1] {
	case "server":
		listen := flags.String("listen", "127.0.0.1:0", "")
		certificate := flags.String("certificate", "", "")
		key := flags.String("key", "", "")
		_ = flags.Parse(os.Args[2:])
		err = serve(*listen, *certificate, *key)
	case "client":
		to := flags.String("to", "", "")
		ca := flags.String("ca", "", "")
		name := flags.String("name", "localhost", "")
		cases := flags.String("case", "", "")
		_ = flags.Parse(os.Args[2:])
		err = runCases(*to, *ca, *name, strings.Split(*cases, ","))
	case "cases":
		for _, one := range allCases() {
			fmt.Println(one.name)
		}
	default:
		fail(2, usage)
	}
	if err != nil {
		fail(1, err.Error())
	}
}

func fail(code int, reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(code)
}
