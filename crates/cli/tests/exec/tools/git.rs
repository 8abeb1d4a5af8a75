//! git: clone, commit, mv, stash, rebase, worktree, gc.

use super::judge::Bench;

const IDENTITY: &str = "git config --global user.name A; git config --global user.email a@b; \
     git config --global init.defaultBranch main; git config --global advice.detachedHead false";

#[test]
fn git_works_on_new_and_on_stored_files() {
    for mut bench in Bench::every() {
        bench.shown.shell("/", IDENTITY);
        bench.step(
            "/workspace",
            "mkdir -p origin/src/deep; cd origin; git init -q .
             for i in $(seq 40); do echo \"line $i\" > src/f$i; done; cp src/f* src/deep/
             printf '#!/bin/sh\necho run\n' > run; chmod +x run; ln -s src/f1 link
             git add -A; git commit -qm one",
        );
        bench.stored_step("/workspace", "git clone -q origin work");
        let work = "/workspace/work";
        bench.stored_step(
            work,
            "git switch -qc topic; sed -i s/line/row/ src/f1 src/deep/f2; git commit -qam two",
        );
        bench.stored_step(
            work,
            "git mv src lib; git commit -qm 'move a stored directory'",
        );
        bench.stored_step(
            work,
            "echo more >> lib/f3; echo new > untracked; git stash -qu; test ! -e untracked
             git diff --quiet; git stash pop -q; grep -q more lib/f3; git add -A; git commit -qm three",
        );
        bench.stored_step(
            work,
            "git switch -q main; echo other > other; git add other; git commit -qm other
             git switch -q topic; git rebase -q main; test -e other; ./run | grep -qx run",
        );
        bench.stored_step(work, "git worktree add -q ../tree -b side; cd ../tree; echo side > side; git add side; git commit -qm side");
        bench.stored_step(
            work,
            "git gc -q --prune=now; git count-objects -v | grep -qx 'count: 0'",
        );
        bench.stored_step(
            work,
            "git merge -q --no-edit side; git worktree remove ../tree; git -C ../origin fetch -q ../work topic:topic",
        );
        bench.stored_step(work, "rm -rf lib/deep; git checkout -q -- lib/deep; git clean -qfdx; git reset -q --hard HEAD~1");
        bench.still_there(
            work,
            &[
                "test -z \"$(git status --porcelain)\"; git fsck --strict --no-progress",
                "test $(git log --oneline | wc -l) = 5; cat link && false || test -L link",
                "git -C ../origin fsck --strict --no-progress; git -C ../origin log --oneline topic",
            ],
        );
    }
}
