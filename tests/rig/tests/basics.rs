use regent_rig::Setup;

#[test]
fn what_the_engine_answers_reaches_the_client() {
    let rig = Setup::new().start();
    let mut client = rig.ask("/index.php?a=1");
    let call = rig.call();
    assert_eq!(call.uri(), "/index.php?a=1");
    call.answer(200, "hello");
    assert_eq!(client.response().expect(200).text(), "hello");
}
