//! The form that a publisher sends.

use crate::update::Publication;

/// What is wrong with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormError {
    #[error("Invalid \"retry\" parameter: it must be a number of milliseconds")]
    Retry,
    #[error("The form has too many fields")]
    TooManyFields,
}

/// Fields of a form, topics among them.
const MOST_FIELDS: usize = 1000;

/// Reads an `application/x-www-form-urlencoded` body. Of fields that may be there once, the first counts; those that
/// nobody knows are passed over.
pub(crate) fn parse(body: &[u8]) -> Result<Publication, FormError> {
    let mut publication = Publication::default();
    let (mut data, mut retry) = (None, None);
    for (number, (name, value)) in form_urlencoded::parse(body).enumerate() {
        if number == MOST_FIELDS {
            return Err(FormError::TooManyFields);
        }
        match &*name {
            "topic" => publication.topics.push(value.into_owned()),
            "data" => set(&mut data, value.into_owned()),
            // Whatever its value is.
            "private" => publication.private = true,
            "id" => set(&mut publication.id, value.into_owned()),
            "type" => set(&mut publication.kind, value.into_owned()),
            "retry" => set(&mut retry, value.into_owned()),
            _ => {}
        }
    }
    publication.data = data.unwrap_or_default();
    let retry = retry.filter(|retry| !retry.is_empty()).map(|retry| milliseconds(&retry));
    publication.retry = retry.transpose()?;
    Ok(publication)
}

fn set(field: &mut Option<String>, value: String) {
    field.get_or_insert(value);
}

fn milliseconds(text: &str) -> Result<u64, FormError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or(FormError::Retry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_fields() {
        let form = b"topic=https%3A%2F%2Fa%2F1&topic=b+c&data=%7B%22a%22%3A1%7D%0A&private=&id=x&type=y&retry=12&other=1&id=z";
        let publication = parse(form).unwrap();
        let expected = Publication {
            topics: vec!["https://a/1".into(), "b c".into()],
            data: "{\"a\":1}\n".into(),
            private: true,
            id: Some("x".into()),
            kind: Some("y".into()),
            retry: Some(12),
        };
        assert_eq!(publication, expected);
    }

    #[test]
    fn everything_is_optional_here() {
        assert_eq!(parse(b""), Ok(Publication::default()));
        assert_eq!(parse(b"retry="), Ok(Publication::default()));
    }

    #[test]
    fn a_reconnection_time_is_a_number() {
        for bad in ["retry=a", "retry=-1", "retry=1.5", "retry=%2B1", "retry=99999999999999999999999"] {
            assert_eq!(parse(bad.as_bytes()), Err(FormError::Retry), "{bad}");
        }
        assert_eq!(parse("a&".repeat(MOST_FIELDS + 1).as_bytes()), Err(FormError::TooManyFields));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&body);
        }

        #[test]
        fn what_was_written_is_read(topics in prop::collection::vec(".{0,20}", 0..4), data in ".{0,40}") {
            let mut form = form_urlencoded::Serializer::new(String::new());
            topics.iter().for_each(|topic| _ = form.append_pair("topic", topic));
            form.append_pair("data", &data);
            let publication = parse(form.finish().as_bytes()).unwrap();
            prop_assert_eq!(publication.topics, topics);
            prop_assert_eq!(publication.data, data);
        }
    }
}
