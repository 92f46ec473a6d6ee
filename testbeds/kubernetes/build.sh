#!/bin/sh
# etcd, kube-apiserver, kube-controller-manager and kube-scheduler as one binary, and KWOK, built
# from Go modules into .cache/bin. Nothing is done when both are there for these very sources.
# The first build takes eight minutes on two cores, leaves 5 GB in Go's caches, and is polite.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
bin="$(cd "$here/../.." && pwd)/.cache/bin"
version=1.37.2
kwok=v0.8.0

if ! command -v go >/dev/null 2>&1; then
    if [ -x "$bin/kube" ] && [ -x "$bin/kwok" ]; then exit 0; fi
    echo "testbed: no Go and no $bin/kube: NOT TESTED against a real Kubernetes" >&2
    exit 0
fi
mkdir -p "$bin"
GOTOOLCHAIN=local
GOFLAGS="-mod=readonly -buildvcs=false"
CGO_ENABLED=0
export GOTOOLCHAIN GOFLAGS CGO_ENABLED

key="$(cat "$here/kube/go.mod" "$here/kube/go.sum" "$here/kube/main.go" | sha256sum | cut -c1-16) $version $kwok $(go env GOVERSION)"
if [ ! -x "$bin/kube" ] || [ ! -x "$bin/kwok" ] || [ "$(cat "$bin/kube.key" 2>/dev/null)" != "$key" ]; then
    echo "testbed: building Kubernetes $version and KWOK $kwok; eight minutes the first time" >&2
    git="-X k8s.io/component-base/version.gitVersion=v$version"
    git="$git -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
    git="$git -X k8s.io/client-go/pkg/version.gitVersion=v$version"
    if (cd "$here/kube" && nice -n 19 go build -p "${VERDERER_GO_PARALLEL:-2}" -trimpath \
            -ldflags "-s -w $git" -o "$bin/kube.new" .) &&
        (cd / && GOFLAGS=-buildvcs=false GOBIN="$bin" nice -n 19 go install \
            -p "${VERDERER_GO_PARALLEL:-2}" -trimpath -ldflags "-s -w" \
            "sigs.k8s.io/kwok/cmd/kwok@$kwok"); then
        mv "$bin/kube.new" "$bin/kube"
        echo "$key" >"$bin/kube.key"
    else
        echo "testbed: Kubernetes could not be built: NOT TESTED against a real one" >&2
    fi
fi
