//! Commands at a terminal, with a person who types: shells, programs that fill the screen, jobs to sit down at.

use avfs_testkit::{Home, Person, SOON, leftover_processes, signal, wait_for, with_vault};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Command;

use crate::AVFS;

fn command(home: &Home, words: &[&str]) -> Command {
    let mut command = home.command(words);
    command.env("TERM", "xterm-256color");
    command
}

fn person(home: &Home, words: &[&str]) -> Person {
    Person::start(command(home, words))
}

/// A shell whose prompt cannot be mistaken for what is typed.
const SHELL: [&str; 8] = [
    "exec",
    "--tty",
    "--env",
    "PS1=<$((1+1))> ",
    "--",
    "bash",
    "--norc",
    "--noprofile",
];

/// Text for a shell that waits until its terminal has that size.
fn until_sized(size: &str) -> String {
    format!("until [ \"$(stty size)\" = '{size}' ]; do sleep 0.05; done; echo sized $((2-1))")
}

#[test]
fn a_shell_has_a_terminal_of_its_own() {
    with_vault(AVFS, |home| {
        let mut person = person(home, &SHELL);
        person.answer(
            "<2>",
            "tty; test -t 0 && test -t 1 && test -t 2 && echo all; echo $TERM; stty size",
        );
        person.wait_for("/dev/terminals/0");
        person.wait_for("all");
        person.wait_for("xterm-256color");
        person.wait_for("24 80");
        // A shell that is signalled on the way to its prompt does what is trapped after the next key only.
        let reads = "until read -t 0.1; do :; done";
        let trap = format!("trap 'echo now $(stty size)' WINCH; echo set $((1+1)); {reads}");
        person.answer("<2>", &trap);
        person.wait_for("set 2");
        person.resize(31, 101);
        person.wait_for("now 31 101");
        person.type_keys("\necho made > /made; exit 5\n");
        let (status, text) = person.end();
        assert_eq!(status.code(), Some(5), "{text}");
        assert!(
            text.contains("1 path changed"),
            "the report follows: {text}"
        );
        assert_eq!(home.ok(&["cat", "/made"]), "made\n");
    });
}

#[test]
fn a_terminal_sized_before_its_command_begins_has_that_size() {
    with_vault(AVFS, |home| {
        let daemon = home.daemon_pid().unwrap();
        for rows in 30..36 {
            signal(daemon, Signal::STOP);
            let sized = until_sized(&format!("{rows} 101"));
            let mut person = person(home, &["exec", "--tty", "--", "sh", "-c", &sized]);
            let is_raw = wait_for(SOON, || person.is_raw());
            person.resize(rows, 101);
            signal(daemon, Signal::CONT);
            assert!(is_raw);
            person.wait_for("sized 1");
            assert!(person.end().0.success());
        }
    });
}

#[test]
fn keys_are_signals_for_what_is_in_front() {
    with_vault(AVFS, |home| {
        let marker = &format!("8{:07}.25", std::process::id());
        let mut person = person(home, &SHELL);
        person.answer("<2>", &format!("sleep {marker}"));
        assert!(wait_for(SOON, || !leftover_processes(marker).is_empty()));
        person.type_keys("\x03");
        person.answer("<2>", "echo ended $?");
        person.wait_for("ended 130");
        person.answer("<2>", &format!("sleep {marker}"));
        assert!(wait_for(SOON, || !leftover_processes(marker).is_empty()));
        person.type_keys("\x1a");
        person.wait_for("Stopped");
        person.answer("<2>", "fg");
        person.wait_for(&format!("sleep {marker}"));
        // A checkpoint holds all processes still for a moment, which must not look like Ctrl-Z.
        home.ok(&["checkpoint", "save", "meanwhile"]);
        person.type_keys("\x03");
        person.answer("<2>", "jobs; echo none $(jobs | wc -l)");
        person.wait_for("none 0");
        person.type_keys("exit\n");
        assert!(person.end().0.success());
        assert!(leftover_processes(marker).is_empty());
    });
}

#[test]
fn nobody_but_the_person_types() {
    with_vault(AVFS, |home| {
        let script = "import fcntl
for what in (0x5412, 0x541c):
    try: fcntl.ioctl(0, what, b'x'); print('typed')
    except OSError as error: print('refused', error.errno)
";
        let (status, text) = person(home, &["exec", "--tty", "--", "python3", "-c", script]).end();
        assert!(status.success(), "{text}");
        assert_eq!(text.matches("refused 1").count(), 2, "{text}");
    });
}

#[test]
fn programs_that_fill_the_screen_work() {
    with_vault(AVFS, |home| {
        let mut vim = person(
            home,
            &[
                "exec",
                "-t",
                "--",
                "vim",
                "-u",
                "NONE",
                "-i",
                "NONE",
                "/notes.txt",
            ],
        );
        vim.wait_for("\x1b[?1049h");
        vim.wait_for("notes.txt");
        vim.type_keys("ihello from a person\x1b");
        vim.type_keys(":wq\r");
        let (status, text) = vim.end();
        assert!(status.success(), "{text}");
        assert_eq!(home.ok(&["cat", "/notes.txt"]), "hello from a person\n");
        let mut top = person(home, &["exec", "--tty", "--", "top"]);
        top.wait_for("load average");
        top.wait_for("PID");
        top.type_keys("q");
        let (status, text) = top.end();
        assert!(status.success(), "{text}");
    });
}

#[test]
fn the_persons_terminal_is_as_it_was() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let binary = home.command::<&str>(&[]);
        let words: Vec<_> = std::iter::once(binary.get_program())
            .chain(binary.get_args())
            .map(|word| word.to_str().unwrap())
            .collect();
        let avfs = words.join(" ");
        let text = format!(
            "before=$(stty -g); for c in true false 'no-such-program' 'nsenter -t 1 -a'; do {avfs} exec --tty -- $c; \
             test \"$before\" = \"$(stty -g)\" && echo the-same; done; stty -a"
        );
        let mut shell = binary;
        let mut sh = Command::new("sh");
        sh.args(["-c", &text]).env_clear();
        for (key, value) in shell.get_envs() {
            if let Some(value) = value {
                sh.env(key, value);
            }
        }
        shell.arg("--version");
        let (_, said) = Person::start(sh).end();
        assert_eq!(said.matches("the-same").count(), 4, "{said}");
        assert!(
            said.contains(" icanon") && said.contains(" echo "),
            "{said}"
        );
    }
}

#[test]
fn without_a_terminal_there_is_none_to_sit_at() {
    with_vault(AVFS, |home| {
        let refused = home.json(&["exec", "--tty", "--", "bash"]);
        assert_eq!(refused["error"], "Invalid", "{refused}");
        assert!(
            refused["hint"].as_str().unwrap().contains("--size"),
            "{refused}"
        );
        assert_eq!(
            home.json(&["job", "start", "--tty", "--", "bash"])["error"],
            "Invalid"
        );
        let wrong = home.json(&["job", "start", "--tty", "--size", "0x0", "--", "bash"]);
        assert_eq!(wrong["error"], "Invalid", "{wrong}");
        let started = home.json(&[
            "job",
            "start",
            "--tty",
            "--size",
            "100x30",
            "--shell",
            "stty size; tty",
        ]);
        let job = started["job_id"].to_string();
        let waited = home.json(&["job", "wait", &job]);
        assert_eq!(waited["exit_code"], 0, "{waited:#}");
        assert_eq!(waited["terminal"], json!({ "rows": 30, "columns": 100 }));
        let polled = home.json(&["job", "poll", &job]);
        assert_eq!(
            polled["stdout"], "30 100\r\n/dev/terminals/0\r\n",
            "{polled:#}"
        );
        let plain = home.json(&["job", "start", "--", "sleep", "1000"]);
        let plain = plain["job_id"].to_string();
        assert_eq!(home.json(&["attach", &plain])["error"], "Invalid");
        home.ok(&["job", "kill", &plain]);
    });
}

#[test]
fn a_job_is_sat_down_at_and_left_again() {
    with_vault(AVFS, |home| {
        let words = [
            "job",
            "start",
            "--tty",
            "--size",
            "80x24",
            "--env",
            "PS1=<$((1+1))> ",
            "--",
        ];
        let words = [&words[..], &["bash", "--norc", "--noprofile"]].concat();
        let job = home.json(&words)["job_id"].to_string();
        home.ok(&["job", "stdin", &job, "kept=$((40+2))"]);
        let mut first = person(home, &["attach", &job]);
        first.answer("<2>", "echo value $kept; stty size");
        first.wait_for("value 42");
        first.wait_for("24 80");
        first.resize(40, 120);
        first.answer("<2>", &until_sized("40 120"));
        first.wait_for("sized 1");
        first.type_keys("\x1c");
        let (status, text) = first.end();
        assert!(
            status.success() && text.contains("which continues"),
            "{text}"
        );
        assert_eq!(home.json(&["job", "poll", &job])["running"], true);
        let mut second = person(home, &["attach", &job, "--detach-key", "ctrl-a"]);
        second.wait_for("value 42");
        second.type_keys("\x03\necho still $kept; exit 9\n");
        let (status, text) = second.end();
        assert_eq!(status.code(), Some(9), "{text}");
        assert!(text.contains("still 42"), "{text}");
        assert_eq!(home.json(&["job", "poll", &job])["exit_code"], 9);
    });
}

#[test]
fn what_was_seen_can_be_recorded() {
    with_vault(AVFS, |home| {
        let words = [&["exec", "--record", "session.cast"], &SHELL[1..]].concat();
        let mut person = person(home, &words);
        person.answer("<2>", "echo recorded ä");
        person.wait_for("recorded ä");
        person.resize(30, 100);
        person.answer("<2>", &until_sized("30 100"));
        person.wait_for("sized 1");
        person.type_keys("exit\n");
        let (status, text) = person.end();
        assert!(status.success(), "{text}");
        let cast = std::fs::read_to_string(home.path().join("session.cast")).unwrap();
        let lines: Vec<Value> = cast
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let header = &lines[0];
        assert_eq!(
            (&header["version"], &header["width"], &header["height"]),
            (&json!(2), &json!(80), &json!(24))
        );
        assert_eq!(header["env"]["TERM"], "xterm-256color");
        let mut last = 0.0;
        for event in &lines[1..] {
            assert!(event[0].as_f64().unwrap() >= last, "time goes on");
            last = event[0].as_f64().unwrap();
        }
        let of = |code: &str| -> String {
            let events = lines[1..].iter().filter(|event| event[1] == code);
            events.map(|event| event[2].as_str().unwrap()).collect()
        };
        assert!(of("o").contains("recorded ä"));
        assert_eq!(of("r"), "100x30");
        let again = Person::start(command(home, &words)).end();
        assert!(
            again.1.contains("does not exist yet"),
            "nothing is overwritten: {}",
            again.1
        );
    });
}

/// A job that fills the screen and does not clean up after itself.
fn screenful(home: &Home) -> String {
    let text = "printf '\\033[?1049h\\033[?25l\\033[?1000hin'; printf 'side\\n'; exec sleep 1000";
    let started = home.json(&["job", "start", "--tty", "--size", "80x24", "--shell", text]);
    started["job_id"].to_string()
}

/// Whether what a program had switched on is switched off at the end.
fn is_clean(text: &str) -> bool {
    let off = ["\x1b[?25h", "\x1b[?1000l", "\x1b[?1049l"];
    let on = text.rfind("\x1b[?1049h").expect("it was switched on");
    off.iter().all(|sequence| text[on..].contains(sequence))
}

#[test]
fn the_screen_is_clean_however_a_job_is_left() {
    with_vault(AVFS, |home| {
        let job = screenful(home);
        // By the key.
        let mut leaving = person(home, &["attach", &job]);
        leaving.wait_for("inside");
        leaving.type_keys("\x1c");
        let (status, text) = leaving.end();
        assert!(status.success() && is_clean(&text), "{text:?}");
        // By a signal.
        let avfs = home.command::<&str>(&[]).get_program().to_owned();
        let mut sh = home.host_command("sh");
        sh.args(["-c", "echo pid $$ .; exec \"$0\" attach \"$1\""]);
        sh.arg(avfs).arg(&job).env("TERM", "xterm");
        let mut ended = Person::start(sh);
        let said = ended.wait_for("inside").to_owned();
        let pid = said
            .split("pid ")
            .nth(1)
            .and_then(|it| it.split(' ').next());
        signal(pid.unwrap().parse().unwrap(), Signal::TERM);
        let (status, text) = ended.end();
        assert!(!status.success() && is_clean(&text), "{status:?} {text:?}");
        // By the end of the job.
        let mut watching = person(home, &["attach", &job]);
        watching.wait_for("inside");
        home.ok(&["job", "kill", &job]);
        let (_, text) = watching.end();
        assert!(is_clean(&text), "{text:?}");
    });
}

#[test]
fn a_screen_that_nothing_changed_is_left_alone() {
    with_vault(AVFS, |home| {
        let mut plain = person(home, &["exec", "--tty", "--", "echo", "plain"]);
        plain.wait_for("plain");
        let (_, text) = plain.end();
        assert!(!text.contains("\x1b[?"), "{text:?}");
        let killed = "printf '\\033[?1049h'; kill -9 $$";
        let (_, text) = person(home, &["exec", "--tty", "--shell", killed]).end();
        assert!(text.contains("\x1b[?1049l"), "{text:?}");
    });
}
