#!/usr/bin/env bash
# Renders the chart by helm, and compares it with the plain manifests and the types that Kubernetes
# publishes: see check.py. helm and types/ are built with Go once, in the target directory; if that
# fails, all tests are skipped. Ends with `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
version=v3.16.4
PATH=$PATH:/usr/local/go/bin

skip() {
    echo "skipped: the chart: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

python3 -c 'import yaml' 2>/dev/null || skip "PyYAML is not installed"
command -v go >/dev/null || skip "Go is not installed"
helm=$target/helm-$version
if [ ! -x "$helm/helm" ]; then
    (cd / && GOBIN=$helm go install "helm.sh/helm/v3/cmd/helm@$version") >&2 ||
        skip "helm can't be downloaded or built"
fi
# Otherwise Go would write the dependencies next to the sources.
mkdir -p "$helm/source"
cp types/* "$helm/source/"
(cd "$helm/source" && go mod tidy && go build -o ../types .) >"$helm/go.log" 2>&1 || {
    cat "$helm/go.log" >&2
    skip "the types of Kubernetes can't be downloaded or built"
}
"$here/check.py" "$helm/helm" "$helm/types"
