//! Why a model gave no reply, in the user's language.
//!
//! [`ModelError`] has words of its own for logs; people read these, which name the model as they named it.

use kai_llm::{Detail, EngineTrouble, Hint, ModelError};
use kai_words::{Said, said};
use serde::{Deserialize, Serialize};

/// The error of the model that the user calls `model`. What a server said of itself stays as it said it.
pub fn said(model: &str, error: &ModelError) -> Said {
    match error {
        ModelError::BadKey => said::model_bad_key(model),
        ModelError::Forbidden { said } => said::model_forbidden(model, said),
        ModelError::NoCredit { said } => said::model_no_credit(model, said),
        ModelError::NoSuchModel { model: name, said } => said::model_no_such_model(model, name, said),
        ModelError::BadRequest { said } => said::model_bad_request(model, said),
        ModelError::NoPictures { said } => said::model_no_pictures(model, said),
        ModelError::TooLong { .. } => said::model_too_long(model),
        ModelError::Blocked { why } => said::model_blocked(model, why),
        ModelError::RateLimited { wait: None } => said::model_rate_limited(model),
        ModelError::RateLimited { wait: Some(wait) } => {
            said::model_rate_limited_for(model, wait.as_secs().max(1))
        }
        ModelError::Overloaded => said::model_overloaded(model),
        ModelError::ServerError { status: 200, said } => said::model_server_error(model, said),
        ModelError::ServerError { status, said } => said::model_server_error_status(model, status, said),
        ModelError::Network { at, cause } => said::model_network(model, at, detail(cause)),
        ModelError::TimedOut { after, .. } => said::model_timed_out(model, after.as_secs()),
        ModelError::NotAnApi { at, what, hint } => {
            said::model_not_an_api(at, model, detail(what), advice(hint))
        }
        ModelError::Garbled { what } => said::model_garbled(model, detail(what)),
        ModelError::TooLarge { limit } => said::model_too_large(model, *limit),
        ModelError::Certificate { at, cause } => said::model_certificate(at, model, detail(cause)),
        ModelError::BadSetup { what, hint } => said::model_bad_setup(model, detail(what), advice(hint)),
        ModelError::Engine(trouble) => engine(model, trouble),
    }
}

/// The part of a model's setup that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    Key,
    /// The model's name on its server.
    Model,
    Address,
}

/// What of the model's setup the user should look at; `None` if nothing of it is at fault.
pub fn fault(error: &ModelError) -> Option<Fault> {
    match error {
        ModelError::BadKey | ModelError::Forbidden { .. } | ModelError::NoCredit { .. } => Some(Fault::Key),
        ModelError::NoSuchModel { .. } => Some(Fault::Model),
        ModelError::Network { .. } | ModelError::NotAnApi { .. } | ModelError::Certificate { .. } => {
            Some(Fault::Address)
        }
        ModelError::BadSetup { what, .. } => Some(match what {
            Detail::KeyEmpty | Detail::KeyLineBreak | Detail::KeyUnusual => Fault::Key,
            Detail::NoModelNamed => Fault::Model,
            _ => Fault::Address,
        }),
        ModelError::BadRequest { .. }
        | ModelError::NoPictures { .. }
        | ModelError::TooLong { .. }
        | ModelError::Blocked { .. }
        | ModelError::RateLimited { .. }
        | ModelError::Overloaded
        | ModelError::ServerError { .. }
        | ModelError::TimedOut { .. }
        | ModelError::Garbled { .. }
        | ModelError::TooLarge { .. }
        | ModelError::Engine(_) => None,
    }
}

fn engine(model: &str, trouble: &EngineTrouble) -> Said {
    match trouble {
        EngineTrouble::NoFile => said::model_engine_no_file(model),
        EngineTrouble::BadFile(why) => said::model_engine_bad_file(model, why),
        EngineTrouble::NoMemory { needs_mib, free_mib } => {
            said::model_engine_no_memory(model, *needs_mib, *free_mib)
        }
        EngineTrouble::Killed => said::model_engine_killed(model),
        EngineTrouble::Crashed(why) => said::model_engine_crashed(model, why),
        EngineTrouble::Hung => said::model_engine_hung(model),
        EngineTrouble::OldProcessor(what) => said::model_engine_old_processor(model, what),
        EngineTrouble::NotBuiltIn => said::model_engine_not_built_in(model),
    }
}

fn detail(detail: &Detail) -> Said {
    match detail {
        Detail::Told(told) => told.into(),
        Detail::ContentType(kind) => said::model_detail_content_type(kind),
        Detail::Redirects(to) => said::model_detail_redirects(to),
        Detail::Status(answered) => said::model_detail_status(&answered.path, answered.status),
        Detail::StatusAndPage(answered) => said::model_detail_status_page(&answered.path, answered.status),
        Detail::TooManyCalls(count) => said::model_detail_many_calls(count),
        Detail::NoSecureConnection(cause) => said::model_detail_no_secure(cause),
        Detail::NoNameServer(file) => said::model_detail_no_name_server(file),
        Detail::NameServersSilent(file) => said::model_detail_name_servers_silent(file),
        Detail::Closed => said::model_detail_closed(),
        Detail::UnknownHost => said::model_detail_unknown_host(),
        Detail::NothingListens => said::model_detail_nothing_listens(),
        Detail::Cut => said::model_detail_cut(),
        Detail::EndedEarly => said::model_detail_ended_early(),
        Detail::Unreachable => said::model_detail_unreachable(),
        Detail::NoCertificate => said::model_detail_no_certificate(),
        Detail::Expired => said::model_detail_expired(),
        Detail::NotYetValid => said::model_detail_not_yet_valid(),
        Detail::UnknownIssuer => said::model_detail_unknown_issuer(),
        Detail::OtherName => said::model_detail_other_name(),
        Detail::NoTls => said::model_detail_no_tls(),
        Detail::NoHttp => said::model_detail_no_http(),
        Detail::WebPage => said::model_detail_web_page(),
        Detail::NeitherJsonNorEvents => said::model_detail_neither(),
        Detail::Empty => said::model_detail_empty(),
        Detail::NoAnswer => said::model_detail_no_answer(),
        Detail::BreaksOff => said::model_detail_breaks_off(),
        Detail::JsonBreaksOff => said::model_detail_json_breaks_off(),
        Detail::OtherJson => said::model_detail_other_json(),
        Detail::NoModelNamed => said::model_detail_no_model_named(),
        Detail::KeyEmpty => said::model_detail_key_empty(),
        Detail::KeyLineBreak => said::model_detail_key_line_break(),
        Detail::KeyUnusual => said::model_detail_key_unusual(),
        Detail::NoAddress => said::model_detail_no_address(),
        Detail::OtherScheme => said::model_detail_other_scheme(),
        Detail::HasPassword => said::model_detail_has_password(),
        Detail::HasQuery => said::model_detail_has_query(),
    }
}

fn advice(hint: &Hint) -> Said {
    match hint {
        Hint::Told(told) => told.into(),
        Hint::LacksVersion { base } => said::model_hint_lacks_version(base),
        Hint::TryHttp => said::model_hint_try_http(),
        Hint::MaybeHttps => said::model_hint_maybe_https(),
        Hint::CheckFormat => said::model_hint_check_format(),
        Hint::TrustRedirect => said::model_hint_trust_redirect(),
        Hint::UseLocal => said::model_hint_use_local(),
        Hint::CopyKey => said::model_hint_copy_key(),
        Hint::WriteAddress => said::model_hint_write_address(),
        Hint::SetKey => said::model_hint_set_key(),
        Hint::ChooseListed => said::model_hint_choose_listed(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kai_llm::Unexpected;
    use kai_words::Lang;

    use super::*;

    /// Both languages of a sentence, which must not be the same.
    fn both(said: &Said) -> [String; 2] {
        let both = [Lang::ENGLISH, Lang::of("de")].map(|lang| said.to(lang));
        assert_ne!(both[0], both[1]);
        both
    }

    #[test]
    fn every_error_names_the_model_and_no_command_in_both_languages() {
        let text = |text: &str| text.to_owned();
        for error in [
            ModelError::BadKey,
            ModelError::Forbidden { said: text("no") },
            ModelError::NoCredit { said: text("no") },
            ModelError::NoSuchModel { model: text("m"), said: text("no") },
            ModelError::BadRequest { said: text("no") },
            ModelError::NoPictures { said: text("no") },
            ModelError::TooLong { limit: Some(7) },
            ModelError::Blocked { why: text("no") },
            ModelError::RateLimited { wait: None },
            ModelError::RateLimited { wait: Some(Duration::from_millis(1)) },
            ModelError::RateLimited { wait: Some(Duration::from_secs(4_000)) },
            ModelError::Overloaded,
            ModelError::ServerError { status: 200, said: text("no") },
            ModelError::ServerError { status: 500, said: text("no") },
            ModelError::Network { at: text("h:1"), cause: Detail::Told(text("no")) },
            ModelError::TimedOut { at: text("h:1"), after: Duration::from_secs(4_000) },
            ModelError::NotAnApi { at: text("h:1"), what: Detail::NoTls, hint: Hint::TryHttp },
            ModelError::Garbled { what: Detail::Empty },
            ModelError::TooLarge { limit: 4_000 },
            ModelError::Certificate { at: text("h:1"), cause: Detail::Expired },
            ModelError::BadSetup { what: Detail::KeyEmpty, hint: Hint::CopyKey },
        ] {
            for sentence in both(&said("mine", &error)) {
                assert!(sentence.contains("mine") && sentence.ends_with('.'), "{sentence}");
                assert!(!sentence.contains("kai ") && sentence.matches(". ").count() == 1, "{sentence}");
            }
        }
        let wait = ModelError::RateLimited { wait: Some(Duration::from_millis(1)) };
        let [english, german] = both(&said("mine", &wait));
        assert!(english.contains("Wait 1 second, or") && german.contains("Warten Sie 1 Sekunde oder"));
    }

    #[test]
    fn every_detail_and_hint_is_said_in_both_languages() {
        let text = |text: &str| text.to_owned();
        let answered = Unexpected { path: text("/v1"), status: 404 };
        for one in [
            Detail::ContentType("text/css".into()),
            Detail::Redirects("http://h".into()),
            Detail::Status(Box::new(answered.clone())),
            Detail::StatusAndPage(Box::new(answered)),
            Detail::TooManyCalls(4_000),
            Detail::NoSecureConnection("no".into()),
            Detail::NoNameServer("/etc/resolv.conf".into()),
            Detail::NameServersSilent("/etc/resolv.conf".into()),
            Detail::Closed,
            Detail::UnknownHost,
            Detail::NothingListens,
            Detail::Cut,
            Detail::EndedEarly,
            Detail::Unreachable,
            Detail::NoCertificate,
            Detail::Expired,
            Detail::NotYetValid,
            Detail::UnknownIssuer,
            Detail::OtherName,
            Detail::NoTls,
            Detail::NoHttp,
            Detail::WebPage,
            Detail::NeitherJsonNorEvents,
            Detail::Empty,
            Detail::NoAnswer,
            Detail::BreaksOff,
            Detail::JsonBreaksOff,
            Detail::OtherJson,
            Detail::NoModelNamed,
            Detail::KeyEmpty,
            Detail::KeyLineBreak,
            Detail::KeyUnusual,
            Detail::NoAddress,
            Detail::OtherScheme,
            Detail::HasPassword,
            Detail::HasQuery,
        ] {
            both(&detail(&one));
        }
        for one in [
            Hint::LacksVersion { base: "http://h".into() },
            Hint::TryHttp,
            Hint::MaybeHttps,
            Hint::CheckFormat,
            Hint::TrustRedirect,
            Hint::UseLocal,
            Hint::CopyKey,
            Hint::WriteAddress,
            Hint::SetKey,
            Hint::ChooseListed,
        ] {
            for sentence in both(&advice(&one)) {
                assert!(sentence.ends_with('.'), "a sentence of its own: {sentence}");
            }
        }
        let told = (Detail::Told(text("no")), Hint::Told(text("Try.")));
        assert_eq!((detail(&told.0), advice(&told.1)), ("no".into(), "Try.".into()), "as it was said");
    }
}
