//! The messages and services of the interface, made by `build.rs` from `proto/csi.proto`.
#![allow(missing_docs, clippy::all, reason = "generated")]

tonic::include_proto!("csi.v1");
