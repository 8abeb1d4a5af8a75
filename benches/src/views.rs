//! Vaults as directories, and the host's own filesystem: set-up, reading and writing, SQLite, one byte appended to a large
//! file, and the tools in a mount that the daemon serves.

pub mod io;

use std::path::{Path, PathBuf};
use std::time::Duration;

use avfs_api::wire::Commit;

use crate::bed::{Bed, Caches, drop_caches, host, median_ms, timed};
use crate::pointers::ensure_vault;
use crate::tools::{last_number, median, pack, shell, timing};

const ROUNDS: usize = 3;
/// The file that is read, and the one that a byte is appended to.
const STORED_MB: usize = 256;
const APPENDED_MB: usize = 100;

/// One job as shell text, which runs in an empty directory; `$BENCH` is this program.
struct Job {
    name: &'static str,
    text: &'static str,
    clock: Clock,
}

/// Who times a job.
enum Clock {
    /// The job prints its microseconds itself, without its preparation.
    Own,
    Shell,
}

const INPUT_OUTPUT: [Job; 8] = [
    own(
        "1 MB reads of a stored file of 256 MB, first",
        "$BENCH __io read $STORED",
    ),
    own("the same, again", "$BENCH __io read $STORED"),
    own(
        "4 KB random reads of it, 20,000",
        "$BENCH __io random-read $STORED",
    ),
    own(
        "1 MB writes, 256 MB synced at the end",
        "$BENCH __io write new",
    ),
    own(
        "4 KB random writes, 10,000 synced at the end",
        "$BENCH __io random-write new",
    ),
    own(
        "4 KB writes, 200, each synced",
        "$BENCH __io synced-write new",
    ),
    Job {
        name: "SQLite, 300 commits, delete mode",
        text: "python3 -c 'import sqlite3\nc = sqlite3.connect(\"db\")\nc.execute(\"create table t(a)\")\n\
               for i in range(300): c.execute(\"insert into t values (1)\") and c.commit()'",
        clock: Clock::Shell,
    },
    Job {
        name: "SQLite, 300 commits, WAL",
        text: "python3 -c 'import sqlite3\nc = sqlite3.connect(\"wal\")\nc.execute(\"pragma journal_mode=wal\")\n\
               c.execute(\"create table t(a)\")\n\
               for i in range(300): c.execute(\"insert into t values (1)\") and c.commit()'",
        clock: Clock::Shell,
    },
];

const TOOLS: [Job; 6] = [
    by_shell("untar", "tar xf \"$TAR\""),
    by_shell(
        "git init + add + commit",
        "git init -q . && git add -A && git -c gc.auto=0 -c user.name=a -c user.email=a@b commit -qm one",
    ),
    by_shell("git status, first after it", "git status --porcelain"),
    by_shell("git status, warm", "git status --porcelain"),
    by_shell("grep -r, warm", "grep -r nosuchtext . || true"),
    by_shell("rm -rf", "rm -rf d*"),
];

const fn own(name: &'static str, text: &'static str) -> Job {
    let clock = Clock::Own;
    Job { name, text, clock }
}

const fn by_shell(name: &'static str, text: &'static str) -> Job {
    let clock = Clock::Shell;
    Job { name, text, clock }
}

/// The paths of the files for jobs, as the job sees them.
struct Things {
    bench: String,
    tar: String,
}

impl Things {
    fn beneath(top: &Path) -> Things {
        let top = top.display();
        Things {
            bench: format!("{top}/bench"),
            tar: format!("{top}/packed/tree.tar"),
        }
    }
}

pub fn measure(bed: &Bed, sizes: &[usize], files: usize) {
    let drivers = drivers(bed);
    println!("\n| set-up, ms | files | mount | first `ls` | unmount |\n|---|---|---|---|---|");
    for &files in sizes {
        set_up(bed, &drivers, files);
    }
    let packed = pack(bed, files);
    let bench = bed.path("bench");
    std::fs::create_dir(&bench).expect("a directory");
    let own = std::env::current_exe().expect("this program has a path");
    std::fs::copy(own, bench.join("avfs-bench")).expect("a copy of this program");
    io::fill(&bench.join("stored"), STORED_MB);
    io::fill(&bench.join("appended"), APPENDED_MB);
    bed.avfs(&["vault", "create", "views"]);
    for (from, to) in [(plain(&bench), "/bench"), (packed.as_str(), "/packed")] {
        bed.avfs(&["--vault", "views", "import", from, to]);
    }
    println!(
        "\n| ms | native | in a command's view | ratio | in a FUSE mount | ratio |\n|---|---|---|---|---|---|"
    );
    let native = Things {
        bench: plain(&bench).to_owned(),
        tar: format!("{packed}/tree.tar"),
    };
    let can_mount = drivers.contains(&"fuse");
    compare(bed, &INPUT_OUTPUT, &native, "io", can_mount);
    compare(bed, &TOOLS, &native, "work", can_mount);
    appended(bed, &bench);
    commits(bed, &drivers, sizes[sizes.len().min(2) - 1]);
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("plain path")
}

/// The drivers that this user can mount with; unavailable ones are reported.
fn drivers(bed: &Bed) -> Vec<&'static str> {
    bed.avfs(&["vault", "create", "tried"]);
    let mut drivers = vec!["overlay", "fuse"];
    drivers.retain(|driver| {
        let mount = Mount::at(bed, &format!("tried-{driver}"));
        let words = ["--vault", "tried", "mount", "--driver", driver];
        match bed.try_avfs(&[&words[..], &[plain(&mount.dir)]].concat()) {
            Ok(()) => drop(mount.end()),
            Err(said) => {
                let why = said.lines().next().unwrap_or_default();
                println!("mounts by {driver}: skipped, {why}");
                return false;
            }
        }
        true
    });
    drivers
}

/// How long it takes until a mounted vault answers; natively one would copy it.
fn set_up(bed: &Bed, drivers: &[&str], files: usize) {
    let vault = ensure_vault(bed, files);
    for driver in drivers {
        host(&["sync"]);
        let mount = Mount::at(bed, &format!("set-up-{files}-{driver}"));
        let (mut mounting, mut listing, mut ending) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..11 {
            mounting.push(milliseconds(mount.make(&vault, driver)));
            listing.push(milliseconds(timed(|| {
                assert!(
                    std::fs::read_dir(mount.dir.join("workspace"))
                        .expect("it is mounted")
                        .count()
                        > 0
                );
            })));
            ending.push(milliseconds(mount.end()));
        }
        println!(
            "| {driver} | {files} | {:.2} | {:.2} | {:.2} |",
            median(&mut mounting),
            median(&mut listing),
            median(&mut ending)
        );
    }
    if files > 100_000 {
        return;
    }
    let (tree, copy) = (bed.path(&format!("tree-{files}")), bed.path("copied"));
    let time = milliseconds(timed(|| host(&["cp", "-a", plain(&tree), plain(&copy)])));
    println!("| native: `cp -a` of it | {files} | {time:.0} | - | - |");
    host(&["rm", "-rf", plain(&copy)]);
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A directory for mounts.
struct Mount<'a> {
    bed: &'a Bed,
    dir: PathBuf,
}

impl Mount<'_> {
    fn at<'a>(bed: &'a Bed, name: &str) -> Mount<'a> {
        let dir = bed.path(&format!("mnt-{name}"));
        Mount { bed, dir }
    }

    fn make(&self, vault: &str, driver: &str) -> Duration {
        let dir = plain(&self.dir);
        self.bed
            .cli(&["--vault", vault, "mount", "--driver", driver, dir])
    }

    fn end(&self) -> Duration {
        self.bed.cli(&["unmount", plain(&self.dir)])
    }
}

/// Each job natively, in a command, and in a mount; every round starts with a new fork.
fn compare(bed: &Bed, jobs: &[Job], native: &Things, name: &str, can_mount: bool) {
    let mut times = vec![[const { Vec::new() }; 3]; jobs.len()];
    for round in 0..ROUNDS {
        let directory = bed.path(&format!("views-{name}-{round}"));
        std::fs::create_dir(&directory).expect("a directory");
        cold_where_possible();
        for (job, times) in jobs.iter().zip(&mut times) {
            host(&["sync"]);
            let text = script(job, native, plain(&directory));
            times[0].push(last_number(&shell(&text)));
        }
        host(&["rm", "-rf", plain(&directory)]);
        let fork = format!("views-{name}-{round}");
        bed.avfs(&["vault", "fork", "views", &fork]);
        cold_where_possible();
        for (job, times) in jobs.iter().zip(&mut times) {
            host(&["sync"]);
            let text = script(job, &Things::beneath(Path::new("")), "/job");
            let done = bed.shell(&fork, &format!("mkdir -p /job; {text}"));
            times[1].push(last_number(&done.result.stdout));
        }
        if !can_mount {
            continue;
        }
        let (fork, mount) = (format!("{fork}-mounted"), Mount::at(bed, name));
        bed.avfs(&["vault", "fork", "views", &fork]);
        cold_where_possible();
        mount.make(&fork, "fuse");
        let directory = mount.dir.join("job");
        std::fs::create_dir(&directory).expect("a directory in the mount");
        for (job, times) in jobs.iter().zip(&mut times) {
            host(&["sync"]);
            let text = script(job, &Things::beneath(&mount.dir), plain(&directory));
            times[2].push(last_number(&shell(&text)));
        }
        mount.end();
    }
    for (job, times) in jobs.iter().zip(&mut times) {
        let [native, viewed, mounted] = times;
        let (native, viewed) = (median(native), median(viewed));
        print!(
            "| {} | {native:.0} | {viewed:.0} | {:.2} |",
            job.name,
            viewed / native
        );
        match can_mount {
            true => {
                let mounted = median(mounted);
                println!(" {mounted:.0} | {:.2} |", mounted / native);
            }
            false => println!(" - | - |"),
        }
    }
}

/// The job as text that prints its microseconds last.
fn script(job: &Job, things: &Things, directory: &str) -> String {
    let Things { bench, tar } = things;
    let set = format!("export BENCH={bench}/avfs-bench STORED={bench}/stored;");
    match job.clock {
        Clock::Own => format!("{set} cd {directory} && {}", job.text),
        Clock::Shell => format!("{set} {}", timing(job.text, tar, directory)),
    }
}

/// So that the first read is from the disk on all sides. Only root can drop caches; otherwise it is from memory on all sides.
fn cold_where_possible() {
    let _ = drop_caches(Caches::All);
}

/// One byte appended to a large file: the time of the first write, and the stored bytes.
fn appended(bed: &Bed, bench: &Path) {
    let (from, to) = (bench.join("appended"), bed.path("appended"));
    let copy = median_ms(ROUNDS, |_| {
        host(&["sync"]);
        timed(|| io::copy(&from, &to))
    });
    let (mut waits, mut commits, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let fork = format!("views-append-{round}");
        bed.avfs(&["vault", "fork", "views", &fork]);
        bed.shell(&fork, "true");
        host(&["sync"]);
        let before = stored_bytes(bed);
        let done = bed.shell(&fork, "/bench/avfs-bench __io append /bench/appended");
        waits.push(last_number(&done.result.stdout));
        commits.push(done.result.timings.commit_us as f64 / 1e3);
        bytes.push((stored_bytes(bed) - before) as f64);
    }
    let (wait, commit) = (median(&mut waits), median(&mut commits));
    println!(
        "\none byte appended to a stored file of {APPENDED_MB} MB: {wait:.0} ms in the command ({:.2} GB/s; \
         a synced copy on the host takes {copy:.0} ms), commit {commit:.0} ms, {:.0} KB more in the store",
        APPENDED_MB as f64 / wait,
        median(&mut bytes) / 1e3
    );
}

/// Bytes of all packs and objects.
fn stored_bytes(bed: &Bed) -> u64 {
    let mut waiting = vec![bed.path("home/packs"), bed.path("home/objects")];
    let mut bytes = 0;
    while let Some(directory) = waiting.pop() {
        for item in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match item.metadata() {
                Ok(found) if found.is_dir() => waiting.push(item.path()),
                Ok(found) => bytes += found.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

/// Ten files changed by programs of the host in a mount: the time of a commit.
fn commits(bed: &Bed, drivers: &[&str], files: usize) {
    let vault = ensure_vault(bed, files);
    for driver in drivers {
        let mount = Mount::at(bed, &format!("commit-{driver}"));
        mount.make(&vault, driver);
        let mut client = bed.client();
        let commit = median_ms(11, |round| {
            for number in 0..10 {
                let path = format!("workspace/d000/e0{number}/f{number}00.txt");
                std::fs::write(mount.dir.join(path), format!("{driver} {round}"))
                    .expect("a file in the mount");
            }
            timed(|| drop(client.call(&vault, &Commit {}).expect("commits")))
        });
        mount.end();
        println!(
            "commit of 10 files changed in a mount ({driver}) of {files}: {commit:.2} ms over the socket"
        );
    }
}
