//! The keys of an issuer of tokens (JWKS). Only public keys are used, so that no token can be signed with what everybody
//! knows, and each key is good for one algorithm.

use base64ct::{Base64UrlUnpadded, Encoding};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

/// The keys of a set that are good for signatures.
pub(super) fn keys_in(text: &[u8]) -> Result<Vec<PublicKey>, String> {
    let set = serde_json::from_slice::<KeySet>(text).map_err(|error| error.to_string())?;
    let keys: Vec<PublicKey> = set.keys.iter().filter_map(PublicKey::new).collect();
    match keys.is_empty() {
        true => Err("none is an RSA, EC or Ed25519 key for signatures".into()),
        false => Ok(keys),
    }
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// A key that verifies signatures of one algorithm.
pub(super) struct PublicKey {
    pub kid: Option<String>,
    algorithm: Algorithm,
    /// The modulus and the exponent of RSA, or the point of a curve.
    parts: [Vec<u8>; 2],
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    const RSA: [Algorithm; 6] = [
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::Ps384,
        Algorithm::Ps512,
    ];

    fn name(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::EdDsa => "EdDSA",
        }
    }
}

impl PublicKey {
    /// The name of its one algorithm.
    pub fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// None for keys that are not public, not for signatures, or of a kind that is not known here.
    fn new(key: &Value) -> Option<PublicKey> {
        let text = |name: &str| key[name].as_str();
        let bytes = |name: &str| Base64UrlUnpadded::decode_vec(text(name)?).ok();
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let (algorithm, parts) = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                // Without a name it is the one that all providers have.
                let name = text("alg").unwrap_or("RS256");
                let known = Algorithm::RSA.into_iter().find(|it| it.name() == name);
                (known?, [bytes("n")?, bytes("e")?])
            }
            ("EC", Some("P-256")) => (Algorithm::Es256, point(bytes("x")?, bytes("y")?, 32)?),
            ("EC", Some("P-384")) => (Algorithm::Es384, point(bytes("x")?, bytes("y")?, 48)?),
            ("OKP", Some("Ed25519")) => (Algorithm::EdDsa, [bytes("x")?, Vec::new()]),
            _ => return None,
        };
        if text("alg").is_some_and(|name| name != algorithm.name()) {
            return None;
        }
        Some(PublicKey {
            kid: text("kid").map(str::to_owned),
            algorithm,
            parts,
        })
    }

    /// Whether this is its signature of the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let [first, second] = &self.parts;
        let rsa = |how: &signature::RsaParameters| {
            let key = RsaPublicKeyComponents {
                n: first,
                e: second,
            };
            key.verify(how, message, signature).is_ok()
        };
        let point = |how: &'static dyn signature::VerificationAlgorithm| {
            let key = UnparsedPublicKey::new(how, first);
            key.verify(message, signature).is_ok()
        };
        match self.algorithm {
            Algorithm::Rs256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Rs384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::Rs512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::Ps256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::Ps384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::Ps512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::Es256 => point(&signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::Es384 => point(&signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDsa => point(&signature::ED25519),
        }
    }
}

/// A point of a curve, uncompressed.
fn point(x: Vec<u8>, y: Vec<u8>, length: usize) -> Option<[Vec<u8>; 2]> {
    let whole = x.len() == length && y.len() == length;
    whole.then(|| [[vec![4], x, y].concat(), Vec::new()])
}
