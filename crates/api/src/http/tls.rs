//! TLS on the network's listener: the certificate from two files, read again when they change.

use crate::error::{Error, Result};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A chain of certificates and its private key, both PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The certificate that is shown to clients.
pub(crate) struct Tls {
    files: TlsFiles,
    loaded: Mutex<(Stamp, TlsAcceptor)>,
}

/// What changes when a file is written or replaced.
type Stamp = [Option<(u64, i64, i64, u64)>; 2];

impl Tls {
    pub fn open(files: &TlsFiles) -> Result<Tls> {
        let stamp = files.stamp();
        let acceptor = files.load().map_err(|reason| Error::Certificate {
            path: files.certificate.clone(),
            reason,
        })?;
        Ok(Tls {
            files: files.clone(),
            loaded: Mutex::new((stamp, acceptor)),
        })
    }

    /// The acceptor for the next connection. Files that cannot be used change nothing: while one of the two is replaced and
    /// the other is not, clients still see the old certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp != loaded.0
            && let Ok(acceptor) = self.files.load()
        {
            *loaded = (stamp, acceptor);
        }
        loaded.1.clone()
    }
}

impl TlsFiles {
    fn stamp(&self) -> Stamp {
        [&self.certificate, &self.key].map(|path| {
            let meta = fs::metadata(path).ok()?;
            Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size()))
        })
    }

    fn load(&self) -> Result<TlsAcceptor, String> {
        let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
            format!("cannot read {}: {error}", path.display())
        };
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(|all| all.collect::<Result<Vec<_>, _>>())
            .map_err(|error| unreadable(&self.certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| unreadable(&self.key, &error))?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth())
            .and_then(|builder| builder.with_single_cert(chain, key));
        let mut config = config.map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// A connection from the network, with TLS or without.
pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Wire::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Wire::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Wire::Tls(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Wire::Plain(stream) => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(context),
            Wire::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Wire::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
