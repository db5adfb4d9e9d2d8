//! The services whose interfaces Regent knows, with the words that Caddy's modules for them have (caddy-dns on GitHub; the
//! fields are those of libdns).

/// One of them.
#[derive(Debug, PartialEq)]
pub(super) struct Service {
    pub name: &'static str,
    pub options: &'static [ServiceOption],
    /// So many of the options may stand on the line itself, in their order.
    pub on_line: usize,
    /// Words of Caddy's module that change nothing here.
    pub ignored: &'static [&'static str],
    /// Words of Caddy's module that have one value here.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Words of Caddy's module that Regent cannot do, and what to do instead.
    pub refused: &'static [(&'static str, &'static str)],
}

#[derive(Debug, PartialEq)]
pub(super) struct ServiceOption {
    /// In Caddy's JSON.
    pub name: &'static str,
    /// In a Caddyfile, where that is another.
    pub word: Option<&'static str>,
    pub value: Value,
    pub is_required: bool,
    /// The variable that it is taken from where it is left out.
    pub variable: Option<&'static str>,
}

/// What the value of an option is like.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    Text,
    OneOf(&'static [&'static str]),
    /// `KEY:SECRET`.
    Pair,
    Url,
    File,
    /// A key in PEM, or its file.
    KeyOrFile,
}

/// By name.
pub(super) const SERVICES: &[Service] = &[
    service(
        "alidns",
        0,
        &[
            required("access_key_id"),
            required("access_key_secret"),
            optional("region_id"),
            optional("security_token"),
        ],
    ),
    service(
        "azure",
        0,
        &[
            required("subscription_id"),
            required("resource_group_name"),
            required("tenant_id"),
            required("client_id"),
            required("client_secret"),
        ],
    ),
    Service { ignored: &["debug"], ..service("bunny", 1, &[required("access_key")]) },
    Service {
        refused: &[(
            "zone_token",
            "write one `api_token` that has both permissions, Zone:Read and DNS:Edit, for all zones of the sites",
        )],
        ..service("cloudflare", 1, &[required("api_token")])
    },
    service("desec", 0, &[required("token")]),
    service("digitalocean", 1, &[required("auth_token").called("api_token")]),
    Service {
        fixed: &[("api_endpoint", "https://api.dnsmadeeasy.com/V2.0/")],
        ..service("dnsmadeeasy", 0, &[required("api_key"), required("secret_key")])
    },
    Service {
        fixed: &[("api_url", "https://api.dnsimple.com")],
        ..service("dnsimple", 1, &[required("api_access_token"), required("account_id")])
    },
    service("domainnameshop", 2, &[required("api_token"), required("api_secret")]),
    service("dreamhost", 1, &[required("api_key")]),
    Service {
        ignored: &["resolver"],
        refused: &[("override_domain", "write `dns_challenge_override_domain NAME` beside `dns`")],
        ..service("duckdns", 1, &[required("api_token")])
    },
    Service { ignored: &["own_domain"], ..service("dynu", 1, &[required("api_token")]) },
    Service {
        fixed: &[("api_url", "https://rest.easydns.net")],
        ..service("easydns", 0, &[required("api_token"), required("api_key")])
    },
    service("gandi", 1, &[required("bearer_token")]),
    service("glesys", 2, &[required("project"), required("api_key")]),
    service("godaddy", 1, &[required("api_token").like(Value::Pair)]),
    service(
        "googleclouddns",
        0,
        &[
            required("gcp_project"),
            required("gcp_application_default").or("GOOGLE_APPLICATION_CREDENTIALS").like(Value::File),
        ],
    ),
    service("hetzner", 1, &[required("api_token")]),
    service("hostinger", 1, &[required("api_token")]),
    service(
        "huaweicloud",
        0,
        &[required("access_key_id"), required("secret_access_key"), optional("region_id")],
    ),
    service("infomaniak", 1, &[required("api_token")]),
    Service {
        refused: &[("shared_secret", "write a user of the API without a second factor")],
        ..service(
            "inwx",
            0,
            &[
                required("username"),
                required("password"),
                optional("endpoint_url").like(Value::OneOf(INWX_ENDPOINTS)),
            ],
        )
    },
    service("ionos", 1, &[required("auth_api_token").called("api_token")]),
    Service {
        fixed: &[("api_url", "api.linode.com"), ("api_version", "v4")],
        ..service("linode", 1, &[required("api_token")])
    },
    service("luadns", 0, &[required("email"), required("api_key")]),
    service("mythicbeasts", 0, &[required("key_id"), required("secret")]),
    Service {
        fixed: &[("api_endpoint", "https://api.namecheap.com/xml.response")],
        ..service("namecheap", 0, &[required("api_key"), required("user"), required("client_ip")])
    },
    Service {
        fixed: &[("server", "https://api.name.com")],
        ..service("namedotcom", 0, &[required("api_token").called("token"), required("user")])
    },
    service("namesilo", 1, &[required("api_token")]),
    service("netcup", 0, &[required("customer_number"), required("api_key"), required("api_password")]),
    service("netlify", 1, &[required("personal_access_token")]),
    service(
        "ovh",
        0,
        &[
            optional("endpoint").or("OVH_ENDPOINT").like(Value::OneOf(OVH_ENDPOINTS)),
            required("application_key").or("OVH_APPLICATION_KEY"),
            required("application_secret").or("OVH_APPLICATION_SECRET"),
            required("consumer_key").or("OVH_CONSUMER_KEY"),
        ],
    ),
    service("porkbun", 0, &[required("api_key"), required("api_secret_key")]),
    Service {
        ignored: &["debug"],
        ..service(
            "powerdns",
            3,
            &[required("server_url").like(Value::Url), required("api_token"), optional("server_id")],
        )
    },
    Service {
        ignored: &[
            "debug_logging",
            "max_retries",
            "max_wait_dur",
            "route53_max_wait",
            "skip_route53_sync_on_delete",
            "wait_for_propagation",
            "wait_for_route53_sync",
        ],
        refused: &[("aws_profile", NO_PROFILE), ("profile", NO_PROFILE), ("token", "write `session_token`")],
        ..service(
            "route53",
            0,
            &[
                required("access_key_id").or("AWS_ACCESS_KEY_ID"),
                required("secret_access_key").or("AWS_SECRET_ACCESS_KEY"),
                optional("session_token").or("AWS_SESSION_TOKEN"),
                optional("region").or("AWS_REGION"),
                optional("hosted_zone_id"),
            ],
        )
    },
    Service { ignored: &["organization_id"], ..service("scaleway", 0, &[required("secret_key")]) },
    Service {
        ignored: &["max_retries"],
        fixed: &[("base_url", "https://api.simply.com/2/")],
        ..service("simplydotcom", 2, &[required("account_name"), required("api_key")])
    },
    Service {
        ignored: &["api_pagesize", "api_timeout", "page_size"],
        fixed: &[("api_url", "https://spaceship.dev/api"), ("base_url", "https://spaceship.dev/api")],
        ..service(
            "spaceship",
            2,
            &[
                required("api_key").or("LIBDNS_SPACESHIP_APIKEY"),
                required("api_secret").or("LIBDNS_SPACESHIP_APISECRET"),
            ],
        )
    },
    service(
        "tencentcloud",
        0,
        &[
            required("SecretId").called("secret_id"),
            required("SecretKey").called("secret_key"),
            optional("SessionToken").called("session_token"),
            optional("Region").called("region"),
        ],
    ),
    Service {
        ignored: &[
            "client_control_mode",
            "debug_level",
            "expiration_time",
            "full_zone_control",
            "token_storage",
        ],
        fixed: &[("base_uri", "https://api.transip.nl/v6/")],
        ..service(
            "transip",
            2,
            &[
                required("login"),
                required("private_key").like(Value::KeyOrFile),
                optional("not_global_key").like(Value::OneOf(&["false", "true"])),
            ],
        )
    },
    service("vercel", 1, &[required("auth_api_token").called("api_token")]),
    service("vultr", 1, &[required("api_token")]),
];

const INWX_ENDPOINTS: &[&str] =
    &["https://api.domrobot.com/jsonrpc/", "https://api.ote.domrobot.com/jsonrpc/"];

const OVH_ENDPOINTS: &[&str] =
    &["ovh-eu", "ovh-us", "ovh-ca", "kimsufi-eu", "kimsufi-ca", "soyoustart-eu", "soyoustart-ca"];

const NO_PROFILE: &str = "write the keys, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

const fn service(name: &'static str, on_line: usize, options: &'static [ServiceOption]) -> Service {
    Service { name, options, on_line, ignored: &[], fixed: &[], refused: &[] }
}

const fn required(name: &'static str) -> ServiceOption {
    ServiceOption { name, word: None, value: Value::Text, is_required: true, variable: None }
}

const fn optional(name: &'static str) -> ServiceOption {
    ServiceOption { is_required: false, ..required(name) }
}

impl ServiceOption {
    const fn called(self, word: &'static str) -> Self {
        Self { word: Some(word), ..self }
    }

    const fn like(self, value: Value) -> Self {
        Self { value, ..self }
    }

    const fn or(self, variable: &'static str) -> Self {
        Self { variable: Some(variable), ..self }
    }
}
