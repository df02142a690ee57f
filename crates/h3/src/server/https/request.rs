//! Requests over TCP as HTTP/3 has them: with an absolute URI.

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Uri, Version, request};

/// A request that does not say which host it is for, or does so wrongly (RFC 9112, section 3.2).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoHost;

/// Adds the scheme and the host to a URI that is a path alone.
pub(super) fn complete(parts: &mut request::Parts) -> Result<(), NoHost> {
    if parts.version >= Version::HTTP_11 && parts.version < Version::HTTP_2 {
        host(&parts.headers)?.ok_or(NoHost)?;
    }
    let is_path = parts.uri.path().starts_with('/');
    if parts.uri.authority().is_some() || !is_path {
        return Ok(());
    }
    let Some(host) = host(&parts.headers)? else {
        return Ok(());
    };
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    uri.scheme = Some(Scheme::HTTPS);
    uri.authority = Some(host);
    uri.path_and_query
        .get_or_insert_with(|| PathAndQuery::from_static("/"));
    parts.uri = Uri::from_parts(uri).map_err(|_| NoHost)?;
    Ok(())
}

/// Returns what the only field `Host` names.
fn host(headers: &HeaderMap) -> Result<Option<Authority>, NoHost> {
    let mut values = headers.get_all(HOST).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match Authority::try_from(value.as_bytes()) {
            Ok(host) if !host.as_str().contains('@') => Ok(Some(host)),
            _ => Err(NoHost),
        },
        (Some(_), Some(_)) => Err(NoHost),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn completed(version: Version, uri: &str, hosts: &[&str]) -> Result<String, NoHost> {
        let mut builder = Request::builder().version(version).uri(uri);
        for host in hosts {
            builder = builder.header(HOST, *host);
        }
        let (mut parts, ()) = builder.body(()).unwrap().into_parts();
        complete(&mut parts)?;
        Ok(parts.uri.to_string())
    }

    #[test]
    fn a_path_gets_its_host() {
        let http1 = |uri, hosts: &[&str]| completed(Version::HTTP_11, uri, hosts);
        assert_eq!(http1("/a?b=c", &["x:1"]), Ok("https://x:1/a?b=c".into()));
        assert_eq!(http1("https://y/a", &["x"]), Ok("https://y/a".into()));
        assert_eq!(http1("*", &["x"]), Ok("*".into()));
        assert_eq!(http1("y:443", &["x"]), Ok("y:443".into()));
        for wrong in [&[][..], &["x", "x"], &["a@x"], &["x/y"], &[""]] {
            assert_eq!(http1("/", wrong), Err(NoHost), "{wrong:?}");
        }
        let http2 = |uri, hosts: &[&str]| completed(Version::HTTP_2, uri, hosts);
        assert_eq!(http2("https://y/a", &[]), Ok("https://y/a".into()));
        assert_eq!(http2("/a", &["x"]), Ok("https://x/a".into()));
        assert_eq!(completed(Version::HTTP_10, "/a", &[]), Ok("/a".into()));
    }
}
