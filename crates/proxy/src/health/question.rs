//! What an upstream is asked, and where a response leads that is a redirect.

use super::Reason;
use bytes::Bytes;
use http::{Method, Response, StatusCode, Uri, header};
use regent_config::ActiveHealth;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// `None`: the host of the upstream.
    pub host: Option<String>,
    pub body: Bytes,
}

impl Question {
    pub fn first(rules: &ActiveHealth) -> Result<Self, Reason> {
        Ok(Self {
            method: Method::from_bytes(rules.method.as_bytes())?,
            target: rules.uri.clone(),
            host: None,
            body: Bytes::from(rules.request_body.clone()),
        })
    }

    /// The next one, of the same server, whatever host it leads to: the others are no upstreams.
    pub fn behind<B>(&self, response: &Response<B>) -> Option<Self> {
        let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
        let (host, target) = self.resolve(location)?;
        let host = host.or_else(|| self.host.clone());
        match response.status() {
            // RFC 9110 §15.4.3: as everybody takes them.
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
                let method = if self.method == Method::HEAD { Method::HEAD } else { Method::GET };
                Some(Self { method, target, host, body: Bytes::new() })
            }
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
                Some(Self { target, host, ..self.clone() })
            }
            _ => None,
        }
    }

    /// RFC 3986 §5.2, but for dot segments, which servers resolve.
    fn resolve(&self, location: &str) -> Option<(Option<String>, String)> {
        let location = location.split('#').next().unwrap_or_default();
        let absolute = location.strip_prefix("//").map(|rest| format!("http://{rest}"));
        let absolute = absolute.as_deref().unwrap_or(location);
        if absolute.starts_with("http://") || absolute.starts_with("https://") {
            let uri: Uri = absolute.parse().ok()?;
            let target = uri.path_and_query().map_or("/", |target| target.as_str());
            return Some((Some(uri.authority()?.to_string()), target.to_owned()));
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let target = match location.as_bytes().first() {
            Some(b'/') => location.to_owned(),
            Some(b'?') => format!("{path}{location}"),
            Some(_) => format!("{}/{location}", path.rsplit_once('/').map_or("", |(folder, _)| folder)),
            None => self.target.clone(),
        };
        Some((None, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Question {
        Question {
            method: Method::POST,
            target: "/up/now?x=1".into(),
            host: None,
            body: Bytes::from_static(b"how are you"),
        }
    }

    fn behind(status: u16, location: &str) -> Option<Question> {
        let response = Response::builder().status(status).header("location", location).body(());
        asked().behind(&response.unwrap())
    }

    #[test]
    fn places_are_resolved() {
        let place = |location: &str| {
            let next = behind(307, location).unwrap();
            format!("{} {}", next.host.unwrap_or_default(), next.target)
        };
        assert_eq!(place("/a?b#c"), " /a?b");
        assert_eq!(place("then"), " /up/then");
        assert_eq!(place("?y"), " /up/now?y");
        assert_eq!(place("https://other:81/z?q"), "other:81 /z?q");
        assert_eq!(place("http://other"), "other /");
        assert_eq!(place("//other/z"), "other /z");
        assert_eq!(behind(307, "http://[/"), None);
    }

    #[test]
    fn some_redirects_change_the_question() {
        let next = behind(302, "/a").unwrap();
        assert_eq!((next.method, next.body.len()), (Method::GET, 0));
        assert_eq!(behind(308, "/a").unwrap(), Question { target: "/a".into(), ..asked() });
        assert_eq!(behind(200, "/a"), None);
        assert_eq!(asked().behind(&Response::builder().status(302).body(()).unwrap()), None);
    }
}
