//! A minimal FUSE server that shows whether a mount works: one directory with one file.

use std::os::fd::OwnedFd;

/// The file's name and content.
pub(super) const NAME: &[u8] = b"witness";
pub(super) const CONTENT: &[u8] = b"served\n";

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const READ: u32 = 15;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

/// The used part of a request header.
struct Request<'a> {
    opcode: u32,
    unique: u64,
    node: u64,
    body: &'a [u8],
}

/// Serves until it is unmounted. `owner` is the uid and gid of all files.
pub(super) fn serve(device: OwnedFd, owner: u32) {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let length = match rustix::io::read(&device, &mut buffer) {
            Ok(length) => length,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::NOENT) => continue,
            Err(_) => return,
        };
        let Some(request) = parse(&buffer[..length]) else {
            return;
        };
        let reply = match request.opcode {
            FORGET | BATCH_FORGET | INTERRUPT => continue,
            _ => answer(&request, owner),
        };
        let (error, body) = match reply {
            Ok(body) => (0, body),
            Err(errno) => (-errno, Vec::new()),
        };
        let mut out = Wire::default();
        let length = u32::try_from(body.len() + 16).expect("replies here are short");
        out.u32(length)
            .u32(error.cast_unsigned())
            .u64(request.unique);
        out.0.extend(body);
        // The request may have been interrupted meanwhile.
        let _ = rustix::io::write(&device, &out.0);
    }
}

fn parse(bytes: &[u8]) -> Option<Request<'_>> {
    let (head, body) = bytes.split_at_checked(40)?;
    Some(Request {
        opcode: u32::from_ne_bytes(head[4..8].try_into().ok()?),
        unique: u64::from_ne_bytes(head[8..16].try_into().ok()?),
        node: u64::from_ne_bytes(head[16..24].try_into().ok()?),
        body,
    })
}

fn answer(request: &Request<'_>, owner: u32) -> Result<Vec<u8>, i32> {
    let mut out = Wire::default();
    match request.opcode {
        INIT => {
            // Version 7.31, no flags, default limits.
            out.u32(7)
                .u32(31)
                .u32(64 * 1024)
                .u32(0)
                .u32(0)
                .u32(64 * 1024)
                .u32(1)
                .u32(0)
                .u32(0);
            out.zeros(28);
        }
        LOOKUP if request.body == [NAME, b"\0"].concat() => {
            out.u64(2).u64(0).u64(3600).u64(3600).u64(0);
            out.attributes(2, owner);
        }
        LOOKUP => return Err(libc::ENOENT),
        GETATTR => {
            out.u64(3600).u64(0);
            out.attributes(request.node, owner);
        }
        READ => {
            let offset = request
                .body
                .get(8..16)
                .and_then(|bytes| bytes.try_into().ok());
            let offset = offset.map_or(0, u64::from_ne_bytes);
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            out.0.extend(CONTENT.get(offset..).unwrap_or_default());
        }
        STATFS => {
            out.zeros(40);
            out.u32(4096).u32(255).u32(4096);
            out.zeros(28);
        }
        READDIR | RELEASE | RELEASEDIR | FLUSH | DESTROY => {}
        _ => return Err(libc::ENOSYS),
    }
    Ok(out.0)
}

/// Numbers in the order and width of the FUSE protocol.
#[derive(Default)]
struct Wire(Vec<u8>);

impl Wire {
    fn u32(&mut self, value: u32) -> &mut Wire {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Wire {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }

    /// Attributes of the directory (node 1) or the file.
    fn attributes(&mut self, node: u64, owner: u32) {
        let (size, mode) = match node {
            1 => (0, libc::S_IFDIR | 0o755),
            _ => (CONTENT.len() as u64, libc::S_IFREG | 0o644),
        };
        self.u64(node).u64(size).u64(0).u64(0).u64(0).u64(0);
        self.u32(0)
            .u32(0)
            .u32(0)
            .u32(mode)
            .u32(1)
            .u32(owner)
            .u32(owner);
        self.u32(0).u32(4096).u32(0);
    }
}
