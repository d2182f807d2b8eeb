#!/usr/bin/env bash
# Checks the examples with the programs that read them, if these are installed. Ends with
# `N passed, N failed, N skipped`.
set -euo pipefail
cd "$(dirname "$0")"

passed=0
failed=0
skipped=0

# Runs a check if its program is installed: check NAME PROGRAM ARGUMENTS…
check() {
    local name=$1
    shift
    if ! command -v "$1" >/dev/null; then
        echo "skipped: $name: $1 is missing"
        skipped=$((skipped + 1))
    elif "$@" >/dev/null; then
        passed=$((passed + 1))
    else
        echo "FAILED: $name: $*"
        failed=$((failed + 1))
    fi
}

for pool in libvirt-pool.xml libvirt-pool-direct.xml; do
    check "$pool" virt-xml-validate "$pool" storagepool
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
