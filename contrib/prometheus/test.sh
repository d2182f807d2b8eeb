#!/usr/bin/env bash
# Checks the files here and in contrib/grafana with promtool, and against the metrics of a real
# array. Ends with `N passed, N failed, N skipped`. `./test` runs this with the program that it has
# built.
#
#   contrib/prometheus/test.sh [PROGRAM]
#
# promtool is in Debian's package `prometheus`. The package is unpacked into the target directory,
# because installing it would start a server. Without promtool, its checks are skipped.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
target=$(realpath "${CARGO_TARGET_DIR:-$here/../../target}")
program=$(realpath "${1:-$target/debug/holdfast}")
cd "$here" || exit
[ -x "$program" ] || { echo "$program is missing; build it first" >&2; exit 2; }

scratch=$(mktemp -d)
array=
cleanup() {
    if [ -n "$array" ]; then
        kill "$array" && wait "$array"
    fi
    rm -rf "$scratch"
}
trap cleanup EXIT
passed=0
failed=0
skipped=0

# Runs a command as one test.
check() {
    local name=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        cat "$scratch/out"
    fi
}

fetch_promtool() {
    PATH=$PATH:$target/promtool/usr/bin
    command -v promtool >/dev/null && return
    command -v apt-get >/dev/null || return
    rm -rf "$target/promtool"
    mkdir -p "$target/promtool"
    (
        cd "$target/promtool" || exit
        # The first attempt may fail without package lists, which root can update.
        apt-get download -qq prometheus 2>/dev/null ||
            { apt-get update -qq && apt-get download -qq prometheus; } || exit
        dpkg-deb --extract prometheus_*.deb . && rm -f prometheus_*.deb usr/bin/prometheus
    ) >/dev/null 2>&1
}

tool() {
    local name=$1
    shift
    if command -v promtool >/dev/null; then
        check "$name" "$@"
    else
        skipped=$((skipped + 1))
        echo "skipped: $name: promtool is missing (Debian: package prometheus)"
    fi
}

fetch_promtool

# Prints the metrics of a running array, requested as Prometheus does.
"$program" pool create "$scratch/pool" --capacity 1G >/dev/null
mkfifo "$scratch/told"
"$program" serve --json --pool "$scratch/pool" --iscsi 127.0.0.1:0 \
    >"$scratch/told" 2>"$scratch/log" &
array=$!
# The program prints its address when it listens. If it ends, its output ends too.
url=$(python3 -c '
import json, sys
text, decoder = "", json.JSONDecoder()
while piece := sys.stdin.read(1):
    text += piece
    try:
        print(decoder.raw_decode(text)[0]["url"])
        break
    except json.JSONDecodeError:
        pass
' <"$scratch/told")
[ -n "$url" ] || { cat "$scratch/log" >&2; exit 1; }
verb() { "$program" --pool "$scratch/pool" "$@"; }
verb volume create 'busy' --size 1G >/dev/null
verb host create h --iqn iqn.2026-01.com.example:h >/dev/null
verb user create prometheus --role readonly >/dev/null
verb --json token create scrape --user prometheus |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"], end="")' \
        >"$scratch/holdfast.token"
verb pool space --refresh >/dev/null
cp "$scratch/pool/api-certificate.pem" "$scratch/holdfast.pem"
python3 - "$url" "$scratch" >"$scratch/metrics" <<'END'
import ssl, sys, urllib.request
url, scratch = sys.argv[1:]
token = open(f"{scratch}/holdfast.token").read()
request = urllib.request.Request(url + "/metrics", headers={"Authorization": f"Bearer {token}"})
context = ssl.create_default_context(cafile=f"{scratch}/holdfast.pem")
print(urllib.request.urlopen(request, context=context).read().decode(), end="")
END

# Prints the requested names that are not served. Families without a sample are not served, so the
# names that only a busy array has are listed here.
names_are_served() {
    python3 - "$scratch/metrics" rules.yml ../grafana/holdfast.json <<'END'
import re, sys
served, *asking = sys.argv[1:]
names = {re.match(r"\w+", line)[0] for line in open(served) if line.strip() and line[0] != "#"}
objects = [f"holdfast_{of}_{name}" for of in ("volume", "host") for name in (
    "commands_total", "command_bytes_total", "command_latency_seconds_sum",
    "command_latency_seconds_count")]
names.update(objects, [
    "holdfast_pool_data_reduction_ratio", "holdfast_pool_total_reduction_ratio"])
asked = {name for path in asking for name in re.findall(r"\bholdfast_\w+", open(path).read())}
missing = sorted(asked - names)
assert len(asked) > 20, asked
assert not missing, f"not served: {missing}"
END
}
documented() {
    python3 - "$scratch/metrics" ../../docs/metrics.md <<'END'
import re, sys
told = set(re.findall(r"`(holdfast_\w+)`", open(sys.argv[2]).read()))
served = {line.split()[2] for line in open(sys.argv[1]) if line.startswith("# TYPE ")}
assert not served - told, f"not in docs/metrics.md: {sorted(served - told)}"
END
}

check "an array serves metrics" test "$(grep -c '^holdfast_' "$scratch/metrics")" -gt 50
check "what is asked for is served" names_are_served
check "what is served is documented" documented
check "the dashboard is what is told in make" ../grafana/make --check
tool "promtool check metrics" sh -c "promtool check metrics <'$scratch/metrics'"
tool "promtool check rules" promtool check rules rules.yml
cp rules.yml "$scratch"
sed "s|/etc/prometheus|$scratch|" prometheus.yml >"$scratch/prometheus.yml"
tool "promtool check config" promtool check config "$scratch/prometheus.yml"
tool "promtool test rules" promtool test rules rules_test.yml

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
