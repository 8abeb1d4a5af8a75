//! Real tools in a view beside the same tools on the host's filesystem: each times itself.

use std::process::Command;

use crate::bed::{Bed, host, make_tree};

/// One job, as shell text; it runs in an empty directory that the jobs before it filled.
struct Job {
    name: &'static str,
    text: &'static str,
}

const JOBS: [Job; 10] = [
    Job {
        name: "untar",
        text: "tar xf \"$TAR\"",
    },
    Job {
        name: "git init + add + commit",
        text: "git init -q . && git add -A && \
               git -c user.name=a -c user.email=a@b commit -qm one",
    },
    Job {
        name: "git status, first after it",
        text: "git status --porcelain",
    },
    Job {
        name: "git status, warm",
        text: "git status --porcelain",
    },
    Job {
        name: "grep -r, first",
        text: "grep -r nosuchtext . || true",
    },
    Job {
        name: "grep -r, warm",
        text: "grep -r nosuchtext . || true",
    },
    Job {
        name: "find + stat all, warm",
        text: "find . -size +1000k",
    },
    Job {
        name: "sqlite, 1000 commits",
        text: "python3 -c 'import sqlite3\nc = sqlite3.connect(\"db\")\nc.execute(\"create table t(a)\")\n\
               for i in range(1000): c.execute(\"insert into t values (1)\") and c.commit()'",
    },
    Job {
        name: "rm -rf",
        text: "rm -rf d*",
    },
    Job {
        name: "256 MB written and synced",
        text: "dd if=/dev/zero of=big bs=1M count=256 conv=fsync 2>&1; rm big",
    },
];

pub fn measure(bed: &Bed, files: usize) {
    let source = bed.path("to-tar");
    make_tree(&source, files);
    let tar = bed.path("tree.tar");
    let (source, tar) = (
        source.to_str().expect("plain"),
        tar.to_str().expect("plain"),
    );
    host(&["tar", "cf", tar, "-C", source, "."]);
    let packed = bed.path("packed");
    std::fs::create_dir(&packed).expect("a directory");
    std::fs::copy(tar, packed.join("tree.tar")).expect("a copy");
    bed.avfs(&["vault", "create", "tools"]);
    bed.avfs(&[
        "--vault",
        "tools",
        "import",
        packed.to_str().expect("plain"),
        "/packed",
    ]);
    println!(
        "\n| {files} files × 4 KB, ms | native | in the view | ratio | commit after it |\n|---|---|---|---|---|"
    );
    let rounds = 3;
    let mut native = vec![Vec::new(); JOBS.len()];
    let mut viewed = vec![Vec::new(); JOBS.len()];
    let mut commits = vec![Vec::new(); JOBS.len()];
    for round in 0..rounds {
        let directory = bed.path(&format!("native-{round}"));
        std::fs::create_dir(&directory).expect("a directory");
        for (index, job) in JOBS.iter().enumerate() {
            let script = timing(job, tar, directory.to_str().expect("plain"));
            let output = Command::new("sh")
                .args(["-c", &script])
                .output()
                .expect("sh runs");
            native[index].push(last_number(&String::from_utf8_lossy(&output.stdout)));
        }
        for (index, job) in JOBS.iter().enumerate() {
            let directory = format!("/run-{round}");
            let script = timing(job, "/packed/tree.tar", &directory);
            let envelope = bed.shell("tools", &format!("mkdir -p {directory}; {script}"));
            viewed[index].push(last_number(&envelope.result.stdout));
            let timings = serde_json::to_value(envelope.result.timings).expect("plain data");
            commits[index].push(timings["commit_us"].as_f64().expect("a number") / 1e3);
        }
    }
    let mut product = 1.0;
    for (index, job) in JOBS.iter().enumerate() {
        let (native, viewed) = (median(&mut native[index]), median(&mut viewed[index]));
        let commit = median(&mut commits[index]);
        let ratio = viewed / native;
        product *= ratio;
        println!(
            "| {} | {native:.0} | {viewed:.0} | {ratio:.2} | {commit:.0} |",
            job.name
        );
    }
    println!(
        "| geometric mean | | | {:.2} | |",
        product.powf(1.0 / JOBS.len() as f64)
    );
}

/// The job in `directory`, printing its milliseconds last.
fn timing(job: &Job, tar: &str, directory: &str) -> String {
    format!(
        "export TAR={tar}; cd {directory} && s=$(date +%s%N) && {{ {}; }} > /dev/null && \
         e=$(date +%s%N) && echo $(( (e - s) / 1000 ))",
        job.text
    )
}

fn last_number(text: &str) -> f64 {
    let micros: f64 = text
        .trim()
        .lines()
        .last()
        .unwrap_or("")
        .parse()
        .expect("a time was printed");
    micros / 1e3
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
