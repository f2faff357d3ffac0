//! How large a model's window is taken to be: what its server tells, what the person sets, what a refusal shows.

use crate::ask::with_model;
use crate::browser::Browser;
use crate::provider::{Act, Provider};
use crate::tools_page::open;

const PROPS: &str = r#"{"default_generation_settings":{"n_ctx":16384},"total_slots":1}"#;

pub(crate) fn a_window_is_set_and_a_removed_model_leaves_no_heartbeat_without_one(browser: &Browser) {
    let provider = Provider::start([Act::says("HEARTBEAT_OK")]);
    provider.tells("/props", PROPS);
    let home = with_model(&provider);
    assert_eq!(home.run(&["settings", "set", "heartbeat_model", "mine"]).code, 0);
    let daemon = home.start();
    browser.look(1280, 900, false);
    browser.enter(&daemon);
    open(browser, &daemon, "/settings/models");
    browser.until_says("Context window: 16,384 tokens (reported by the server)");
    let act = |testid: &str| {
        browser.run(&format!("document.querySelector('[data-model=mine] [data-testid={testid}]').click()"));
    };
    for (typed, says) in [
        ("lots", "number of tokens"),
        ("24576", "24,576 tokens (set by you)"),
        ("", "16,384 tokens (reported by the server)"),
    ] {
        open(browser, &daemon, "/settings/models");
        act("model-change");
        browser.until_seen("models-context");
        browser.run("document.querySelector('[data-testid=models-context]').closest('details')?.setAttribute('open', '')");
        browser.run("document.querySelector('[data-testid=models-context]').value = ''");
        browser.type_into("models-context", typed);
        browser.click("models-save");
        browser.until_says(says);
    }
    open(browser, &daemon, "/settings/models");
    let chosen = || home.run(&["settings", "get", "heartbeat_model"]).out;
    assert_eq!(chosen(), "mine\n");
    act("model-remove");
    browser.until_seen("undo");
    assert_eq!(chosen(), "\n", "as the command does it");
    browser.click("undo");
    browser.until("it to be back", "return document.querySelectorAll('[data-testid=model]').length === 1");
    assert_eq!(chosen(), "mine\n", "back with all that was its");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
