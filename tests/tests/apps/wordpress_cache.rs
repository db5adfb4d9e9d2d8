//! WordPress behind `cache` with its preset: what is for one visitor reaches no other.
#![forbid(unsafe_code)]

use regent_tests::browser::Browser;
use regent_tests::wordpress::WordPress;
use regent_tests::{Response, Setup, in_parallel};
use serde_json::json;
use std::collections::BTreeSet;

const MEMBERS: usize = 100;
const STRANGERS: usize = 50;
/// Members who log in at once: each has WordPress hash a password.
const AT_THE_DOOR: usize = 10;

/// Strangers may have to wait for PHP behind a hundred members.
const CACHE: &str = "cache {\npreset wordpress\nwait 1m\n}\nphp_server";

/// A hundred passwords are hashed, and are no secrets.
const PLUGIN: &str = "<?php add_filter('wp_hash_password_options', static fn (): array => ['cost' => 4]);";

fn start() -> WordPress {
    let options = "num_threads 4\n\t\tphp_ini error_reporting 8191\n\t\tmax_wait_time off";
    let setup = Setup::new().php_options(options).site(CACHE);
    WordPress::start(setup.file("wp-content/mu-plugins/passwords.php", PLUGIN))
}

fn name_of(member: usize) -> String {
    format!("member-{member:03}")
}

fn status_of(response: &Response) -> &str {
    response.header("cache-status").unwrap_or_default()
}

/// All names of members that a page has anywhere.
fn names_in(page: &str) -> BTreeSet<String> {
    let begins = page.match_indices("member-").map(|(position, _)| position);
    begins.filter_map(|position| page.get(position..position + name_of(0).len())).map(Into::into).collect()
}

#[track_caller]
fn assert_is_of_member(response: Response, member: usize) {
    let page = response.expect(200);
    let text = page.text();
    assert_eq!(names_in(&text), BTreeSet::from([name_of(member)]), "of {member}: {text}");
    assert!(text.contains("id=\"wpadminbar\"") && text.trim_end().ends_with("</html>"), "{text}");
    assert_eq!(status_of(&page), "Regent; fwd=bypass; detail=cookie");
}

#[track_caller]
fn assert_is_of_nobody(response: &Response) {
    let text = response.text();
    assert_eq!((response.status, names_in(&text)), (200, BTreeSet::new()), "{text}");
    for mark in ["wpadminbar", "Howdy", "logged-in", "action=logout", "_wpnonce"] {
        assert!(!text.contains(mark), "{mark} is only for who is logged in: {text}");
    }
    assert_eq!(response.header_all("set-cookie"), [""; 0]);
    assert!(text.trim_end().ends_with("</html>"), "{text}");
}

/// All at once, strangers between members: each member has its own page, and PHP runs once for all strangers if the page is new.
fn visit(site: &WordPress, members: &[Browser<'_>], path: &str, runs_for_strangers: usize) {
    let pages = in_parallel(MEMBERS + STRANGERS, |visitor| match members.get(visitor) {
        Some(member) => {
            assert_is_of_member(member.get(path), visitor);
            None
        }
        None => Some(site.server.get(path)),
    });
    let pages: Vec<Response> = pages.into_iter().flatten().collect();
    pages.iter().for_each(assert_is_of_nobody);
    let made = pages.iter().filter(|page| !status_of(page).starts_with("Regent; hit")).collect::<Vec<_>>();
    assert_eq!(made.len(), runs_for_strangers, "{:?}", pages.iter().map(status_of).collect::<Vec<_>>());
    let texts: BTreeSet<_> = pages.iter().map(Response::text).collect();
    assert_eq!(texts.len(), 1, "strangers have one page");
}

#[test]
fn a_hundred_members_see_no_page_of_anothers_and_strangers_none_of_theirs() {
    let site = start();
    site.server.write("members.php", include_str!("../../fixtures/wordpress/members.php"));
    assert_eq!(site.server.get("/members.php").expect(200).text(), "made");
    let (_, post) = site.publish(&site.admin(), "For all", "What everybody may read.");
    let members: Vec<Browser<'_>> = in_parallel(AT_THE_DOOR, |door| {
        let own = (0..MEMBERS).filter(|member| member % AT_THE_DOOR == door);
        let enter = |member| site.logged_in(&name_of(member), &format!("secret of {}", name_of(member)));
        own.map(|member| (member, enter(member))).collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect::<std::collections::BTreeMap<_, _>>()
    .into_values()
    .collect();

    // Pages that are new, when members and strangers come for them together, and the same pages again.
    visit(&site, &members, "/", 1);
    visit(&site, &members, "/", 0);
    visit(&site, &members, &post, 1);
    // Each member is the first for a page, and a stranger comes next.
    in_parallel(AT_THE_DOOR, |door| {
        for member in (0..MEMBERS).filter(|member| member % AT_THE_DOOR == door) {
            let path = format!("/?page-of={member}");
            assert_is_of_member(members[member].get(&path), member);
            let page = site.server.get(&path);
            assert_is_of_nobody(&page);
            assert!(status_of(&page).contains("fwd=uri-miss; stored"), "{}", status_of(&page));
            assert_is_of_member(members[member].get(&path), member);
        }
    });
    site.server.stop();
}

#[test]
fn who_has_commented_or_knows_a_password_sees_what_others_do_not() {
    let site = start();
    let admin = site.admin();
    let (number, post) = site.publish(&admin, "For all", "What everybody may read.");
    let secret = json!({"title": "For few", "content": "The axolotl sleeps.", "status": "publish", "password": "fish"});
    let (_, closed) = site.publish_post(&admin, secret);

    let ada = Browser::new(&site.server);
    let comment = [
        ("comment_post_ID", number.to_string()),
        ("author", "Ada Byron".to_owned()),
        ("email", "ada@example.org".to_owned()),
        ("comment", "Notes on an engine.".to_owned()),
        ("wp-comment-cookies-consent", "yes".to_owned()),
    ];
    let comment: Vec<(&str, &str)> = comment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    ada.submit("/wp-comments-post.php", &comment).expect(302);
    let knows = Browser::new(&site.server);
    let told = knows.submit("/wp-login.php?action=postpass", &[("post_password", "fish")]);
    assert!(
        told.header_all("set-cookie").iter().any(|cookie| cookie.starts_with("wp-postpass_")),
        "{told:?}"
    );

    for round in 0..2 {
        let own = ada.get(&post).expect(200);
        assert!(own.text().contains("value=\"Ada Byron\""), "{}", own.text());
        assert!(own.text().contains("Notes on an engine."), "it waits to be approved: {}", own.text());
        let open = knows.get(&closed).expect(200);
        assert!(open.text().contains("The axolotl sleeps."), "{}", open.text());
        for page in [own, open] {
            assert_eq!(status_of(&page), "Regent; fwd=bypass; detail=cookie");
        }
        let [all, few] = [&post, &closed].map(|path| site.server.get(path).expect(200));
        assert!(!all.text().contains("Ada Byron") && !all.text().contains("Notes on an engine."));
        assert!(few.text().contains("post_password") && !few.text().contains("axolotl"), "{}", few.text());
        assert_eq!(status_of(&all).starts_with("Regent; hit"), round == 1, "{}", status_of(&all));
        // WordPress says so itself where a post has a password.
        assert!(status_of(&few).ends_with("detail=no-store"), "{}", status_of(&few));
    }
    site.server.stop();
}
