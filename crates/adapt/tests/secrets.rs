//! What only the owner of a configuration may see is in it, too: who shows it to others hides that.

use regent_adapt::adapt;
use regent_config::{Config, Environment, parse, parse_json};
use std::collections::BTreeMap;
use std::path::Path;

const CADDYFILE: &str = "{
	storage redis {
		address 127.0.0.1:6379
		password topsecret-1
		encryption_key topsecret-2-0123456789abcdefghij
	}
}
example.com {
	tls {
		issuer acme {
			eab id topsecret-3
			dns rfc2136 {
				server 192.0.2.1
				key_name name
				key dG9wc2VjcmV0LTQ=
			}
		}
	}
	mercure {
		subscriber_jwt topsecret-5
		publisher_jwt {env.KEY}
	}
	basic_auth {
		ada $2b$12$lGCbwvvPHASF24AEOjIQhOZDRGSeGyuFbExKlBbuXAlkmbbyETwSW
	}
	reverse_proxy backend:80 {
		lb_policy cookie lb topsecret-6
		transport http {
			network_proxy url http://name:topsecret-7@proxy:3128
		}
	}
}
*.example.net {
	tls {
		dns digitalocean topsecret-9
		propagation_timeout -1
		resolvers 192.0.2.7
	}
}
";

fn environment() -> Environment {
    let variables = BTreeMap::from([("KEY".to_owned(), "topsecret-8".to_owned())]);
    Environment { variables, current_dir: "/srv".into() }
}

fn config() -> Config {
    parse("Caddyfile", CADDYFILE, Path::new("/srv"), &environment())
        .unwrap_or_else(|errors| panic!("{errors}"))
        .config
}

/// What is never printed, as it is compared nowhere else.
fn hidden(config: &Config) -> impl PartialEq + std::fmt::Debug {
    let site = &config.servers[0].sites[0];
    let tls = &config.global.tls;
    (
        config.global.hubs.clone(),
        tls.redis.clone(),
        config.servers[0].sites.iter().map(|site| site.tls.clone()).collect::<Vec<_>>(),
        site.routes.clone(),
        config.proxies.clone(),
    )
}

#[test]
fn all_is_there_and_comes_back() {
    let json = adapt(&config()).to_string();
    for secret in 1..=9 {
        // The fourth is in base64.
        let is_there = json.contains(&format!("topsecret-{secret}"))
            || (secret == 4 && json.contains("dG9wc2VjcmV0LTQ="));
        assert!(is_there, "{secret}: {json}");
    }
    let back = parse_json("caddy.json", &json, Path::new("/srv"), &environment())
        .unwrap_or_else(|errors| panic!("{errors}"));
    assert!(
        hidden(&config()) == hidden(&back.config),
        "{:#?}\n{:#?}",
        hidden(&config()),
        hidden(&back.config)
    );
}
