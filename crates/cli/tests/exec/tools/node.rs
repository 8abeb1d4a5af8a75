//! npm and node: an installation from the cache, a build, programs behind links, a renamed directory.

use super::judge::Bench;
use avfs_testkit::skip;

/// A package of one program, packed and put into the cache; then a project that locks it.
const PROJECT: &str = r#"
mkdir -p package project/src; cd package
cat > package.json <<'END'
{"name": "shout", "version": "1.0.0", "bin": {"shout": "cli.js"}}
END
cat > cli.js <<'END'
#!/usr/bin/env node
const fs = require('fs');
fs.mkdirSync('dist', {recursive: true});
for (const name of fs.readdirSync('src'))
  fs.writeFileSync('dist/' + name, fs.readFileSync('src/' + name, 'utf8').toUpperCase());
END
npm pack --json > packed.json; npm cache add ./shout-1.0.0.tgz; cd ../project
for i in 1 2 3; do echo "text $i" > src/$i; done
cat > package.json <<'END'
{"name": "project", "version": "1.0.0", "scripts": {"build": "shout"}, "dependencies": {"shout": "1.0.0"}}
END
node -e '
const packed = JSON.parse(require("fs").readFileSync("../package/packed.json"));
const integrity = (Array.isArray(packed) ? packed[0] : Object.values(packed)[0]).integrity;
const root = JSON.parse(require("fs").readFileSync("package.json"));
const shout = {version: "1.0.0", resolved: "https://packages.invalid/shout-1.0.0.tgz", integrity, bin: {shout: "cli.js"}};
const lock = {name: "project", version: "1.0.0", lockfileVersion: 3, requires: true,
  packages: {"": root, "node_modules/shout": shout}};
require("fs").writeFileSync("package-lock.json", JSON.stringify(lock));'
"#;

#[test]
fn npm_installs_from_its_cache_and_builds() {
    for mut bench in Bench::most() {
        if bench.shown.run("/", &["npm", "--version"]).code != Some(0) {
            return skip("no npm in the sandbox of this machine");
        }
        bench.step("/workspace", PROJECT);
        let project = "/workspace/project";
        bench.stored_step(
            project,
            "npm ci --offline --no-audit --no-fund --loglevel=error",
        );
        bench.stored_step(
            project,
            "test -L node_modules/.bin/shout; npm run build --silent; grep -qx 'TEXT 2' dist/2",
        );
        bench.stored_step(
            project,
            "node -e \"require('fs').renameSync('dist', 'out'); require('fs').renameSync('src', 'source')\"
             test -e out/3 -a -e source/3 -a ! -e dist -a ! -e src; mv source src",
        );
        bench.stored_step(
            project,
            "npm ci --offline --no-audit --no-fund --loglevel=error",
        );
        bench.still_there(
            project,
            &["rm -r out; node_modules/.bin/shout; grep -qx 'TEXT 3' dist/3; npm ls --offline"],
        );
    }
}
