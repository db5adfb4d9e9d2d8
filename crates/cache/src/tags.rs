//! Tags of responses, by which they are purged.

use http::HeaderMap;

/// The fields that have them: of Fastly and many applications, of Cloudflare and Akamai, and of Varnish.
pub const TAG_FIELDS: [&str; 3] = ["surrogate-key", "cache-tag", "xkey"];

/// Tags of one response, and bytes of one tag.
const MOST: usize = 1024;
const LONGEST: usize = 1024;

/// Parted by spaces or commas, whatever the field: no tag has either. `None`: there are too many, so that a purge might miss
/// the response.
pub(crate) fn of(headers: &HeaderMap) -> Option<Box<[Box<str>]>> {
    let values = TAG_FIELDS.iter().flat_map(|name| headers.get_all(*name));
    let mut tags: Vec<Box<str>> = Vec::new();
    for value in values {
        let words = value.to_str().ok()?.split([' ', ',', '\t']).filter(|word| !word.is_empty());
        for word in words {
            if tags.len() == MOST || word.len() > LONGEST {
                return None;
            }
            tags.push(word.into());
        }
    }
    tags.sort_unstable();
    tags.dedup();
    Some(tags.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn tags_of_all_fields_are_read() {
        let mut headers = HeaderMap::new();
        headers.insert("surrogate-key", HeaderValue::from_static("post-1 front post-1"));
        headers.append("xkey", HeaderValue::from_static("x"));
        headers.append("cache-tag", HeaderValue::from_static("a,b, c"));
        let found = of(&headers).unwrap();
        assert_eq!(
            found.iter().map(|tag| &**tag).collect::<Vec<_>>(),
            ["a", "b", "c", "front", "post-1", "x"]
        );
        headers.append("xkey", HeaderValue::try_from("x ".repeat(MOST)).unwrap());
        assert_eq!(of(&headers), None);
    }
}
