//! The form that adds or changes a model. The service itself says which models it has; one is chosen, added and tested.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use axum::response::Response;
use kai_assistant::legible::visible;
use kai_assistant::models::trouble::{self, Fault};
use kai_assistant::models::{is_local, is_passed_on, preset};
use kai_llm::{Key, Offered, Preset};
use kai_words::{Lang, Said, said};
use maud::{Markup, html};

use super::context::{Page, PageContext};
use super::ephemeral::{Listing, Offers};
use super::form::Form;
use super::parts::{form, naming};
use super::trial::begin_test;
use crate::call::Call;
use crate::call::models::{ModelOrigin, NewModel};
use crate::commands::models;
use crate::web::remedy::field_at_fault;
use crate::web::reply;

/// The fields of the form that adds or changes a model.
pub(super) struct Fields<'a> {
    pub(super) card: &'a str,
    pub(super) preset: &'a Preset,
    /// `None` for a new model.
    pub(super) name: Option<&'a str>,
    pub(super) base_url: &'a str,
    pub(super) model: &'a str,
    /// The placeholder of the key field; the key itself is never shown.
    pub(super) key: &'a str,
    /// The context window, if the user set it.
    pub(super) context: &'a str,
    /// Whether it can see pictures, if the user said so.
    pub(super) pictures: Option<bool>,
}

/// The form while it is rendered: what it is about, what was typed into it, and what the service offers.
struct Rendered<'a> {
    ctx: &'a PageContext<'a>,
    shown: &'a Fields<'a>,
    listing: Option<Listing>,
}

pub(super) fn fields(ctx: &PageContext<'_>, shown: &Fields<'_>) -> Markup {
    let listing = ctx.web.ephemeral.listing();
    let listing = listing.filter(|listing| listing.is_of(shown.card, &shown.preset.id, shown.name));
    Rendered { ctx, shown, listing }.form()
}

impl Rendered<'_> {
    fn form(&self) -> Markup {
        let Fields { card, preset, name, .. } = *self.shown;
        let (lang, changes) = (self.ctx.lang, name.is_some());
        // What only this user can know stands in sight; what has a good value is folded.
        let asks_address = changes || preset.base_url.is_none();
        let asks_key = changes || preset.needs_key || preset.base_url.is_none();
        let add = if changes { lang.models_save_and_test() } else { lang.models_add_and_test() };
        let content = html! {
            input type="hidden" name="preset" value=(preset.id);
            @if let Some(name) = name { input type="hidden" name="name" value=(name); }
            @if asks_address { (self.address()) }
            @if asks_key { (self.key()) }
            (self.model())
            p class="quiet" data-testid=(format!("{card}-leaves")) { (naming(self.ctx, &self.leaves())) }
            details class="more-fields" {
                summary data-testid=(format!("{card}-more")) { (lang.models_more()) }
                div class="fields" {
                    @if !changes { (self.line("name", lang.models_name(), "", &preset.id)) }
                    @if !asks_address { (self.address()) }
                    @if !asks_key { (self.key()) }
                    (self.line("context", lang.models_context(), self.shown.context, lang.models_context_hint()))
                    (sees(card, self.typed("pictures"), self.shown.pictures, lang))
                }
            }
            p class="quiet" { (lang.models_empty_help()) }
            div class="choices" {
                button type="submit" class="primary" data-testid=(format!("{card}-save")) { (add) }
            }
        };
        let form = form(self.ctx, card, "/settings/models/add", "fields", &content);
        // Each service has an element of its own, so that live updates build a new form for it. Otherwise they would keep
        // what was typed for another service, and its key would be sent to this one.
        html! { div id=(format!("{card}-form-{}", preset.id)) { (form) } }
    }

    /// What was typed into a field: in a form that was refused, or before the list of models was asked for.
    fn typed(&self, field: &str) -> Option<&str> {
        let refused = self.ctx.error.and_then(|told| told.typed(self.shown.card, field));
        refused.or_else(|| self.listing.as_ref()?.typed.get(field).map(String::as_str))
    }

    fn id(&self, field: &str) -> String {
        format!("{}-{field}", self.shown.card)
    }

    fn line(&self, field: &str, label: &str, value: &str, hint: &str) -> Markup {
        let id = self.id(field);
        html! {
            label for=(id) { (label) }
            input type="text" id=(id) data-testid=(id) name=(field) value=(self.typed(field).unwrap_or(value))
                placeholder=(hint) autocomplete="off" spellcheck="false";
        }
    }

    fn address(&self) -> Markup {
        let at = self.shown.preset.base_url.as_deref();
        let hint = at.unwrap_or("http://host:port/v1");
        self.line("base_url", self.ctx.lang.models_address(), self.shown.base_url, hint)
    }

    fn key(&self) -> Markup {
        let id = self.id("key");
        let held = self.listing.as_ref().is_some_and(|listing| listing.key.is_some());
        let hint = if held { self.ctx.lang.models_key_held() } else { self.shown.key };
        html! {
            label for=(id) { (self.ctx.lang.models_key()) }
            // Never filled in: a stored key is not shown, not even its length.
            input type="password" id=(id) data-testid=(id) name="key" placeholder=(hint) autocomplete="new-password";
        }
    }

    /// The field for the model: a choice once the service has said which it has.
    fn model(&self) -> Markup {
        let Fields { preset, model, .. } = *self.shown;
        let lang = self.ctx.lang;
        let hint = preset.model.as_deref().unwrap_or(lang.models_model_hint());
        let line = || self.line("model", lang.models_model(), model, hint);
        html! {
            @match self.listing.as_ref().map(|listing| &listing.offers) {
                Some(Offers::Listed(offered)) if !offered.is_empty() => (self.choice(offered)),
                Some(Offers::Listed(_)) => {
                    (line())
                    p class="remark" data-testid=(self.id("offers")) { (lang.models_offers_none()) }
                }
                Some(Offers::Asking) => {
                    (line())
                    p class="trial" data-testid=(self.id("offers")) { span class="pulse" {} (lang.models_offers_asking()) }
                }
                Some(Offers::Failed(why, fault)) => {
                    (line())
                    p class="trial" data-testid=(self.id("offers")) {
                        span class="error" { (visible(&why.to(lang))) }
                        @if let Some(fault) = fault { " " (self.mend(*fault)) }
                    }
                }
                None => (line()),
            }
            div class="choices" {
                button type="submit" formaction="/settings/models/list" data-testid=(self.id("list")) {
                    (if self.listing.is_some() { lang.models_offers_again() } else { lang.models_offers_show() })
                }
            }
        }
    }

    /// The link to the field of this form that is at fault.
    fn mend(&self, fault: Fault) -> Markup {
        let (field, label) = field_at_fault(fault);
        html! { a href=(format!("#{}", self.id(field))) data-testid="remedy" { (label.to(self.ctx.lang)) } }
    }

    fn choice(&self, offered: &[Offered]) -> Markup {
        let Fields { preset, model, .. } = *self.shown;
        let lang = self.ctx.lang;
        let is_offered = |id: &&str| offered.iter().any(|it| it.id == *id);
        let typed = self.typed("model").filter(|typed| !typed.is_empty()).filter(is_offered);
        let usual = preset.model.as_deref().filter(is_offered);
        let at = self.at();
        let first = || first_choice(offered, at).map(|it| it.id.as_str());
        let chosen = typed.or(Some(model).filter(is_offered)).or(usual).or_else(first);
        let (id, other) = (self.id("model"), self.id("other"));
        html! {
            label for=(id) { (lang.models_model()) }
            select id=(id) data-testid=(id) name="model" data-stays autocomplete="off" {
                @for it in offered {
                    option value=(it.id) selected[Some(it.id.as_str()) == chosen] {
                        @match &it.name { Some(name) => { (visible(name)) " (" (visible(&it.id)) ")" }, None => (visible(&it.id)) }
                        (mark(it, at, lang))
                    }
                }
            }
            p class="quiet" data-testid=(self.id("offers")) { (lang.models_offers_count(offered.len())) }
            label for=(other) { (lang.models_other()) }
            input type="text" id=(other) data-testid=(other) name="other" value=(self.typed("other").unwrap_or_default())
                autocomplete="off" spellcheck="false";
        }
    }

    /// The address that was typed, or else the service's own.
    fn at(&self) -> &str {
        let typed = self.typed("base_url").filter(|typed| !typed.is_empty()).unwrap_or(self.shown.base_url);
        let at =
            if typed.is_empty() { self.shown.preset.base_url.as_deref().unwrap_or_default() } else { typed };
        at.trim()
    }

    /// What leaves the machine if this model is used.
    fn leaves(&self) -> Said {
        match self.listing.as_ref().map(|listing| &listing.offers) {
            Some(Offers::Listed(offered)) if !offered.is_empty() => leaves(self.at(), &ids(offered)),
            _ => {
                let typed = self.typed("model").filter(|typed| !typed.is_empty());
                leaves(self.at(), &[typed.unwrap_or(self.shown.model)])
            }
        }
    }
}

/// The names of models in requests.
pub(super) fn ids(offered: &[Offered]) -> Vec<&str> {
    offered.iter().map(|model| model.id.as_str()).collect()
}

/// What leaves the machine if chats go to one of these models at this address.
pub(super) fn leaves(base_url: &str, models: &[&str]) -> Said {
    let passed_on = models.iter().filter(|model| is_passed_on(base_url, model)).count();
    match url::Url::parse(base_url).ok().and_then(|url| url.host_str().map(str::to_owned)) {
        _ if is_local(base_url) && passed_on == 0 => said::models_leaves_nothing(),
        _ if is_local(base_url) && passed_on == models.len() => said::models_leaves_through(),
        _ if is_local(base_url) => said::models_leaves_some(),
        Some(host) => said::models_leaves_to(host),
        None => said::models_leaves_somewhere(),
    }
}

/// The model that is chosen unless the user chooses another. If the server is on this machine, so is the model.
pub(super) fn first_choice<'o>(offered: &'o [Offered], base_url: &str) -> Option<&'o Offered> {
    offered.iter().find(|model| !is_passed_on(base_url, &model.id)).or(offered.first())
}

/// Marks a model in a choice that a server on this machine passes on.
pub(super) fn mark(model: &Offered, base_url: &str, lang: Lang) -> Markup {
    html! { @if is_passed_on(base_url, &model.id) { " · " (lang.models_elsewhere()) } }
}

/// The choice whether the model can see pictures.
fn sees(card: &str, typed: Option<&str>, set: Option<bool>, lang: Lang) -> Markup {
    let chosen = typed.unwrap_or(match set {
        Some(true) => "yes",
        Some(false) => "no",
        None => "auto",
    });
    html! {
        fieldset class="boxes" {
            legend { (lang.models_pictures()) }
            @for (value, label) in [
                ("auto", lang.models_pictures_auto()),
                ("yes", lang.models_pictures_yes()),
                ("no", lang.models_pictures_no()),
            ] {
                @let id = format!("{card}-pictures-{value}");
                span {
                    input type="radio" id=(id) data-testid=(id) name="pictures" value=(value) checked[value == chosen];
                    label for=(id) { (label) }
                }
            }
        }
    }
}

/// What a form of a model says. A key that was typed to see the list of models is used for the same address only.
fn new_model(form: &Form) -> NewModel {
    let typed = |field: &str| Some(form.field(field).trim().to_owned()).filter(|typed| !typed.is_empty());
    let held = || {
        let listing = form.web.ephemeral.listing()?;
        let is_same = |field: &str| {
            listing.typed.get(field).map_or("", |typed| typed.trim()) == form.field(field).trim()
        };
        let is_meant = listing.card == form.field("card") && is_same("preset") && is_same("base_url");
        listing.key.filter(|_| is_meant).map(|key| key.reveal().to_owned())
    };
    NewModel {
        preset: form.field("preset").to_owned(),
        name: typed("name"),
        base_url: typed("base_url"),
        model: typed("other").or_else(|| typed("model")),
        key: typed("key").or_else(held),
        context: Some(typed("context").unwrap_or_else(|| "auto".to_owned())),
        pictures: typed("pictures"),
    }
}

/// Asks a service for its models. The page shows them when they arrive.
pub(super) async fn list(form: Form) -> Response {
    let (web, new) = (form.web.clone(), new_model(&form));
    let typed: BTreeMap<String, String> = form.typed_besides("key");
    let key = new.key.as_deref().map(Key::new);
    web.ephemeral.begin_listing(Listing {
        card: form.field("card").to_owned(),
        typed: typed.clone(),
        key,
        offers: Offers::Asking,
    });
    let asking = async move {
        web.turns.move_on();
        let label = preset(&new.preset).map_or(new.preset.as_str(), |preset| &preset.name).to_owned();
        let offers = match models::offers(&web.app, &new).await {
            Ok(Ok(offered)) => Offers::Listed(offered),
            Ok(Err(error)) => Offers::Failed(trouble::said(&label, &error), trouble::fault(&error)),
            Err(failure) => {
                web.ephemeral.forget_listing();
                return Err(failure);
            }
        };
        web.ephemeral.end_listing(&typed, offers);
        web.turns.move_on();
        Ok(())
    };
    let begun = form.start(asking).await;
    form.answer(begun)
}

/// Adds a model, or changes one, and tests it at once.
pub(super) async fn add(headers: HeaderMap, form: Form) -> Response {
    let mut new = new_model(&form);
    if new.name.is_none() {
        new.name = free_name(&form, &new).await;
    }
    let name = new.name.clone().unwrap_or_else(|| new.preset.clone());
    let done = form.call(Call::ModelsAdd(new)).await;
    match done {
        Ok(()) => {
            form.web.ephemeral.forget_listing();
            form.web.ephemeral.forget_trial(&name);
            let tested = begin_test(form.web.clone(), name);
            // The page shows the result when it is there.
            drop(form.start(tested).await);
            // Load the page again, so that what was typed, such as a key, does not stay in the fields.
            let to = if form.page() == Page::Welcome { "/welcome#models" } else { "/settings/models#models" };
            reply::done(&headers, to)
        }
        Err(failure) => form.refuse(failure),
    }
}

/// A name for a second model of the same service: the first one has the service's.
async fn free_name(form: &Form, new: &NewModel) -> Option<String> {
    let rows = models::rows(form.app(), &form.app().env).await.unwrap_or_default();
    let has = |name: &str| rows.iter().any(|row| row.name == name && row.origin == ModelOrigin::Added);
    let model = new.model.as_deref()?;
    let is_same = rows.iter().any(|row| row.name == new.preset && row.model == model);
    (has(&new.preset) && !is_same && !has(model)).then(|| model.chars().take(60).collect())
}
