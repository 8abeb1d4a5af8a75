# Shared by the scripts: where we are, and how packages come onto the machine. Source it, do not run it.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"

say() { printf '\n== %s\n' "$*"; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# need PROGRAM:PACKAGE …: installs the packages of the programs that are missing.
need() {
    local missing=() pair
    for pair in "$@"; do
        command -v "${pair%%:*}" > /dev/null || missing+=("${pair##*:}")
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
