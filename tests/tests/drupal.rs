//! The configuration that FrankenPHP's image of Drupal has, with a tree that is laid out as Drupal's: no package of Drupal
//! is to be had here.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup};

/// What the published configuration asks for, with its variables.
const CADDYFILE: &str = r#"{
	{$CADDY_GLOBAL_OPTIONS}
	order php_server before file_server
	order php before file_server
	frankenphp {
		{$FRANKENPHP_CONFIG}
	}
}

{$CADDY_EXTRA_CONFIG}

{$SERVER_NAME:localhost} {
	root * web/
	encode zstd br gzip

	@hiddenScripts path_regexp \..*/.*\.php$
	error @hiddenScripts 403
	@vendorScripts path_regexp /vendor/.*\.php$
	error @vendorScripts 404
	@uploadedScripts path_regexp ^/sites/[^/]+/files/.*\.php$
	error @uploadedScripts 404
	@private path_regexp ^/sites/.*/private/
	error @private 403
	@protected {
		path_regexp \.(engine|inc|install|make|module|profile|po|sh|.*sql|theme|twig|tpl(\.php)?|xtmpl|yml)(~|\.sw[op]|\.bak|\.orig|\.save)?$|^/(\..*|Entries.*|Repository|Root|Tag|Template|composer\.(json|lock)|web\.config|yarn\.lock|package\.json)$|^\/#.*#$|\.php(~|\.sw[op]|\.bak|\.orig|\.save)$
		not path /.well-known*
	}
	error @protected 403
	@static {
		path *.avif *.css *.eot *.gif *.gz *.ico *.jpg *.jpeg *.js *.otf *.pdf *.png *.svg *.ttf *.webp *.woff *.woff2
		file
	}
	header @static Cache-Control "max-age=31536000,public,immutable"

	{$CADDY_SERVER_EXTRA_DIRECTIVES}
	php_server
}
"#;

fn start() -> Server {
    let setup = Setup::new();
    std::fs::write(setup.directory().join("drupal.caddyfile"), CADDYFILE).unwrap();
    let front = "<?php header('X-Drupal: 1'); echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['SCRIPT_NAME'];";
    let files = [
        ("index.php", front),
        ("update.php", front),
        ("robots.txt", "User-agent: *"),
        ("core/misc/drupal.js", "js"),
        ("core/modules/node/node.module", "<?php secret();"),
        ("core/core.services.yml", "secret: true"),
        ("composer.json", "{}"),
        (".htaccess", "secret"),
        (".well-known/security.txt", "Contact: x"),
        ("vendor/autoload.php", "<?php echo 'never';"),
        ("sites/default/files/picture.png", "png"),
        ("sites/default/files/upload.php", "<?php echo 'never';"),
        ("sites/default/private/report.pdf", "secret"),
        ("sites/default/settings.php.bak", "secret"),
    ];
    files
        .into_iter()
        .fold(setup, |setup, (path, text)| setup.file(&format!("web/{path}"), text))
        .launcher(&["sh", "-c", "cd www && exec \"$@\"", "sh"])
        .arguments(&["run", "--config", "DIRECTORY/drupal.caddyfile"])
        .env("SERVER_NAME", "http://ADDRESS")
        .env("CADDY_GLOBAL_OPTIONS", "admin off")
        .env("FRANKENPHP_CONFIG", "num_threads 2")
        .start()
}

#[test]
fn drupal_is_served_and_what_it_hides_is_not() {
    let server = start();
    for target in ["/", "/node/1?page=2", "/admin/config"] {
        let page = server.get(target).expect(200);
        assert_eq!((page.text(), page.header("x-drupal")), (format!("{target} /index.php"), Some("1")));
    }
    assert_eq!(server.get("/update.php/selection").expect(200).text(), "/update.php/selection /update.php");
    let script = server.get("/core/misc/drupal.js").expect(200);
    assert_eq!(script.header("cache-control"), Some("max-age=31536000,public,immutable"));
    assert_eq!(server.get("/robots.txt").expect(200).header("cache-control"), None);
    assert_eq!(server.get("/sites/default/files/picture.png").expect(200).text(), "png");
    for (target, status) in [
        ("/core/modules/node/node.module", 403),
        ("/core/core.services.yml", 403),
        ("/composer.json", 403),
        ("/.htaccess", 403),
        ("/.git/hooks/x.php", 403),
        ("/vendor/autoload.php", 404),
        ("/sites/default/files/upload.php", 404),
        ("/sites/default/private/report.pdf", 403),
        ("/sites/default/settings.php.bak", 403),
        ("/core/misc/../modules/node/node.module", 403),
        ("/core/modules/node/node%2emodule", 403),
    ] {
        let answer = server.get(target);
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
        assert!(!answer.text().contains("secret") && !answer.text().contains("never"), "{target}");
    }
    // What Drupal makes of a file that is not there yet, such as a smaller picture.
    let made = server.get("/sites/default/files/styles/small/picture.png").expect(200);
    assert_eq!(made.header("x-drupal"), Some("1"));
    server.stop();
}
