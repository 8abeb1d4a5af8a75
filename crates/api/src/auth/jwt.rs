//! JSON Web Tokens: who a token of the owner's identity provider is.
//!
//! The algorithm of a signature follows from the key, never from the token (`jwk.rs`).

use super::jwk::{PublicKey, keys_in};
use super::{Identity, Refused, Source, check_scopes};
use crate::bounds::{REQUESTS_PER_SECOND, TOKEN_MAX};
use crate::outbound::ServiceUrl;
use crate::table::Scope;
use avfs_runtime::VaultPattern;
use base64ct::{Base64UrlUnpadded, Encoding};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// What the names of holders of tokens begin with, so that none is the name of a key.
pub(crate) const PREFIX: &str = "jwt/";
/// How far the clocks of this machine and of the provider may be apart, in seconds.
const LEEWAY: i64 = 30;

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// What `iss` has to be.
    pub issuer: String,
    /// What `aud` has to be or to contain.
    pub audience: String,
    pub keys: KeySource,
}

/// Where the keys of an issuer are (JWKS).
#[derive(Clone, Debug)]
pub enum KeySource {
    /// It is read again when it changes.
    File(PathBuf),
    /// It is asked again now and then, and when a token names a key that is not known.
    Url(ServiceUrl),
}

/// How often keys are fetched again.
const REFRESH: Duration = Duration::from_secs(300);
/// The pause after that, whatever tokens are shown.
const PAUSE: Duration = Duration::from_secs(5);

/// The tokens of one issuer.
pub(crate) struct Tokens {
    issuer: Issuer,
    keys: Mutex<(Option<Stamp>, Vec<PublicKey>)>,
    /// Notified when a token names a key that is not known.
    missed: Notify,
}

/// What changes when a file is written or replaced.
type Stamp = (u64, i64, i64, u64);

impl Tokens {
    pub fn open(issuer: Issuer) -> Result<Tokens, String> {
        let (stamp, keys) = (issuer.stamp(), issuer.load()?);
        Ok(Tokens {
            issuer,
            keys: Mutex::new((stamp, keys)),
            missed: Notify::new(),
        })
    }

    /// Fetches the keys again now and then. What cannot be fetched changes nothing.
    pub async fn keep_fresh(&self) {
        let KeySource::Url(url) = &self.issuer.keys else {
            return;
        };
        loop {
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                () = self.missed.notified() => {}
            }
            let fetched = url.get().await;
            if let Ok(keys) = fetched.and_then(|text| keys_in(&text)) {
                let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
                known.1 = keys;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whoever shows this token.
    pub fn identify(&self, token: &str, now: i64) -> Result<Identity, Refused> {
        let claims = self.verified(token)?;
        if claims.iss != self.issuer.issuer || !claims.is_for(&self.issuer.audience) {
            return Err(Refused::Unknown);
        }
        if now >= claims.exp.saturating_add(LEEWAY) {
            return Err(Refused::Expired);
        }
        if claims
            .nbf
            .is_some_and(|begin| now < begin.saturating_sub(LEEWAY))
        {
            return Err(Refused::Unknown);
        }
        claims.identity().ok_or(Refused::Unfit)
    }

    /// What a token with a valid signature says.
    fn verified(&self, token: &str) -> Result<Claims, Refused> {
        if token.len() > TOKEN_MAX {
            return Err(Refused::Unknown);
        }
        let parts: Vec<&str> = token.split('.').collect();
        let [head, body, signature] = parts[..] else {
            return Err(Refused::Unknown);
        };
        let header: Header = read(head)?;
        if header.crit.is_some() {
            return Err(Refused::Unknown);
        }
        let signature = Base64UrlUnpadded::decode_vec(signature).map_err(|_| Refused::Unknown)?;
        let signed = &token[..head.len() + 1 + body.len()];
        self.with_keys(|keys| {
            let fits = |key: &&PublicKey| {
                let named = header
                    .kid
                    .as_ref()
                    .map_or(keys.len() == 1, |kid| key.kid.as_ref() == Some(kid));
                named && key.algorithm() == header.alg
            };
            if !keys.iter().any(|key| fits(&key)) {
                self.missed.notify_one();
            }
            let mut fitting = keys.iter().filter(fits);
            match fitting.any(|key| key.verifies(signed.as_bytes(), &signature)) {
                true => Ok(()),
                false => Err(Refused::Unknown),
            }
        })?;
        read(body)
    }

    /// Reads the keys again if their file has changed. A file that cannot be used changes nothing.
    fn with_keys<T>(&self, look: impl FnOnce(&[PublicKey]) -> T) -> T {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.issuer.stamp();
        if stamp != known.0
            && let Ok(keys) = self.issuer.load()
        {
            *known = (stamp, keys);
        }
        look(&known.1)
    }
}

impl Issuer {
    fn stamp(&self) -> Option<Stamp> {
        let KeySource::File(path) = &self.keys else {
            return None;
        };
        let meta = fs::metadata(path).ok()?;
        Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size()))
    }

    fn load(&self) -> Result<Vec<PublicKey>, String> {
        if self.issuer.is_empty() || self.audience.is_empty() {
            return Err("an issuer and an audience are needed".into());
        }
        let (place, text) = match &self.keys {
            KeySource::File(path) => {
                let text = fs::read(path).map_err(|error| error.to_string());
                (path.display().to_string(), text)
            }
            KeySource::Url(url) => (url.to_string(), url.get_now()),
        };
        let keys = text.and_then(|text| keys_in(&text));
        keys.map_err(|why| format!("{place} has no keys for tokens: {why}"))
    }
}

fn read<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, Refused> {
    let text = Base64UrlUnpadded::decode_vec(part).map_err(|_| Refused::Unknown)?;
    serde_json::from_slice(&text).map_err(|_| Refused::Unknown)
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; none is.
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: OneOrMany,
    exp: i64,
    nbf: Option<i64>,
    /// Words with spaces between them, or a list.
    scope: OneOrMany,
    /// Patterns for names of vaults.
    avfs_vaults: OneOrMany,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    /// The words of a text, or of a list.
    fn words(&self) -> Vec<&str> {
        match self {
            OneOrMany::One(text) => text.split_ascii_whitespace().collect(),
            OneOrMany::Many(list) => list.iter().map(String::as_str).collect(),
        }
    }
}

impl Claims {
    fn is_for(&self, audience: &str) -> bool {
        match &self.aud {
            OneOrMany::One(one) => one == audience,
            OneOrMany::Many(many) => many.iter().any(|one| one == audience),
        }
    }

    /// None when the claims cannot be those of a principal here. Scopes that are for other services are not ours.
    fn identity(&self) -> Option<Identity> {
        let scopes = self.scope.words();
        let scopes: Vec<Scope> = scopes
            .iter()
            .filter_map(|word| super::scope(word).ok())
            // An approver is made by the owner, at a terminal.
            .filter(|scope| *scope != Scope::Approve)
            .collect();
        check_scopes(&scopes).ok()?;
        if self.sub.is_empty() {
            return None;
        }
        let vaults = self.avfs_vaults.words();
        let vaults = vaults.iter().map(|text| VaultPattern::parse(text));
        Some(Identity {
            name: format!("{PREFIX}{}", self.sub).parse().ok()?,
            scopes,
            vaults: vaults.collect::<Result<_, _>>().ok()?,
            source: Source::Token {
                expires: self.exp.saturating_add(LEEWAY),
            },
            rate: REQUESTS_PER_SECOND,
            asks_user: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Class;
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    /// An identity provider with one key.
    struct Provider {
        dir: tempfile::TempDir,
        pair: Ed25519KeyPair,
    }

    impl Provider {
        fn new() -> Provider {
            let bytes = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
            let provider = Provider {
                dir: tempfile::tempdir().unwrap(),
                pair: Ed25519KeyPair::from_pkcs8(bytes.as_ref()).unwrap(),
            };
            provider.publish(json!([provider.jwk("one")]));
            provider
        }

        fn jwk(&self, kid: &str) -> Value {
            let x = Base64UrlUnpadded::encode_string(self.pair.public_key().as_ref());
            json!({ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": kid, "x": x })
        }

        fn file(&self) -> PathBuf {
            self.dir.path().join("jwks.json")
        }

        fn publish(&self, keys: Value) {
            let draft = self.dir.path().join("draft");
            fs::write(&draft, json!({ "keys": keys }).to_string()).unwrap();
            fs::rename(draft, self.file()).unwrap();
        }

        fn issuer(&self) -> Issuer {
            Issuer {
                issuer: "https://id.example".into(),
                audience: "avfs".into(),
                keys: KeySource::File(self.file()),
            }
        }

        fn tokens(&self) -> Tokens {
            Tokens::open(self.issuer()).unwrap()
        }

        fn sign(&self, header: Value, claims: Value) -> String {
            let part =
                |value: Value| Base64UrlUnpadded::encode_string(value.to_string().as_bytes());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.pair.sign(signed.as_bytes());
            let signature = Base64UrlUnpadded::encode_string(signature.as_ref());
            format!("{signed}.{signature}")
        }
    }

    fn header() -> Value {
        json!({ "alg": "EdDSA", "kid": "one", "typ": "JWT" })
    }

    fn claims() -> Value {
        json!({
            "iss": "https://id.example", "aud": ["other", "avfs"], "sub": "ann@example",
            "exp": 1000, "scope": "openid read exec", "avfs_vaults": ["team-*"],
        })
    }

    fn with(mut value: Value, name: &str, other: Value) -> Value {
        match other {
            Value::Null => drop(value.as_object_mut().unwrap().remove(name)),
            other => value[name] = other,
        }
        value
    }

    #[test]
    fn a_token_says_who_may_do_what() {
        let provider = Provider::new();
        let known = provider
            .tokens()
            .identify(&provider.sign(header(), claims()), 500)
            .unwrap();
        assert_eq!(known.name.as_str(), "jwt/ann@example");
        assert_eq!(known.class(), Class::Agent);
        assert_eq!(known.scopes, [Scope::Read, Scope::Run]);
        assert_eq!(known.vaults, [VaultPattern::parse("team-*").unwrap()]);
    }

    #[test]
    fn every_claim_counts() {
        let (provider, now) = (Provider::new(), 500);
        let tokens = provider.tokens();
        let asked = |name: &str, other: Value| {
            let token = provider.sign(header(), with(claims(), name, other));
            tokens.identify(&token, now).map(|known| known.scopes)
        };
        for (name, other, refused) in [
            ("iss", json!("https://evil.example"), Refused::Unknown),
            ("iss", Value::Null, Refused::Unknown),
            ("aud", json!("other"), Refused::Unknown),
            ("aud", json!(["avfs.evil"]), Refused::Unknown),
            ("aud", Value::Null, Refused::Unknown),
            ("exp", json!(now - LEEWAY), Refused::Expired),
            ("exp", Value::Null, Refused::Unknown),
            ("exp", json!("1000"), Refused::Unknown),
            ("nbf", json!(now + LEEWAY + 1), Refused::Unknown),
            ("sub", json!(""), Refused::Unfit),
            ("sub", json!("a b"), Refused::Unfit),
            ("scope", json!("openid"), Refused::Unfit),
            ("scope", json!("approve"), Refused::Unfit),
            ("scope", Value::Null, Refused::Unknown),
            ("avfs_vaults", Value::Null, Refused::Unknown),
            ("avfs_vaults", json!(["../x"]), Refused::Unfit),
        ] {
            assert_eq!(asked(name, other.clone()), Err(refused), "{name}: {other}");
        }
        assert!(asked("nbf", json!(now)).is_ok());
        assert_eq!(
            asked("scope", json!(["read", "approve"])),
            Ok(vec![Scope::Read])
        );
    }

    #[test]
    fn the_key_decides_on_the_algorithm() {
        let (provider, stranger) = (Provider::new(), Provider::new());
        let tokens = provider.tokens();
        let asked = |token: &str| tokens.identify(token, 500).map(|known| known.scopes);
        for header in [
            json!({ "alg": "none", "kid": "one" }),
            json!({ "alg": "HS256", "kid": "one" }),
            json!({ "alg": "RS256", "kid": "one" }),
            json!({ "alg": "eddsa", "kid": "one" }),
            json!({ "alg": "EdDSA", "kid": "two" }),
            json!({ "alg": "EdDSA", "kid": "one", "crit": ["exp"] }),
            json!({ "kid": "one" }),
        ] {
            let token = provider.sign(header.clone(), claims());
            assert_eq!(asked(&token), Err(Refused::Unknown), "{header}");
        }
        let token = provider.sign(header(), claims());
        assert!(asked(&token).is_ok());
        let parts: Vec<&str> = token.split('.').collect();
        let (head, body, signature) = (parts[0], parts[1], parts[2]);
        let other = provider.sign(header(), with(claims(), "scope", json!("admin")));
        let other_body = other.split('.').nth(1).unwrap();
        for wrong in [
            format!("{head}.{body}."),
            format!("{head}.{body}"),
            format!("{head}.{other_body}.{signature}"),
            format!("{token}.x"),
            format!("{token}="),
            format!("{head}.{body}.{}", "A".repeat(TOKEN_MAX)),
            stranger.sign(header(), claims()),
        ] {
            assert_eq!(asked(&wrong), Err(Refused::Unknown), "{wrong}");
        }
    }

    #[test]
    fn keys_that_are_no_public_keys_are_not_used() {
        let provider = Provider::new();
        let secret = json!({ "kty": "oct", "kid": "one", "alg": "HS256", "k": "c2VjcmV0" });
        let encrypts = with(provider.jwk("one"), "use", json!("enc"));
        let unlike = with(provider.jwk("one"), "alg", json!("ES256"));
        for keys in [
            json!([]),
            json!([secret]),
            json!([encrypts]),
            json!([unlike]),
        ] {
            provider.publish(keys.clone());
            assert!(Tokens::open(provider.issuer()).is_err(), "{keys}");
        }
    }

    #[test]
    fn keys_are_read_again_when_they_change() {
        let (provider, next) = (Provider::new(), Provider::new());
        let tokens = provider.tokens();
        let old = provider.sign(header(), claims());
        let new = next.sign(header(), claims());
        assert!(tokens.identify(&old, 500).is_ok());
        provider.publish(json!([next.jwk("one")]));
        assert!(tokens.identify(&new, 500).is_ok());
        assert!(tokens.identify(&old, 500).is_err());
        fs::write(provider.file(), "{").unwrap();
        assert!(
            tokens.identify(&new, 500).is_ok(),
            "what cannot be read changes nothing"
        );
    }
}
