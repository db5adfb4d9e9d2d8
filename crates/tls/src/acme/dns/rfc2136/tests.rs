use super::*;
use crate::acme::options::{TsigAlgorithm, TsigKey};
use crate::crypto::{from_hex, hex};
use proptest::prelude::*;
use tokio::net::TcpListener;

/// An update that dnspython 2.8 has signed at [`AT`], and its response to it.
const SIGNED: &str = "123428000001000000010001076578616d706c6503636f6d00000600010f5f61636d652d6368616c6c656e67650161c00c001000010000003c00060576616c75650461636d65036b65790000fa00ff00000000003d0b686d61632d7368613235360000006553f100012c00206ec57a2158213285a6fd7d64bb99452f3cac933d4acb71b7fe8c3918c369fc2a123400000000";
const RESPONSE: &str = "1234a8000001000000000001076578616d706c6503636f6d00000600010461636d65036b65790000fa00ff00000000003d0b686d61632d7368613235360000006553f100012c002003ac0951ba9675791a4ea40663e417106ab3baaee523c44698922f60ca5979cb123400000000";
const AT: u64 = 1_700_000_000;
/// Of the name of the key, where the signature begins.
const KEY: &str = "0461636d65036b657900";

fn key(secret: &str) -> TsigKey {
    TsigKey { name: "Acme.key.".into(), algorithm: TsigAlgorithm::HmacSha256, secret: secret.into() }
}

fn signer() -> Signer {
    Signer::new(&key("secret secret secret")).unwrap()
}

/// What was signed, and the signature.
fn request() -> (Vec<u8>, Vec<u8>) {
    let mut message = from_hex(SIGNED.split(KEY).next().unwrap()).unwrap();
    message[11] = 0;
    let mac = signer().sign_at(&mut message, AT);
    (message, mac)
}

#[test]
fn a_signature_is_that_of_other_implementations() {
    assert_eq!(hex(&request().0), SIGNED);
}

#[test]
fn only_a_response_to_the_request_of_somebody_with_the_key_is_taken() {
    let (_, mac) = request();
    let response = || Reader::new(from_hex(RESPONSE).unwrap(), 0x1234).unwrap();
    assert_eq!(signer().verify_at(&response(), &mac, AT + 300), Ok(()));
    let late = signer().verify_at(&response(), &mac, AT + 301).unwrap_err();
    assert!(late.contains("set the clocks"), "{late}");
    let other = signer().verify_at(&response(), &[1, 2, 3], AT).unwrap_err();
    assert!(other.contains("false signature"), "{other}");
    let stranger = Signer::new(&key("another")).unwrap().verify_at(&response(), &mac, AT).unwrap_err();
    assert!(stranger.contains("false signature"), "{stranger}");
    let unsigned = from_hex(RESPONSE.split(KEY).next().unwrap()).unwrap();
    let unsigned = Reader::new([&unsigned[..11], &[0], &unsigned[12..]].concat(), 0x1234).unwrap();
    assert!(signer().verify_at(&unsigned, &mac, AT).unwrap_err().contains("without a signature"));
    assert!(Reader::new(from_hex(RESPONSE).unwrap(), 0x1235).is_err(), "of another request");
}

#[test]
fn a_zone_is_above_the_name() {
    let name = Name::parse("_acme-challenge.a.Example.com.").unwrap();
    let above: Vec<_> = name.ancestors().map(|name| name.to_string()).collect();
    assert_eq!(above, ["_acme-challenge.a.example.com.", "a.example.com.", "example.com.", "com."]);
    assert!(name.is_below(&Name::parse("example.com").unwrap()));
    assert!(name.is_below(&name));
    assert!(!name.is_below(&Name::parse("xample.com").unwrap()));
    for bad in ["", ".", "a..b", &"a".repeat(64), &"a.".repeat(200)] {
        assert!(Name::parse(bad).is_err(), "{bad}");
    }
}

/// A name server that knows the zone `example.com` and responds to updates with this code; what was sent to it.
async fn serve(listener: TcpListener, code: u8) -> Vec<Vec<u8>> {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut received = Vec::new();
    while let Ok(length) = stream.read_u16().await {
        let mut message = vec![0; usize::from(length)];
        stream.read_exact(&mut message).await.unwrap();
        let is_update = message[2] == 5 << 3;
        let mut response = message[..12].to_vec();
        response[2] |= 0x80;
        if is_update {
            response[3] = code;
            response[4..12].fill(0);
        } else {
            // Only the zone's own name exists.
            response[3] = 3;
            response[9] = 1;
            response.extend(&message[12..]);
            let soa = b"\x07example\x03com\0\0\x06\0\x01\0\0\0\x3c\0\x16\0\0";
            response.extend(soa);
            response.extend([0; 20]);
        }
        received.push(message);
        stream.write_u16(response.len().try_into().unwrap()).await.unwrap();
        stream.write_all(&response).await.unwrap();
    }
    received
}

async fn change(code: u8, change: Change) -> (Result<(), String>, Vec<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = DnsUpdateServer { host: address.ip().to_string(), port: address.port(), key: None };
    let serving = tokio::spawn(serve(listener, code));
    let done = update(&server, "_acme-challenge.a.example.com.", "value", change).await;
    (done.map_err(|error| error.to_string()), serving.await.unwrap())
}

#[tokio::test]
async fn a_record_is_added_and_removed_in_the_zone_that_the_server_has() {
    for (kind, tail) in [
        (Change::Add { ttl: TTL }, "00100001 0000003c"),
        (Change::Add { ttl: 300 }, "00100001 0000012c"),
        (Change::Remove, "001000fe 00000000"),
    ] {
        let (done, received) = change(0, kind).await;
        assert_eq!(done, Ok(()));
        let zone = "076578616d706c6503636f6d00 00060001";
        let name = "0f5f61636d652d6368616c6c656e6765 0161 076578616d706c6503636f6d00";
        let expected = format!("2800 0001 0000 0001 0000 {zone} {name} {tail} 0006 05 76616c7565");
        assert_eq!(hex(&received[1][2..]), expected.replace(' ', ""));
    }
}

#[tokio::test]
async fn a_server_that_refuses_says_why() {
    for (code, reason) in [(5, "REFUSED"), (9, "NOTAUTH"), (2, "SERVFAIL"), (4, "NOTIMP"), (11, "code 11")] {
        let (done, _) = change(code, Change::Add { ttl: TTL }).await;
        let error = done.unwrap_err();
        assert!(error.contains(reason) && error.contains("the name server for the DNS challenge"), "{error}");
    }
    let nowhere = DnsUpdateServer { host: "127.0.0.1".into(), port: 1, key: None };
    let error = add(&nowhere, "a.test.", "value", None).await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1, cannot be reached"), "{error}");
}

/// More records than 16 bits count.
#[test]
fn a_response_that_counts_without_measure_cannot_be_read() {
    let counts = [0, 0, 0xffff, 0xffff, 0xffff].map(u16::to_be_bytes).concat();
    let response = [&0x8000_u16.to_be_bytes()[..], &counts].concat();
    assert!(Reader::new(response, 0x8000).is_err());
}

proptest! {
    #[test]
    fn no_response_breaks_the_reader(bytes: Vec<u8>, place in 0_usize..200, byte: u8) {
        let _ = Reader::new(bytes, 0).map(|reader| signer().verify_at(&reader, &[], AT));
        let mut response = from_hex(RESPONSE).unwrap();
        let place = place % response.len();
        response[place] = byte;
        let read = Reader::new(response, 0x1234).map(|reader| {
            let _ = reader.check(Some(&signer()));
            signer().verify_at(&reader, &request().1, AT)
        });
        // One bit of what is signed makes it false (the case of names is not).
        if byte != from_hex(RESPONSE).unwrap()[place] {
            prop_assert!(!matches!(read, Ok(Ok(()))) || byte.is_ascii_alphabetic());
        }
    }
}
