//! The extensions of the PHP that `tools/build-php` builds do their work, and do it beside each other.
#![forbid(unsafe_code)]

use regent_tests::{Setup, php, regent_command};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// An extension, code that returns something, and what that is.
const WORK: [(&str, &str, &str); 16] = [
    ("gmp", "return gmp_strval(gmp_pow(2, 100));", "1267650600228229401496703205376"),
    ("bz2", "return bzdecompress(bzcompress(str_repeat('regent', 100))) === str_repeat('regent', 100) ? 'whole' : 'broken';", "whole"),
    ("calendar", "return jdtogregorian(gregoriantojd(7, 14, 1789)) . ' ' . date('m-d', easter_date(2024) + 43200);", "7/14/1789 03-31"),
    (
        "xsl",
        "$sheet = new DOMDocument; $sheet->loadXML('<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:output method=\"text\"/><xsl:template match=\"/\"><xsl:value-of select=\"a/b\"/></xsl:template></xsl:stylesheet>');
         $xml = new DOMDocument; $xml->loadXML('<a><b>within</b></a>');
         $processor = new XSLTProcessor; $processor->importStylesheet($sheet); return $processor->transformToXML($xml);",
        "within",
    ),
    (
        "shmop",
        "$memory = shmop_open(ftok(__FILE__, 'm'), 'c', 0600, 16); shmop_write($memory, 'shared', 0);
         $read = rtrim(shmop_read($memory, 0, 16), chr(0)); shmop_delete($memory); return $read;",
        "shared",
    ),
    (
        "sysvshm",
        "$memory = shm_attach(ftok(__FILE__, 's'), 4096, 0600); shm_put_var($memory, 1, ['a' => 1]);
         $read = json_encode(shm_get_var($memory, 1)); shm_remove($memory); return $read;",
        "{\"a\":1}",
    ),
    (
        "sysvmsg",
        "$queue = msg_get_queue(ftok(__FILE__, 'q'), 0600); msg_send($queue, 7, 'a message');
         msg_receive($queue, 0, $kind, 100, $message); msg_remove_queue($queue); return \"$kind $message\";",
        "7 a message",
    ),
    (
        "sysvsem",
        "$key = ftok(__FILE__, 'e'); $first = sem_get($key, 1, 0600); $second = sem_get($key, 1, 0600);
         $said = json_encode([sem_acquire($first, true), sem_acquire($second, true), sem_release($first), sem_acquire($second, true)]);
         sem_remove($first); return $said;",
        "[true,false,true,true]",
    ),
    ("dba", "$db = dba_open(__DIR__ . '/db', 'c', 'inifile'); dba_insert('key', 'value', $db); $read = dba_fetch('key', $db); dba_close($db); return $read;", "value"),
    ("tidy", "return str_contains(tidy_repair_string('<p>open', ['show-body-only' => true]), '</p>') ? 'tidied' : 'not';", "tidied"),
    ("ldap", "return ldap_escape('a*b', '', LDAP_ESCAPE_FILTER) . json_encode(@ldap_bind(ldap_connect('ldap://127.0.0.1:1')));", "a\\2abfalse"),
    ("pgsql", "return json_encode(@pg_connect('host=127.0.0.1 port=1 dbname=none'));", "false"),
    ("pdo_pgsql", "try { new PDO('pgsql:host=127.0.0.1;port=1'); return 'connected'; } catch (PDOException $e) { return $e->getCode(); }", "7"),
    ("ftp", "return json_encode([@ftp_connect('127.0.0.1', 1, 1), function_exists('ftp_ssl_connect')]);", "[false,true]"),
    ("gettext", "return gettext('as it is') . ' ' . textdomain(null);", "as it is messages"),
    ("standard", "return password_get_info(password_hash('secret', PASSWORD_ARGON2I))['algoName'];", "argon2i"),
];

/// A distribution has each of them in a package of its own.
fn skips_missing() -> bool {
    php::is_in_processes()
}

#[test]
fn each_extension_does_its_work() {
    let branches: String = WORK
        .iter()
        .enumerate()
        .map(|(number, (_, code, _))| format!("if ($number === {number}) {{ {code} }}\n"))
        .collect();
    let names: Vec<_> = WORK.iter().map(|(name, ..)| *name).collect();
    let script = format!(
        "<?php function work(int $number) {{ {branches} }}
         $name = explode(',', '{}')[$_GET['number']];
         echo extension_loaded($name) ? work((int) $_GET['number']) : 'not loaded';",
        names.join(",")
    );
    let server = Setup::new().file("index.php", script).start();
    for (number, (name, _, wanted)) in WORK.iter().enumerate() {
        let answer = server.get(&format!("/?number={number}")).expect(200).text();
        if answer != "not loaded" || !skips_missing() {
            assert_eq!(answer, *wanted, "{name}");
        }
    }
    server.stop();
}

#[test]
fn the_command_line_lists_the_extensions_of_a_configuration() {
    let setup = Setup::new();
    let caddyfile = setup.directory().join("Caddyfile");
    fs::write(&caddyfile, "{\n\tregent {\n\t\tphp_ini memory_limit \"77M\"\n\t}\n}\n").unwrap();
    let list = |arguments: &[&str]| {
        let output = regent_command(setup.directory())
            .args(["php", "extensions", "--config"])
            .arg(&caddyfile)
            .args(arguments)
            .output()
            .expect("regent can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let parsed: Value = serde_json::from_str(&list(&["--json"])).expect("JSON");
    assert_eq!(parsed["threads"], !php::is_in_processes());
    let extensions = parsed["extensions"].as_array().expect("a list");
    let standard = extensions.iter().find(|extension| extension["name"] == "standard").expect("it has that");
    assert_eq!((&standard["built_in"], &standard["threads"]), (&Value::from(true), &Value::from("yes")));
    let text = list(&[]);
    assert!(text.contains("\nstandard ") && text.contains("To add one"), "{text}");
}

#[test]
fn an_extension_that_is_missing_is_told_of() {
    let setup = Setup::new();
    let caddyfile = setup.directory().join("Caddyfile");
    fs::write(&caddyfile, "{\n\tregent {\n\t\tphp_ini extension no_such_extension\n\t}\n}\n").unwrap();
    let output = regent_command(setup.directory())
        .args(["php", "extensions", "--config"])
        .arg(&caddyfile)
        .output()
        .expect("regent can be run");
    assert!(output.status.success(), "PHP goes on without it, and so does the list");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no_such_extension"), "{said}");
}

// --- gettext --------------------------------------------------------------------------------------------------------

/// A compiled catalogue (GNU gettext's manual, "The Format of GNU MO Files") of one text.
fn catalogue(text: &str, translation: &str) -> Vec<u8> {
    let pairs = [("", "Content-Type: text/plain; charset=UTF-8\n"), (text, translation)];
    let (originals, translations) = (28_u32, 28 + 8 * pairs.len() as u32);
    let mut at = translations + 8 * pairs.len() as u32;
    let mut tables = [Vec::new(), Vec::new()];
    let mut texts = Vec::new();
    for (table, part) in [(0, pairs.map(|pair| pair.0)), (1, pairs.map(|pair| pair.1))] {
        for text in part {
            tables[table].extend([text.len() as u32, at]);
            texts.extend(text.bytes().chain([0]));
            at += text.len() as u32 + 1;
        }
    }
    let head = [0x9504_12de, 0, pairs.len() as u32, originals, translations, 0, 0];
    let numbers = head.into_iter().chain(tables.concat());
    numbers.flat_map(u32::to_le_bytes).chain(texts).collect()
}

fn has_german(locales: &Path) -> bool {
    let made = Command::new("localedef")
        .args(["--no-archive", "-i", "de_DE", "-f", "UTF-8"])
        .arg(locales.join("de_DE.UTF-8"))
        .output();
    made.is_ok() && locales.join("de_DE.UTF-8/LC_NUMERIC").is_file()
}

#[test]
fn two_sites_with_a_text_domain_of_the_same_name_have_their_own_texts() {
    let locales = tempfile::tempdir().unwrap();
    if !has_german(locales.path()) {
        println!("skipped: localedef cannot make de_DE.UTF-8 here (Debian: packages libc-bin and locales)");
        return;
    }
    let mut setup = Setup::new().env("LOCPATH", &locales.path().display().to_string());
    for (site, hello) in [("a", "Hallo"), ("b", "Servus")] {
        setup = setup.file(&format!("{site}/de_DE/LC_MESSAGES/app.mo"), catalogue("hello", hello));
    }
    let choose = "setlocale(LC_ALL, 'de_DE.UTF-8'); bindtextdomain('app', __DIR__ . '/' . $_GET['site']); textdomain('app');";
    let wait =
        "file_put_contents(__DIR__ . '/waits', '1'); while (!file_exists(__DIR__ . '/go')) { usleep(1000); }";
    let server = setup
        .file("index.php", format!("<?php {choose} echo gettext('hello'), ' ', dgettext('app', 'hello');"))
        .file(
            "waits.php",
            format!(
                "<?php {choose} {wait} echo gettext('hello'), ' ', basename(bindtextdomain('app', null));"
            ),
        )
        .file(
            "none.php",
            "<?php setlocale(LC_ALL, 'de_DE.UTF-8'); echo textdomain(null), ' ', gettext('hello');",
        )
        .file("has.php", "<?php echo json_encode(extension_loaded('gettext'));")
        .start();
    if skips_missing() && server.get("/has.php").text() == "false" {
        println!("skipped: this PHP has no gettext");
        return;
    }
    let mut first = server.ask("/waits.php?site=a");
    server.wait_for_file("waits");
    assert_eq!(server.get("/?site=b").expect(200).text(), "Servus Servus");
    assert_eq!(server.get("/none.php").expect(200).text(), "messages hello");
    server.write("go", "1");
    assert_eq!(first.response().expect(200).text(), "Hallo a");
    for (site, hello) in [("a", "Hallo Hallo"), ("b", "Servus Servus")].repeat(4) {
        assert_eq!(server.get(&format!("/?site={site}")).expect(200).text(), hello);
        assert_eq!(server.get("/none.php").expect(200).text(), "messages hello", "it ends with its request");
    }
    server.stop();
}
