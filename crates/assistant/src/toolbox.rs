//! The tools of this build, and whether each is enabled: by a switch of its own or by its features.

use std::sync::{Arc, OnceLock};

use kai_llm::ToolSpec;
use kai_words::Said;
use rusqlite::Transaction;

use crate::db::{Db, DbError};
use crate::mcp::hub::Hub;
use crate::settings::{self, Setting, Values};
use crate::tool::{AnyTool, Lack};

/// All tools of this build, in the order in which they are offered to a model.
pub struct Toolbox {
    entries: Arc<[Entry]>,
    /// The spec of each tool, built once because every request needs them all.
    specs: OnceLock<Vec<ToolSpec>>,
    /// The tools are isolated from this machine.
    apart: bool,
    /// The way to the tools of MCP servers, which come and go.
    servers: Option<Hub>,
}

/// A tool, and what enables it.
pub struct Entry {
    pub tool: Arc<dyn AnyTool>,
    pub governed: EnabledBy,
}

/// Which setting enables a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnabledBy {
    /// The tool has a setting of its own, and a card on the settings page.
    OwnSwitch { on_by_default: bool },
    /// The tool belongs to features, and is enabled if the settings of all of them are on.
    Features(Vec<&'static Setting>),
    /// The tool is of use only beside others, and is there while one of these is.
    Company(Vec<&'static str>),
}

impl Entry {
    /// Whether the user's settings enable the tool.
    pub fn enabled(&self, values: &Values) -> bool {
        match &self.governed {
            EnabledBy::OwnSwitch { on_by_default } => values.tool_on(self.tool.name(), *on_by_default),
            EnabledBy::Features(features) => features.iter().all(|feature| values.on(feature)),
            EnabledBy::Company(_) => true,
        }
    }

    /// The command that enables the tool. If several features govern it, the command for the first one that is
    /// disabled.
    pub fn turned_on_by(&self, values: &Values) -> String {
        match &self.governed {
            EnabledBy::OwnSwitch { .. } => format!("kai tools enable {}", self.tool.name()),
            EnabledBy::Features(features) => {
                let off = features.iter().find(|feature| !values.on(feature));
                let key = off.or(features.first()).map(|feature| feature.key.to_string());
                format!("kai settings set {} true", key.unwrap_or_default())
            }
            EnabledBy::Company(_) => "kai tools list".to_owned(),
        }
    }

    fn settings(&self) -> impl Iterator<Item = Setting> {
        let name = self.tool.name();
        let own = match &self.governed {
            EnabledBy::OwnSwitch { on_by_default } => Some(settings::tool_enabled(name, *on_by_default)),
            EnabledBy::Features(_) | EnabledBy::Company(_) => None,
        };
        own.into_iter().chain([settings::tool_timeout(name, self.tool.timeout().as_secs())])
    }
}

impl Toolbox {
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries: entries.into(), specs: OnceLock::new(), apart: false, servers: None }
    }

    /// Isolates the tools from this machine, as the demo does. [`Lack::Demo`] then replaces advice on what to install.
    #[must_use]
    pub fn apart(self) -> Self {
        Self { apart: true, ..self }
    }

    /// Adds the way to the tools of MCP servers.
    #[must_use]
    pub fn with_servers(self, hub: Hub) -> Self {
        Self { servers: Some(hub), ..self }
    }

    /// The connections to MCP servers.
    pub fn servers(&self) -> Option<&Hub> {
        self.servers.as_ref()
    }

    /// What the tool needs but does not have.
    pub fn lacks(&self, entry: &Entry) -> Option<Lack> {
        let lacks = entry.tool.lacks()?;
        let of_machine = matches!(entry.governed, EnabledBy::OwnSwitch { .. });
        Some(if self.apart && of_machine { Lack::Demo } else { lacks })
    }

    /// Why a model is not offered this tool now, with what to do about it.
    pub fn why_not(&self, entry: &Entry, values: &Values) -> Option<Said> {
        // Checked first: enabling a tool does not help while something is missing.
        self.lacks(entry).map(|lack| lack.said()).or_else(|| {
            let (name, command) = (entry.tool.name(), || entry.turned_on_by(values));
            let off = !self.is_offered(entry, values);
            off.then(|| format!("The tool {name} is disabled. The user can enable it: {}", command()).into())
        })
    }

    /// Whether a model is offered this tool now; [`Toolbox::why_not`] says why it is not.
    fn is_offered(&self, entry: &Entry, values: &Values) -> bool {
        self.lacks(entry).is_none() && entry.enabled(values) && !self.is_alone(entry, values)
    }

    /// Whether none of the tools is there that the tool is of use beside.
    fn is_alone(&self, entry: &Entry, values: &Values) -> bool {
        let EnabledBy::Company(names) = &entry.governed else { return false };
        let others = self.entries.iter().filter(|other| names.contains(&other.tool.name()));
        !others.into_iter().any(|other| self.is_offered(other, values))
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The settings of all tools.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.entries.iter().flat_map(Entry::settings)
    }

    /// Lets the enabled tools check whether they can be used.
    pub async fn check(&self, db: &Db, values: &Values) -> Result<(), DbError> {
        let (look, in_store) = (self.look(), values.clone());
        db.read(move |tx| look(tx, &in_store)).await?;
        self.probe_access(values).await;
        Ok(())
    }

    /// Lets the enabled tools check in the store whether they can be used: the first half of [`Toolbox::check`], for
    /// those who read other things in the same transaction.
    pub fn look(&self) -> impl Fn(&Transaction<'_>, &Values) -> Result<(), DbError> + Send + use<> {
        let entries = Arc::clone(&self.entries);
        move |tx, values| {
            let mut on = entries.iter().filter(|entry| entry.enabled(values));
            on.try_for_each(|entry| entry.tool.look(tx))
        }
    }

    /// The other half: lets them ask everybody else. A tool that has asked just now does not ask again.
    pub async fn probe_access(&self, values: &Values) {
        let on = self.entries.iter().filter(|entry| entry.enabled(values));
        futures_util::future::join_all(on.map(|entry| entry.tool.probe_access())).await;
    }

    /// The tools that are offered to a model now.
    pub fn offered(&self, values: &Values) -> Vec<ToolSpec> {
        let specs = self.specs.get_or_init(|| self.entries.iter().map(|entry| entry.tool.spec()).collect());
        let all = self.entries.iter().zip(specs);
        all.filter(|(entry, _)| self.is_offered(entry, values)).map(|(_, spec)| spec.clone()).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.tool.name() == name)
    }

    /// The tool of that name or alias if it can be used now; the error says why not.
    pub fn usable(&self, name: &str, values: &Values) -> Result<&dyn AnyTool, String> {
        let called = |entry: &&Entry| entry.tool.name() == name || entry.tool.aliases().contains(&name);
        let entry = self.entries.iter().find(called);
        let entry = entry.ok_or_else(|| format!("There is no tool called {name}."))?;
        self.why_not(entry, values).map_or(Ok(entry.tool.as_ref()), |why| Err(why.to_string()))
    }
}
