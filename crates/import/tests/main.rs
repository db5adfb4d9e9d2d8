//! Configurations in the shape of those that applications publish, and what becomes of them. To accept changed results, run with
//! `INSTA_UPDATE=always`.

mod nginx_tests;
