//! What a request says is done, or refused: nothing in it is taken and ignored. Programs may send any combination of
//! fields, also those that no method here and no verb of the command line sends.

use crate::common::on_both;
use agentvfs::ErrorKind;
use agentvfs::types::{
    Base64, Diff, DriverWord, Exec, JobLogs, JobStart, JobWait, Ls, Mount, MountDriverWord,
    NetworkName, StreamWord, TransferSet,
};

#[test]
fn exact_bytes_count_without_text_beside_them() {
    on_both(|avfs, home| {
        let vault = avfs.create_vault("v").unwrap();
        for path in ["/a", "/b", "/c"] {
            vault.write(path, "x").unwrap();
        }
        let bytes = |text: &str| Some(Base64(text.as_bytes().to_vec()));
        let listed = vault.ask(&Ls {
            after_b64: bytes("b"),
            ..Ls::new(("/".into(), None))
        });
        let names: Vec<String> = listed
            .unwrap()
            .entries
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names.first().map(String::as_str), Some("c"), "{names:?}");
        let whole = diff();
        let one = Diff {
            path_b64: bytes("/a"),
            ..diff()
        };
        assert_eq!(vault.ask(&whole).unwrap().changes.len(), 3);
        assert_eq!(vault.ask(&one).unwrap().changes.len(), 1);
        // This once turned the transfer directory off.
        let host = home.path().canonicalize().unwrap().join("lent");
        std::fs::create_dir_all(&host).unwrap();
        let set = avfs.ask(&TransferSet {
            dir: None,
            dir_b64: bytes(host.to_str().unwrap()),
        });
        assert_eq!(set.unwrap().dir.as_deref(), host.to_str());
    });
}

fn diff() -> Diff {
    Diff {
        from: "BASE".into(),
        to: "HEAD".into(),
        path: None,
        path_b64: None,
        path2: None,
        path2_b64: None,
        patch: false,
        stat: false,
    }
}

#[test]
fn what_cannot_be_together_is_refused() {
    on_both(|avfs, home| {
        let vault = avfs.create_vault("v").unwrap();
        vault.write("/a", "x").unwrap();
        let lone = Diff {
            path2: Some("/a".into()),
            ..diff()
        };
        assert_eq!(vault.ask(&lone).unwrap_err().kind(), ErrorKind::Invalid);
        let namespace = std::fs::read_link("/proc/self/ns/mnt").unwrap();
        let mount = Mount {
            dir: Some(home.path().join("m").to_str().unwrap().to_owned().into()),
            readonly: true,
            mount_namespace: namespace.to_str().unwrap().into(),
            ..Mount::default()
        };
        let overlay = Mount {
            driver: Some(MountDriverWord::Overlay),
            ..mount.clone()
        };
        let committed = Mount {
            autocommit_s: Some(5),
            ..mount.clone()
        };
        let older = Mount {
            readonly: false,
            at: Some("v1".into()),
            ..committed.clone()
        };
        for request in [overlay, committed, older] {
            let refused = vault.ask(&request).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{request:?}");
        }
        let on_the_host = Exec {
            argv: vec!["true".into()],
            driver: Some(DriverWord::Process),
            network: Some(NetworkName::None),
            ..Exec::default()
        };
        let refused = vault.ask(&JobStart {
            exec: on_the_host,
            ..JobStart::default()
        });
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    });
}

#[test]
fn the_log_of_one_stream_is_that_of_one_stream() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let started = vault.shell("echo out; echo err >&2").start().unwrap();
        let job_id = started.job().unwrap().id();
        let timeout_ms = None;
        while avfs
            .ask(&JobWait { job_id, timeout_ms })
            .unwrap()
            .job
            .running
        {}
        for (stream, out, err) in [
            (None, "out\n", "err\n"),
            (Some(StreamWord::Stdout), "out\n", ""),
            (Some(StreamWord::Stderr), "", "err\n"),
        ] {
            let logs = avfs.ask(&JobLogs {
                job_id,
                stream,
                ..JobLogs::default()
            });
            let logs = logs.unwrap();
            assert_eq!((&*logs.stdout, &*logs.stderr), (out, err), "{stream:?}");
            assert_eq!(logs.offsets.stdout.to, out.len() as u64);
        }
    });
}
