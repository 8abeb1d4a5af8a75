//! The async face: on either home, cancelled as futures are, with events as a stream.

use crate::LONG;
use crate::common::Home;
use agentvfs::types::{StatusWord, VaultList};
use agentvfs::{AsyncAvfs, ErrorKind, Event};
use std::io::Write;
use std::time::Duration;
use tokio_stream::StreamExt;

async fn both() -> [(AsyncAvfs, Home); 2] {
    let (first, second) = (Home::new(), Home::new());
    let connected = AsyncAvfs::connect_with(first.builder()).await.unwrap();
    let embedded = AsyncAvfs::embedded_with(second.builder()).await.unwrap();
    [(connected, first), (embedded, second)]
}

#[tokio::test]
async fn the_five_lines_wait_without_blocking() {
    for (avfs, _home) in both().await {
        let vault = avfs.create_vault("myproject").await.unwrap();
        vault.write("/in", "x").await.unwrap();
        let task = vault.fork("task-001").await.unwrap();
        task.checkpoint("before").await.unwrap();
        let result = task
            .command("cp")
            .args(["/in", "/out"])
            .run()
            .await
            .unwrap();
        assert_eq!(
            (result.exit_code, &*result.changed_files),
            (0, &["/out".to_owned()][..])
        );
        assert_eq!(task.read_text("/out").await.unwrap(), "x");
        task.restore("before").await.unwrap();
        let missing = task.read("/out").await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let all = avfs.ask(VaultList::default()).await.unwrap().vaults;
        assert_eq!(all.len(), 2);
        let entries = task.list("/").await.unwrap();
        assert!(entries.iter().any(|entry| entry.name == "in"));
        let log = task.with(|vault| vault.log(1)).await.unwrap();
        assert_eq!(log.len(), 1);
        task.delete().await.unwrap();
        assert!(avfs.vault("task-001").await.is_err());
    }
}

#[tokio::test]
async fn events_are_a_stream() {
    for (avfs, _home) in both().await {
        let vault = avfs.create_vault("v").await.unwrap();
        let command = vault.shell("echo one; read x; echo $x");
        let mut running = command.with(|it| it.stdin_piped()).spawn().unwrap();
        let mut stdin = running.take_stdin().unwrap();
        assert_eq!(running.next().await, Some(Event::Started));
        let first = StreamExt::next(&mut running).await;
        assert_eq!(first, Some(Event::Stdout(b"one\n".to_vec())));
        stdin.write_all(b"two\n").unwrap();
        drop(stdin);
        assert_eq!(
            running.next_event().await,
            Some(Event::Stdout(b"two\n".to_vec()))
        );
        assert_eq!(running.next_event().await, None);
        assert_eq!(running.wait().await.unwrap().stdout, "one\ntwo\n");
    }
}

#[tokio::test]
async fn a_command_is_cancelled() {
    for (avfs, _home) in both().await {
        let vault = avfs.create_vault("v").await.unwrap();
        let running = vault.command("sleep").arg("1000").spawn().unwrap();
        running.cancel().await.unwrap();
        let result = running.wait().await.unwrap();
        assert_eq!(result.status, StatusWord::Cancelled);
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_ends_its_command() {
    for (avfs, _home) in both().await {
        let vault = avfs.create_vault("v").await.unwrap();
        let run = vault.command("sleep").arg("1000").run();
        let running = async |number: usize| {
            let state = avfs.with(|avfs| avfs.daemon()).await;
            state.unwrap().running_execs == number
        };
        let started = async {
            while !running(1).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            done = run => panic!("{done:?}"),
            () = started => {}
        }
        let ended = async {
            while !running(0).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, ended).await.unwrap();
    }
}

/// Neither panics: an event loop must not be dropped in async code by tokio's own rules.
#[tokio::test]
async fn handles_may_be_dropped_in_async_code() {
    for (avfs, _home) in both().await {
        let vault = avfs.create_vault("v").await.unwrap();
        assert!(vault.command("true").run().await.unwrap().success());
        drop(vault);
        drop(avfs);
    }
}
