//! Which tools there are now, and who decides: a tool's own switch, or the switch of its feature.

use std::sync::{Arc, OnceLock};

use kai_llm::ToolSpec;

use crate::settings::{self, MEMORY_ENABLED, SCHEDULING_ENABLED, Setting, Values};
use crate::tool::AnyTool;

/// All tools of this build, in the order in which a model is told of them.
pub struct Toolbox {
    entries: Vec<Entry>,
    /// What a model is told of each, made once: every request needs them all.
    specs: OnceLock<Vec<ToolSpec>>,
    /// Why it is kept from the machine, where it is.
    apart: Option<&'static str>,
}

pub struct Entry {
    pub tool: Arc<dyn AnyTool>,
    pub governed: Governed,
}

/// Whose switch turns a tool on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Governed {
    /// It has a switch of its own, and so a card in the settings.
    OwnSwitch { on_by_default: bool },
    /// It is there whenever its features are on.
    Features(&'static [Feature]),
}

/// A feature whose switch governs several tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    Memory,
    Scheduling,
    #[cfg(feature = "notifications")]
    Notifications,
    #[cfg(feature = "notifications")]
    DismissNotifications,
    #[cfg(feature = "sms")]
    ReadSms,
    #[cfg(feature = "sms")]
    SendSms,
}

impl Feature {
    fn setting(self) -> &'static Setting {
        match self {
            Self::Memory => &MEMORY_ENABLED,
            Self::Scheduling => &SCHEDULING_ENABLED,
            #[cfg(feature = "notifications")]
            Self::Notifications => &settings::NOTIFICATIONS_ENABLED,
            #[cfg(feature = "notifications")]
            Self::DismissNotifications => &settings::NOTIFICATIONS_DISMISS_ENABLED,
            #[cfg(feature = "sms")]
            Self::ReadSms => &settings::SMS_ENABLED,
            #[cfg(feature = "sms")]
            Self::SendSms => &settings::SMS_SEND_ENABLED,
        }
    }
}

impl Entry {
    /// Did the person leave it on?
    pub fn enabled(&self, values: &Values) -> bool {
        match self.governed {
            Governed::OwnSwitch { on_by_default } => {
                values.on(&settings::tool_enabled(self.tool.name(), on_by_default))
            }
            Governed::Features(features) => features.iter().all(|feature| values.on(feature.setting())),
        }
    }

    /// The command that turns it on. Of the features that govern a tool, it is the first that is off, if one is.
    pub fn turned_on_by(&self, values: &Values) -> String {
        match self.governed {
            Governed::OwnSwitch { .. } => format!("kai tools enable {}", self.tool.name()),
            Governed::Features(features) => {
                let off = features.iter().find(|feature| !values.on(feature.setting()));
                let key = off.or(features.first()).map(|feature| feature.setting().key.to_string());
                format!("kai settings set {} true", key.unwrap_or_default())
            }
        }
    }

    fn settings(&self) -> impl Iterator<Item = Setting> {
        let name = self.tool.name();
        let own = match self.governed {
            Governed::OwnSwitch { on_by_default } => Some(settings::tool_enabled(name, on_by_default)),
            Governed::Features(_) => None,
        };
        own.into_iter().chain([settings::tool_timeout(name, self.tool.timeout().as_secs())])
    }
}

impl Toolbox {
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, specs: OnceLock::new(), apart: None }
    }

    /// A toolbox that is kept from the machine on purpose: what its tools lack there is for nobody to install.
    #[must_use]
    pub fn apart(self, why: &'static str) -> Self {
        Self { apart: Some(why), ..self }
    }

    /// What a tool cannot do without and is not there, with what to do about it.
    pub fn lacks(&self, entry: &Entry) -> Option<String> {
        let lacks = entry.tool.lacks()?;
        let of_machine = matches!(entry.governed, Governed::OwnSwitch { .. });
        Some(self.apart.filter(|_| of_machine).map_or(lacks, str::to_owned))
    }

    /// Why a model is not offered this tool now, with what to do about it.
    pub fn why_not(&self, entry: &Entry, values: &Values) -> Option<String> {
        // What is lacking comes first: turning the tool on would not help.
        self.lacks(entry).or_else(|| {
            let (name, command) = (entry.tool.name(), entry.turned_on_by(values));
            let off = !entry.enabled(values);
            off.then(|| format!("The tool {name} is off. The user can turn it on: {command}"))
        })
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The settings that the tools bring with them.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.entries.iter().flat_map(Entry::settings)
    }

    /// Has the tools that are on ask the outside whether they can be used; those asked just now do not ask again.
    pub async fn probe_access(&self, values: &Values) {
        let on = self.entries.iter().filter(|entry| entry.enabled(values));
        futures_util::future::join_all(on.map(|entry| entry.tool.probe_access())).await;
    }

    /// What a model is offered now.
    pub fn offered(&self, values: &Values) -> Vec<ToolSpec> {
        let specs = self.specs.get_or_init(|| self.entries.iter().map(|entry| entry.tool.spec()).collect());
        let all = self.entries.iter().zip(specs);
        all.filter(|(entry, _)| self.why_not(entry, values).is_none()).map(|(_, spec)| spec.clone()).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.tool.name() == name)
    }

    /// The tool of that name, if it may be used now.
    pub fn usable(&self, name: &str, values: &Values) -> Result<&dyn AnyTool, String> {
        let called = |entry: &&Entry| entry.tool.name() == name || entry.tool.aliases().contains(&name);
        let entry = self.entries.iter().find(called);
        let entry = entry.ok_or_else(|| format!("There is no tool called {name}."))?;
        self.why_not(entry, values).map_or(Ok(entry.tool.as_ref()), Err)
    }
}
