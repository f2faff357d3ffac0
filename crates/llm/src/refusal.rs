//! Works out what an error response means. Pure. Services word the same errors in many ways; this is the only file
//! that knows them.

use std::time::Duration;

use serde_json::Value;

use crate::ModelError;
use crate::detail::Detail;

/// An error response, reduced to what is needed to decide what to do.
pub(crate) struct Refused<'a> {
    /// The HTTP status; 200 if the error came inside an answer that started successfully.
    pub(crate) status: u16,
    pub(crate) body: &'a str,
    pub(crate) model: &'a str,
    /// The pause that the response headers ask for.
    pub(crate) wait: Option<Duration>,
}

/// The error that a status and body stand for; `None` if the server does not seem to serve models at all.
pub(crate) fn classify(refused: &Refused<'_>) -> Option<ModelError> {
    let words = Words::of(refused.body);
    let said = words.said.clone().unwrap_or_else(|| "it did not say why".to_owned());
    let model = refused.model.to_owned();
    let error = match words.meaning(refused.status) {
        Meaning::BadKey => ModelError::BadKey,
        Meaning::Forbidden => ModelError::Forbidden { said },
        Meaning::NoCredit => ModelError::NoCredit { said },
        Meaning::NoSuchModel => ModelError::NoSuchModel { model, said },
        Meaning::TooLong => ModelError::TooLong { limit: words.limit },
        Meaning::RateLimited => ModelError::RateLimited { wait: refused.wait.or(words.wait) },
        Meaning::Overloaded => ModelError::Overloaded,
        Meaning::ServerError => ModelError::ServerError { status: words.status(refused.status), said },
        Meaning::NoPictures => ModelError::NoPictures { said },
        Meaning::BadCall => ModelError::Garbled { what: said.into() },
        Meaning::BadRequest => ModelError::BadRequest { said },
        Meaning::NoApi => return None,
    };
    Some(error)
}

/// The error for an error object inside an answer that started successfully: in a stream, or a whole body with status
/// 200.
pub(crate) fn inside(error: &Value, model: &str) -> ModelError {
    let body = error.to_string();
    let refused = Refused { status: 200, body: &body, model, wait: None };
    let unnamed = ModelError::ServerError { status: 200, said: "it did not say why".to_owned() };
    classify(&refused).unwrap_or(unnamed)
}

/// Recognizes an error in a shape that the wire format does not define: a bare object with a type or a message, as
/// sent by servers that translate between formats.
pub(crate) fn out_of_shape(data: &str, model: &str) -> Option<ModelError> {
    let json: Value = serde_json::from_str(data).ok()?;
    let whole = json.get(0).unwrap_or(&json);
    let named =
        |name: &str| whole.get(name).and_then(Value::as_str).is_some_and(|kind| kind.ends_with("error"));
    let has = |name: &str| whole.get(name).is_some_and(|value| !value.is_null());
    let is_error =
        named("type") || named("object") || has("error") || has("detail") || (has("message") && has("code"));
    is_error.then(|| inside(whole, model))
}

/// What an error response means.
enum Meaning {
    BadKey,
    Forbidden,
    NoCredit,
    NoSuchModel,
    TooLong,
    RateLimited,
    Overloaded,
    ServerError,
    NoPictures,
    /// The model wrote an invalid tool call: its fault, although the server calls the request invalid.
    BadCall,
    BadRequest,
    NoApi,
}

/// The relevant parts of an error body.
#[derive(Default)]
struct Words {
    /// The message for the user.
    said: Option<String>,
    /// Message, type, code and status in lower case, to search for known words.
    all: String,
    /// The status given in the body.
    code: Option<u16>,
    wait: Option<Duration>,
    /// The server's maximum number of tokens, if it states one.
    limit: Option<usize>,
}

const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context window",
    "context size",
    "too long",
    "too many tokens",
    "token count",
    "maximum number of tokens",
    "prompt length",
    "request_too_large",
    "request too large",
];
/// Phrases directly before the server's maximum number of tokens.
const BEFORE_LIMIT: &[&str] = &[
    "maximum context length is",
    "maximum prompt length is",
    "context length of only",
    "context length of",
    "context length is",
    "available context size (",
    "exceeds context size (",
    "context window of",
    "context window is",
    "context window (",
    "context size of",
    "context size is",
    "maximum number of tokens allowed (",
    "configured limit of",
    "must be <=",
    "tokens >",
    ": limit",
];
/// Phrases directly after it.
const AFTER_LIMIT: &[&str] =
    &["maximum context length", "token context window", "token context", "tokens maximum"];
const BAD_KEY: &[&str] =
    &["api_key_invalid", "api key not valid", "authentication_error", "invalid_api_key", "unauthenticated"];
const NO_CREDIT: &[&str] = &[
    "insufficient_quota",
    "insufficient balance",
    "insufficient credit",
    "credit balance is too low",
    "billing_error",
];
const LIMITED: &[&str] = &["rate_limit", "rate limit", "resource_exhausted", "too many requests"];
/// How services say that a model takes words only. The last one is about a message in parts, which we send only for the
/// sake of a picture.
const NO_PICTURES: &[&str] = &[
    "image input",
    "image_url",
    "support image",
    "support vision",
    "support multimodal",
    "not a multimodal",
    "not a vision",
    "0 image(s)",
    "images are not supported",
    "content must be a string",
];
/// Groq's code for a tool call that its server could not read. No tool ran, and the next try usually succeeds.
const BAD_CALL: &[&str] = &["tool_use_failed"];
const OVERLOADED: &[&str] = &["overloaded"];
const MISSING: &[&str] = &[
    "not found",
    "not_found",
    "not exist",
    "invalid model",
    "not a valid model",
    "no such model",
    "unknown model",
];

impl Words {
    fn of(body: &str) -> Self {
        let Ok(json) = serde_json::from_str::<Value>(body) else { return Self::default() };
        // Gemini wraps a streamed error in an array.
        let whole = json.get(0).unwrap_or(&json);
        let error = whole.get("error").filter(|e| !e.is_null()).unwrap_or(whole);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let field = |name: &str| error.get(name).or_else(|| whole.get(name)).filter(|v| !v.is_null());
        let said = text(error).or_else(|| field("message").or_else(|| field("detail")).map(line));
        let names = ["type", "code", "status"].map(|name| field(name).map(line).unwrap_or_default());
        let all = format!("{} {}", said.as_deref().unwrap_or_default(), names.join(" ")).to_lowercase();
        let code = field("code").or_else(|| field("status")).and_then(number);
        let limit = field("n_ctx").and_then(Value::as_u64).and_then(plausible).or_else(|| named_limit(&all));
        Self { said, all, code, wait: retry_delay(error), limit }
    }

    fn has(&self, any: &[&str]) -> bool {
        any.iter().any(|word| self.all.contains(word))
    }

    /// The status to judge by. An error inside a successful answer may contain its own.
    fn status(&self, http: u16) -> u16 {
        if http == 200 { self.code.unwrap_or(http) } else { http }
    }

    fn meaning(&self, status: u16) -> Meaning {
        let status = self.status(status);
        if self.has(BAD_KEY) {
            return Meaning::BadKey;
        }
        if self.has(NO_CREDIT) {
            return Meaning::NoCredit;
        }
        // A limit per minute may mention tokens too, but there waiting helps.
        if status == 429 {
            return Meaning::RateLimited;
        }
        if matches!(status, 200 | 400) && self.has(BAD_CALL) {
            return Meaning::BadCall;
        }
        if matches!(status, 200 | 400 | 404 | 415 | 422 | 500 | 501) && self.has(NO_PICTURES) {
            return Meaning::NoPictures;
        }
        match status {
            401 => Meaning::BadKey,
            402 => Meaning::NoCredit,
            403 => Meaning::Forbidden,
            413 => Meaning::TooLong,
            404 | 400 | 422 if self.all.contains("model") && self.has(MISSING) => Meaning::NoSuchModel,
            _ if self.has(TOO_LONG) && status < 500 => Meaning::TooLong,
            500 if self.has(&["exceed_context_size", "context size"]) => Meaning::TooLong,
            503 | 529 => Meaning::Overloaded,
            404 | 405 => Meaning::NoApi,
            408 | 500.. => Meaning::ServerError,
            200 => self.by_name(),
            _ => Meaning::BadRequest,
        }
    }

    /// Classifies an error inside a successful answer by its wording, because there is no status.
    fn by_name(&self) -> Meaning {
        if self.has(LIMITED) {
            Meaning::RateLimited
        } else if self.has(OVERLOADED) {
            Meaning::Overloaded
        } else if self.all.contains("model") && self.has(MISSING) {
            Meaning::NoSuchModel
        } else if self.has(&["invalid_request"]) {
            Meaning::BadRequest
        } else if self.has(&["permission"]) {
            Meaning::Forbidden
        } else {
            Meaning::ServerError
        }
    }
}

/// The server's maximum number of tokens, if its message (in lower case) states it. The number of tokens that were
/// sent must not be mistaken for it.
fn named_limit(said: &str) -> Option<usize> {
    let after = |phrase: &&str| {
        said.match_indices(*phrase).find_map(|(at, _)| leading_number(&said[at + phrase.len()..]))
    };
    let before = |phrase: &&str| {
        said.match_indices(*phrase).find_map(|(at, _)| trailing_number(said[..at].trim_end()))
    };
    let sum = || said.rsplit_once(" > ").and_then(|(_, limit)| leading_number(limit));
    BEFORE_LIMIT.iter().find_map(after).or_else(|| AFTER_LIMIT.iter().find_map(before)).or_else(sum)
}

fn leading_number(text: &str) -> Option<usize> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(text.len());
    number_of(&text[..end])
}

fn trailing_number(text: &str) -> Option<usize> {
    let start = text.rfind(|c: char| !c.is_ascii_digit() && c != ',').map_or(0, |at| at + 1);
    number_of(text.get(start..)?)
}

fn number_of(digits: &str) -> Option<usize> {
    digits.replace(',', "").parse().ok().and_then(plausible)
}

/// Accepts only numbers that can be the size of a context window; others mean something else.
fn plausible(tokens: u64) -> Option<usize> {
    usize::try_from(tokens).ok().filter(|tokens| (256..=100_000_000).contains(tokens))
}

fn line(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn number(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|code| (400..600).contains(code))
}

/// Gemini states the pause in the body: `"retryDelay": "13s"`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?)
}

/// The pause that the `retry-after` header asks for. A date is compared with `now`, the server's own clock.
pub(crate) fn retry_after(value: &str, now: Option<&str>) -> Option<Duration> {
    seconds(value).or_else(|| {
        let until = httpdate::parse_http_date(value).ok()?;
        let now = httpdate::parse_http_date(now?).ok()?;
        Some(until.duration_since(now).unwrap_or_default())
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

/// Longest part of a server's message that is passed on, in characters.
const LONGEST_SAID: usize = 300;

/// Shortens a server's message to one line and removes the key.
pub(crate) fn tidy(said: &str, key: Option<&str>) -> String {
    let said = match key.filter(|key| !key.is_empty()) {
        Some(key) => said.replace(key, "…"),
        None => said.to_owned(),
    };
    let words = said.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches(['.', ':', '!']);
    match line.char_indices().nth(LONGEST_SAID) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

impl ModelError {
    /// Returns the error with its messages tidied and the key removed.
    pub(crate) fn tidied(mut self, key: Option<&str>) -> Self {
        match &mut self {
            Self::Forbidden { said }
            | Self::NoCredit { said }
            | Self::NoSuchModel { said, .. }
            | Self::BadRequest { said }
            | Self::NoPictures { said }
            | Self::Blocked { why: said }
            | Self::ServerError { said, .. }
            | Self::Network { cause: Detail::Told(said), .. }
            | Self::Garbled { what: Detail::Told(said) }
            | Self::NotAnApi { what: Detail::Told(said), .. }
            | Self::Certificate { cause: Detail::Told(said), .. } => *said = tidy(said, key),
            Self::NotAnApi { what: Detail::ContentType(said) | Detail::Redirects(said), .. } => {
                *said = tidy(said, key).into();
            }
            Self::BadKey
            | Self::TooLong { .. }
            | Self::RateLimited { .. }
            | Self::Overloaded
            | Self::TimedOut { .. }
            | Self::TooLarge { .. }
            | Self::Network { .. }
            | Self::Garbled { .. }
            | Self::NotAnApi { .. }
            | Self::Certificate { .. }
            | Self::BadSetup { .. }
            | Self::Engine(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, body: &str) -> String {
        let error = classify(&Refused { status, body, model: "m", wait: None });
        let name = error.map_or("None".to_owned(), |e| format!("{e:?}"));
        name.split([' ', '{']).next().unwrap_or_default().to_owned()
    }

    #[rustfmt::skip]
    const ANSWERS: &[(u16, &str, &str)] = &[
        (401, r#"{"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error","code":"invalid_api_key"}}"#, "BadKey"),
        (400, r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#, "BadKey"),
        (401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, "BadKey"),
        (401, "", "BadKey"),
        (403, r#"{"error":{"message":"Country, region, or territory not supported"}}"#, "Forbidden"),
        (403, "<html>", "Forbidden"),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, "NoCredit"),
        (429, r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#, "NoCredit"),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#, "NoCredit"),
        (429, r#"{"error":{"message":"Rate limit reached: tokens per minute, request too large"}}"#, "RateLimited"),
        (404, r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","code":"model_not_found"}}"#, "NoSuchModel"),
        (404, r#"{"error":{"message":"model \"m\" not found, try pulling it first"}}"#, "NoSuchModel"),
        (404, r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#, "NoSuchModel"),
        (404, r#"{"error":{"code":404,"message":"models/m is not found for API version v1beta","status":"NOT_FOUND"}}"#, "NoSuchModel"),
        (400, r#"{"error":{"message":"m is not a valid model ID","code":400}}"#, "NoSuchModel"),
        (400, r#"{"object":"error","message":"Invalid model: m","type":"invalid_model"}"#, "NoSuchModel"),
        (400, r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error"}}"#, "NoPictures"),
        (400, r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`"}}"#, "NoPictures"),
        (404, r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#, "NoPictures"),
        (500, r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#, "NoPictures"),
        (400, r#"{"error":{"message":"'messages.0' : 'content' : content must be a string"}}"#, "NoPictures"),
        (400, r#"{"object":"error","message":"m is not a multimodal model","type":"BadRequestError","code":400}"#, "NoPictures"),
        (400, r#"{"error":{"code":400,"message":"Image input modality is not enabled for models/m","status":"INVALID_ARGUMENT"}}"#, "NoPictures"),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}"#, "BadRequest"),
        (400, r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x>"}}"#, "Garbled"),
        (200, r#"{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","status_code":400}}"#, "Garbled"),
        (404, r#"{"detail":"Not Found"}"#, "None"),
        (404, "<html>404</html>", "None"),
        (405, "", "None"),
        (400, r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#, "TooLong"),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201000 tokens > 200000 maximum"}}"#, "TooLong"),
        (400, r#"{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed"}}"#, "TooLong"),
        (400, r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#, "TooLong"),
        (413, "", "TooLong"),
        (400, r#"{"error":{"message":"messages: roles must alternate"}}"#, "BadRequest"),
        (422, r#"{"detail":[{"loc":["body"],"msg":"extra fields"}]}"#, "BadRequest"),
        (500, r#"{"error":"boom"}"#, "ServerError"),
        (502, "<html>Bad Gateway</html>", "ServerError"),
        (503, "", "Overloaded"),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
        (200, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
        (200, r#"{"error":{"code":429,"message":"Provider returned error"}}"#, "RateLimited"),
        (200, r#"{"error":{"type":"invalid_request_error","message":"no"}}"#, "BadRequest"),
        (200, r#"{"error":"something broke"}"#, "ServerError"),
    ];

    #[test]
    fn services_own_words_are_understood() {
        for (status, body, expected) in ANSWERS {
            assert_eq!(class(*status, body), *expected, "{status} {body}");
        }
    }

    #[rustfmt::skip]
    const LIMITS: &[(u16, &str, Option<usize>)] = &[
        (400, r#"{"error":{"code":400,"message":"request (8708 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":8708,"n_ctx":8192}}"#, Some(8_192)),
        (400, r#"{"error":{"code":400,"message":"request (8708 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}"#, Some(4_096)),
        (400, r#"{"error":{"message":"This model's maximum context length is 4097 tokens, however you requested 4231 tokens (3975 in your prompt; 256 for the completion)."}}"#, Some(4_097)),
        (400, r#"{"error":{"message":"This endpoint's maximum context length is 32,768 tokens. However, you requested about 40000 tokens"}}"#, Some(32_768)),
        (400, r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.","code":"context_length_exceeded"}}"#, Some(272_000)),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201000 tokens > 200000 maximum"}}"#, Some(200_000)),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000, context window exceeded"}}"#, Some(200_000)),
        (400, r#"{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}"#, Some(1_048_576)),
        (400, r#"{"error":"Trying to keep the first 5111 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#, Some(4_096)),
        (400, r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error"}"#, Some(32_768)),
        (400, r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#, Some(131_072)),
        (400, r#"{"error":{"message":"the request exceeds the available context size. try increasing the context size","type":"exceed_context_size_error"}}"#, None),
        (400, r#"{"error":{"message":"Please reduce the length of the messages: context_length_exceeded"}}"#, None),
        (400, r#"{"error":{"message":"context length is 12 tokens"}}"#, None),
        (413, "", None),
    ];

    #[test]
    fn the_limit_is_read_where_the_sentence_names_it() {
        for (status, body, expected) in LIMITS {
            let error = classify(&Refused { status: *status, body, model: "m", wait: None });
            assert_eq!(error, Some(ModelError::TooLong { limit: *expected }), "{body}");
        }
    }

    #[test]
    fn errors_in_other_shapes_are_known_as_errors() {
        let body = r#"{"code":500,"message":"no match","type":"server_error"}"#;
        let expected = ModelError::ServerError { status: 500, said: "no match".to_owned() };
        assert_eq!(out_of_shape(body, "m"), Some(expected));
        for (body, expected) in [
            (r#"{"object":"error","message":"Invalid model: m"}"#, true),
            (r#"{"detail":"Not Found"}"#, true),
            (r#"[{"error":{"code":500}}]"#, true),
            (r#"{"error":null,"type":"ping"}"#, false),
            (r#"{"type":"message","message":"hi"}"#, false),
            ("[]", false),
            ("<html>", false),
        ] {
            assert_eq!(out_of_shape(body, "m").is_some(), expected, "{body}");
        }
    }

    #[test]
    fn pauses_are_found_in_headers_and_bodies() {
        let date = |s| format!("Sun, 15 Nov 2026 10:00:{s} GMT");
        for (value, expected) in [
            ("7".to_owned(), Some(7_000)),
            ("0.5".to_owned(), Some(500)),
            (date("42"), Some(12_000)),
            (date("10"), Some(0)),
            ("-3".to_owned(), None),
            ("soon".to_owned(), None),
        ] {
            assert_eq!(
                retry_after(&value, Some(&date("30"))),
                expected.map(Duration::from_millis),
                "{value}"
            );
        }
        let body = r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"13s"}]}}]"#;
        let error = classify(&Refused { status: 429, body, model: "m", wait: None });
        assert_eq!(error, Some(ModelError::RateLimited { wait: Some(Duration::from_secs(13)) }));
    }

    #[test]
    fn a_servers_word_is_one_short_line_without_the_key() {
        assert_eq!(tidy("no\r\n such  \u{7} thing: sk-1.", Some("sk-1")), "no such thing: …");
        assert_eq!(tidy(&"x".repeat(900), None).chars().count(), LONGEST_SAID + 1);
    }
}
