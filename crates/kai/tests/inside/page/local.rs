//! The card *On this computer* and the first start: a model is downloaded with its progress shown, stopped, and deleted.

use super::house::House;
use super::visitor::Visitor;
use crate::inside::hub::{Does, PlayedHub};

const MODELS: &str = "/settings/models";

fn house(hub: &PlayedHub) -> House {
    House::with(|app| app.downloads = hub.downloads())
}

fn names<'a>(visitor: &'a Visitor<'_>) -> Vec<&'a str> {
    visitor.attributes("model", "data-model")
}

#[test]
fn a_download_shows_its_progress_in_every_page_and_its_end() {
    let hub = PlayedHub::start();
    let house = house(&hub);
    hub.does(Does::Hold);
    let (mut one, mut other) = (house.visitor(MODELS), house.visitor(MODELS));
    assert!(
        one.says("This computer has 16.0 GB of memory, 8 processor cores and 100.0 GB of free disk space.")
    );
    assert!(one.says("Recommended") && !one.says("huge"), "others are folded away");
    one.press("local-get");
    for visitor in [&mut one, &mut other] {
        visitor.until_seen("download-progress");
        visitor.until_says("Downloading tiny");
        assert!(!visitor.has("local-get"), "one at a time");
    }
    hub.does(Does::Serve);
    one.until("it is a model now", |page, _| !page.having("data-model", "tiny").is_empty());
    assert_eq!(names(&one), ["tiny"]);
    assert!(one.says("On this computer") && one.says("In use") && !one.has("model-change"));
}

#[test]
fn a_download_is_stopped_goes_on_and_its_file_is_deleted_after_its_model() {
    let hub = PlayedHub::start();
    let house = house(&hub);
    hub.does(Does::Hold);
    let mut visitor = house.visitor(MODELS);
    visitor.press("local-get");
    visitor.until_seen("download-stop");
    visitor.press("download-stop");
    visitor.until_says("The download was stopped.");
    assert_eq!(names(&visitor), Vec::<&str>::new());
    hub.does(Does::Serve);
    visitor.press("local-get");
    visitor.until("it is a model now", |page, _| !page.having("data-model", "tiny").is_empty());
    assert!(!visitor.has("local-delete"), "a model uses it");
    visitor.press_at(visitor.within(("data-model", "tiny"), "model-remove"));
    visitor.until_seen("local-delete");
    visitor.press("local-use");
    visitor.until("it is a model again", |page, _| !page.having("data-model", "tiny").is_empty());
    visitor.press_at(visitor.within(("data-model", "tiny"), "model-remove"));
    visitor.until_seen("local-delete");
    visitor.press("local-delete");
    visitor.until_gone("local-delete");
    assert!(!house.app.home.models().join("tiny.gguf").exists());
}

#[test]
fn what_went_wrong_is_said_in_the_card() {
    let hub = PlayedHub::start();
    let house = house(&hub);
    hub.does(Does::Forge);
    let mut visitor = house.visitor(MODELS);
    visitor.press("local-get");
    visitor.until_says("tiny: The downloaded file isn’t the one that Kai knows");
    visitor.press("local-others");
    assert!(visitor.says("huge") && visitor.says("Not tried with Kai yet"));
    assert!(visitor.says("It needs 1,152,921,504,673 MB of disk space"));
}

#[test]
fn a_new_kai_offers_a_model_on_this_computer_first() {
    let hub = PlayedHub::start();
    let house = house(&hub);
    house.forget_welcome();
    let mut visitor = house.visitor("/");
    assert_eq!(visitor.path, "/welcome");
    assert!(visitor.says("16.0 GB of memory, 8 processor cores") && visitor.says("Recommended"));
    assert!(visitor.first("local-get") < visitor.page.all("preset")[0]);
    visitor.press("local-get");
    visitor.until("the welcome shows it", |page, _| !page.having("data-model", "tiny").is_empty());
    visitor.press("welcome-done");
    assert_eq!(visitor.path, "/");
    assert!(visitor.says("tiny answers you."));
}
