//! WordPress from the distribution's packages with a MariaDB of its own, installed in the browser.

use crate::apps::{copy_application, packages_of};
use crate::browser::Browser;
use crate::{MariaDb, Server, Setup};
use serde_json::{Value, json};

/// A blog whose administrator is `admin`. Its database ends with it.
pub struct WordPress {
    pub server: Server,
    _database: MariaDb,
}

/// Somebody who may write posts, with the token that the REST API asks of the browser.
pub struct Author<'a> {
    pub browser: Browser<'a>,
    nonce: String,
}

impl WordPress {
    /// `setup`: what the server is to be like; the application is laid out at its root.
    pub fn start(setup: Setup) -> Self {
        let packages = packages_of("wordpress");
        copy_application(&packages, &packages.join("usr/share/wordpress"), &setup.root());
        let database = MariaDb::start(setup.directory(), "wordpress");
        let config = include_str!("../fixtures/wordpress/wp-config.php")
            .replace("SOCKET", &database.socket().display().to_string());
        let server = setup.file("wp-config.php", config).start();
        install(&server);
        Self { server, _database: database }
    }

    /// A browser whose user is the administrator.
    pub fn admin(&self) -> Author<'_> {
        let browser = self.logged_in("admin", "secret-1");
        assert!(browser.get("/wp-admin/").expect(200).text().contains("Dashboard"));
        let nonce = browser.get("/wp-admin/admin-ajax.php?action=rest-nonce").expect(200).text();
        Author { browser, nonce }
    }

    /// A browser whose user is this one.
    pub fn logged_in(&self, user: &str, password: &str) -> Browser<'_> {
        let browser = Browser::new(&self.server);
        browser.get("/wp-login.php").expect(200);
        let fields = [("log", user), ("pwd", password), ("testcookie", "1"), ("wp-submit", "Log In")];
        browser.submit("/wp-login.php", &fields).expect(302);
        browser
    }

    /// Publishes a post, and gives its number and its path.
    pub fn publish(&self, author: &Author<'_>, title: &str, content: &str) -> (u64, String) {
        self.publish_post(author, json!({"title": title, "content": content, "status": "publish"}))
    }

    /// The same with the fields that the REST API has for it.
    pub fn publish_post(&self, author: &Author<'_>, fields: Value) -> (u64, String) {
        let request = self
            .server
            .request("POST", "/index.php?rest_route=/wp/v2/posts")
            .header("X-WP-Nonce", &author.nonce)
            .body("application/json", fields.to_string());
        let post: Value = author.browser.send(request).expect(201).json();
        let link = post["link"].as_str().expect("a post has a link");
        let path =
            link.strip_prefix(&format!("http://{}", self.server.address())).expect("it is on this site");
        (post["id"].as_u64().expect("a post has a number"), path.to_owned())
    }
}

fn install(server: &Server) {
    let browser = Browser::new(server);
    let form = browser.get("/wp-admin/install.php").expect(200).text();
    assert!(form.contains("action=\"install.php?step=2\"") || form.contains("?step=1"), "{form}");
    let done = browser.submit(
        "/wp-admin/install.php?step=2",
        &[
            ("weblog_title", "The blog of the test"),
            ("user_name", "admin"),
            ("admin_password", "secret-1"),
            ("admin_password2", "secret-1"),
            ("pw_weak", "1"),
            ("admin_email", "admin@example.org"),
            ("blog_public", "0"),
        ],
    );
    let page = done.expect(200).text();
    assert!(page.contains("<h1>Success!</h1>") && page.ends_with("</html>\n"), "{page}");
}
