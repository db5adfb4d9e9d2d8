//! The form of a table that the documentation shows.

use regent_php_floor::{Build, Package, Table, Verdict};

const PAGE: &str = include_str!("../../../docs/php.md");

#[test]
fn the_table_in_the_documentation_is_read_and_judges_as_it_says() {
    let (_, rest) = PAGE.split_once("```json\n").expect("the page shows a table");
    let (text, _) = rest.split_once("```").expect("it ends");
    let table = Table::from_json(text).unwrap();
    let verdict = |version: &str, package: Option<&str>| {
        let package =
            package.map(|version| Package { name: "libphp-embed".to_owned(), version: version.to_owned() });
        table.judge(&Build { version: version.to_owned(), package })
    };
    assert!(verdict("8.4.27", None).is_below());
    assert_eq!(verdict("8.4.28", None), Verdict::Sound);
    assert!(verdict("8.3.6", Some("8.3.6-0ubuntu0.24.04.9")).is_below());
    assert_eq!(verdict("8.3.6", Some("8.3.6-0ubuntu0.24.04.99")), Verdict::Sound);
    assert_eq!(verdict("8.6.0", None), Verdict::Unlisted);
}

#[test]
fn the_documentation_names_the_floors_of_the_table_that_is_built_in() {
    let floors = ["8.2.0", "8.3.0", "8.4.0", "8.5.0"].map(|version| {
        let verdict = Table::built_in().judge(&Build { version: version.to_owned(), package: None });
        verdict.floor().expect("the branch has a line").version.clone()
    });
    assert!(PAGE.contains(&format!("**{}**", floors.join(", "))), "{floors:?}");
}
