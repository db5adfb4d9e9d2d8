use super::*;
use crate::tests::{ManualClock, own_address};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers each question with the next of these statuses, and says which targets were asked for.
async fn authority(statuses: &'static [u16]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        for status in statuses {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            assert!(head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
            log.lock().unwrap().push(head.split(' ').nth(1).unwrap().to_owned());
            let response = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    });
    (address, asked)
}

fn permission(address: SocketAddr, path: &str, clock: &Arc<ManualClock>) -> Permission {
    Permission::open(&format!("http://{address}{path}"), Arc::clone(clock) as _).unwrap()
}

#[tokio::test]
async fn a_name_is_allowed_by_a_status_of_success_and_asked_for_again_for_each_order() {
    let clock = ManualClock::new();
    let (address, asked) = authority(&[200, 204, 404]).await;
    let permission = permission(address, "/check?key=1", &clock);
    assert_eq!(permission.allow("a.test").await, Ok(()));
    assert_eq!(permission.allow("a.test").await, Ok(()), "which is known");
    assert_eq!(permission.confirm("a.test").await, Ok(()));
    assert_eq!(permission.confirm("a.test").await, Err(Denial::Refused));
    assert!(!permission.is_allowed("a.test"));
    let all = asked.lock().unwrap().clone();
    assert_eq!(all, vec!["/check?key=1&domain=a.test"; 3]);
}

#[tokio::test]
async fn a_refusal_holds_for_a_while_and_so_does_a_silence() {
    let clock = ManualClock::new();
    let (address, asked) = authority(&[302, 503, 200]).await;
    let permission = permission(address, "", &clock);
    for _ in 0..3 {
        assert_eq!(permission.confirm("a.test").await, Err(Denial::Refused));
        assert!(permission.is_denied("a.test"));
    }
    clock.advance(Duration::from_secs(60));
    for _ in 0..3 {
        assert_eq!(permission.confirm("a.test").await, Err(Denial::Unanswered));
    }
    clock.advance(Duration::from_secs(10));
    assert_eq!(permission.confirm("a.test").await, Ok(()));
    assert_eq!(asked.lock().unwrap().len(), 3);
    assert_eq!(asked.lock().unwrap()[0], "/?domain=a.test");
}

#[tokio::test]
async fn nobody_listens() {
    let permission = permission(own_address(), "/", &ManualClock::new());
    assert_eq!(permission.allow("a.test").await, Err(Denial::Unanswered));
}

#[test]
fn only_urls_of_http_are_taken() {
    for url in ["ftp://a/", "/check", "", "http://", "a b"] {
        let opened = Permission::open(url, ManualClock::new());
        assert!(opened.is_err_and(|error| error.to_string().contains("on_demand_tls")), "{url}");
    }
}
