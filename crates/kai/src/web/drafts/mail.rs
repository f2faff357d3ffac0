//! What the card of a mail shows besides its text: who it is from, everybody who gets it, the subject and what it quotes.

use kai_assistant::legible::{self, visible};
use kai_assistant::outbox::address;
use kai_words::Lang;
use maud::{Markup, html};

use crate::call::drafts::{DraftRow, MailRow};

/// The headers of a mail, each in a line of its own.
pub(super) fn headers(draft: &DraftRow, mail: &MailRow, lang: Lang) -> Markup {
    let to: Vec<String> = draft.to.split(", ").filter(|one| !one.is_empty()).map(str::to_owned).collect();
    html! {
        dl class="mail-headers" data-testid="draft-mail" {
            dt { (lang.drafts_mail_from()) } dd data-testid="draft-mail-from" { (addresses(std::slice::from_ref(&mail.from))) }
            @for (label, testid, list) in [
                (lang.drafts_mail_to(), "draft-mail-to", &to),
                (lang.drafts_mail_cc(), "draft-mail-cc", &mail.cc),
                (lang.drafts_mail_bcc(), "draft-mail-bcc", &mail.bcc),
            ] {
                @if !list.is_empty() { dt { (label) } dd data-testid=(testid) { (addresses(list)) } }
            }
            dt { (lang.drafts_mail_subject()) }
            dd data-testid="draft-mail-subject" dir="auto" { (visible(&mail.subject)) }
        }
    }
}

/// Addresses as they are written, and as servers spell them where that differs.
fn addresses(all: &[String]) -> Markup {
    html! {
        @for (n, one) in all.iter().enumerate() {
            @if n > 0 { ", " }
            bdi { (visible(one)) }
            @let ascii = address::ascii(one);
            @if ascii != *one { " (" bdi { (ascii) } ")" }
        }
    }
}

/// What the mail quotes. It is sent too, but it is what the recipient wrote, so Send does not wait for it to be unfolded.
pub(super) fn quote(draft: &DraftRow, lang: Lang) -> Markup {
    let quote = draft.mail.as_ref().and_then(|mail| mail.quote.as_deref());
    html! {
        @if let Some(quote) = quote {
            details class="quotes" id=(format!("draft-{}-mail-quote", draft.id.0)) data-testid="draft-mail-quote" {
                summary { span class="more" data-less=(lang.drafts_show_less()) { (lang.drafts_mail_quote(quote.lines().count())) } }
                blockquote class="quoted" dir="auto" { (legible::folded_in(quote, lang)) }
            }
        }
    }
}

/// The fields of the form in which a mail is edited.
pub(super) fn fields(draft: &DraftRow, mail: &MailRow, lang: Lang) -> Markup {
    let id = draft.id.0;
    html! {
        @for (name, label, value) in [
            ("to", lang.drafts_mail_to(), draft.to.clone()),
            ("cc", lang.drafts_mail_cc(), mail.cc.join(", ")),
            ("bcc", lang.drafts_mail_bcc(), mail.bcc.join(", ")),
            ("subject", lang.drafts_mail_subject(), mail.subject.clone()),
        ] {
            label for=(format!("draft-{id}-{name}")) { (label) }
            input id=(format!("draft-{id}-{name}")) name=(name) type="text" value=(value) autocomplete="off"
                data-testid=(format!("draft-edit-{name}")) dir=(if name == "subject" { "auto" } else { "ltr" });
        }
    }
}

/// The choice to leave the quoted mail out.
pub(super) fn without_quote(draft: &DraftRow, mail: &MailRow, lang: Lang) -> Markup {
    let id = draft.id.0;
    html! {
        @if mail.quote.is_some() {
            div class="boxes" {
                span {
                    input id=(format!("draft-{id}-without-quote")) type="checkbox" name="without_quote" value="true"
                        data-testid="draft-edit-without-quote";
                    label for=(format!("draft-{id}-without-quote")) { (lang.drafts_mail_without_quote()) }
                }
            }
        }
    }
}
