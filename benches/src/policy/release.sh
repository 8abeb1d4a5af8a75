#!/usr/bin/env bash
# Builds, tests and packs the app. Run it from anywhere.
set -euo pipefail

cd "$(dirname "$0")/.."
ROOT=$PWD
VERSION=$(git describe --tags --always --dirty)
COMMIT=$(git rev-parse --short HEAD)
OUT="$ROOT/dist"
LOG="$OUT/build.log"
PROFILE=${PROFILE:-release}
JOBS=${JOBS:-$(nproc)}
export RUST_BACKTRACE=1 CARGO_TERM_COLOR=never

say() {
    printf '==> %s\n' "$*" >&2
}

fail() {
    say "failed: $1"
    exit 1
}

need() {
    command -v "$1" > /dev/null 2>&1 || fail "$1 is missing"
}

cleanup() {
    rm -rf "$OUT/tmp"
    kill "$SERVER" 2>/dev/null || true
}

usage() {
    cat <<TEXT
usage: release.sh [--check] [--keep] [TARGET...]

Builds version $VERSION of the app into $OUT.
TEXT
}

CHECK=0
KEEP=0
TARGETS="x86_64 aarch64"
while [ $# -gt 0 ]; do
    case "$1" in
        --check) CHECK=1 ;;
        --keep) KEEP=1 ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) TARGETS="$1" ;;
    esac
    shift
done

for tool in cargo git jq tar sha256sum python3 node; do
    need "$tool"
done

if [ -d "$OUT" ] && [ "$KEEP" -eq 0 ]; then
    say "removing the last build"
    rm -rf "$OUT"
fi
mkdir -p "$OUT/bin" "$OUT/share/man" "$OUT/tmp"
git status --short | tee "$OUT/status.txt"
git log --oneline -n 20 > "$OUT/history.txt"

# The formatter and the linter come first: they are quick.
say "checking"
cargo fmt --all -- --check
cargo clippy --workspace --all-targets -- -D warnings 2>&1 | tail -n 40
grep -rn 'dbg!' src crates --include='*.rs' && fail "dbg! is left over"
grep -rnE 'TODO|FIXME' src crates | sort | uniq -c | sort -rn | head -20 || true
if ! git diff --quiet; then
    git diff --stat
    say "the tree is dirty"
fi

say "testing"
cargo test --workspace --no-fail-fast 2>&1 | tee "$LOG"
cargo test --doc -p app-core
python3 -m pytest -q tests/unit --maxfail=3
python3 - <<'CODE'
import json, pathlib
report = json.loads(pathlib.Path("report.json").read_text())
print(sum(case["time"] for case in report["cases"]))
CODE
npm run lint -- --max-warnings=0
npm test -- --watchAll=false
npx --no-install tsc --noEmit
(cd web && npm run build)

if [ "$CHECK" = 1 ]; then
    say "checked $COMMIT"
    exit 0
fi

for target in $TARGETS; do
    triple="$target-unknown-linux-gnu"
    say "building $triple"
    cargo build --profile "$PROFILE" --target "$triple" -j "$JOBS" >> "$LOG" 2>&1
    cp "target/$triple/$PROFILE/app" "$OUT/bin/app-$target"
    strip "$OUT/bin/app-$target"
    file "$OUT/bin/app-$target" | grep -q ELF || fail "no program for $target"
    size=$(stat -c %s "$OUT/bin/app-$target")
    if [ "$size" -gt 20000000 ]; then
        say "$target is $size bytes"
    elif [ "$size" -lt 1000 ]; then
        fail "$target is too small"
    else
        echo "$target $size" >> "$OUT/sizes.txt"
    fi
done

say "documents"
sed -e "s/@VERSION@/$VERSION/" -e "s/@COMMIT@/$COMMIT/" docs/app.1.in > "$OUT/share/man/app.1"
gzip -9 -n "$OUT/share/man/app.1"
sed -i 's/[[:space:]]*$//' CHANGELOG.md
awk '/^## /{n++} n==1' CHANGELOG.md > "$OUT/notes.md"
wc -l "$OUT/notes.md"
cp README.md LICENSE "$OUT/share/"
find docs -name '*.md' -print0 | xargs -0 grep -l 'app serve' | sort > "$OUT/tmp/pages"
while IFS= read -r page; do
    name=$(basename "$page" .md)
    mkdir -p "$OUT/share/html"
    python3 tools/render.py "$page" -o "$OUT/share/html/$name.html"
done < "$OUT/tmp/pages"
for page in "$OUT"/share/html/*.html; do
    [ -s "$page" ] || fail "$page is empty"
done

cat > "$OUT/share/app.service" <<UNIT
[Unit]
Description=App $VERSION

[Service]
ExecStart=/usr/bin/app serve --port 8080
Restart=on-failure
UNIT
cat > "$OUT/share/config.toml" <<'TOML'
# The defaults.
[server]
port = 8080
workers = 4
TOML

say "trying it"
trap cleanup EXIT
"$OUT/bin/app-x86_64" --version
"$OUT/bin/app-x86_64" serve --port 8080 > "$OUT/tmp/serve.log" 2>&1 &
SERVER=$!
for i in 1 2 3 4 5; do
    if grep -q listening "$OUT/tmp/serve.log"; then
        break
    fi
    sleep "$i"
done
[[ -n $SERVER && $VERSION == v* ]] || say "no tag: $VERSION"
"$OUT/bin/app-x86_64" ping --port 8080 --timeout 5
kill "$SERVER"
wait "$SERVER" || true

say "packing"
jq --arg v "$VERSION" '.version = $v' package.json > "$OUT/tmp/package.json"
mv "$OUT/tmp/package.json" package.json
tar -C "$OUT" -czf "$OUT/app-$VERSION.tar.gz" bin share
tar -tzf "$OUT/app-$VERSION.tar.gz" | head -n 5
zip -qr "$OUT/app-$VERSION.zip" "$OUT/bin" "$OUT/share"
(
    cd "$OUT"
    sha256sum app-*.tar.gz app-*.zip > SHA256SUMS
    sha256sum -c SHA256SUMS
)
du -sh "$OUT"
ls -la "$OUT" "$OUT/bin"
test -s "$OUT/SHA256SUMS" && echo ok || exit 1

say "recording"
git add CHANGELOG.md package.json
git commit -q -m "release: $VERSION"
git tag -a "$VERSION-local" -m "built from $COMMIT"
git show --stat HEAD | head -n 20
rm -f "$OUT/tmp/serve.log" "$OUT/history.txt"
find "$OUT" -type f -newer Cargo.lock -exec ls -l {} +
find "$OUT" -name '*.tmp' -delete
df -h . | tail -n 1
date -u +%FT%TZ > "$OUT/stamp"
until [ -s "$OUT/stamp" ]; do
    sleep 1
done
{
    echo "version: $VERSION"
    echo "commit: $COMMIT"
    uname -srm
} > "$OUT/about.txt"
sort -u "$OUT/sizes.txt" -o "$OUT/sizes.txt"
column -t "$OUT/sizes.txt"
say "done: $(wc -c < "$OUT/app-$VERSION.tar.gz") bytes"
exit 0
