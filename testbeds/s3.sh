#!/bin/sh
# versitygw, an S3 server that checks signatures, built from its Go module into .cache/bin.
set -eu
bin="$(cd "$(dirname "$0")/.." && pwd)/.cache/bin"
{ command -v versitygw >/dev/null 2>&1 || [ -x "$bin/versitygw" ]; } && exit 0
if ! command -v go >/dev/null 2>&1; then
    echo "testbed: no Go, so no versitygw: S3 tests run against moto alone" >&2
    exit 0
fi
mkdir -p "$bin"
GOBIN="$bin" go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 ||
    echo "testbed: versitygw could not be built: S3 tests run against moto alone" >&2
