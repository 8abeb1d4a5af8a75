//! What is encoded comes back as it was, and what is damaged does not.

use super::*;

fn sample() -> Node {
    let time = Time {
        secs: -5,
        nanos: 999_999_999,
    };
    let mut meta = Meta::new(0o4755, time);
    meta.xattrs.insert(b"user.a", [0, 255]);
    let link = Some(LinkId::of(&VaultPath::root()));
    let kinds = [
        Kind::File {
            content: Content::EMPTY,
            size: 0,
            link,
        },
        Kind::File {
            content: Content::Chunks(ObjectId::of(b"c")),
            size: u64::MAX,
            link: None,
        },
        Kind::Directory {
            tree: TreeId::EMPTY,
            files: 3,
            bytes: 4,
        },
        Kind::Symlink {
            target: b"../\xff".to_vec(),
        },
        Kind::Fifo,
    ];
    let item = |(n, kind)| Item {
        name: vec![b'a' + n as u8, 0xff],
        entry: Entry {
            kind,
            meta: meta.clone(),
        },
        beneath: Flags {
            xattrs: n == 2,
            links: false,
        },
    };
    Node::Leaf(kinds.into_iter().enumerate().map(item).collect())
}

#[test]
fn nodes_come_back_as_they_were() {
    let leaf = sample();
    assert_eq!(decode_node(&encode_node(&leaf)).unwrap(), leaf);
    let summary = leaf.summary();
    let child = |last: &[u8]| Child {
        last: last.to_vec(),
        id: ObjectId::of(last),
        summary,
    };
    let branch = Node::Branch {
        level: 2,
        children: vec![child(b"a"), child(b"b")],
    };
    assert_eq!(decode_node(&encode_node(&branch)).unwrap(), branch);
}

#[test]
fn damaged_nodes_are_refused() {
    let bytes = encode_node(&sample());
    for cut in 0..bytes.len() {
        assert!(decode_node(&bytes[..cut]).is_none(), "cut at {cut}");
    }
    assert!(
        decode_node(&[&bytes[..], b"x"].concat()).is_none(),
        "something follows"
    );
    let mut newer = bytes.clone();
    newer[1] = 2;
    assert!(decode_node(&newer).is_none(), "another version");
    let Node::Leaf(mut items) = sample() else {
        unreachable!()
    };
    items.reverse();
    assert!(
        decode_node(&encode_node(&Node::Leaf(items.clone()))).is_none(),
        "unsorted"
    );
    items.truncate(1);
    items[0].name = b"a/b".to_vec();
    assert!(
        decode_node(&encode_node(&Node::Leaf(items))).is_none(),
        "a name with a slash"
    );
}

#[test]
fn roots_and_links_come_back_as_they_were() {
    let top = Entry::directory(0o755, Time::EPOCH);
    for links in [None, Some(ObjectId::of(b"links"))] {
        let root = RootRecord {
            top: top.clone(),
            has_xattrs: true,
            links,
        };
        assert_eq!(
            decode_root(&encode_root(&root, Flags::default())).unwrap(),
            root
        );
    }
    let file = RootRecord {
        top: Entry::file(Content::EMPTY, 0, Meta::new(0, Time::EPOCH)),
        has_xattrs: false,
        links: None,
    };
    assert!(decode_root(&encode_root(&file, Flags::default())).is_none());
    let path: VaultPath = "/a".parse().unwrap();
    let map = LinkMap::from([(LinkId::of(&path), BTreeSet::from([path]))]);
    assert_eq!(decode_links(&encode_links(&map)).unwrap(), map);
}

#[test]
fn parts_come_back_as_they_were() {
    let chunk = |length| Part::Chunk {
        id: ObjectId::of(b"1"),
        length,
    };
    let id = ObjectId::of(b"2");
    let (hole, data) = (Part::Hole { length: 1 << 62 }, 5);
    let length = 1 << 40;
    let list = Part::List { id, length, data };
    for parts in [
        vec![],
        vec![chunk(1), chunk(1 << 40)],
        vec![hole],
        vec![chunk(7), hole, list],
    ] {
        let bytes = encode_parts(&parts);
        assert_eq!(decode_parts(&bytes).unwrap(), parts);
        let plain = parts.iter().all(|part| matches!(part, Part::Chunk { .. }));
        assert_eq!(bytes[1], if plain { 1 } else { 2 });
    }
    for wrong in [
        vec![hole, hole, hole, hole],
        vec![Part::Hole { length: 0 }],
        vec![Part::List {
            id,
            length: 1,
            data: 2,
        }],
    ] {
        assert_eq!(decode_parts(&encode_parts(&wrong)), None);
    }
}
