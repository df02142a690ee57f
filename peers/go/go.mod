module weir/peers

go 1.24.0

require (
	connectrpc.com/connect v1.19.2
	github.com/bufbuild/protocompile v0.14.1
	github.com/quic-go/quic-go v0.59.1
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/quic-go/qpack v0.6.0 // indirect
	golang.org/x/crypto v0.41.0 // indirect
	golang.org/x/net v0.43.0 // indirect
	golang.org/x/sync v0.16.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)
