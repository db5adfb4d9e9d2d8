//! Fields of a request that routes have set.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Takes the field out of what the client's `Connection` names (RFC 9110 §7.6.1): those end here, and a client is not to say so of
/// what is no longer its own. A server behind this one may trust who a request is from by such a field.
pub(crate) fn keep(fields: &mut HeaderMap, name: &HeaderName) {
    if !fields.contains_key(header::CONNECTION) {
        return;
    }
    let values = fields.get_all(header::CONNECTION);
    let members = values.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let members: Vec<_> = members.map(<[u8]>::trim_ascii).collect();
    let is_named = |member: &&&[u8]| member.eq_ignore_ascii_case(name.as_str().as_bytes());
    if !members.iter().any(|member| is_named(&member)) {
        return;
    }
    let others: Vec<_> = members.iter().filter(|member| !is_named(member)).copied().collect();
    let others = HeaderValue::from_bytes(&others.join(&b", "[..]));
    fields.remove(header::CONNECTION);
    if let Some(others) = others.ok().filter(|others| !others.is_empty()) {
        fields.insert(header::CONNECTION, others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_field_is_taken_out() {
        let kept = |values: &[&'static str]| {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(header::CONNECTION, HeaderValue::from_static(value));
            }
            keep(&mut fields, &HeaderName::from_static("x-user"));
            let all = fields.get_all(header::CONNECTION).iter();
            all.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[]), [""; 0]);
        assert_eq!(kept(&["X-User"]), [""; 0]);
        assert_eq!(kept(&["close, X-User,x-user", "X-Other"]), ["close, X-Other"]);
        assert_eq!(kept(&["keep-alive, Upgrade", "X-Users"]), ["keep-alive, Upgrade", "X-Users"]);
    }
}
