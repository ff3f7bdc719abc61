//! Who may come in.

use std::net::SocketAddr;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rand::{TryRngCore, rngs::OsRng};

use super::page;
use crate::{Error, Result};

/// Scripts, styles, pictures and connections of this server alone, and no page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The names that this server has, and the token of this run.
pub(super) struct Gate {
    hosts: Vec<String>,
    token: String,
}

impl Gate {
    pub(super) fn new(address: SocketAddr) -> Result<Self> {
        let mut secret = [0u8; 16];
        OsRng.try_fill_bytes(&mut secret).map_err(|e| Error::Data(format!("the system has no random numbers for a token: {e}")))?;
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.push(format!("localhost:{}", address.port()));
        }
        Ok(Self { hosts, token: secret.iter().map(|byte| format!("{byte:02x}")).collect() })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Why a request is refused, if it is.
    fn refuse(&self, uri: &Uri, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // A name that another site has pointed here would make this server part of that site.
        if headers.get_all(header::HOST).iter().count() != 1 || !text(header::HOST).is_some_and(|host| self.called(host)) {
            return Some((StatusCode::MISDIRECTED_REQUEST, "this server has another name\n"));
        }
        let foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(|host| self.called(host));
        if headers.contains_key(header::ORIGIN) && text(header::ORIGIN).is_none_or(foreign) {
            return Some((StatusCode::FORBIDDEN, "pages of other sites have no business here\n"));
        }
        // These tell nothing of the run, and a page cannot send its token along when it asks for them.
        if page::PARTS.iter().any(|part| part.path == uri.path()) {
            return None;
        }
        let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let query = uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
        match bearer.or(query) {
            Some(token) if same(token.as_bytes(), self.token.as_bytes()) => None,
            _ => Some((StatusCode::UNAUTHORIZED, "open the address that kaflow printed: it ends in the token of this run\n")),
        }
    }

    fn called(&self, host: &str) -> bool {
        self.hosts.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Compares in a time that tells nothing of where two texts differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Lets a request through or refuses it, and says to the browser what it may do with the answer.
pub(super) async fn keep(State(gate): State<std::sync::Arc<Gate>>, request: Request, next: Next) -> Response {
    let mut response = match gate.refuse(request.uri(), request.headers()) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
