//! Real tools in a view, and on the host's filesystem: each times itself.

use std::process::Command;

use crate::bed::{Bed, Caches, drop_caches, host, make_tree, rest};

/// One job, as shell text; it runs in an empty directory that the jobs before it filled.
struct Job {
    name: &'static str,
    text: &'static str,
    role: Role,
}

/// Whether a job is part of the budget for tools.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Budgeted,
    Shown,
}

/// git must not repack in the background: on the host that would overlap with the next job, and in a view it would be killed
/// with the command.
const JOBS: [Job; 11] = [
    Job {
        name: "untar",
        text: "tar xf \"$TAR\"",
        role: Role::Budgeted,
    },
    Job {
        name: "git init + add + commit",
        text: "git init -q . && git add -A && \
               git -c gc.auto=0 -c user.name=a -c user.email=a@b commit -qm one",
        role: Role::Budgeted,
    },
    Job {
        name: "git status, first after it",
        text: "git status --porcelain",
        role: Role::Shown,
    },
    Job {
        name: "git status, warm",
        text: "git status --porcelain",
        role: Role::Budgeted,
    },
    Job {
        name: "grep -r, first",
        text: "grep -r nosuchtext . || true",
        role: Role::Shown,
    },
    Job {
        name: "grep -r, warm",
        text: "grep -r nosuchtext . || true",
        role: Role::Shown,
    },
    Job {
        name: "find + stat all, warm",
        text: "find . -size +1000k",
        role: Role::Shown,
    },
    Job {
        name: "cargo build of 40 modules",
        text: "cd crate && cargo build -q --offline",
        role: Role::Budgeted,
    },
    Job {
        name: "sqlite, 1000 commits",
        text: "python3 -c 'import sqlite3\nc = sqlite3.connect(\"db\")\nc.execute(\"create table t(a)\")\n\
               for i in range(1000): c.execute(\"insert into t values (1)\") and c.commit()'",
        role: Role::Shown,
    },
    Job {
        name: "rm -rf",
        text: "rm -rf d*",
        role: Role::Budgeted,
    },
    Job {
        name: "256 MB written and synced",
        text: "dd if=/dev/zero of=big bs=1M count=256 conv=fsync 2>&1; rm big",
        role: Role::Shown,
    },
];

/// The prepared state of every round.
const WARM_UP: &str = "cat \"$TAR\"; git version; cargo version; python3 -c pass";

const ROUNDS: usize = 3;

/// Milliseconds of every round of a job.
#[derive(Default, Clone)]
struct Times {
    native: Vec<f64>,
    viewed: Vec<f64>,
    commits: Vec<f64>,
}

pub fn measure(bed: &Bed, files: usize) {
    let packed = pack(bed, files);
    bed.avfs(&["vault", "create", "tools"]);
    bed.avfs(&["--vault", "tools", "import", &packed, "/packed"]);
    println!(
        "\n| {files} files × 4 KB, ms | native | in the view | ratio | commit after it |\n|---|---|---|---|---|"
    );
    let tar = format!("{packed}/tree.tar");
    let mut times = vec![Times::default(); JOBS.len()];
    for round in 0..ROUNDS {
        let top = bed.path(&format!("native-{round}"));
        std::fs::create_dir(&top).expect("a directory");
        let top = top.to_str().expect("plain");
        settle();
        shell(&timing(WARM_UP, &tar, top));
        each(&mut times, |job, times| {
            let took = last_number(&shell(&timing(job.text, &tar, top)));
            times.native.push(took);
        });
        settle();
        bed.shell("tools", &timing(WARM_UP, "/packed/tree.tar", "/"));
        each(&mut times, |job, times| in_the_view(bed, round, job, times));
    }
    print_jobs(&mut times);
    first_commands(bed, &tar);
}

fn each(times: &mut [Times], run: impl Fn(&Job, &mut Times)) {
    for (job, times) in JOBS.iter().zip(times) {
        // Synced, so that no job waits for writes of the one before.
        host(&["sync"]);
        run(job, times);
    }
}

/// Waits for the daemon's background work, and for ext4: without a journal it avoids recently freed inodes for a minute,
/// which makes new files twice as expensive, unless its cache was dropped.
fn settle() {
    rest();
    if drop_caches(Caches::Pages).is_err() {
        std::thread::sleep(std::time::Duration::from_secs(61));
    }
}

fn in_the_view(bed: &Bed, round: usize, job: &Job, times: &mut Times) {
    let directory = format!("/run-{round}");
    let script = timing(job.text, "/packed/tree.tar", &directory);
    let envelope = bed.shell("tools", &format!("mkdir -p {directory}; {script}"));
    times.viewed.push(last_number(&envelope.result.stdout));
    let timings = serde_json::to_value(envelope.result.timings).expect("plain data");
    let commit = timings["commit_us"].as_f64().expect("a number");
    times.commits.push(commit / 1e3);
}

fn print_jobs(times: &mut [Times]) {
    let mut budgeted = Vec::new();
    for (job, times) in JOBS.iter().zip(times) {
        let (native, viewed) = (median(&mut times.native), median(&mut times.viewed));
        let (ratio, commit) = (viewed / native, median(&mut times.commits));
        if job.role == Role::Budgeted {
            budgeted.push(ratio);
        }
        let mark = if job.role == Role::Budgeted { "*" } else { "" };
        println!(
            "| {}{mark} | {native:.0} | {viewed:.0} | {ratio:.2} | {commit:.0} |",
            job.name
        );
    }
    let product: f64 = budgeted.iter().product();
    println!(
        "\nRows with * : geometric mean {:.2}, worst {:.2}",
        product.powf(1.0 / budgeted.len() as f64),
        budgeted.iter().copied().fold(0.0, f64::max)
    );
}

/// The first operations on a committed tree.
const FIRST: [(&str, &str); 2] = [
    ("git status", "cd repo && git status --porcelain"),
    ("grep -r", "cd repo && grep -rl zzzzzz . || true"),
];

/// What is cached of the tree when it is forked, in the order of the trials.
#[derive(Clone, Copy)]
enum Known {
    /// The daemon had time to store and to list the tree.
    AtRest,
    /// Nothing is cached.
    Nothing,
    /// It was changed and read a moment ago.
    InUse,
}

/// A fork's first command, and the same on the host.
fn first_commands(bed: &Bed, tar: &str) {
    if drop_caches(Caches::All).is_err() {
        println!("first commands: skipped, only root can drop the host's caches");
        return;
    }
    println!("\n| first command, ms | native | in a new fork | ratio |\n|---|---|---|---|");
    for (number, (name, text)) in FIRST.into_iter().enumerate() {
        let vault = format!("first-{number}");
        let directory = prepare_twice(bed, tar, &vault);
        rest();
        for (known, how) in [
            (Known::AtRest, "at rest"),
            (Known::Nothing, "caches dropped"),
            (Known::InUse, "in use"),
        ] {
            let (mut native, mut viewed) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                let here = timing(text, tar, &directory);
                bring_about(known, || drop(shell(&here)));
                native.push(last_number(&shell(&here)));
                let (there, fork) = (timing(text, tar, "/"), format!("{vault}-{how}-{round}"));
                let fork = fork.replace(' ', "-");
                if let Known::InUse = known {
                    bed.shell(&vault, &format!("touch /used-{round}; {there}"));
                }
                bed.avfs(&["vault", "fork", &vault, &fork]);
                bring_about(known, || ());
                viewed.push(last_number(&bed.shell(&fork, &there).result.stdout));
            }
            let (native, viewed) = (median(&mut native), median(&mut viewed));
            let ratio = viewed / native;
            println!("| {name}, {how} | {native:.0} | {viewed:.0} | {ratio:.2} |");
        }
    }
}

/// A committed tree in a vault and in a directory of the host, which is returned.
fn prepare_twice(bed: &Bed, tar: &str, vault: &str) -> String {
    const PREPARE: &str = "mkdir repo && cd repo && tar xf \"$TAR\" && git init -q . && git add -A && \
                           git -c gc.auto=0 -c user.name=a -c user.email=a@b commit -qm one && git status";
    bed.avfs(&["vault", "create", vault]);
    bed.avfs(&["--vault", vault, "import", &bed.packed(), "/packed"]);
    bed.shell(vault, &timing(PREPARE, "/packed/tree.tar", "/"));
    let directory = bed.path(&format!("native-{vault}"));
    std::fs::create_dir(&directory).expect("a directory");
    let directory = directory.to_str().expect("plain").to_owned();
    shell(&timing(PREPARE, tar, &directory));
    directory
}

fn bring_about(known: Known, look: impl Fn()) {
    match known {
        Known::Nothing => drop_caches(Caches::All).expect("it went before"),
        Known::AtRest | Known::InUse => look(),
    }
}

/// A directory with `tree.tar`: that many files, and a crate to build.
pub fn pack(bed: &Bed, files: usize) -> String {
    let source = bed.path("to-tar");
    if source.exists() {
        return bed.packed();
    }
    make_tree(&source, files);
    make_crate(&source.join("crate"));
    let packed = bed.packed();
    std::fs::create_dir(&packed).expect("a directory");
    let source = source.to_str().expect("plain");
    host(&[
        "tar",
        "cf",
        &format!("{packed}/tree.tar"),
        "-C",
        source,
        ".",
    ]);
    packed
}

/// A crate without dependencies that takes a compiler a second or two.
fn make_crate(top: &std::path::Path) {
    std::fs::create_dir_all(top.join("src")).expect("a directory");
    let manifest =
        "[package]\nname = \"built\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    std::fs::write(top.join("Cargo.toml"), manifest).expect("a file");
    let mut main = String::new();
    let mut calls = String::new();
    for number in 0..40 {
        main.push_str(&format!("mod m{number};\n"));
        calls.push_str(&format!("    println!(\"{{}}\", m{number}::sum(3));\n"));
        let mut module = String::from("use std::collections::BTreeMap;\n");
        for inner in 0..20 {
            module.push_str(&format!(
                "pub fn f{inner}(n: u64) -> BTreeMap<u64, String> {{\n    \
                 (0..n).map(|i| (i, format!(\"{{i}} {inner}\"))).collect()\n}}\n"
            ));
        }
        module.push_str("pub fn sum(n: u64) -> usize {\n    f0(n).len() + f19(n).len()\n}\n");
        std::fs::write(top.join(format!("src/m{number}.rs")), module).expect("a file");
    }
    main.push_str(&format!("fn main() {{\n{calls}}}\n"));
    std::fs::write(top.join("src/main.rs"), main).expect("a file");
}

pub fn shell(script: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .output()
        .expect("sh runs");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The job in `directory`, printing its milliseconds last.
pub fn timing(text: &str, tar: &str, directory: &str) -> String {
    format!(
        "export TAR={tar}; cd {directory} && s=$(date +%s%N) && ( {text}; ) > /dev/null && \
         e=$(date +%s%N) && echo $(( (e - s) / 1000 ))"
    )
}

pub fn last_number(text: &str) -> f64 {
    let micros: f64 = text
        .trim()
        .lines()
        .last()
        .unwrap_or("")
        .parse()
        .expect("a time was printed");
    micros / 1e3
}

pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
