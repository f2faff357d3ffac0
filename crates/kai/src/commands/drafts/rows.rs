//! Drafts as commands and the page show them. Pure.

use jiff::tz::TimeZone;
use kai_assistant::legible::spelled_out;
use kai_assistant::moment::local;
use kai_assistant::outbox::mail::Envelope;
use kai_assistant::outbox::remarks::{Remark, remarks};
use kai_assistant::outbox::segments::segments;
use kai_assistant::outbox::{Channel, Draft};
use kai_assistant::untrusted::Untrusted;
use kai_words::{Said, said};

use super::phones::Phones;
use crate::call::drafts::{DraftRow, MailRow};

/// The row of a draft, with the names of the contacts that it goes to.
pub(super) fn row(phones: &Phones, draft: &Draft, name: Option<&Untrusted>, zone: &TimeZone) -> DraftRow {
    DraftRow {
        id: draft.id,
        channel: draft.channel,
        to: draft.to.clone(),
        name: name.map(|name| name.as_written().to_owned()),
        mail: draft.mail.as_ref().map(mail),
        app: draft.app.clone(),
        phone: phones.named(draft),
        body: draft.body.clone(),
        body_shown: spelled_out(&draft.body),
        status: draft.status.state(),
        reason: draft.status.reason().cloned(),
        origin: draft.came_from(),
        guest: draft.guest.clone(),
        edited: draft.edited && !draft.own,
        created_at: draft.created_at.as_millisecond(),
        created_local: local(draft.created_at, zone),
        in_reply_to: draft.in_reply_to.clone(),
        quoted: draft.quoted.clone(),
        segments: (draft.channel == Channel::Sms).then(|| segments(&draft.body).count),
        unknown_recipient: remarks(draft).contains(&Remark::FirstContact),
        remarks: remarks(draft).into_iter().map(|about| remark(about, draft.channel)).collect(),
        digest: draft.digest(),
        attempts: draft.attempts,
        on_phone: phones.on_phone(draft, zone),
    }
}

fn mail(mail: &Envelope) -> MailRow {
    let Envelope { from, cc, bcc, subject, quote, .. } = mail.clone();
    MailRow { from, cc, bcc, subject, quote }
}

fn remark(remark: Remark, channel: Channel) -> Said {
    match remark {
        Remark::FirstContact if channel == Channel::Email => said::drafts_remark_first_mail(),
        Remark::FirstContact => said::drafts_remark_first_contact(),
        Remark::ShortNumber => said::drafts_remark_short_number(),
        Remark::PremiumNumber => said::drafts_remark_premium_number(),
        Remark::Invisible => said::drafts_remark_invisible(),
        Remark::InvisibleName => said::drafts_remark_invisible_name(),
        Remark::Parts(count) => said::drafts_remark_parts(count),
        Remark::ForeignLetters => said::drafts_remark_foreign_letters(),
        Remark::NoSubject => said::drafts_remark_no_subject(),
        Remark::InvisibleSubject => said::drafts_remark_invisible_subject(),
    }
}
