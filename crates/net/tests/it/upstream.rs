//! A host that reaches others by a proxy only.

use avfs_net::{Bounds, Upstream};

use crate::client::{echoes, problem};
use crate::servers::{echo, http};
use crate::space::alone;
use crate::world::World;

/// The host's proxy is a sandbox's own, with a list of everything: it is one that is at hand.
#[test]
fn the_hosts_proxy_is_used_with_its_credentials() {
    alone(
        "upstream::the_hosts_proxy_is_used_with_its_credentials",
        || {
            let proxy = http("127.0.7.1:3128");
            let variable = "http://me:secret@127.0.7.1:3128";
            let upstream =
                Upstream::from_variables(Some(variable), Some(variable), Some("direct.test"))
                    .unwrap();
            let world = World::with(Bounds::default(), upstream);
            echo("127.0.5.1:22");
            world.names.set("direct.test", &["127.0.5.1"]);
            let (sandbox, _guard) = world.with_list("a.test,direct.test:22,127.0.5.1:22");
            let answer = sandbox.proxied(b"GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: mine\r\nConnection: close\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            let head = proxy.all()[0].to_lowercase();
            assert!(
                head.starts_with("get http://a.test/x http/1.1\r\n"),
                "{head}"
            );
            assert!(
                head.contains("proxy-authorization: basic bwu6c2vjcmv0") && !head.contains("mine"),
                "{head}"
            );
            // The server answers CONNECT as any other request, and so with success.
            assert!(sandbox.tunnel("a.test:443").is_ok());
            let head = proxy.all()[1].to_lowercase();
            assert!(
                head.starts_with("connect a.test:443 http/1.1\r\n"),
                "{head}"
            );
            assert!(head.contains("proxy-authorization: basic "), "{head}");
            assert!(echoes(&mut sandbox.tunnel("direct.test:22").unwrap()));
            // The list is asked first.
            let refused = problem(&sandbox.tunnel("evil.test:443").unwrap_err());
            assert_eq!(refused["status"], 403);
            assert_eq!(proxy.all().len(), 2);
        },
    );
}
