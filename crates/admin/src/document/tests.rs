use super::*;
use proptest::prelude::*;
use serde_json::json;

fn document() -> Value {
    json!({ "apps": { "http": { "routes": [{ "a": 1 }, { "b": [[2, 3]] }], "empty": null, "name": "x" } } })
}

fn path(text: &str) -> Path {
    Path::of_url(text)
}

/// What is at the path after a change, or which error there is.
fn after(at: &str, change: Change) -> Result<Value, String> {
    let changed = changed(&document(), &path(at), change).map_err(|error| error.to_string())?;
    Ok(changed["apps"]["http"].clone())
}

#[test]
fn parts_are_named_by_keys_and_indices() {
    let document = document();
    let found = |at: &str| part(&document, &path(at)).cloned();
    assert_eq!(found(""), Ok(document.clone()));
    assert_eq!(found("/apps/http/routes/0/a/"), Ok(json!(1)));
    assert_eq!(found("apps/http/routes/1/b/0/1"), Ok(json!(3)));
    assert_eq!(found("apps/none"), Ok(Value::Null), "which a tag can be had for");
    for missing in ["none/none", "apps/http/routes/2", "apps/http/name/x", "apps/http/empty/x", "apps//x"] {
        assert_eq!(found(missing), Err(PartError::Missing(path(missing))), "{missing}");
    }
    for odd in ["x", "00", "+1", "-1", "1.0", "18446744073709551616"] {
        let at = path(&format!("apps/http/routes/{odd}"));
        assert_eq!(part(&document, &at), Err(PartError::NoIndex(at.clone())));
    }
}

#[test]
fn a_key_may_have_what_a_url_may_not() {
    let document = json!({ "a/b c%": { "": 1 }, "é": 2 });
    for (at, value) in [("a%2Fb%20c%25/", json!({ "": 1 })), ("%C3%A9", json!(2))] {
        assert_eq!(part(&document, &path(at)), Ok(&value));
        assert_eq!(path(at).to_string(), format!("/config/{}", at.trim_end_matches('/')));
    }
}

#[test]
fn post_adds_to_a_list_and_sets_a_key() {
    let routes = |at, change| after(at, change).map(|http| http["routes"].clone());
    let three = json!([{ "a": 1 }, { "b": [[2, 3]] }, 4]);
    assert_eq!(routes("apps/http/routes", Change::Post(json!(4))), Ok(three.clone()));
    assert_eq!(routes("apps/http/routes/0", Change::Post(json!(4))), Ok(three.clone()), "as in Caddy");
    let four = json!([{ "a": 1 }, { "b": [[2, 3]] }, 4, 5]);
    assert_eq!(routes("apps/http/routes", Change::PostEach(vec![json!(4), json!(5)])), Ok(four));
    assert_eq!(after("apps/http/name", Change::Post(json!("y"))).unwrap()["name"], "y");
    assert_eq!(after("apps/http/new", Change::Post(json!([1]))).unwrap()["new"], json!([1]));
    assert_eq!(after("apps/http/new", Change::PostEach(vec![json!(1)])).unwrap()["new"], json!([1]));
    assert!(after("apps/http/name", Change::PostEach(vec![])).unwrap_err().contains("is no list"));
    assert!(
        after("apps/none/new", Change::Post(json!(1))).unwrap_err().contains("has no /config/apps/none;")
    );
}

#[test]
fn put_inserts_and_makes_what_leads_there() {
    let routes = |index| after(&format!("apps/http/routes/{index}"), Change::Put(json!(4)));
    assert_eq!(routes(0).unwrap()["routes"], json!([4, { "a": 1 }, { "b": [[2, 3]] }]));
    assert_eq!(routes(2).unwrap()["routes"], json!([{ "a": 1 }, { "b": [[2, 3]] }, 4]));
    assert!(routes(3).unwrap_err().contains("has no /config/apps/http/routes/3"));
    assert_eq!(after("apps/http/x/y/z", Change::Put(json!(1))).unwrap()["x"], json!({ "y": { "z": 1 } }));
    assert_eq!(after("apps/http/empty/z", Change::Put(json!(1))).unwrap()["empty"], json!({ "z": 1 }));
    let there = "there is /config/apps/http/name already; `PATCH` replaces it";
    assert_eq!(after("apps/http/name", Change::Put(json!(1))), Err(there.into()));
    assert!(after("apps/http/name/x", Change::Put(json!(1))).unwrap_err().contains("has no "));
}

#[test]
fn patch_and_delete_need_what_is_there() {
    assert_eq!(
        after("apps/http/routes/0/a", Change::Patch(json!(9))).unwrap()["routes"][0],
        json!({ "a": 9 })
    );
    assert_eq!(after("apps/http/routes/0", Change::Patch(json!(9))).unwrap()["routes"][0], 9);
    assert_eq!(after("apps/http/routes/0", Change::Delete).unwrap()["routes"], json!([{ "b": [[2, 3]] }]));
    assert_eq!(after("apps/http/name", Change::Delete).unwrap().get("name"), None);
    for at in ["apps/http/new", "apps/http/routes/2", "apps/http/name/x", "apps/none/x"] {
        for change in [Change::Patch(json!(1)), Change::Delete] {
            assert!(after(at, change).unwrap_err().contains("the configuration has no "), "{at}");
        }
    }
}

#[test]
fn the_root_is_replaced_and_removed_and_made_again() {
    let root = Path::default();
    for change in [Change::Post(json!({ "apps": {} })), Change::Patch(json!({ "apps": {} }))] {
        assert_eq!(changed(&document(), &root, change), Ok(json!({ "apps": {} })));
    }
    assert_eq!(changed(&document(), &root, Change::Put(json!({}))), Err(PartError::Exists(Path::default())));
    assert_eq!(changed(&document(), &root, Change::Delete), Ok(Value::Null));
    assert_eq!(changed(&Value::Null, &root, Change::Put(json!({}))), Ok(json!({})));
    assert_eq!(
        changed(&Value::Null, &path("apps/http"), Change::Put(json!(1))),
        Ok(json!({ "apps": { "http": 1 } }))
    );
}

#[test]
fn what_goes_too_deep_is_refused_before_it_is_made() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let root = Path::default();
    assert!(changed(&Value::Null, &root, Change::Post(nested(99))).is_ok());
    assert_eq!(changed(&Value::Null, &root, Change::Post(nested(100))), Err(PartError::Deep));
    let long = path(&vec!["a"; 8000].join("/"));
    assert_eq!(changed(&Value::Null, &long, Change::Put(json!(1))), Err(PartError::Deep));
    let each = Change::PostEach(vec![nested(99)]);
    assert_eq!(changed(&json!({ "a": [] }), &path("a"), each), Err(PartError::Deep));
}

/// Small documents, whose keys are those that paths try.
fn any_document() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..9).prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::hash_map("[a-c]", inner, 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn any_path() -> impl Strategy<Value = Path> {
    prop::collection::vec("[a-c0-4]", 0..5).prop_map(Path)
}

/// The list that an index is of, and the index.
fn in_list(document: &Value, path: &Path) -> Option<(Path, usize)> {
    let (last, list) = path.0.split_last()?;
    let list = Path(list.to_vec());
    part(document, &list)
        .ok()?
        .is_array()
        .then(|| (list, last.parse().ok()))
        .and_then(|(list, index)| Some((list, index?)))
}

fn length(document: &Value, path: &Path) -> Option<usize> {
    part(document, path).ok()?.as_array().map(Vec::len)
}

proptest! {
    /// What is put somewhere is found there, and where nothing was put is nothing else than before.
    #[test]
    fn what_was_put_is_there(document in any_document(), at in any_path(), value in any_document()) {
        for change in [Change::Put(value.clone()), Change::Patch(value.clone())] {
            if let Ok(changed) = changed(&document, &at, change) {
                prop_assert_eq!(part(&changed, &at), Ok(&value));
            }
        }
    }

    /// The way back from an insertion or a new key is its removal, unless objects had to be made on the way.
    #[test]
    fn a_removal_undoes_an_insertion(document in any_document(), at in any_path(), value in any_document()) {
        let parent_is_there = at.0.split_last().is_some_and(|(_, parent)| {
            part(&document, &Path(parent.to_vec())).is_ok_and(|parent| parent.is_object() || parent.is_array())
        });
        if let (true, Ok(put)) = (parent_is_there, changed(&document, &at, Change::Put(value))) {
            prop_assert_eq!(changed(&put, &at, Change::Delete), Ok(document));
        }
    }

    /// A list grows by what is added to it, and has the new elements last, in their order.
    #[test]
    fn nothing_that_is_added_is_lost(document in any_document(), at in any_path(), values in prop::collection::vec(any_document(), 0..4)) {
        let Some(before) = length(&document, &at) else { return Ok(()) };
        // The parent's list is the one that is added to, as in Caddy.
        prop_assume!(in_list(&document, &at).is_none() && !at.is_root());
        let one_by_one = values.iter().try_fold(document.clone(), |document, value| {
            changed(&document, &at, Change::Post(value.clone()))
        });
        let at_once = changed(&document, &at, Change::PostEach(values.clone()));
        prop_assert_eq!(&one_by_one, &at_once);
        let after = at_once.unwrap();
        let list = part(&after, &at).unwrap().as_array().unwrap();
        prop_assert_eq!(list.len(), before + values.len());
        prop_assert_eq!(&list[before..], &values[..]);
    }

    /// A change that is refused is refused for the same reason whatever is sent, and one that is made leaves all other keys of
    /// the root as they were.
    #[test]
    fn others_stay_as_they_were(document in any_document(), at in any_path(), value in any_document()) {
        for change in [Change::Post(value.clone()), Change::Put(value.clone()), Change::Patch(value.clone()), Change::Delete] {
            let Ok(changed) = changed(&document, &at, change) else { continue };
            let (Some(before), Some(after)) = (document.as_object(), changed.as_object()) else { continue };
            let Some(touched) = at.0.first() else { continue };
            let others = |object: &Map<String, Value>| {
                object.iter().filter(|(key, _)| *key != touched).map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>()
            };
            prop_assert_eq!(others(before), others(after));
        }
    }
}
