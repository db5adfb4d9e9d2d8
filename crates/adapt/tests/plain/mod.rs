//! Two documents of Caddy's JSON that say the same may say it with other lists around it. This evens it out.

use serde_json::{Value, json};

/// What is taken, and has no effect in Regent, so that its model does not have it.
const WITHOUT_EFFECT: &[&str] = &[
    "allow_0rtt",
    "compression",
    "enable_full_duplex",
    "expect_continue_timeout",
    "flush_interval",
    "hash_cache",
    "max_write_chunk",
    "read_buffer_size",
    "renegotiation",
    "write_buffer_size",
];

/// What is said in any case where nothing is said.
const DEFAULTS: &[(&str, &str)] = &[
    ("expect_status", "2"),
    ("mode", "\"require_and_verify\""),
    ("policy", "\"random\""),
    ("port", "\"80\""),
    ("protocol_min", "\"tls1.2\""),
    ("strict_sni_host", "false"),
    ("try_policy", "\"first_exist\""),
];

/// What has another name that means the same in Regent.
const SAME: &[(&str, &str)] = &[("write_idle_timeout", "write_timeout")];

/// The document
/// - with each handler in a route of its own, and lists of routes without a condition put in where they stand,
/// - with groups numbered in the order in which they come, and none where only one route is in it,
/// - without the names of expressions, and with their texts free of parentheses and kinds of quotes,
/// - without the file that was adapted among those that are hidden,
/// - with servers by their addresses, and the names of those that have one,
/// - with policies in order, and names of fields, of variables and of servers of DNS as the model has them,
/// - without what has no effect, or is said in any case.
pub fn document(mut document: Value) -> Value {
    visit(&mut document);
    if let Some(Value::Object(servers)) = document.pointer_mut("/apps/http/servers") {
        let by_address = std::mem::take(servers).into_iter().map(|(name, mut server)| {
            if !name.starts_with("srv") {
                server["name"] = name.into();
            }
            (server["listen"].to_string(), server)
        });
        servers.extend(by_address.collect::<Vec<_>>());
    }
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
            members.retain(|name, value| !DEFAULTS.contains(&(name.as_str(), value.to_string().as_str())));
            for (theirs, ours) in SAME {
                if let Some(value) = members.remove(*theirs) {
                    members.insert((*ours).to_owned(), value);
                }
            }
            if members.get("protocol").is_some_and(|name| name == "grpc") {
                members.remove("protocol");
                members.insert("header".into(), json!({"Content-Type": ["application/grpc*"]}));
            }
            if let Some(Value::Object(vars)) = members.get_mut("vars") {
                let renamed = std::mem::take(vars).into_iter().map(|(name, values)| {
                    let variable = name.strip_prefix("{http.vars.").and_then(|name| name.strip_suffix('}'));
                    (variable.map_or(name.clone(), str::to_owned), values)
                });
                vars.extend(renamed.collect::<Vec<_>>());
            }
            if let Some(servers) = members.get_mut("addresses") {
                *servers = serde_json::from_str(&servers.to_string().replace(":53\"", "\"")).unwrap();
            }
            if let Some(headers) = members.get_mut("client_ip_headers") {
                *headers = serde_json::from_str(&headers.to_string().to_lowercase()).unwrap();
            }
            members.values_mut().for_each(visit);
            for name in ["selection_policy", "load_balancing"] {
                if members.get(name).is_some_and(|value| *value == json!({})) {
                    members.remove(name);
                }
            }
            if let Some(Value::Array(policies)) = members.get_mut("policies") {
                policies
                    .iter_mut()
                    .filter_map(|policy| policy["subjects"].as_array_mut())
                    .for_each(|names| names.sort_by_key(Value::to_string));
                policies.sort_by_key(|policy| policy["subjects"].to_string());
            }
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
            let inner =
                handler.get("routes").and_then(Value::as_array).filter(|_| handler["handler"] == "subroute");
            match inner.filter(|_| route.get("match").is_none()) {
                Some(inner) if inner.iter().all(|route| route.get("group").is_none()) => {
                    apart.extend(inner.iter().cloned())
                }
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
