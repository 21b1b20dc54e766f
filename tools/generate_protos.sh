#!/usr/bin/env bash
# Regenerates graph/protos/*_pb2.py and .pyi. Needs grpcio-tools 1.62 (protoc 25), whose output loads on protobuf 4.25 to 7.x.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/partita/graph"
ln -s "$PWD/graph/protos" "$tree/partita/graph/protos"
out=${1:-$tree}
cd "$tree"
"${PYTHON:-python3}" -m grpc_tools.protoc -I . --python_out="$out" --pyi_out="$out" partita/graph/protos/*.proto
