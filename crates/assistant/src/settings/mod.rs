//! The list of all settings: key, kind, default, help. The page, the command line and the tools all use it.
//!
//! [`Setting::accept`] checks what the user typed and normalizes it once; after that a value is known to be valid. A
//! stored value that this version no longer understands counts as the default.

mod kept;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use kai_llm::Key;
use kai_words::{Said, said};

pub(crate) use kept::MIGRATION;
pub use kept::{are_untouched, clear, load, store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: Cow<'static, str>,
    pub kind: Kind,
    pub default: Cow<'static, str>,
    pub help: Cow<'static, str>,
}

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Switch,
    Choice(&'static [&'static str]),
    Whole {
        from: u32,
        to: u32,
    },
    /// Host names, separated by commas.
    Hosts,
    /// Names of apps, separated by commas.
    Apps,
    /// Absolute folders, separated by colons as in `PATH`.
    Folders,
    /// Free text of at most `longest` characters.
    Text {
        longest: usize,
    },
    /// An address that starts with http:// or https://, or empty.
    WebAddress,
    /// A key for a service. It is stored and never shown again.
    Secret,
}

const fn setting(key: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Setting {
    Setting { key: Cow::Borrowed(key), kind, default: Cow::Borrowed(default), help: Cow::Borrowed(help) }
}

pub static ALLOWED_HOSTS: Setting = setting(
    "allowed_hosts",
    Kind::Hosts,
    "",
    "Names or addresses, besides localhost, under which the page can be opened, for example kai.lan,192.168.1.20.",
);
pub static EMAIL_BULK_ENABLED: Setting = setting(
    "email_bulk_enabled",
    Kind::Switch,
    "false",
    "Tells you about newsletters and automatic mails one by one. Otherwise heartbeats only count them.",
);
pub static EMAIL_ENABLED: Setting = setting(
    "email_enabled",
    Kind::Switch,
    "true",
    "Lets Kai read the mail of the accounts that you add, and draft mails. Nothing is sent until you tap Send.",
);
pub static EMAIL_KEEP_DAYS: Setting = setting(
    "email_keep_days",
    Kind::Whole { from: 1, to: 3_650 },
    "90",
    "Days for which Kai keeps senders, subjects and the beginnings of mails, so that you find them while the server is away.",
);
pub static EMAIL_POLL_INTERVAL: Setting = setting(
    "email_poll_interval",
    Kind::Choice(&["0", "5", "15", "30", "60"]),
    "15",
    "Minutes between checks for new mail; 0 means Kai never checks automatically.",
);
pub static HEARTBEAT_ACTIVE_END: Setting = setting(
    "heartbeat_active_end",
    Kind::Whole { from: 0, to: 24 },
    "22",
    "Hour at which heartbeats end; 24 is midnight. If it is before the start, they run across midnight.",
);
pub static HEARTBEAT_ACTIVE_START: Setting = setting(
    "heartbeat_active_start",
    Kind::Whole { from: 0, to: 23 },
    "8",
    "Hour at which heartbeats start.",
);
pub static HEARTBEAT_DAILY_TOKENS: Setting = setting(
    "heartbeat_daily_tokens",
    Kind::Whole { from: 0, to: 100_000_000 },
    "500000",
    "Daily limit of tokens for heartbeats; 0 means no limit.",
);
pub static HEARTBEAT_ENABLED: Setting = setting(
    "heartbeat_enabled",
    Kind::Switch,
    "true",
    "Lets Kai check for new messages automatically and tell you what needs your attention.",
);
pub static HEARTBEAT_INTERVAL: Setting = setting(
    "heartbeat_interval",
    Kind::Choice(&["5", "10", "15", "30", "45", "60", "120", "240"]),
    "30",
    "Minutes between heartbeats.",
);
pub static HEARTBEAT_LOCAL_FIRST: Setting = setting(
    "heartbeat_local_first",
    Kind::Switch,
    "false",
    "Lets heartbeats ask only models on this computer, whatever heartbeat_model says. If none can be used, they fail.",
);
pub static HEARTBEAT_MODEL: Setting = setting(
    "heartbeat_model",
    Kind::Text { longest: 60 },
    "",
    "Name of the model that heartbeats use. Empty means the first available one.",
);
pub static HEARTBEAT_PROMPT: Setting = setting(
    "heartbeat_prompt",
    Kind::Text { longest: 4_000 },
    "",
    "Tells the model what to do in a heartbeat, in your own words. Empty means Kai's own text.",
);
pub static LANGUAGE: Setting = setting(
    "language",
    Kind::Choice(kai_words::CHOICES),
    "system",
    "Language of the page; system means the machine's language.",
);
pub static LEDGER_RETENTION_DAYS: Setting = setting(
    "ledger_retention_days",
    Kind::Whole { from: 0, to: 36_500 },
    "365",
    "Days for which the ledger keeps its records; 0 means forever.",
);
pub static LOCAL_IDLE_MINUTES: Setting = setting(
    "local_idle_minutes",
    Kind::Whole { from: 0, to: 1_440 },
    "5",
    "After how many minutes without a question a model on this computer gives its memory back.",
);
pub static LOCATION_SERVICE: Setting = setting(
    "location_service",
    Kind::Choice(&["ipwho.is", "ipapi.co"]),
    "ipwho.is",
    "Service that tells Kai where you are, based on your internet address.",
);
pub static MCP_SERVER_ENABLED: Setting = setting(
    "mcp_server_enabled",
    Kind::Switch,
    "false",
    "Lets programs that you allow use Kai's tools over MCP, to read and to draft. Nothing is sent until you tap Send.",
);
pub static MEMORY_ENABLED: Setting =
    setting("memory_enabled", Kind::Switch, "true", "Lets Kai remember things across chats.");
#[cfg(feature = "notifications")]
pub static NOTIFICATIONS_DISMISS_ENABLED: Setting = setting(
    "notifications_dismiss_enabled",
    Kind::Switch,
    "false",
    "Lets Kai dismiss notifications from your screen when you ask it to.",
);
#[cfg(feature = "notifications")]
pub static NOTIFICATIONS_ENABLED: Setting =
    setting("notifications_enabled", Kind::Switch, "false", "Lets Kai read the notifications of other apps.");
#[cfg(feature = "notifications")]
pub static NOTIFICATIONS_IGNORED: Setting = setting(
    "notifications_ignored",
    Kind::Apps,
    "",
    "Apps whose notifications Kai ignores, by package name, for example org.mozilla.firefox,spotify.",
);
#[cfg(all(feature = "sms", feature = "notifications"))]
pub static NOTIFICATIONS_REPLY_ENABLED: Setting = setting(
    "notifications_reply_enabled",
    Kind::Switch,
    "false",
    "Lets Kai draft replies to the notifications of a paired phone. Nothing is sent until you tap Send.",
);
pub static OPEN_BROWSER: Setting = setting(
    "open_browser",
    Kind::Switch,
    "true",
    "Opens the page in your browser when you start Kai in a terminal of your desktop or in Termux.",
);
pub static OPEN_URL_FOLDERS: Setting = setting(
    "open_url_folders",
    Kind::Folders,
    "",
    "Folders from which Kai can open files. Empty means the `files` folder in Kai's home.",
);
pub static SCHEDULING_ENABLED: Setting = setting(
    "scheduling_enabled",
    Kind::Switch,
    "true",
    "Lets Kai schedule and run tasks. When off, scheduled tasks are kept but do not run.",
);
pub static SHELL_FOLDERS: Setting = setting(
    "shell_folders",
    Kind::Folders,
    "",
    "Folders in which Kai can run shell commands. The commands can read files there, but not change them. Empty means none.",
);
pub static SOUL_TEXT: Setting = setting(
    "soul_text",
    Kind::Text { longest: 4_000 },
    "",
    "Kai's personality, in your own words; it starts every system prompt. Empty means Kai's own text.",
);
pub static THEME: Setting =
    setting("theme", Kind::Choice(&["system", "light", "dark"]), "system", "Colours of the page.");
pub static TOOL_RESULT_LIMIT: Setting = setting(
    "tool_result_limit",
    Kind::Whole { from: 500, to: 200_000 },
    "8000",
    "Longest tool result, in characters. Kai cuts off longer results before it sends them to a model.",
);

pub static WEB_SEARCH_BACKEND: Setting = setting(
    "web_search_backend",
    Kind::Choice(&["duckduckgo", "searxng", "brave", "tavily"]),
    "duckduckgo",
    "Service that searches the web. SearXNG needs an address; Brave and Tavily need an API key.",
);
pub static WEB_SEARCH_BRAVE_KEY: Setting =
    setting("web_search_brave_key", Kind::Secret, "", "API key for Brave Search.");
pub static WEB_SEARCH_SEARXNG_URL: Setting = setting(
    "web_search_searxng_url",
    Kind::WebAddress,
    "",
    "Address of your SearXNG, for example http://localhost:8888. It has to allow results in JSON.",
);
pub static WEB_SEARCH_TAVILY_KEY: Setting =
    setting("web_search_tavily_key", Kind::Secret, "", "API key for Tavily.");

pub static BRIDGE_TERMUX: Setting = setting(
    "bridge_termux",
    Kind::Choice(&["auto", "on", "off"]),
    "auto",
    "Uses Termux programs to reach the phone; auto means only in Termux. Changes apply when Kai next starts.",
);
pub static CODE_REDACTION_ENABLED: Setting = setting(
    "code_redaction_enabled",
    Kind::Switch,
    "true",
    "Hides one-time codes in messages. Models read [code] instead.",
);
#[cfg(feature = "sms")]
pub static CONTACT_NAMES_ENABLED: Setting = setting(
    "contact_names_enabled",
    Kind::Switch,
    "false",
    "Shows the names of your phone's contacts beside their numbers, to you and to models.",
);
#[cfg(feature = "sms")]
pub static SMS_ARCHIVE_DAYS: Setting = setting(
    "sms_archive_days",
    Kind::Whole { from: 0, to: 3_650 },
    "365",
    "Days for which Kai keeps the SMS of paired phones, so that they can be searched; 0 means only until Kai has told you about them.",
);
#[cfg(feature = "sms")]
pub static SMS_ENABLED: Setting = setting(
    "sms_enabled",
    Kind::Switch,
    "false",
    "Lets Kai read SMS that arrive. When you turn this on, Kai asks the phone for permission.",
);
#[cfg(feature = "sms")]
pub static SMS_SEND_ENABLED: Setting = setting(
    "sms_send_enabled",
    Kind::Switch,
    "false",
    "Lets Kai draft SMS. Nothing is sent until you tap Send.",
);
#[cfg(feature = "sms")]
pub static SMS_POLL_INTERVAL: Setting = setting(
    "sms_poll_interval",
    Kind::Choice(&["0", "5", "15", "30", "60"]),
    "15",
    "Minutes between checks for new SMS; 0 means Kai never checks automatically.",
);

static FIXED: &[&Setting] = &[
    &ALLOWED_HOSTS,
    &BRIDGE_TERMUX,
    &CODE_REDACTION_ENABLED,
    #[cfg(feature = "sms")]
    &CONTACT_NAMES_ENABLED,
    &EMAIL_BULK_ENABLED,
    &EMAIL_ENABLED,
    &EMAIL_KEEP_DAYS,
    &EMAIL_POLL_INTERVAL,
    &HEARTBEAT_ACTIVE_END,
    &HEARTBEAT_ACTIVE_START,
    &HEARTBEAT_DAILY_TOKENS,
    &HEARTBEAT_ENABLED,
    &HEARTBEAT_INTERVAL,
    &HEARTBEAT_LOCAL_FIRST,
    &HEARTBEAT_MODEL,
    &HEARTBEAT_PROMPT,
    &LANGUAGE,
    &LEDGER_RETENTION_DAYS,
    &LOCAL_IDLE_MINUTES,
    &LOCATION_SERVICE,
    &MCP_SERVER_ENABLED,
    &MEMORY_ENABLED,
    #[cfg(feature = "notifications")]
    &NOTIFICATIONS_DISMISS_ENABLED,
    #[cfg(feature = "notifications")]
    &NOTIFICATIONS_ENABLED,
    #[cfg(feature = "notifications")]
    &NOTIFICATIONS_IGNORED,
    #[cfg(all(feature = "sms", feature = "notifications"))]
    &NOTIFICATIONS_REPLY_ENABLED,
    &OPEN_BROWSER,
    &OPEN_URL_FOLDERS,
    &SCHEDULING_ENABLED,
    &SHELL_FOLDERS,
    #[cfg(feature = "sms")]
    &SMS_ARCHIVE_DAYS,
    #[cfg(feature = "sms")]
    &SMS_ENABLED,
    #[cfg(feature = "sms")]
    &SMS_POLL_INTERVAL,
    #[cfg(feature = "sms")]
    &SMS_SEND_ENABLED,
    &SOUL_TEXT,
    &THEME,
    &TOOL_RESULT_LIMIT,
    &WEB_SEARCH_BACKEND,
    &WEB_SEARCH_BRAVE_KEY,
    &WEB_SEARCH_SEARXNG_URL,
    &WEB_SEARCH_TAVILY_KEY,
];

/// Whether this is the key of a setting whose value must not be shown.
pub fn is_secret(key: &str) -> bool {
    FIXED.iter().any(|setting| setting.key == key && setting.kind == Kind::Secret)
}

/// The setting that enables one tool.
pub fn tool_enabled(tool: &str, on_by_default: bool) -> Setting {
    Setting {
        key: tool_enabled_key(tool).into(),
        kind: Kind::Switch,
        default: if on_by_default { "true" } else { "false" }.into(),
        help: format!("Offers the tool {tool} to the model.").into(),
    }
}

fn tool_enabled_key(tool: &str) -> String {
    format!("tool_enabled_{tool}")
}

/// The setting for the timeout of one tool, in seconds.
pub fn tool_timeout(tool: &str, seconds: u64) -> Setting {
    Setting {
        key: format!("tool_timeout_{tool}").into(),
        kind: Kind::Whole { from: 1, to: 600 },
        default: seconds.to_string().into(),
        help: format!("Time limit of the tool {tool}, in seconds.").into(),
    }
}

/// All settings including those of the given tools, sorted by key.
pub fn catalogue(of_tools: impl IntoIterator<Item = Setting>) -> Vec<Setting> {
    let mut all: Vec<Setting> = FIXED.iter().map(|s| (*s).clone()).chain(of_tools).collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

/// A value that a setting does not accept, with those it does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.said())]
pub struct Refused {
    pub key: String,
    pub allowed: Said,
    pub typed: String,
}

impl Refused {
    /// The error in the user's language.
    pub fn said(&self) -> Said {
        said::transfer_detail_refused(&self.typed, &self.key, &self.allowed)
    }
}

impl Setting {
    /// Checks a typed value and returns it in the form to store.
    pub fn accept(&self, typed: &str) -> Result<String, Refused> {
        let shown = if self.kind == Kind::Secret { "…" } else { typed };
        let refused =
            || Refused { key: self.key.to_string(), allowed: self.kind.allowed(), typed: shown.to_owned() };
        self.kind.meaning(typed.trim()).ok_or_else(refused)
    }

    /// A stored value as users see it; for a secret, only whether it is set.
    pub fn shown(&self, stored: &str) -> String {
        match self.kind {
            Kind::Secret if stored.is_empty() => "not set".to_owned(),
            Kind::Secret => "set".to_owned(),
            _ => stored.to_owned(),
        }
    }
}

impl Kind {
    /// The name of this kind, for users and clients.
    pub fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Choice(_) => "choice",
            Self::Whole { .. } => "number",
            Self::Hosts => "hosts",
            Self::Apps => "apps",
            Self::Folders => "folders",
            Self::Text { .. } => "text",
            Self::WebAddress => "address",
            Self::Secret => "secret",
        }
    }

    /// The allowed values, as the second half of a sentence.
    pub fn allowed(self) -> Said {
        match self {
            Self::Switch => said::allowed_switch(),
            Self::Choice(values) => said::allowed_choice(values.join(", ")),
            Self::Whole { from, to } => said::allowed_whole(from, to),
            Self::Hosts => said::allowed_hosts(),
            Self::Apps => said::allowed_apps(),
            Self::Folders => said::allowed_folders(),
            Self::Text { longest } => said::allowed_text(longest),
            Self::WebAddress => said::allowed_address(),
            Self::Secret => said::allowed_secret(),
        }
    }

    /// Normalizes a typed value for storage; `None` if it is not allowed.
    fn meaning(self, typed: &str) -> Option<String> {
        match self {
            Self::Switch => match typed.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "1" => Some("true".to_owned()),
                "false" | "off" | "no" | "0" => Some("false".to_owned()),
                _ => None,
            },
            Self::Choice(values) => {
                values.iter().find(|v| v.eq_ignore_ascii_case(typed)).map(|v| (*v).to_owned())
            }
            Self::Whole { from, to } => {
                typed.parse().ok().filter(|n: &u32| (from..=to).contains(n)).map(|n| n.to_string())
            }
            Self::Hosts => hosts(typed),
            Self::Apps => apps(typed),
            Self::Folders => folders(typed),
            Self::Text { longest } => (typed.chars().count() <= longest).then(|| typed.replace('\0', "")),
            Self::WebAddress => web_address(typed),
            Self::Secret => {
                let key = typed.len() <= 500 && typed.bytes().all(|byte| byte.is_ascii_graphic());
                key.then(|| typed.to_owned())
            }
        }
    }
}

fn web_address(typed: &str) -> Option<String> {
    if typed.is_empty() {
        return Some(String::new());
    }
    let url = reqwest::Url::parse(typed).ok()?;
    let plain =
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    plain.then(|| url.into())
}

fn hosts(typed: &str) -> Option<String> {
    let plausible = |host: &str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c));
    let named: Vec<String> =
        typed.split(',').map(|h| h.trim().to_ascii_lowercase()).filter(|h| !h.is_empty()).collect();
    named.iter().all(|h| plausible(h)).then(|| named.join(","))
}

fn apps(typed: &str) -> Option<String> {
    let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let named: Vec<&str> = typed.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    named.iter().all(|name| plain(name)).then(|| named.join(","))
}

fn folders(typed: &str) -> Option<String> {
    let plain = |folder: &str| folder.starts_with('/') && folder.split('/').all(|part| part != "..");
    let named: Vec<&str> = typed.split(':').map(str::trim).filter(|folder| !folder.is_empty()).collect();
    named.iter().all(|folder| plain(folder)).then(|| named.join(":"))
}

/// The stored settings, as they were when they were loaded.
#[derive(Clone, Default)]
pub struct Values(BTreeMap<String, String>);

/// Shows only the keys, because some values are secrets.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Values {
    /// The value of a setting, or its default. For a secret it returns only whether it is set.
    pub fn of(&self, setting: &Setting) -> String {
        setting.shown(&self.stored(setting))
    }

    /// The value of a secret, if it is set, for code that must use it.
    pub fn secret(&self, setting: &Setting) -> Option<Key> {
        Some(self.stored(setting)).filter(|key| !key.is_empty()).map(Key::new)
    }

    fn stored(&self, setting: &Setting) -> String {
        let stored = self.0.get(setting.key.as_ref()).and_then(|v| setting.kind.meaning(v));
        stored.unwrap_or_else(|| setting.default.clone().into_owned())
    }

    /// The stored settings by key, without secrets. A setting that is missing here has its default.
    pub fn plain(&self) -> BTreeMap<String, String> {
        self.which(false)
    }

    /// The stored secrets by key, for code that encrypts them.
    pub fn secrets(&self) -> BTreeMap<String, String> {
        self.which(true)
    }

    fn which(&self, secret: bool) -> BTreeMap<String, String> {
        let found = self.0.iter().filter(|(key, _)| is_secret(key) == secret);
        found.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Whether a switch is on.
    pub fn on(&self, setting: &Setting) -> bool {
        self.is_on(&setting.key, setting.default == "true")
    }

    /// Whether the switch of a tool is on: [`tool_enabled`], without making that setting for each request.
    pub fn tool_on(&self, tool: &str, on_by_default: bool) -> bool {
        self.is_on(&tool_enabled_key(tool), on_by_default)
    }

    fn is_on(&self, key: &str, default: bool) -> bool {
        let stored = self.0.get(key).and_then(|stored| Kind::Switch.meaning(stored));
        stored.map_or(default, |stored| stored == "true")
    }

    /// The value of a [`Kind::Whole`] setting. Returns zero for a setting that is not a number.
    pub fn number(&self, setting: &Setting) -> u32 {
        self.of(setting).parse().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_becomes_what_is_meant_or_is_refused() {
        for (setting, typed, expected) in [
            (&MEMORY_ENABLED, "true", Some("true")),
            (&MEMORY_ENABLED, " OFF ", Some("false")),
            (&MEMORY_ENABLED, "maybe", None),
            (&MEMORY_ENABLED, "", None),
            (&THEME, "Dark", Some("dark")),
            (&THEME, "blue", None),
            (&TOOL_RESULT_LIMIT, "8000", Some("8000")),
            (&TOOL_RESULT_LIMIT, "499", None),
            (&TOOL_RESULT_LIMIT, "4.5", None),
            (&TOOL_RESULT_LIMIT, "99999999999", None),
            (&ALLOWED_HOSTS, "Kai.lan, 10.0.0.2:8787,", Some("kai.lan,10.0.0.2:8787")),
            (&ALLOWED_HOSTS, "", Some("")),
            (&SOUL_TEXT, " You are Kai. ", Some("You are Kai.")),
            (&SOUL_TEXT, &"x".repeat(4_001), None),
            (&ALLOWED_HOSTS, "http://kai.lan/", None),
            (&OPEN_URL_FOLDERS, "/srv/papers: /home/me/My Files :", Some("/srv/papers:/home/me/My Files")),
            (&OPEN_URL_FOLDERS, "papers", None),
            (&OPEN_URL_FOLDERS, "/srv/papers/..", None),
            (&WEB_SEARCH_SEARXNG_URL, " http://localhost:8888 ", Some("http://localhost:8888/")),
            (&WEB_SEARCH_SEARXNG_URL, "", Some("")),
            (&WEB_SEARCH_SEARXNG_URL, "localhost", None),
            (&WEB_SEARCH_SEARXNG_URL, "ftp://a.test", None),
            (&WEB_SEARCH_SEARXNG_URL, "https://me:secret@a.test", None),
            (&WEB_SEARCH_BRAVE_KEY, " BSA-x_1 ", Some("BSA-x_1")),
            (&WEB_SEARCH_BRAVE_KEY, "two words", None),
            (&WEB_SEARCH_BRAVE_KEY, "", Some("")),
        ] {
            assert_eq!(setting.accept(typed).ok().as_deref(), expected, "{} = {typed:?}", setting.key);
        }
    }

    #[test]
    #[cfg(feature = "notifications")]
    fn apps_are_named_plainly() {
        for (typed, expected) in [
            (" org.mozilla.firefox, spotify ,", Some("org.mozilla.firefox,spotify")),
            ("", Some("")),
            ("two words", None),
        ] {
            assert_eq!(NOTIFICATIONS_IGNORED.accept(typed).ok().as_deref(), expected, "{typed:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_allowed_values() {
        let refused = THEME.accept("blue").unwrap_err().to_string();
        assert_eq!(
            refused,
            "\"blue\" is not valid for theme, so nothing was changed. Allowed: one of system, light, dark."
        );
    }

    #[test]
    fn every_default_is_a_value_its_setting_takes() {
        for setting in catalogue([tool_enabled("x", true), tool_timeout("x", 30)]) {
            assert_eq!(
                setting.accept(&setting.default).as_deref(),
                Ok(setting.default.as_ref()),
                "{}",
                setting.key
            );
            assert!(setting.help.ends_with('.'), "{} has no sentence of help", setting.key);
        }
    }

    #[test]
    fn a_secret_is_used_and_never_shown() {
        let stored = BTreeMap::from([("web_search_brave_key".to_owned(), "hidden-1".to_owned())]);
        let values = Values(stored);
        assert_eq!(values.of(&WEB_SEARCH_BRAVE_KEY), "set");
        assert_eq!(values.of(&WEB_SEARCH_TAVILY_KEY), "not set");
        assert_eq!(values.secret(&WEB_SEARCH_BRAVE_KEY), Some(Key::new("hidden-1")));
        assert_eq!(values.secret(&WEB_SEARCH_TAVILY_KEY), None);
        let refused = WEB_SEARCH_BRAVE_KEY.accept("hidden 2").unwrap_err();
        let told = format!("{refused} {refused:?} {values:?}");
        assert!(!told.contains("hidden"), "{told}");
    }

    #[test]
    fn a_stored_value_that_makes_no_sense_counts_as_the_default() {
        let values = Values(BTreeMap::from([("theme".to_owned(), "sepia".to_owned())]));
        assert_eq!(values.of(&THEME), "system");
    }
}
