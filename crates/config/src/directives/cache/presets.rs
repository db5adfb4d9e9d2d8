//! What is right for applications that many sites have.

use super::{Cache, Error, Token, VaryCookies, unknown};
use std::time::Duration;

/// By which advertisers and mailings tell where a visitor comes from. Scripts in the page read them of its URL.
const TRACKING: [&str; 17] = [
    "utm_*",
    "mtm_*",
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "dclid",
    "_gl",
    "fbclid",
    "msclkid",
    "mc_cid",
    "mc_eid",
    "ttclid",
    "twclid",
    "yclid",
    "igshid",
    "li_fat_id",
];
const NAMES: &[&str] = &["mediawiki", "symfony", "wordpress"];
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn apply(name: &Token, cache: &mut Cache) -> Result<(), Error> {
    match name.text.as_str() {
        "mediawiki" => mediawiki(cache),
        "symfony" => symfony(cache),
        "wordpress" => wordpress(cache),
        _ => return Err(unknown(name, "preset", NAMES)),
    }
    cache.stale_if_error = DAY;
    cache.ignore_queries.extend(TRACKING.map(Into::into));
    Ok(())
}

/// WordPress says nothing of lifetimes to visitors, and `no-store` to whoever is logged in. Cookies of wp-includes/
/// default-constants.php and comment.php, of WooCommerce and of Easy Digital Downloads.
fn wordpress(cache: &mut Cache) {
    const COOKIES: [&str; 9] = [
        "wordpress_logged_in_*",
        "wordpress_sec_*",
        "wordpress_no_cache",
        "wp-postpass_*",
        "wp-resetpass-*",
        "comment_author_*",
        "woocommerce_*",
        "wp_woocommerce_*",
        "edd_*",
    ];
    const PATHS: [&str; 11] = [
        "*/wp-admin/*",
        "*/wp-login.php*",
        "*/wp-signup.php*",
        "*/wp-activate.php*",
        "*/wp-cron.php*",
        "*/xmlrpc.php*",
        "*/wp-json/*",
        "*/cart/*",
        "*/checkout/*",
        "*/my-account/*",
        "*/wc-api/*",
    ];
    // A preview, the REST API, a search whose results are endless, what puts things into a cart, and links with a nonce.
    const QUERIES: [&str; 10] = [
        "preview*",
        "rest_route",
        "s",
        "add-to-cart",
        "wc-ajax",
        "wc-api",
        "edd_action",
        "customize_*",
        "_wpnonce",
        "replytocom",
    ];
    cache.default_ttl = Some(MINUTE);
    cache.stale_while_revalidate = MINUTE;
    cache.pass_cookies.extend(COOKIES.map(Into::into));
    cache.pass_paths.extend(PATHS.map(Into::into));
    cache.pass_queries.extend(QUERIES.map(Into::into));
    cache.vary_cookies = VaryCookies::Ignored;
}

/// MediaWiki says of its pages how long they are good for, and purges them, if `$wgUseCdn` is on; `Vary` has `Cookie` then,
/// though it means the cookies of sessions (OutputPage::getCacheVaryCookies).
fn mediawiki(cache: &mut Cache) {
    const COOKIES: [&str; 5] = ["*Session", "*UserID", "*UserName", "*Token", "*LoggedOut"];
    cache.pass_cookies.extend(COOKIES.map(Into::into));
    cache.vary_cookies = VaryCookies::Ignored;
}

/// Symfony says `private` of all that says nothing else, and so tells itself what is for everybody.
fn symfony(cache: &mut Cache) {
    const COOKIES: [&str; 3] = ["PHPSESSID", "REMEMBERME", "sf_redirect"];
    const PATHS: [&str; 2] = ["/_profiler*", "/_wdt/*"];
    cache.pass_cookies.extend(COOKIES.map(Into::into));
    cache.pass_paths.extend(PATHS.map(Into::into));
}
