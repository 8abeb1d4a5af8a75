//! A PostgreSQL server in every fork, and its rows after a restore.

use super::{ask, await_listener, forward, serve, start};
use crate::{AVFS, exec};
use avfs_testkit::{Home, SOON, wait_for, with_vault};
use std::process::Command;

/// Where distributions keep the server's programs.
const PROGRAMS: &str = "PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH";

/// Makes an empty database in the current vault.
fn make_database(home: &Home) {
    let script = format!(
        "{PROGRAMS} && initdb -D /db -A trust -U agent --no-sync && \
         echo \"unix_socket_directories = '/run'\" >> /db/postgresql.conf"
    );
    let result = exec(home, &["--", "sh", "-c", &script]);
    assert_eq!(result["exit_code"], 0, "{result:#}");
}

/// Starts the server of a vault; gives its job.
fn start_database(home: &Home, vault: &str) -> String {
    let script = format!("{PROGRAMS}; exec postgres -D /db -c shared_buffers=8MB");
    let job = start(home, vault, &["sh", "-c", &script]);
    await_listener(home, vault, "5432");
    job
}

/// Ends it as its own tools do.
fn stop_database(home: &Home, job: &str) {
    home.ok(&["job", "kill", job, "--signal", "INT"]);
    let ended = wait_for(SOON, || {
        home.json(&["job", "poll", job])["running"] == false
    });
    assert!(ended, "the server goes on");
}

/// What a statement gives, once the server takes connections.
fn sql(port: u16, statement: &str) -> String {
    let port = port.to_string();
    let mut said = None;
    wait_for(SOON, || {
        let mut client = Command::new("psql");
        client.args([
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "agent",
            "-d",
            "postgres",
        ]);
        client.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            statement,
        ]);
        let output = client.output().expect("psql");
        let starting = String::from_utf8_lossy(&output.stderr).contains("starting up");
        said = Some(output);
        !starting
    });
    let output = said.unwrap();
    assert!(output.status.success(), "{statement}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn ten_forks_have_a_database_and_a_server_each_on_the_same_ports() {
    with_vault(AVFS, |home| {
        make_database(home);
        let names: Vec<String> = (0..10).map(|number| format!("fork-{number}")).collect();
        for name in &names {
            home.ok(&["vault", "fork", "v", name]);
            start_database(home, name);
            serve(home, name, "3000");
        }
        let ports: Vec<u16> = names
            .iter()
            .map(|name| forward(home, name, "5432"))
            .collect();
        for (name, port) in names.iter().zip(&ports) {
            sql(
                *port,
                &format!("create table here as select '{name}' as name"),
            );
        }
        for (name, port) in names.iter().zip(&ports) {
            assert_eq!(sql(*port, "select name from here"), *name);
            let beside = forward(home, name, "3000");
            assert_eq!(ask(beside, "!").unwrap(), format!("{name}!"));
        }
        // The Unix socket of one of them.
        let port = forward(home, "fork-3", "/run/.s.PGSQL.5432");
        assert_eq!(sql(port, "select name from here"), "fork-3");
    });
}

#[test]
fn the_rows_of_a_stopped_database_come_back() {
    with_vault(AVFS, |home| {
        make_database(home);
        let port = forward(home, "v", "5432");
        let job = start_database(home, "v");
        sql(
            port,
            "create table rows as select generate_series(1, 1000) as n",
        );
        stop_database(home, &job);
        home.ok(&["checkpoint", "save", "thousand"]);
        let job = start_database(home, "v");
        sql(port, "delete from rows where n > 10");
        assert_eq!(sql(port, "select count(*) from rows"), "10");
        stop_database(home, &job);
        home.ok(&["checkpoint", "restore", "thousand"]);
        start_database(home, "v");
        assert_eq!(
            sql(port, "select count(*), sum(n) from rows"),
            "1000|500500"
        );
    });
}
