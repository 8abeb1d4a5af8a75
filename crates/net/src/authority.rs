//! The certificate authority of one sandbox, which signs for the hosts whose TLS is opened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use avfs_policy::Host;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;

use crate::error::Error;

/// How many hosts are kept ready.
const MAX_KEPT: usize = 256;

/// The certificate authority of one sandbox. Its key is in memory only, and ends with it. The sandbox must trust
/// [`Authority::pem`] for programs to accept what it signs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    kept: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Authority(error.to_string())
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

impl Authority {
    pub fn new() -> Result<Authority, Error> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = named("agentvfs sandbox");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Authority {
            issuer: CertifiedIssuer::self_signed(parameters, key).map_err(failed)?,
            kept: Mutex::default(),
        })
    }

    /// The certificate that the sandbox must trust.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// How to serve TLS as a host. HTTP/1.1 is the only protocol offered, since that is what is read.
    pub(crate) fn serve_as(&self, host: &Host) -> Result<Arc<ServerConfig>, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = kept.get(host) {
            return Ok(Arc::clone(config));
        }
        let mut parameters = CertificateParams::new(vec![host.to_string()]).map_err(failed)?;
        parameters.distinguished_name = named("agentvfs");
        parameters.use_authority_key_identifier_extension = true;
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = parameters.signed_by(&key, &self.issuer).map_err(failed)?;
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(failed)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }
}

/// Makes the authority of a sandbox, and has the sandbox trust it. May block. Called again if it failed.
pub type AuthorityMaker = Box<dyn Fn() -> Result<Authority, Error> + Send + Sync>;

/// The authority of a sandbox, which is made when it is first needed: most sandboxes need none.
pub(crate) struct OwnAuthority {
    make: AuthorityMaker,
    made: Mutex<Option<Arc<Authority>>>,
}

impl OwnAuthority {
    pub(crate) fn new(make: AuthorityMaker) -> OwnAuthority {
        OwnAuthority {
            make,
            made: Mutex::default(),
        }
    }

    pub(crate) fn made(&self) -> Option<Arc<Authority>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.clone()
    }

    /// Blocks the first time. If it fails, the next one tries again.
    pub(crate) fn get(&self) -> Result<Arc<Authority>, Error> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authority) = &*made {
            return Ok(Arc::clone(authority));
        }
        let authority = Arc::new((self.make)()?);
        *made = Some(Arc::clone(&authority));
        Ok(authority)
    }
}
