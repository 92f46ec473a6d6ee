#!/bin/sh
# Helm, to render our charts, built from its Go module into .cache/bin.
set -eu
bin="$(cd "$(dirname "$0")/../.." && pwd)/.cache/bin"
{ command -v helm >/dev/null 2>&1 || [ -x "$bin/helm" ]; } && exit 0
if ! command -v go >/dev/null 2>&1; then
    echo "testbed: no Go, so no Helm: charts are NOT TESTED" >&2
    exit 0
fi
mkdir -p "$bin"
GOFLAGS=-buildvcs=false GOTOOLCHAIN=local GOBIN="$bin" nice -n 19 go install \
    -p "${VERDERER_GO_PARALLEL:-2}" -trimpath -ldflags "-s -w" helm.sh/helm/v3/cmd/helm@v3.22.0 ||
    echo "testbed: Helm could not be built: charts are NOT TESTED" >&2
