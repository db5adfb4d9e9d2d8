//! `encode`: what clients that take compressed responses get.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Gate, Response, STOP_AT_GATE, Server, Setup, until};
use std::io::{self, Read};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// What a client has of the first bytes of a response.
    fn decode_so_far(self, encoded: &[u8]) -> Vec<u8> {
        let mut decoded = Vec::new();
        if let Ok(mut reader) = self.reader(encoded) {
            // An error is the end that is still missing.
            let _ = reader.read_to_end(&mut decoded);
        }
        decoded
    }

    /// The same of a whole response.
    fn decode(self, encoded: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        self.reader(encoded)?.read_to_end(&mut decoded)?;
        Ok(decoded)
    }

    fn reader(self, encoded: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(encoded)?),
            Self::Brotli => Box::new(brotli::Decompressor::new(encoded, 4096)),
            Self::Gzip => Box::new(flate2::read::GzDecoder::new(encoded)),
        })
    }
}

fn get(server: &Server, path: &str, coding: Coding) -> Response {
    server.request("GET", path).header("Accept-Encoding", coding.name()).send()
}

/// Text of this many lines, with a little in each that does not shrink.
fn lines(count: u32) -> String {
    (0..count).map(|line| format!("line {line} of a page: {}\n", line.wrapping_mul(2_654_435_761))).collect()
}

/// A response whose body is read chunk by chunk.
struct Stream {
    conn: Conn,
    coding: Coding,
    encoded: Vec<u8>,
}

impl Stream {
    fn open(server: &Server, path: &str, coding: Coding) -> (Response, Self) {
        let mut conn = server.connect();
        conn.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {}\r\n\r\n", coding.name()));
        let head = conn.head().unwrap().unwrap();
        assert_eq!(head.header("transfer-encoding"), Some("chunked"), "{:?}", head.headers);
        assert_eq!(head.header("content-encoding"), Some(coding.name()));
        (head, Self { conn, coding, encoded: Vec::new() })
    }

    /// Reads until the client can decode exactly this.
    fn read_until(&mut self, text: &str) {
        while self.coding.decode_so_far(&self.encoded) != text.as_bytes() {
            self.read_chunk();
        }
    }

    fn read_chunk(&mut self) {
        let size = self.conn.read_until("\r\n");
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        assert!(size > 0, "the body ends after {:?}", self.coding.decode_so_far(&self.encoded));
        let start = self.encoded.len();
        self.encoded.resize(start + size, 0);
        let mut read = start;
        while read < self.encoded.len() {
            read += self.conn.read_some(&mut self.encoded[read..]).unwrap();
        }
        self.conn.read_until("\r\n");
    }
}

// --- what is encoded -----------------------------------------------------------------------------------------------

#[test]
fn static_files_shrink_and_say_so() {
    let (short, long) = (lines(100), lines(20_000));
    let server = Setup::new()
        .site("encode zstd br gzip\n\tfile_server")
        .file("short.txt", &short)
        .file("long.txt", &long)
        .file("image.png", lines(100))
        .file("tiny.txt", "tiny")
        .start();
    for coding in ALL {
        for (path, content) in [("/short.txt", &short), ("/long.txt", &long)] {
            let page = get(&server, path, coding).expect(200);
            assert_eq!(page.header("content-encoding"), Some(coding.name()), "{path}");
            assert_eq!(page.header_all("vary"), ["Accept-Encoding"]);
            assert_eq!(page.header("accept-ranges"), None);
            assert!(page.header("etag").unwrap().ends_with(&format!("-{}\"", coding.name())));
            assert_eq!(page.header("content-length").is_some(), path == "/short.txt", "{:?}", page.headers);
            assert!(page.body.len() * 2 < content.len(), "{path} {coding:?}: {}", page.body.len());
            assert_eq!(coding.decode(&page.body).unwrap(), content.as_bytes(), "{path} {coding:?}");
        }
    }
    for (path, varies) in [("/image.png", false), ("/tiny.txt", false)] {
        let page = get(&server, path, Coding::Gzip).expect(200);
        assert_eq!(page.header("content-encoding"), None, "{path}");
        assert_eq!(page.header("vary").is_some(), varies, "{path}");
    }
    let plain = server.get("/long.txt").expect(200);
    assert_eq!((plain.text(), plain.header("vary")), (long, Some("Accept-Encoding")));
    server.stop();
}

#[test]
fn pages_of_php_shrink() {
    let server = Setup::new()
        .site("encode\n\tphp_server")
        .file("page.php", "<?php foreach (range(1, 5000) as $i) { echo \"<p>paragraph $i</p>\\n\"; }")
        .file("own.php", "<?php header('Content-Encoding: gzip'); echo gzencode(str_repeat('own ', 1000));")
        .file("never.php", "<?php header('Cache-Control: no-transform'); echo str_repeat('never ', 1000);")
        .file("image.php", "<?php header('Content-Type: image/png'); echo str_repeat('png ', 1000);")
        .file("tag.php", "<?php header('ETag: \"app\"'); echo str_repeat('tag ', 1000), $_SERVER['HTTP_IF_NONE_MATCH'] ?? '';")
        .start();
    let want: String = (1..=5000).map(|number| format!("<p>paragraph {number}</p>\n")).collect();
    for coding in [Coding::Zstd, Coding::Gzip] {
        let page = get(&server, "/page.php", coding).expect(200);
        assert_eq!(page.header("content-encoding"), Some(coding.name()));
        assert_eq!(coding.decode(&page.body).unwrap(), want.as_bytes());
    }
    let own = get(&server, "/own.php", Coding::Gzip).expect(200);
    assert_eq!(Coding::Gzip.decode(&own.body).unwrap(), "own ".repeat(1000).as_bytes());
    assert_eq!(get(&server, "/never.php", Coding::Gzip).text(), "never ".repeat(1000));
    assert_eq!(get(&server, "/image.php", Coding::Gzip).text(), "png ".repeat(1000));
    let tag = server.request("GET", "/tag.php").header("Accept-Encoding", "gzip");
    let tag = tag.header("If-None-Match", "\"app-gzip\"").send().expect(200);
    assert_eq!(tag.header("etag"), Some("\"app-gzip\""));
    assert!(
        Coding::Gzip.decode(&tag.body).unwrap().ends_with(b"tag \"app\""),
        "the script knows its own tag"
    );
    server.stop();
}

#[test]
fn the_client_and_then_the_written_order_choose() {
    let server = Setup::new().site("encode gzip\n\tfile_server").file("page.html", lines(100)).start();
    for (accepts, want) in [("zstd, br, gzip;q=0.1", Some("gzip")), ("br, zstd", None), ("gzip;q=0", None)] {
        let page = server.request("GET", "/page.html").header("Accept-Encoding", accepts).send().expect(200);
        assert_eq!(page.header("content-encoding"), want, "{accepts}");
        assert_eq!(page.header("vary"), Some("Accept-Encoding"), "{accepts}");
    }
    server.stop();

    let server =
        Setup::new().site("encode zstd br gzip\n\tfile_server").file("page.html", lines(100)).start();
    for (accepts, want) in
        [("gzip, deflate, br, zstd", "zstd"), ("gzip, deflate, br", "br"), ("br;q=0.5, gzip", "gzip")]
    {
        let page = server.request("GET", "/page.html").header("Accept-Encoding", accepts).send().expect(200);
        assert_eq!(page.header("content-encoding"), Some(want), "{accepts}");
    }
    server.stop();
}

#[test]
fn error_pages_and_texts_of_the_configuration_shrink() {
    let page = "not here ".repeat(100);
    let site = format!(
        "encode gzip\n\trespond /hello \"{}\"\n\tfile_server\n\thandle_errors {{\n\t\trespond \"{page}\"\n\t}}",
        "hello ".repeat(100)
    );
    let server = Setup::new().site(&site).start();
    let hello = get(&server, "/hello", Coding::Gzip).expect(200);
    assert_eq!(Coding::Gzip.decode(&hello.body).unwrap(), "hello ".repeat(100).as_bytes());
    let missing = get(&server, "/missing", Coding::Gzip).expect(404);
    assert_eq!(Coding::Gzip.decode(&missing.body).unwrap(), page.as_bytes());
    server.stop();
}

#[test]
fn precompressed_files_go_first() {
    let server = Setup::new()
        .site("encode gzip\n\tfile_server {\n\t\tprecompressed gzip\n\t}")
        .file("page.html", lines(100))
        .file("page.html.gz", "as it was made, which is long enough to be encoded again ".repeat(20))
        .start();
    let page = get(&server, "/page.html", Coding::Gzip).expect(200);
    assert_eq!(page.header_all("content-encoding"), ["gzip"]);
    assert_eq!(page.header_all("vary"), ["Accept-Encoding"]);
    assert!(page.text().starts_with("as it was made"));
    server.stop();
}

#[test]
fn php_server_of_the_command_line_compresses_unless_told_not_to() {
    for (arguments, want) in [(&[][..], Some("zstd")), (&["--no-compress"][..], None)] {
        let words = ["php-server", "--root", "ROOT", "--listen", "ADDRESS"];
        let words: Vec<_> = words.iter().chain(arguments).copied().collect();
        let server =
            Setup::new().arguments(&words).file("page.php", "<?php echo str_repeat('page ', 1000);").start();
        let page = server.request("GET", "/page.php").header("Accept-Encoding", "gzip, br, zstd").send();
        assert_eq!(page.expect(200).header("content-encoding"), want, "{arguments:?}");
        server.stop();
    }
}

// --- conditions, ranges, HEAD --------------------------------------------------------------------------------------

#[test]
fn a_client_is_told_that_its_encoded_copy_is_current() {
    let server = Setup::new().site("encode br gzip\n\tfile_server").file("page.html", lines(100)).start();
    let tag = get(&server, "/page.html", Coding::Gzip).expect(200).header("etag").unwrap().to_owned();
    let ask = |coding: &str, field: &str, tag: &str| {
        server.request("GET", "/page.html").header("Accept-Encoding", coding).header(field, tag).send()
    };
    let current = ask("gzip", "If-None-Match", &tag).expect(304);
    assert_eq!(current.header("etag"), Some(tag.as_str()));
    assert_eq!(current.header("vary"), Some("Accept-Encoding"));
    ask("gzip", "If-None-Match", &format!("\"other\", {tag}")).expect(304);
    ask("br", "If-None-Match", &tag).expect(200);
    ask("gzip", "If-Match", &tag).expect(200);
    ask("gzip", "If-Match", "\"other-gzip\"").expect(412);
    server.write("page.html", lines(101));
    ask("gzip", "If-None-Match", &tag).expect(200);
    server.stop();
}

#[test]
fn ranges_are_of_the_plain_file() {
    let content = lines(1000);
    let server = Setup::new().site("encode gzip\n\tfile_server").file("page.txt", &content).start();
    let range = || {
        let request = server.request("GET", "/page.txt").header("Accept-Encoding", "gzip");
        request.header("Range", "bytes=1000-2999")
    };
    let part = range().send().expect(206);
    assert_eq!(part.header("content-encoding"), None);
    assert_eq!(part.text(), content[1000..3000]);
    let tag = get(&server, "/page.txt", Coding::Gzip).header("etag").unwrap().to_owned();
    let whole = range().header("If-Range", tag).send().expect(200);
    assert_eq!(Coding::Gzip.decode(&whole.body).unwrap(), content.as_bytes());
    server.stop();
}

#[test]
fn head_has_the_fields_of_get() {
    let server = Setup::new().site("encode gzip\n\tfile_server").file("page.html", lines(20_000)).start();
    let names = [
        "content-encoding",
        "content-type",
        "etag",
        "vary",
        "accept-ranges",
        "content-length",
        "last-modified",
    ];
    let fields = |response: Response| names.map(|name| response.header(name).map(str::to_owned));
    let head = server.request("HEAD", "/page.html").header("Accept-Encoding", "gzip").send().expect(200);
    assert!(head.body.is_empty());
    assert_eq!(head.header("content-encoding"), Some("gzip"));
    assert_eq!(fields(head), fields(get(&server, "/page.html", Coding::Gzip)));
    server.stop();
}

// --- streams -------------------------------------------------------------------------------------------------------

/// Gives its parts when it is told to.
const PARTS: &str = "<?php
foreach (['one', 'two', 'three'] as $part) {
    echo $part, \"\\n\";
    ob_flush();
    flush();
    while (!file_exists(__DIR__ . \"/after-$part\")) { usleep(1000); clearstatcache(); }
}
echo 'end';";

#[test]
fn what_php_flushes_can_be_decoded_at_once() {
    for coding in ALL {
        let server = Setup::new().site("encode zstd br gzip\n\tphp_server").file("parts.php", PARTS).start();
        let (_, mut stream) = Stream::open(&server, "/parts.php", coding);
        let mut so_far = String::new();
        for part in ["one", "two", "three"] {
            so_far += &format!("{part}\n");
            stream.read_until(&so_far);
            server.write(&format!("after-{part}"), "");
        }
        stream.read_until(&(so_far + "end"));
        server.stop();
    }
}

#[test]
fn events_can_be_decoded_at_once_after_many_others() {
    let script = "<?php
header('Content-Type: text/event-stream');
foreach (range(1, 2000) as $i) { echo \"data: event $i of many that came before, \", md5((string) $i), \"\\n\\n\"; }
ob_flush(); flush();
while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }
echo \"data: the last\\n\\n\";
ob_flush(); flush();
while (!file_exists(__DIR__ . '/stop')) { usleep(1000); clearstatcache(); }";
    for coding in ALL {
        let server =
            Setup::new().site("encode zstd br gzip\n\tphp_server").file("events.php", script).start();
        let (head, mut stream) = Stream::open(&server, "/events.php", coding);
        assert!(head.header("content-type").unwrap().starts_with("text/event-stream"));
        let ends_with = |stream: &mut Stream, text: &str| {
            while !stream.coding.decode_so_far(&stream.encoded).ends_with(text.as_bytes()) {
                stream.read_chunk();
            }
        };
        ends_with(&mut stream, "08f90c1a417155361a5c4b8d297e0d78\n\n");
        server.write("go", "");
        ends_with(&mut stream, "data: the last\n\n");
        server.write("stop", "");
        server.stop();
    }
}

#[test]
fn a_client_that_leaves_ends_the_script_and_harms_nobody() {
    let script = "<?php
register_shutdown_function(fn () => file_put_contents(__DIR__ . '/ended', 'yes'));
while (true) { echo md5((string) mt_rand()), ' and more of the same, which shrinks a little '; }";
    let server = Setup::new()
        .site("encode zstd br gzip\n\tphp_server")
        .file("endless.php", script)
        .file("page.html", lines(100_000))
        .start();
    for coding in ALL {
        let (_, mut script) = Stream::open(&server, "/endless.php", coding);
        script.read_chunk();
        script.read_chunk();
        let (_, mut file) = Stream::open(&server, "/page.html", coding);
        file.read_chunk();
        drop((script, file));
        assert_eq!(server.wait_for_file("ended"), "yes");
        std::fs::remove_file(server.root().join("ended")).unwrap();
    }
    until("the server serves", || {
        let page = get(&server, "/page.html", Coding::Zstd).expect(200);
        (Coding::Zstd.decode(&page.body).unwrap() == lines(100_000).as_bytes()).then_some(())
    });
    assert!(!server.log().contains("panicked"), "{}", server.log());
    server.stop();
}

#[test]
fn a_page_that_breaks_off_does_not_seem_whole() {
    let script = "<?php
echo str_repeat('half a page ', 100);
ob_flush(); flush();
while (!file_exists(__DIR__ . '/die')) { usleep(1000); clearstatcache(); }
posix_kill(posix_getpid(), SIGKILL);";
    for coding in ALL {
        let server = Setup::new().site("encode zstd br gzip\n\tphp_server").file("half.php", script).start();
        let (_, mut stream) = Stream::open(&server, "/half.php", coding);
        stream.read_until(&"half a page ".repeat(100));
        server.write("die", "");
        let mut rest = Vec::new();
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = stream.conn.read_some(&mut buffer) {
            rest.extend_from_slice(&buffer[..read]);
        }
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{coding:?}: the body has an end");
        assert!(coding.decode(&stream.encoded).is_err(), "{coding:?}: the encoded stream has an end");
        server.stop();
    }
}

/// It has all that the script has declared, whatever else that does.
#[test]
fn a_script_that_goes_on_working_keeps_no_client_waiting() {
    let script = format!(
        "<?php header('Content-Type: text/plain'); header('Content-Length: 6000'); \
         echo str_repeat('page', 1500); ob_flush(); flush(); {STOP_AT_GATE}"
    );
    let setup = Setup::new().site("encode zstd br gzip\n\tphp_server").file("index.php", &script);
    let gate = Gate::of(&setup);
    let server = setup.start();
    for coding in ALL {
        let response = get(&server, "/", coding);
        assert_eq!(response.header("content-encoding"), Some(coding.name()));
        assert_eq!(coding.decode(&response.body).unwrap(), "page".repeat(1500).as_bytes(), "{coding:?}");
        // It still runs.
        drop(gate.next());
    }
    server.stop();
}
