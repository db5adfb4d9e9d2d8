//! Two documents of Caddy's JSON that say the same may say it with other lists around it. This evens it out.

use serde_json::{Value, json};

/// The CA that Caddy asks beside Let's Encrypt, which Regent does not.
const ZEROSSL: &str = "https://acme.zerossl.com/v2/DV90";

/// What is taken, and has no effect in Regent, so that its model does not have it.
const WITHOUT_EFFECT: &[&str] = &["allow_0rtt", "enable_full_duplex", "flush_interval", "hash_cache", "max_write_chunk"];

/// The document
/// - without the place of the storage, which Regent always writes, as the environment decides on it,
/// - with each handler in a route of its own, and lists of routes without a condition put in where they stand,
/// - with groups numbered in the order in which they come, and none where only one route is in it,
/// - without the names of expressions, and with their texts free of parentheses and kinds of quotes,
/// - without the file that was adapted among those that are hidden,
/// - with the first issuer of a policy alone,
/// - without what has no effect.
pub fn document(mut document: Value) -> Value {
    document.as_object_mut().unwrap().remove("storage");
    visit(&mut document);
    document
}

fn visit(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(visit);
            if items.iter().any(|item| item.get("handle").is_some()) {
                *items = routes(std::mem::take(items));
            }
        }
        Value::Object(members) => {
            WITHOUT_EFFECT.iter().for_each(|name| drop(members.remove(*name)));
            members.values_mut().for_each(visit);
            if let Some(expression) = members.get_mut("expression") {
                let text = expression.get("expr").unwrap_or(expression).as_str().unwrap_or_default();
                *expression = text.replace(['(', ')', '"', '\'', '`', ' '], "").into();
            }
            if let Some(hidden) = members.get_mut("hide").and_then(Value::as_array_mut) {
                hidden.retain(|file| !file.to_string().contains(".caddyfile"));
                if hidden.is_empty() {
                    members.remove("hide");
                }
            }
            if let Some(issuers) = members.get_mut("issuers").and_then(Value::as_array_mut) {
                issuers.retain(|issuer| issuer["ca"] != ZEROSSL);
            }
        }
        _ => {}
    }
}

fn routes(list: Vec<Value>) -> Vec<Value> {
    let mut apart: Vec<Value> = Vec::new();
    for route in list {
        let handlers = route["handle"].as_array().cloned().unwrap_or_default();
        let is_whole = route.get("group").is_some() || route.get("terminal").is_some() || handlers.is_empty();
        if is_whole {
            apart.push(route);
            continue;
        }
        for handler in handlers {
            let inner = handler.get("routes").and_then(Value::as_array).filter(|_| handler["handler"] == "subroute");
            match inner.filter(|_| route.get("match").is_none()) {
                Some(inner) if inner.iter().all(|route| route.get("group").is_none()) => apart.extend(inner.iter().cloned()),
                _ => {
                    let mut one = route.clone();
                    one["handle"] = json!([handler]);
                    apart.push(one);
                }
            }
        }
    }
    let groups: Vec<Value> = apart.iter().map(|route| route["group"].clone()).collect();
    let mut known: Vec<Value> = Vec::new();
    for route in &mut apart {
        let Some(group) = route.get("group").cloned() else { continue };
        if groups.iter().filter(|other| **other == group).count() < 2 {
            route.as_object_mut().unwrap().remove("group");
            continue;
        }
        let number = known.iter().position(|other| *other == group).unwrap_or(known.len());
        if number == known.len() {
            known.push(group);
        }
        route["group"] = number.into();
    }
    apart
}
