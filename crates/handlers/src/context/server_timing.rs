//! `server_timing`: where the time of a request went, for its client
//! (<https://www.w3.org/TR/server-timing/>).

use crate::context::exchange::Exchange;
use crate::context::observed::EngineTimes;
use http::{HeaderMap, HeaderName, HeaderValue};
use regent_config::TimingFields;
use std::fmt::Write;
use std::time::Duration;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const QUEUE_WAIT: HeaderName = HeaderName::from_static("x-queue-wait");

/// Adds to the head of a response, which leaves now, what is known. What its maker has written there stays.
pub(crate) fn write(exchange: &Exchange, headers: &mut HeaderMap) {
    let Some((fields, since)) = exchange.observed.timing else { return };
    let times = exchange.observed.times;
    let mut list = String::with_capacity(96);
    if let Some(EngineTimes { engine, queue_wait, execution }) = times {
        member(&mut list, "queue", queue_wait);
        member(&mut list, engine, execution);
    }
    if let Some(latency) = exchange.proxied.as_ref().and_then(|proxied| proxied.latency) {
        member(&mut list, "upstream", latency);
    }
    if let Some(word) = exchange.observed.cache {
        // Writing to a string cannot fail.
        let _ = write!(list, "cache;desc={word}, ");
    }
    member(&mut list, "total", since.elapsed());
    list.truncate(list.len() - ", ".len());
    headers.extend(HeaderValue::try_from(list).ok().map(|list| (SERVER_TIMING, list)));
    if let (TimingFields::WithQueueWait, Some(times)) = (fields, times) {
        let wait = HeaderValue::try_from(format!("{:.3}", milliseconds(times.queue_wait)));
        wait.into_iter().for_each(|wait| drop(headers.insert(QUEUE_WAIT, wait)));
    }
}

fn member(list: &mut String, name: &str, time: Duration) {
    // Writing to a string cannot fail.
    let _ = write!(list, "{name};dur={:.3}, ", milliseconds(time));
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use regent_exchange::{Connection, ResponseBody};

    fn exchange() -> Exchange {
        let request = Request::builder().uri("/").header("host", "a.example").body(()).unwrap();
        Exchange::new(request.into_parts().0, Connection::default())
    }

    /// The members without the total.
    fn members(exchange: &Exchange) -> Vec<String> {
        let response = exchange.finish(Response::new(ResponseBody::empty()));
        let list = response.headers()[SERVER_TIMING].to_str().unwrap().to_owned();
        let mut members: Vec<_> = list.split(", ").map(str::to_owned).collect();
        let total = members.pop().unwrap();
        assert!(
            total.starts_with("total;dur=") && total["total;dur=".len()..].parse::<f64>().is_ok(),
            "{list}"
        );
        members
    }

    #[test]
    fn what_is_known_is_said() {
        let mut exchange = exchange();
        exchange.time(TimingFields::ServerTiming);
        assert_eq!(members(&exchange), [""; 0]);
        let mut response = Response::new(());
        let (queue_wait, execution) = (Duration::from_micros(42), Duration::from_millis(1500));
        response.extensions_mut().insert(EngineTimes { engine: "php", queue_wait, execution });
        exchange.note_times(&mut response);
        exchange.observed.cache = Some("miss");
        assert_eq!(members(&exchange), ["queue;dur=0.042", "php;dur=1500.000", "cache;desc=miss"]);
        let response = exchange.finish(Response::new(ResponseBody::empty()));
        assert!(!response.headers().contains_key(QUEUE_WAIT));
        exchange.time(TimingFields::WithQueueWait);
        let response = exchange.finish(Response::new(ResponseBody::empty()));
        assert_eq!(response.headers()[QUEUE_WAIT], "0.042");
    }

    #[test]
    fn what_the_application_says_stays_and_nobody_is_told_unasked() {
        let mut exchange = exchange();
        let response = || {
            let mut response = Response::new(ResponseBody::empty());
            response.headers_mut().insert(SERVER_TIMING, HeaderValue::from_static("db;dur=53"));
            response
        };
        let values =
            |exchange: &Exchange| exchange.finish(response()).headers().get_all(SERVER_TIMING).iter().count();
        assert_eq!(values(&exchange), 1);
        exchange.time(TimingFields::ServerTiming);
        assert_eq!(values(&exchange), 2);
    }
}
