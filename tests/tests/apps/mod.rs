//! Real applications, from the distribution's packages and the tests' fixtures.

mod dokuwiki;
mod laravel;
mod mediawiki;
mod symfony;
mod symfony_images;
mod wordpress;
mod wordpress_cache;
