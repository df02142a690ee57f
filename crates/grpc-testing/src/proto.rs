//! The messages and services of `proto/grpc/testing/testing.proto`.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated")]

tonic::include_proto!("grpc.testing");
