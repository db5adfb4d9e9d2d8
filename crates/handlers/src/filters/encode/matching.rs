//! Which responses are worth encoding: `match`, or Caddy's content types.

use crate::error::BuildError;
use http::{HeaderMap, HeaderName, StatusCode, header};
use regent_config::{self as config, FieldTest};

/// Caddy's default (`modules/caddyhttp/encode/encode.go`): beginnings of content types, in lower case.
const TYPES: [&str; 35] = [
    "text/",
    "application/atom+xml",
    "application/eot",
    "application/font",
    "application/geo+json",
    "application/graphql+json",
    "application/graphql-response+json",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/opentype",
    "application/otf",
    "application/rss+xml",
    "application/truetype",
    "application/ttf",
    "application/vnd.api+json",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-httpd-cgi",
    "application/x-javascript",
    "application/x-opentype",
    "application/x-otf",
    "application/x-perl",
    "application/x-protobuf",
    "application/x-ttf",
    "application/xhtml+xml",
    "application/xml",
    "font/ttf",
    "font/otf",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "multipart/bag",
    "multipart/mixed",
];

pub(crate) enum ResponseMatcher {
    /// The content type is one of [`TYPES`].
    Types,
    Written {
        statuses: Vec<(u16, u16)>,
        fields: Vec<(HeaderName, FieldTest)>,
    },
}

impl ResponseMatcher {
    pub(crate) fn compile(matcher: Option<&config::ResponseMatcher>) -> Result<Self, BuildError> {
        let Some(matcher) = matcher else { return Ok(Self::Types) };
        let field = |field: &config::FieldMatcher| {
            let name = HeaderName::try_from(field.name.as_str());
            let name = name.map_err(|_| BuildError::HeaderName(field.name.clone()))?;
            Ok((name, field.test.clone()))
        };
        let fields = matcher.fields.iter().map(field).collect::<Result<_, BuildError>>()?;
        Ok(Self::Written { statuses: matcher.statuses.clone(), fields })
    }

    pub(crate) fn fits(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        match self {
            Self::Types => headers.get(header::CONTENT_TYPE).is_some_and(|kind| is_listed(kind.as_bytes())),
            Self::Written { statuses, fields } => {
                let status = status.as_u16();
                let has_status = |(least, most): &(u16, u16)| (*least..=*most).contains(&status);
                (statuses.is_empty() || statuses.iter().any(has_status))
                    && fields.iter().all(|(name, test)| field_fits(headers, name, test))
            }
        }
    }
}

fn is_listed(kind: &[u8]) -> bool {
    let begins_so =
        |start: &str| kind.get(..start.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(start.as_bytes()));
    TYPES.iter().any(|start| begins_so(start))
}

fn field_fits(headers: &HeaderMap, name: &HeaderName, test: &FieldTest) -> bool {
    let mut values = headers.get_all(name).iter();
    match test {
        FieldTest::Present => values.next().is_some(),
        FieldTest::Absent => values.next().is_none(),
        FieldTest::Like(patterns) => values.any(|value| {
            patterns
                .iter()
                .any(|pattern| crate::matchers::matcher::value_fits(value.as_bytes(), pattern.as_bytes()))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fits(matcher: &ResponseMatcher, status: u16, kind: &'static str) -> bool {
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))].into_iter().collect();
        matcher.fits(StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn types_that_shrink() {
        for (kind, want) in [
            ("text/html; charset=utf-8", true),
            ("Text/Event-Stream", true),
            ("application/json", true),
            ("application/json;charset=utf-8", true),
            ("image/svg+xml", true),
            ("application/octet-stream", false),
            ("image/png", false),
            ("video/mp4", false),
            ("multipart/byteranges; boundary=x", false),
            ("text", false),
            ("", false),
        ] {
            assert_eq!(fits(&ResponseMatcher::Types, 200, kind), want, "{kind}");
        }
        assert!(!ResponseMatcher::Types.fits(StatusCode::OK, &HeaderMap::new()));
    }

    #[test]
    fn what_is_written_replaces_the_types() {
        let field = |name: &str, test| config::FieldMatcher { name: name.into(), test };
        let matcher = config::ResponseMatcher {
            statuses: vec![(200, 299), (404, 404)],
            fields: vec![
                field("Content-Type", FieldTest::Like(vec!["a/*".into(), "*+x".into()])),
                field("X-No", FieldTest::Absent),
            ],
        };
        let matcher = ResponseMatcher::compile(Some(&matcher)).unwrap();
        for (status, kind, want) in
            [(200, "a/b", true), (404, "b/c+x", true), (300, "a/b", false), (200, "text/html", false)]
        {
            assert_eq!(fits(&matcher, status, kind), want, "{status} {kind}");
        }
        let headers = [("content-type", "a/b"), ("x-no", "1")];
        let headers =
            headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        assert!(!matcher.fits(StatusCode::OK, &headers.into_iter().collect()));
    }
}
