//! Two configurations that mean the same may say it in another order, or with other lists around it. This evens it out.

use regent_config::Config;
use serde_json::{Map, Value, json};

/// The configuration, with
/// - lists of routes without a condition put in where they stand, and a condition on a list put on each of its routes,
/// - groups numbered in the order in which they come, and none where only one route is in it,
/// - conditions, changes of headers and pairs of names and values sorted, as JSON has no order,
/// - each upstream where it is used, since it is numbered in the order in which directives are read,
/// - no file that Caddy's adapter hides because it was adapted,
/// - no names of servers that Caddy has numbered,
/// - no options of the addresses that only redirect: of these Caddy's JSON says nothing.
pub fn config(config: &Config) -> Value {
    let mut value: Value = serde_json::to_value(config).unwrap();
    for server in value["servers"].as_array_mut().unwrap() {
        if server["name"].as_str().is_some_and(|name| name.starts_with("srv")) {
            server.as_object_mut().unwrap().remove("name");
        }
        if server["purpose"] == "redirects" {
            let kept = ["listen", "tls", "sites", "purpose"];
            server.as_object_mut().unwrap().retain(|name, _| kept.contains(&name.as_str()));
        }
    }
    let proxies = value.as_object_mut().unwrap().remove("proxies").unwrap_or_default();
    put_in(&mut value, &proxies);
    visit(&mut value);
    if let Some(Value::Array(logs)) = value["global"].get_mut("logs") {
        logs.sort_by_key(|log| log["name"].to_string());
    }
    value["servers"].as_array_mut().unwrap().sort_by_key(|server| server["listen"].to_string());
    value
}

/// Where they differ, line by line.
pub fn differences(caddyfile: &Value, json: &Value) -> String {
    let mut found = String::new();
    compare("", caddyfile, json, &mut found);
    found
}

fn compare(path: &str, one: &Value, other: &Value, found: &mut String) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for name in names {
                let get = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                compare(&format!("{path}.{name}"), &get(one), &get(other), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), one, other, found);
            }
        }
        _ if one == other => {}
        _ => found.push_str(&format!("  {path}\n    Caddyfile: {one}\n    JSON:      {other}\n")),
    }
}

fn put_in(value: &mut Value, proxies: &Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put_in(item, proxies)),
        Value::Object(members) => {
            if let Some(index) = members.get("ReverseProxy").and_then(Value::as_u64) {
                let mut proxy = proxies[index as usize].clone();
                put_in(&mut proxy, proxies);
                members.insert("ReverseProxy".into(), proxy);
            }
            members.values_mut().for_each(|member| put_in(member, proxies));
        }
        _ => {}
    }
}

fn visit(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(visit);
            if items.iter().any(|item| item.get("handler").is_some()) {
                *items = routes(std::mem::take(items));
            } else if items.iter().all(is_pair) {
                items.sort_by_key(Value::to_string);
            }
        }
        Value::Object(members) => {
            members.values_mut().for_each(visit);
            if let Some(hidden) = members.get_mut("hide").and_then(Value::as_array_mut) {
                hidden.retain(|file| !file.to_string().to_lowercase().contains("caddyfile"));
            }
            if let Some(sets) = members.get_mut("matchers").and_then(Value::as_array_mut) {
                sets.iter_mut()
                    .filter_map(Value::as_array_mut)
                    .for_each(|set| set.sort_by_key(Value::to_string));
            }
            // Caddy writes the names of fields as Go does.
            if members.contains_key("deferred")
                && let Some(name) = members["name"].as_str().map(str::to_lowercase)
            {
                members["name"] = name.into();
            }
            for name in ["Header", "header_up", "header_down", "hosts", "filters", "append", "ErrorStatus"] {
                if let Some(Value::Array(items)) = members.get_mut(name) {
                    items.sort_by_key(Value::to_string);
                }
            }
        }
        _ => {}
    }
}

fn is_pair(item: &Value) -> bool {
    item.as_array().is_some_and(|pair| pair.len() == 2 && pair[0].is_string())
}

fn routes(list: Vec<Value>) -> Vec<Value> {
    let mut flat: Vec<Value> = Vec::new();
    for mut route in list {
        let is_free = route["group"].is_null();
        let inner = match &mut route["handler"] {
            Value::Object(handler) => {
                handler.get_mut("Subroute").and_then(Value::as_array_mut).map(std::mem::take)
            }
            _ => None,
        };
        let Some(inner) = inner else {
            flat.push(route);
            continue;
        };
        let is_plain = |route: &Value| route["group"].is_null() && route["matchers"] == json!([]);
        if is_free && route["matchers"] == json!([]) && inner.iter().all(|route| route["group"].is_null()) {
            flat.extend(inner);
        } else if is_free && !inner.is_empty() && inner.iter().all(is_plain) {
            flat.extend(inner.into_iter().map(
                |inner| json!({"group": null, "matchers": route["matchers"], "handler": inner["handler"]}),
            ));
        } else if inner.len() == 1 && is_plain(&inner[0]) {
            route["handler"] = inner[0]["handler"].clone();
            flat.push(route);
        } else {
            route["handler"] = json!({ "Subroute": inner });
            flat.push(route);
        }
    }
    let mut merged: Vec<Value> = Vec::new();
    for route in flat {
        match merged.last_mut() {
            // Two directives of the same kind and condition, which Caddy's JSON has in one handler or in two.
            Some(last) if is_mergeable(last, &route) => merge(last, route),
            _ => merged.push(route),
        }
    }
    let groups: Vec<Value> = merged.iter().map(|route| route["group"].clone()).collect();
    let mut numbers: Vec<Value> = Vec::new();
    for route in &mut merged {
        let group = route["group"].clone();
        if groups.iter().filter(|other| **other == group).count() < 2 {
            route["group"] = Value::Null;
        } else if !group.is_null() {
            let number = numbers.iter().position(|known| *known == group).unwrap_or_else(|| {
                numbers.push(group);
                numbers.len() - 1
            });
            route["group"] = number.into();
        }
    }
    merged
}

fn is_mergeable(last: &Value, route: &Value) -> bool {
    let is_same =
        last["matchers"] == route["matchers"] && last["group"] == route["group"] && last["group"].is_null();
    let has = |name: &str| last["handler"].get(name).is_some() && route["handler"].get(name).is_some();
    is_same && (has("Header") || has("RequestHeader") || has("Vars"))
}

fn merge(last: &mut Value, route: Value) {
    for (name, value) in route["handler"].as_object().unwrap() {
        let list = last["handler"][name].as_array_mut().unwrap();
        list.extend(value.as_array().unwrap().iter().cloned());
        list.sort_by_key(Value::to_string);
    }
}
