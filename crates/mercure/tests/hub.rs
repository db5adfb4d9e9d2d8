//! A hub as its server sees it: requests in, responses out.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use jsonwebtoken::{EncodingKey, Header};
use regent_exchange::{RequestBody, ResponseBody};
use regent_mercure::{
    Anonymous, Asked, Bounds, HistoryOptions, Hub, HubOptions, Key, PATH, Publication, Subscriptions,
};
use serde_json::{Value, json};
use std::time::Duration;

const SECRET: &str = "!ChangeThisMercureHubJWTSecretKey!";

fn options() -> HubOptions {
    let key = Key { secret: SECRET.into(), algorithm: "HS256".into() };
    HubOptions {
        publisher: Some(key.clone()),
        subscriber: Some(key),
        anonymous: Anonymous::Allowed,
        ..HubOptions::default()
    }
}

fn token(claim: Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    jsonwebtoken::encode(&Header::default(), &json!({"mercure": claim}), &key).unwrap()
}

fn bearer(claim: Value) -> Vec<(&'static str, String)> {
    vec![("authorization", format!("Bearer {}", token(claim)))]
}

struct Call {
    method: Method,
    path: String,
    fields: Vec<(&'static str, String)>,
    body: &'static str,
}

fn get(query: &str, fields: Vec<(&'static str, String)>) -> Call {
    Call { method: Method::GET, path: format!("{PATH}?{query}"), fields, body: "" }
}

fn post(body: &'static str, mut fields: Vec<(&'static str, String)>) -> Call {
    fields.push(("content-type", "application/x-www-form-urlencoded".into()));
    Call { method: Method::POST, path: PATH.into(), fields, body }
}

async fn answer(hub: &Hub, call: Call) -> Response<ResponseBody> {
    let field = |(name, value): &(&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::try_from(value).unwrap())
    };
    let headers: HeaderMap = call.fields.iter().map(field).collect();
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    let asked = Asked { method: &call.method, path, query, headers: &headers };
    let bounds = Bounds { bytes: 100, silence: Duration::from_secs(5) };
    let body = RequestBody::new(Full::new(Bytes::from_static(call.body.as_bytes())));
    hub.answer(asked, body, bounds).await
}

async fn text(response: Response<ResponseBody>) -> (StatusCode, String) {
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn status(hub: &Hub, call: Call) -> StatusCode {
    answer(hub, call).await.status()
}

/// The next event's text; comments are passed over.
async fn event(body: &mut ResponseBody) -> Option<String> {
    loop {
        let frame = body.frame().await?.unwrap().into_data().unwrap();
        if frame != ":\n" {
            return Some(String::from_utf8(frame.to_vec()).unwrap());
        }
    }
}

async fn publish(hub: &Hub, topic: &str, id: &str, private: bool) {
    let (topics, id) = (vec![topic.to_owned()], Some(id.to_owned()));
    let (_, done) = hub.publish(Publication { topics, id, private, ..Publication::default() }).unwrap();
    done.await.unwrap();
}

#[tokio::test]
async fn an_update_reaches_those_that_subscribed_to_its_topic() {
    let hub = Hub::open(options()).unwrap();
    let response = answer(&hub, get("topic=a&topic=%2Fb%2F%7Bid%7D", vec![])).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("last-event-id"));
    let mut subscriber = response.into_body();
    let form = "topic=%2Fb%2F1&topic=other&data=hello%0Aworld&id=x&type=greeting&retry=9";
    let published = answer(&hub, post(form, bearer(json!({"publish": ["*"]})))).await;
    assert_eq!(text(published).await, (StatusCode::OK, "x".into()));
    publish(&hub, "c", "2", false).await;
    publish(&hub, "a", "3", false).await;
    let expected = "event: greeting\nretry: 9\nid: x\ndata: hello\ndata: world\n\n";
    assert_eq!(event(&mut subscriber).await.as_deref(), Some(expected));
    assert_eq!(event(&mut subscriber).await.as_deref(), Some("id: 3\ndata: \n\n"));
}

#[tokio::test]
async fn who_may_publish_what() {
    let hub = Hub::open(options()).unwrap();
    let form = "topic=a&topic=b";
    for (claim, expected) in [
        (json!({"publish": ["*"]}), StatusCode::OK),
        (json!({"publish": ["a", "b"]}), StatusCode::OK),
        (json!({"publish": ["a"]}), StatusCode::FORBIDDEN),
        (json!({"publish": []}), StatusCode::FORBIDDEN),
        (json!({"subscribe": ["*"]}), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(status(&hub, post(form, bearer(claim.clone()))).await, expected, "{claim}");
    }
    assert_eq!(status(&hub, post(form, vec![])).await, StatusCode::UNAUTHORIZED);
    let wrong = vec![("authorization", "Bearer x.y.z".to_owned())];
    assert_eq!(status(&hub, post(form, wrong)).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn forms_that_are_none() {
    let hub = Hub::open(options()).unwrap();
    let may = || bearer(json!({"publish": ["*"]}));
    for (form, expected) in [
        ("data=x", StatusCode::BAD_REQUEST),
        ("topic=a%0Ab", StatusCode::BAD_REQUEST),
        ("topic=a&id=x%0Ay", StatusCode::BAD_REQUEST),
        ("topic=a&retry=x", StatusCode::BAD_REQUEST),
        (
            "topic=a&data=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
    ] {
        assert_eq!(status(&hub, post(form, may())).await, expected, "{form}");
    }
    let mut call = post("topic=a", may());
    call.fields.last_mut().unwrap().1 = "application/json".into();
    assert_eq!(status(&hub, call).await, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_cookie_publishes_from_pages_of_named_origins_only() {
    let options = HubOptions { publish_origins: vec!["https://a.test".into()], ..options() };
    let hub = Hub::open(options).unwrap();
    let cookie = || ("cookie", format!("mercureAuthorization={}", token(json!({"publish": ["*"]}))));
    let from = |origin: &str| vec![cookie(), ("origin", origin.to_owned())];
    assert_eq!(status(&hub, post("topic=a", from("https://a.test"))).await, StatusCode::OK);
    assert_eq!(status(&hub, post("topic=a", from("https://b.test"))).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&hub, post("topic=a", vec![cookie()])).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn private_updates_are_for_those_whose_token_says_so() {
    let hub = Hub::open(options()).unwrap();
    let subscribe = async |fields| answer(&hub, get("topic=%2Fb%2F%7Bid%7D", fields)).await.into_body();
    let mut anyone = subscribe(vec![]).await;
    let mut first = subscribe(bearer(json!({"subscribe": ["/b/1"]}))).await;
    let mut all = subscribe(bearer(json!({"subscribe": ["*"]}))).await;
    publish(&hub, "/b/1", "1", true).await;
    publish(&hub, "/b/2", "2", true).await;
    publish(&hub, "/b/3", "3", false).await;
    for (subscriber, ids) in
        [(&mut anyone, &["3"][..]), (&mut first, &["1", "3"]), (&mut all, &["1", "2", "3"])]
    {
        for id in ids {
            assert_eq!(event(subscriber).await.unwrap(), format!("id: {id}\ndata: \n\n"));
        }
    }
}

#[tokio::test]
async fn who_may_subscribe() {
    let hub = Hub::open(HubOptions { anonymous: Anonymous::Refused, ..options() }).unwrap();
    assert_eq!(status(&hub, get("topic=a", vec![])).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status(&hub, get("topic=a", bearer(json!({})))).await, StatusCode::OK);
    let query = format!("topic=a&authorization={}", token(json!({})));
    assert_eq!(status(&hub, get(&query, vec![])).await, StatusCode::OK);
    let open = Hub::open(options()).unwrap();
    let wrong = vec![("authorization", "Bearer x.y.z".to_owned())];
    assert_eq!(status(&open, get("topic=a", wrong)).await, StatusCode::UNAUTHORIZED);
    for query in ["", "topic=", "topic=a%0Ab"] {
        assert_eq!(status(&open, get(query, vec![])).await, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn who_comes_again_gets_what_was_missed_and_then_what_comes() {
    for (query, fields, after, ids) in [
        ("topic=a&topic=b&lastEventID=1", vec![], "1", &["2", "3"][..]),
        ("topic=a&topic=b&lastEventID=3", vec![("last-event-id", "2".to_owned())], "2", &["3"]),
        ("topic=a&topic=c&lastEventID=earliest", vec![], "earliest", &["1", "2", "3"]),
        ("topic=a&topic=secret&lastEventID=unknown", vec![], "earliest", &["1", "2", "3"]),
        ("topic=b&lastEventID=1", vec![], "1", &[]),
    ] {
        let hub = Hub::open(options()).unwrap();
        for id in ["1", "2", "3"] {
            publish(&hub, "a", id, false).await;
            publish(&hub, "secret", &format!("s{id}"), true).await;
        }
        let response = answer(&hub, get(&format!("{query}&topic=live"), fields)).await;
        assert_eq!(response.headers()["last-event-id"], after, "{query}");
        let mut body = response.into_body();
        let mut got = Vec::new();
        publish(&hub, "live", "live", false).await;
        while got.last().is_none_or(|event| event != "id: live\ndata: \n\n") {
            got.push(event(&mut body).await.unwrap());
        }
        let expected: Vec<_> =
            ids.iter().chain(&["live"]).map(|id| format!("id: {id}\ndata: \n\n")).collect();
        assert_eq!(got, expected, "{query}");
    }
}

#[tokio::test]
async fn without_a_history_nothing_is_repeated() {
    let hub = Hub::open(HubOptions { history: HistoryOptions::None, ..options() }).unwrap();
    publish(&hub, "a", "1", false).await;
    let response = answer(&hub, get("topic=a&lastEventID=earliest", vec![])).await;
    assert_eq!(response.headers()["last-event-id"], "earliest");
    publish(&hub, "a", "2", false).await;
    assert_eq!(event(&mut response.into_body()).await.unwrap(), "id: 2\ndata: \n\n");
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_comments_and_the_connection_ends_in_time() {
    let seconds = Duration::from_secs;
    let hub =
        Hub::open(HubOptions { heartbeat: seconds(40), write_timeout: seconds(100), ..options() }).unwrap();
    let begun = tokio::time::Instant::now();
    let mut body = answer(&hub, get("topic=a", vec![])).await.into_body();
    let mut comments = Vec::new();
    while let Some(frame) = body.frame().await {
        assert_eq!(frame.unwrap().into_data().unwrap(), ":\n");
        comments.push(begun.elapsed().as_secs());
    }
    assert_eq!((comments, begun.elapsed().as_secs()), (vec![0, 40, 80], 100));
}

#[tokio::test]
async fn a_closed_hub_tells_its_subscribers_to_come_again() {
    let hub = Hub::open(options()).unwrap();
    let mut body = answer(&hub, get("topic=a", vec![])).await.into_body();
    publish(&hub, "a", "1", false).await;
    hub.close();
    assert_eq!(event(&mut body).await.unwrap(), "id: 1\ndata: \n\n");
    assert!(event(&mut body).await.unwrap().starts_with("retry: "));
    assert_eq!(event(&mut body).await, None);
    assert_eq!(status(&hub, get("topic=a", vec![])).await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn subscriptions_are_listed_and_told_to_those_that_may_see_them() {
    let hub = Hub::open(HubOptions { subscriptions: Subscriptions::Shown, ..options() }).unwrap();
    let list = |path: &str, fields| Call {
        method: Method::GET,
        path: format!("{PATH}/subscriptions{path}"),
        fields,
        body: "",
    };
    let template = "/.well-known/mercure/subscriptions{/topic}{/subscriber}";
    let watcher = || bearer(json!({"subscribe": [template], "payload": {"name": "w"}}));
    let query = format!("topic={}", template.replace('{', "%7B").replace('}', "%7D"));
    let mut watching = answer(&hub, get(&query, watcher())).await.into_body();
    let mut other = answer(&hub, get(&query, vec![])).await.into_body();
    let joined = event(&mut watching).await.unwrap();
    assert!(joined.contains("\"active\":true") && !joined.contains("payload"), "{joined}");

    let (status_code, json) = text(answer(&hub, list("", watcher())).await).await;
    assert_eq!(status_code, StatusCode::OK);
    let json: Value = serde_json::from_str(&json).unwrap();
    let subscriptions = json["subscriptions"].as_array().unwrap();
    assert_eq!(subscriptions.len(), 2);
    let path =
        subscriptions[0]["id"].as_str().unwrap().strip_prefix("/.well-known/mercure/subscriptions").unwrap();
    let (_, one) = text(answer(&hub, list(path, watcher())).await).await;
    assert_eq!(serde_json::from_str::<Value>(&one).unwrap()["payload"], json!({"name": "w"}));

    let allowed = |selector| bearer(json!({"subscribe": [selector]}));
    assert_eq!(status(&hub, list("", allowed("other"))).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&hub, list("/x/y", allowed("*"))).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&hub, list("", vec![])).await, StatusCode::UNAUTHORIZED);

    publish(&hub, "/.well-known/mercure/subscriptions", "public", false).await;
    assert!(event(&mut other).await.unwrap().starts_with("id: public"));
    assert!(event(&mut watching).await.unwrap().starts_with("id: public"));
    drop(other);
    assert!(event(&mut watching).await.unwrap().contains("\"active\":false"));
    let hidden = Hub::open(options()).unwrap();
    assert_eq!(status(&hidden, list("", allowed("*"))).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn other_methods_and_preflights() {
    let hub = Hub::open(HubOptions { cors_origins: vec!["https://a.test".into()], ..options() }).unwrap();
    let call = |method: Method| {
        let fields = vec![("origin", "https://a.test".to_owned())];
        Call { method, path: PATH.into(), fields, body: "" }
    };
    let preflight = answer(&hub, call(Method::OPTIONS)).await;
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    assert_eq!(preflight.headers()["access-control-allow-origin"], "https://a.test");
    assert!(preflight.headers().contains_key("access-control-allow-headers"));
    assert_eq!(status(&hub, call(Method::DELETE)).await, StatusCode::METHOD_NOT_ALLOWED);
    let refused = answer(&hub, call(Method::GET)).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert_eq!(refused.headers()["access-control-allow-origin"], "https://a.test");
    let mut head = get("topic=a", vec![]);
    head.method = Method::HEAD;
    let head = answer(&hub, head).await;
    assert!(head.status() == StatusCode::OK && head.body().is_empty());
}

#[tokio::test]
async fn a_token_ends_the_connection_that_it_opened() {
    let hub = Hub::open(options()).unwrap();
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let end = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64() + 2.0;
    let token = jsonwebtoken::encode(&Header::default(), &json!({"exp": end}), &key).unwrap();
    let fields = vec![("authorization", format!("Bearer {token}"))];
    let mut body = answer(&hub, get("topic=a", fields)).await.into_body();
    assert_eq!(event(&mut body).await, None);
}

#[tokio::test]
async fn topics_that_cost_too_much_are_refused() {
    let hub = Hub::open(options()).unwrap();
    let names = ["a"; 16].join(",");
    let query = |from: usize, number: usize| -> String {
        (from..from + number).map(|topic| format!("topic={{{names}}}{topic}&")).collect()
    };
    let (code, reason) = text(answer(&hub, get(&query(0, 26), vec![])).await).await;
    assert_eq!(
        (code, &*reason),
        (StatusCode::BAD_REQUEST, "Too many variables in \"topic\" parameters: 400 are allowed\n")
    );
    let long: String = (0..5).map(|topic| format!("topic={topic}{}&", "x".repeat(7000))).collect();
    let (code, reason) = text(answer(&hub, get(&long, vec![])).await).await;
    assert_eq!(
        (code, &*reason),
        (StatusCode::BAD_REQUEST, "Too long \"topic\" parameters: 32768 bytes are allowed\n")
    );
    let mut all = Vec::new();
    for number in 0..40 {
        all.push(answer(&hub, get(&query(number * 25, 25), vec![])).await);
    }
    assert!(all.iter().all(|response| response.status() == StatusCode::OK));
    let (code, reason) = text(answer(&hub, get(&query(9000, 25), vec![])).await).await;
    assert!(
        code == StatusCode::SERVICE_UNAVAILABLE && reason.contains("too many different topics"),
        "{code} {reason}"
    );
    let mut honest = answer(&hub, get("topic=news&topic=*", vec![])).await.into_body();
    assert_eq!(status(&hub, get(&query(0, 25), vec![])).await, StatusCode::OK);
    let granted = bearer(json!({"subscribe": ["/users/1"]}));
    assert_eq!(status(&hub, get(&query(9000, 25), granted)).await, StatusCode::OK);
    publish(&hub, "news", "1", false).await;
    assert_eq!(event(&mut honest).await.unwrap(), "id: 1\ndata: \n\n");
    drop(all);
    assert_eq!(status(&hub, get(&query(9000, 25), vec![])).await, StatusCode::OK);
}
