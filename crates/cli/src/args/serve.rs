//! The words of `avfs serve`.

use super::time::{Time, in_seconds};
use clap::Args;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub shared: SharedServeArgs,
    /// Stop after this time without work: 15m, 1h, or seconds; 0 means never
    #[arg(long, value_name = "TIME", value_parser = in_seconds, default_value = "15m")]
    pub idle_timeout: Time,
    /// Accepted for scripts; the daemon always stays in the foreground
    #[arg(long, conflicts_with = "detached")]
    pub foreground: bool,
    /// Leave the session, and greet on standard output as a starting client expects
    #[arg(long, hide = true, conflicts_with_all = ["listen", "log_requests"])]
    pub detached: bool,
    /// Make a new database if the home has lost its own
    #[arg(long, hide = true)]
    pub rebuild: bool,
}

/// What a service has as well.
#[derive(Debug, Args)]
pub struct SharedServeArgs {
    /// Also listen on this TCP address; clients need an API key. The daemon then never stops by itself
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Host name that clients use for this machine; can be repeated. Requests for other hosts are refused
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub hosts: Vec<String>,
    /// Certificate chain for TLS (PEM); read again when it changes
    #[arg(long, value_name = "FILE", requires = "listen", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Accept JSON Web Tokens of this issuer besides API keys
    #[arg(long, value_name = "ISSUER", requires_all = ["listen", "jwt_audience", "jwt_keys"])]
    pub jwt_issuer: Option<String>,
    /// Audience that the tokens must have
    #[arg(long, value_name = "AUDIENCE", requires = "jwt_issuer")]
    pub jwt_audience: Option<String>,
    /// File or https URL of the issuer's public keys (JWKS); a file is read again when it changes
    #[arg(long, value_name = "FILE|URL", requires = "jwt_issuer")]
    pub jwt_keys: Option<OsString>,
    /// Allow a listener without TLS that other machines can reach: keys can be read on the network
    #[arg(long, requires = "listen")]
    pub insecure_plaintext: bool,
    /// Send traces of requests and commands to this OpenTelemetry collector (OTLP over HTTP)
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Write a line of JSON to standard error for every request and every command
    #[arg(long)]
    pub log_requests: bool,
    /// Author name of git commits made in vaults
    #[arg(long, value_name = "NAME")]
    pub git_name: Option<String>,
    /// Author address of git commits made in vaults
    #[arg(long, value_name = "ADDRESS")]
    pub git_email: Option<String>,
    /// Directory for uncommitted writes of commands, instead of the home (also: AVFS_LAYERS)
    #[arg(long, value_name = "DIR")]
    pub layers: Option<std::path::PathBuf>,
}
