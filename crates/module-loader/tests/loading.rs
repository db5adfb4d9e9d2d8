//! What can be loaded, in which order, and what is said of what cannot.

use crate::support::{Log, Request, Workshop, error, load, module};
use regent_module_loader::{LoadError, ModulePlan};

/// A module whose name is given, and perhaps one that it depends on.
fn plain(workshop: &Workshop, name: &str, dependency: Option<&str>) -> std::path::PathBuf {
    let mut definitions = vec![format!("NAME=\"{name}\"")];
    definitions.extend(dependency.map(|dependency| format!("DEPENDENCY=\"{dependency}\"")));
    let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
    workshop.compile("plain", &format!("lib{name}.so"), &definitions)
}

fn greeting(text: &str) -> Vec<(String, String)> {
    vec![("greeting".to_owned(), text.to_owned())]
}

#[test]
fn one_library_has_an_instance_for_each_service() {
    let workshop = Workshop::new();
    let library = workshop.compile("plain", "libplain.so", &[]);
    let log = Log::default();
    let instance =
        |service: &str| ModulePlan { config: greeting(service), ..module(&library, Some(service)) };
    let modules = load(vec![instance("one"), instance("test")], &log).unwrap();
    assert_eq!(modules.description(), "plain 1.0");
    assert!(modules.service("one").is_some() && modules.service("two").is_none());
    assert_eq!(Request::get("/plain").ask(&modules).text(), "/plain");
    assert_eq!(log.take(), ["Info plain: init one", "Info plain: init test"]);
    drop(modules);
    assert_eq!(log.take(), ["Info plain: cleanup"; 2]);
}

#[test]
fn modules_begin_in_the_order_of_their_dependencies_and_end_in_the_reverse() {
    let workshop = Workshop::new();
    let [a, b, c] = [("a", Some("b")), ("b", Some("c")), ("c", None)]
        .map(|(name, dependency)| plain(&workshop, name, dependency));
    let log = Log::default();
    let modules = load(vec![module(&a, Some("test")), module(&c, None), module(&b, None)], &log).unwrap();
    assert_eq!(log.take(), ["Info c: init ", "Info b: init ", "Info a: init "]);
    assert_eq!(modules.description(), "a 1.0, c 1.0, b 1.0");
    drop(modules);
    assert_eq!(log.take(), ["Info a: cleanup", "Info b: cleanup", "Info c: cleanup"]);
}

#[test]
fn a_module_uses_what_another_offers() {
    let workshop = Workshop::new();
    let provider = workshop.compile("provider", "libprovider.so", &[]);
    let consumer = workshop.compile("consumer", "libconsumer.so", &[]);
    let modules =
        load(vec![module(&consumer, Some("test")), module(&provider, None)], &Log::default()).unwrap();
    assert_eq!(Request::get("/count").ask(&modules).text(), "1");
    assert_eq!(Request::get("/count").ask(&modules).text(), "2");
}

#[test]
fn what_is_offered_is_found_by_those_only_that_depend_on_it() {
    let workshop = Workshop::new();
    let provider = workshop.compile("provider", "libprovider.so", &[]);
    let stranger = workshop.compile(
        "plain",
        "libstranger.so",
        &["ROUTES=if(api->find(instance,text(\"counter\"),2))return api->fail(instance,text(\"found\"))"],
    );
    load(vec![module(&provider, None), module(&stranger, None)], &Log::default()).unwrap();
}

#[test]
fn a_library_that_was_replaced_is_loaded_anew_beside_the_old_one() {
    let workshop = Workshop::new();
    let library = workshop.compile("plain", "libplain.so", &["VERSION=\"1.0\""]);
    let old = load(vec![module(&library, Some("test"))], &Log::default()).unwrap();
    let newer = workshop.compile("plain", "libnewer.so", &["VERSION=\"2.0\""]);
    std::fs::rename(newer, &library).unwrap();
    let new = load(vec![module(&library, Some("test"))], &Log::default()).unwrap();
    assert_eq!((old.description(), new.description()), ("plain 1.0", "plain 2.0"));
    for modules in [old, new] {
        assert_eq!(Request::get("/plain").ask(&modules).text(), "/plain");
    }
}

/// Issue 6, "What must be seen" 4.
#[test]
fn a_module_of_an_older_or_newer_header_is_loaded() {
    let workshop = Workshop::new();
    for (name, definitions, cleanups) in [("older", &["OLDER"][..], 0), ("newer", &[], 1)] {
        let library = workshop.compile("old", &format!("lib{name}.so"), definitions);
        let log = Log::default();
        let modules = load(vec![module(&library, Some("test"))], &log).unwrap();
        assert_eq!(Request::get("/path").ask(&modules).text(), "/path", "{name}");
        assert_eq!(Request::get("/statistics").ask(&modules).text(), "2 untouched", "{name}");
        drop(modules);
        assert_eq!(log.take().len(), cleanups, "{name}");
    }
}

#[test]
fn files_that_are_no_modules_are_refused() {
    let workshop = Workshop::new();
    let missing = workshop.path("libmissing.so");
    assert!(
        matches!(error(vec![module(&missing, None)]), LoadError::NotFound { file, .. } if file == missing)
    );
    let words = workshop.path("words.so");
    std::fs::write(&words, "no library").unwrap();
    assert!(
        matches!(error(vec![module(&words, None)]), LoadError::NotALibrary { file, .. } if file == words)
    );
    let other =
        workshop.compile_text("int something(void); int something(void) { return 1; }", "libother.so");
    assert_eq!(error(vec![module(&other, None)]), LoadError::NoEntry { file: other });
}

#[test]
fn a_missing_symbol_is_named() {
    let workshop = Workshop::new();
    let text = "int not_there(void); int something(void); int something(void) { return not_there(); }";
    let library = workshop.compile_text(text, "libneedy.so");
    let error = error(vec![module(&library, None)]);
    let LoadError::MissingSymbol { reason, .. } = &error else { panic!("{error}") };
    assert!(reason.contains("not_there"), "{error}");
    assert!(error.to_string().contains("libneedy.so"), "{error}");
}

#[test]
fn a_module_may_decline() {
    let workshop = Workshop::new();
    let text = "#include \"regent.h\"\n\
        REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) { (void)api; return 0; }";
    let library = workshop.compile_text(text, "libdeclines.so");
    assert_eq!(error(vec![module(&library, None)]), LoadError::Declined { file: library });
}

#[test]
fn another_version_of_the_interface_is_refused() {
    let workshop = Workshop::new();
    let library = workshop.compile("plain", "libfuture.so", &["ABI=2"]);
    let error = error(vec![module(&library, None)]);
    assert!(matches!(error, LoadError::WrongAbi { found: 2, known: 1, .. }), "{error}");
}

#[test]
fn descriptions_that_cannot_be_are_refused() {
    let workshop = Workshop::new();
    for (number, (definition, what)) in [
        ("SIZE=0", "0 bytes"),
        ("SIZE=8", "8 bytes"),
        ("SIZE=(size_t)-1", "18446744073709551615 bytes"),
        ("NAME=\"\"", "no name"),
        ("NAME=\"a b\"", "\"a b\""),
        ("NAME=NULL", "no name"),
        ("VERSION=NULL", "no version"),
        ("DEPENDENCIES=1", "1 dependencies"),
        ("DEPENDENCIES=(size_t)-1", "18446744073709551615 dependencies"),
        ("init=0", "no init"),
    ]
    .into_iter()
    .enumerate()
    {
        // Where the name is no literal, it cannot be part of the route's path.
        let routes = "ROUTES=add(api,instance,\"GET\",\"/\",answer_path,NULL)";
        let library = match definition {
            "init=0" => workshop.compile_text(WITHOUT_INIT, "libwithout.so"),
            _ => workshop.compile("plain", &format!("libbad{number}.so"), &[definition, routes]),
        };
        let error = error(vec![module(&library, Some("test"))]);
        let LoadError::BadDescription { what: found, .. } = &error else { panic!("{definition}: {error}") };
        assert!(found.contains(what), "{definition}: {error}");
    }
}

const WITHOUT_INIT: &str = "#include \"regent.h\"\n\
    static const regent_module_info info = {.size = sizeof info, .abi = REGENT_ABI, .name = \"a\", .version = \"1\"};\n\
    REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) { (void)api; return &info; }";

#[test]
fn dependencies_must_be_there_and_new_enough() {
    let workshop = Workshop::new();
    let consumer = workshop.compile("consumer", "libconsumer.so", &[]);
    let missing = error(vec![module(&consumer, Some("test"))]);
    assert!(matches!(&missing, LoadError::MissingDependency { dependency, .. } if dependency == "provider"));
    let old = workshop.compile("plain", "libprovider.so", &["NAME=\"provider\"", "VERSION=\"1.8.9\""]);
    let old = error(vec![module(&old, None), module(&consumer, Some("test"))]);
    let LoadError::OldDependency { wanted, found, .. } = &old else { panic!("{old}") };
    assert_eq!((wanted.as_str(), found.as_str()), ("1.9", "1.8.9"));
}

#[test]
fn a_circle_is_named_in_full() {
    let workshop = Workshop::new();
    let edges = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")];
    let plans = edges.map(|(name, dependency)| module(&plain(&workshop, name, Some(dependency)), None));
    let error = error(plans.into());
    assert_eq!(error, LoadError::Cycle { circle: ["a", "b", "c", "a"].map(str::to_owned).into() });
    assert!(error.to_string().contains("a → b → c → a"), "{error}");
}

#[test]
fn two_modules_or_two_services_of_one_name_are_refused() {
    let workshop = Workshop::new();
    let one = workshop.compile("plain", "libone.so", &[]);
    let two = workshop.compile("plain", "libtwo.so", &[]);
    let error_of_two = error(vec![module(&one, None), module(&two, None)]);
    assert!(matches!(error_of_two, LoadError::SameName { name, first, second }
        if (name.as_str(), &first, &second) == ("plain", &one, &two)));
    let same = error(vec![module(&one, Some("test")), module(&two, Some("test"))]);
    assert_eq!(same, LoadError::SameService { name: "test".into() });
}

#[test]
fn bad_routes_are_errors_even_if_init_does_not_look() {
    let workshop = Workshop::new();
    let twice = "ROUTES=add(api,instance,\"GET\",\"/{a}\",answer_path,NULL);\
        add(api,instance,\"GET\",\"/{b}\",answer_path,NULL)";
    let library = workshop.compile("plain", "libtwice.so", &[twice]);
    let duplicate = error(vec![module(&library, Some("test"))]);
    assert!(matches!(&duplicate, LoadError::DuplicateRoute { method, path, .. }
        if method == "GET" && path == "/{b}"));
    for (number, (arguments, what)) in [
        ("\"GET\",\"path\",answer_path", "does not begin with /"),
        ("\"GET\",NULL,answer_path", "no path"),
        ("\"GET\",\"/\",NULL", "no handler"),
        ("\"G E T\",\"/\",answer_path", "no method"),
    ]
    .into_iter()
    .enumerate()
    {
        let routes = format!("ROUTES=add(api,instance,{arguments},NULL)");
        let library = workshop.compile("plain", &format!("libroutes{number}.so"), &[&routes]);
        let error = error(vec![module(&library, Some("test"))]);
        assert!(matches!(&error, LoadError::BadRoute { what: found, .. } if found.contains(what)), "{error}");
    }
}

#[test]
fn a_service_needs_routes_and_a_module_for_others_does_not() {
    let workshop = Workshop::new();
    let provider = workshop.compile("provider", "libprovider.so", &[]);
    let error = error(vec![module(&provider, Some("test"))]);
    assert!(matches!(error, LoadError::NoRoutes { module, .. } if module == "provider"));
    load(vec![module(&provider, None)], &Log::default()).unwrap();
}

#[test]
fn an_init_that_fails_takes_back_what_has_begun() {
    let workshop = Workshop::new();
    let good = plain(&workshop, "good", None);
    let log = Log::default();
    for (name, routes, reason) in [
        ("fails", "ROUTES=return api->fail(instance,text(\"no database\"))", "no database"),
        ("returns", "INIT_RESULT=7", "returned 7"),
    ] {
        let bad = workshop.compile("plain", &format!("lib{name}.so"), &[routes]);
        let Err(error) = load(vec![module(&good, None), module(&bad, Some("test"))], &log) else { panic!() };
        let LoadError::InitFailed { reason: found, .. } = &error else { panic!("{error}") };
        assert!(found.contains(reason), "{error}");
        assert_eq!(log.take(), ["Info good: init ", "Info plain: init ", "Info good: cleanup"]);
    }
}

#[test]
fn what_belongs_into_init_comes_too_late_afterwards() {
    let workshop = Workshop::new();
    let text = "#include \"fixture.h\"\n\
        static int late(const regent_api *api, regent_request *request, void *data) {\n\
            return print(api, request, \"%d %d %d %d %.*s\", add(api, data, \"GET\", \"/x\", late, data),\n\
                api->fail(data, text(\"x\")), api->offer(data, text(\"x\"), 1, data),\n\
                api->find(data, text(\"x\"), 1) == NULL, SHOW(api->configuration(data, text(\"greeting\"))));\n\
        }\n\
        static int init(const regent_api *api, regent_instance *instance, void **state) {\n\
            regent_string name, value; size_t cursor = 0; UNUSED(state);\n\
            while (api->next_configuration(instance, &cursor, &name, &value) == REGENT_OK)\n\
                api->log(instance, REGENT_LOG_DEBUG, value);\n\
            return add(api, instance, \"GET\", \"/\", late, instance);\n\
        }\n\
        static const regent_module_info info =\n\
            {.size = sizeof info, .abi = REGENT_ABI, .name = \"late\", .version = \"1\", .init = init};\n\
        REGENT_EXPORT const regent_module_info *regent_module(const regent_api *api) { UNUSED(api); return &info; }";
    let library = workshop.compile_text(text, "liblate.so");
    let log = Log::default();
    let config = [greeting("hello"), greeting("again")].concat();
    let modules = load(vec![ModulePlan { config, ..module(&library, Some("test")) }], &log).unwrap();
    assert_eq!(log.take(), ["Debug late: hello", "Debug late: again"]);
    assert_eq!(Request::get("/").ask(&modules).text(), "-3 -3 -3 1 hello");
}
