//! Which certificates of hosts are believed, where TLS is opened and made anew.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::authority::provider;

/// The authorities that hosts' certificates must come from.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// Those that the host trusts.
    #[default]
    Host,
    /// These alone.
    Given(Vec<CertificateDer<'static>>),
}

/// Made when it is first needed, since reading the host's authorities takes time.
#[derive(Default)]
pub(crate) struct Trust(OnceLock<Result<Arc<ClientConfig>, String>>);

impl Trust {
    /// Blocks the first time.
    pub(crate) fn config(&self, roots: &Roots) -> Result<Arc<ClientConfig>, String> {
        self.0.get_or_init(|| make(roots)).clone()
    }
}

fn make(roots: &Roots) -> Result<Arc<ClientConfig>, String> {
    let mut store = RootCertStore::empty();
    let (added, _) = match roots {
        Roots::Host => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs)
        }
        Roots::Given(given) => store.add_parsable_certificates(given.iter().cloned()),
    };
    if added == 0 {
        return Err("the host trusts no certificate authority".to_owned());
    }
    let config =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(store).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
