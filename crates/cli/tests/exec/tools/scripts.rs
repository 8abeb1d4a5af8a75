//! Scripts that are made executable and run, links to them, and everyday file tools.

use super::judge::Bench;

#[test]
fn scripts_and_file_tools_work() {
    for mut bench in Bench::every() {
        bench.step(
            "/workspace",
            "mkdir bin; printf '#!/bin/sh\necho \"ran in $PWD as $0\"\n' > bin/say; ln -s say bin/alias",
        );
        bench.stored_step(
            "/workspace",
            "chmod +x bin/say; bin/say | grep -qx \"ran in $PWD as bin/say\"",
        );
        bench.stored_step(
            "/workspace",
            "bin/alias | grep -q bin/alias; sed -i s/ran/sang/ bin/say; bin/say | grep -q sang",
        );
        bench.stored_step(
            "/workspace",
            "mkdir -p d/e; for i in $(seq 200); do echo $i > d/e/$i; done; setfattr -n user.a -v 1 d/e/1 2>/dev/null || true
             tar cf t.tar d; mkdir x; tar xf t.tar -C x; diff -r d x/d; touch -d '2001-02-03 04:05:06.789' d/e/7",
        );
        bench.stored_step(
            "/workspace",
            "cp -a d y; mv d z; rm -rf x/d/e; ln z/e/5 five; find y -name '1?' -delete; chmod -R go-rwx y; mkfifo pipe",
        );
        bench.stored_step(
            "/workspace",
            "mv z/e z/f; rmdir x/d; mkdir x/d; echo back > x/d/e; rm five t.tar; gzip y/e/200",
        );
        bench.still_there(
            "/workspace",
            &["bin/say | grep -q sang; test $(ls z/f | wc -l) = 200; test ! -e z/e; zcat y/e/200.gz | grep -qx 200"],
        );
    }
}
