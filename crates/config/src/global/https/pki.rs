//! `pki { ca [local] { … } }`: what the local CA is like.

use crate::call::Call;
use crate::context::Context;
use crate::model::{CertificateFiles, GlobalTls, LocalCa};
use crate::problems::{error, not_built_as, unknown_option};
use crate::values;
use regent_caddyfile::Error;
use std::path::{Path, PathBuf};

const OPTIONS: &[&str] = &["intermediate_cn", "intermediate_lifetime", "name", "root", "root_cn"];
const UNBUILT: &[&str] = &["intermediate", "maintenance_interval", "renewal_window_ratio"];

pub(super) fn apply(cx: &mut Context<'_>, call: &Call<'_>, tls: &mut GlobalTls) -> Result<(), Error> {
    call.no_arguments("pki { ca [local] { OPTION… } }")?;
    for option in call.options() {
        match (option.name(), option.args) {
            ("ca", []) => {}
            ("ca", [id]) if id.text == "local" => {}
            ("ca", [id]) => return Err(not_built_as(id, "a CA beside `local`")),
            ("ca", _) => return Err(option.wrong_arguments(1, "ca [local] { OPTION… }")),
            _ => return Err(unknown_option(option.name, "pki", &["ca"], &[])),
        }
        tls.local_ca = authority(cx, &option);
    }
    Ok(())
}

fn authority(cx: &mut Context<'_>, call: &Call<'_>) -> LocalCa {
    let mut found = LocalCa::default();
    let mut name = None;
    for option in call.options() {
        let result = match option.name() {
            "name" => text(cx, &option).map(|text| name = Some(text)),
            "root_cn" => text(cx, &option).map(|text| found.root_name = Some(text)),
            "intermediate_cn" => text(cx, &option).map(|text| found.intermediate_name = Some(text)),
            "intermediate_lifetime" => option
                .one("intermediate_lifetime DURATION")
                .and_then(values::positive_duration)
                .map(|lifetime| found.intermediate_lifetime = Some(lifetime)),
            "root" => files(cx, &option).map(|files| found.root = Some(files)),
            _ => Err(unknown_option(option.name, "ca", OPTIONS, UNBUILT)),
        };
        cx.check(result);
    }
    // As in Caddy, but for the year, which is not known here.
    if let Some(name) = name {
        found.root_name.get_or_insert(format!("{name} - ECC Root"));
        found.intermediate_name.get_or_insert(format!("{name} - ECC Intermediate"));
    }
    found
}

/// A common name (RFC 5280, appendix A.1: 64 characters at most).
fn text(cx: &Context<'_>, option: &Call<'_>) -> Result<String, Error> {
    let token = option.one(&format!("{} NAME", option.name()))?;
    let text = cx.fixed_text(token)?;
    let fits = (1..=64).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits { Ok(text) } else { Err(error(token, "a name in a certificate has from 1 to 64 characters")) }
}

fn files(cx: &mut Context<'_>, call: &Call<'_>) -> Result<CertificateFiles, Error> {
    let syntax = "root { cert FILE; key FILE }";
    call.no_arguments(syntax)?;
    let (mut certificate, mut key) = (None, None);
    for option in call.options() {
        match option.name() {
            "cert" => certificate = Some(file(cx, &option)?),
            "key" => key = Some(file(cx, &option)?),
            "format" => {
                let token = option.one("format pem_file")?;
                if token.text != "pem_file" {
                    return Err(error(
                        token,
                        "keys and certificates are files of PEM; write: format pem_file",
                    ));
                }
            }
            _ => return Err(unknown_option(option.name, "root", &["cert", "format", "key"], &[])),
        }
    }
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(CertificateFiles { certificate, key }),
        _ => Err(error(call.name, format!("`root` needs both files; write: {syntax}"))),
    }
}

fn file(cx: &Context<'_>, option: &Call<'_>) -> Result<PathBuf, Error> {
    let token = option.one(&format!("{} FILE", option.name()))?;
    Ok(cx.environment.absolute(Path::new(&cx.fixed_text(token)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, file_errors};
    use std::time::Duration;

    fn ca(options: &str) -> LocalCa {
        config(&format!("{{\npki {{\nca local {{\n{options}\n}}\n}}\n}}\n:80 {{\n}}")).global.tls.local_ca
    }

    #[test]
    fn names_and_files() {
        let found =
            ca("name \"My CA\"\nroot_cn Root\nintermediate_lifetime 48h\nroot {\ncert a.pem\nkey /b.key\n}");
        let expected = LocalCa {
            root_name: Some("Root".into()),
            intermediate_name: Some("My CA - ECC Intermediate".into()),
            intermediate_lifetime: Some(Duration::from_secs(48 * 3600)),
            root: Some(CertificateFiles { certificate: "/srv/a.pem".into(), key: "/b.key".into() }),
        };
        assert_eq!(found, expected);
        assert!(config("{\npki {\nca\n}\n}\n:80 {\n}").global.tls.local_ca.is_usual());
    }

    #[test]
    fn mistakes() {
        let first = |pki: &str| file_errors(&format!("{{\npki {{\n{pki}\n}}\n}}\n:80 {{\n}}")).remove(0);
        assert!(first("ca other").contains("a CA beside `local`"));
        assert!(first("c").contains("did you mean `ca`?"));
        assert!(first("ca {\nroot {\ncert a\n}\n}").contains("needs both files"));
        assert!(first("ca {\nroot_cn \"\"\n}").contains("from 1 to 64 characters"));
        assert!(first("ca {\nintermediate {\n}\n}").contains("is not built yet"));
        assert!(first("ca {\nroot {\ncert a\nkey b\nformat der\n}\n}").contains("pem_file"));
    }
}
