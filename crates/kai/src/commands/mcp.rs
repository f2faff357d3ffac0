//! `kai mcp`: adds, approves, switches, tests and removes MCP servers.

use kai_assistant::db::DbError;
use kai_assistant::device::Target;
use kai_assistant::mcp::hub::{Hub, Status};
use kai_assistant::mcp::import::{self, LeftOut, Unreadable};
use kai_assistant::mcp::naming::is_server_name;
use kai_assistant::mcp::port::{LinkError, Secret, Transport};
use kai_assistant::mcp::store::{self, NewServer, RemovedServer, ToolSwitch};
use kai_assistant::mcp::{KnownTool, Server, ServerId, Standing};
use kai_words::{Said, said};
use serde_json::Value;

use crate::app::App;
use crate::call::json;
use crate::call::mcp::{
    AddServer, AgreedText, Imported, ImportedServer, LeftOutServer, McpCall, McpToolRow, SeenTool, ServerRow,
    ServerStatus, ServerTest, SignInPage,
};
use crate::failure::Failure;

pub(crate) async fn answer(app: &App, call: McpCall) -> Result<Value, Failure> {
    match call {
        McpCall::List => json(list(app).await?),
        McpCall::Add(new) => json(add(app, new).await?),
        McpCall::Tools { server } => json(tools(app, server).await?),
        McpCall::Approve { server, tools } => json(approve(app, &server, tools).await?),
        McpCall::Switch { server, tool: None, on } => json(switch(app, &server, on).await?),
        McpCall::Switch { server, tool: Some(tool), on } => {
            json(set_tool(app, &server, &tool, ToolSwitch::Enabled, on).await?)
        }
        McpCall::DontAsk { server, tool, on } => {
            json(set_tool(app, &server, &tool, ToolSwitch::DontAsk, on).await?)
        }
        McpCall::InTasks { server, tool, on } => {
            json(set_tool(app, &server, &tool, ToolSwitch::InTasks, on).await?)
        }
        McpCall::Test { server } => json(test(app, &server).await?),
        McpCall::Remove { server } => json(remove(app, &server).await?),
        McpCall::Import { text, preview } => json(import(app, &text, preview).await?),
        McpCall::SignIn { server } => json(sign_in(app, &server).await?),
        McpCall::SignedIn { server } => json(signed_in(app, &server).await?),
        McpCall::SignOut { server } => json(sign_out(app, &server).await?),
    }
}

/// The connections, or why there are none.
pub(crate) fn hub(app: &App) -> Result<&Hub, Failure> {
    app.toolbox.servers().ok_or_else(|| Failure::failed(said::mcp_not_in_demo()))
}

async fn server(app: &App, name: &str) -> Result<Server, Failure> {
    let wanted = name.to_owned();
    let found = app.db.read(move |tx| store::named(tx, &wanted)).await?;
    found.ok_or_else(|| Failure::usage(said::mcp_no_server(name)).try_instead("kai mcp list"))
}

/// A server that is not turned off.
async fn enabled(app: &App, name: &str) -> Result<Server, Failure> {
    let server = server(app, name).await?;
    if !server.enabled {
        return Err(Failure::failed(said::mcp_server_off(name)).try_instead(format!("kai mcp enable {name}")));
    }
    Ok(server)
}

pub(crate) async fn list(app: &App) -> Result<Vec<ServerRow>, DbError> {
    let read = app.db.read(|tx| {
        let with_tools = |server: Server| Ok((store::of_server(tx, server.id)?, server));
        store::servers(tx)?.into_iter().map(with_tools).collect::<Result<Vec<_>, DbError>>()
    });
    Ok(read.await?.into_iter().map(|(tools, server)| row(app, server, &tools)).collect())
}

async fn listed(app: &App, name: &str) -> Result<ServerRow, Failure> {
    let found = list(app).await?.into_iter().find(|row| row.name == name);
    found.ok_or_else(|| Failure::usage(said::mcp_no_server(name)))
}

fn row(app: &App, server: Server, tools: &[KnownTool]) -> ServerRow {
    let status = app.toolbox.servers().map_or(Status::Idle, |hub| hub.status(server.id));
    let count = |wanted| tools.iter().filter(|tool| tool.standing() == wanted).count();
    let why = match &status {
        Status::Failed(error) if server.enabled => Some(error.said()),
        _ => None,
    };
    let calls_itself = match &status {
        Status::Connected { calls_itself } => Some(calls_itself.line(LONGEST_NAME)),
        Status::Idle | Status::Connecting | Status::Failed(_) => None,
    };
    ServerRow {
        target: target(&server.transport),
        is_program: is_program(&server.transport),
        status: shown(&status, server.enabled),
        why,
        calls_itself: calls_itself.filter(|name| !name.is_empty()),
        name: server.name,
        secrets: server.secret_names,
        enabled: server.enabled,
        signed_in: server.signed_in,
        usable: tools.iter().filter(|tool| server.enabled && tool.usable().is_some()).count(),
        new: count(Standing::New),
        changed: count(Standing::Changed),
    }
}

/// How many characters of a server's own name are shown.
const LONGEST_NAME: usize = 60;

fn shown(status: &Status, enabled: bool) -> ServerStatus {
    match status {
        _ if !enabled => ServerStatus::Off,
        Status::Idle => ServerStatus::Idle,
        Status::Connecting => ServerStatus::Connecting,
        Status::Connected { .. } => ServerStatus::Connected,
        // Whoever did not sign in can try again.
        Status::Failed(LinkError::SignIn | LinkError::NotSignedIn { .. }) => ServerStatus::SignIn,
        Status::Failed(_) => ServerStatus::Error,
    }
}

fn is_program(transport: &Transport) -> bool {
    matches!(transport, Transport::Stdio { .. })
}

/// The command line or the address of a server.
fn target(transport: &Transport) -> String {
    match transport {
        Transport::Http { url } => url.clone(),
        Transport::Stdio { command, args } => {
            let quoted = |word: &String| {
                let is_plain =
                    !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
                if is_plain { word.clone() } else { format!("{word:?}") }
            };
            std::iter::once(command).chain(args).map(quoted).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Adds a server and connects to it, so that its tools can be approved. It stays added if it cannot be reached.
async fn add(app: &App, new: AddServer) -> Result<ServerTest, Failure> {
    added(app, &new).await?;
    test(app, &new.name).await
}

/// Adds a server, without connecting to it.
pub(crate) async fn added(app: &App, new: &AddServer) -> Result<(), Failure> {
    hub(app)?;
    let (server, name, now) = (checked(new)?, &new.name, app.clock.now());
    match app.db.write(move |tx| store::add(tx, &server, now)).await? {
        Some(_) => Ok(()),
        None => Err(Failure::usage(said::mcp_known(name)).try_instead(format!("kai mcp remove {name}"))),
    }
}

/// What the user typed, as a server.
fn checked(new: &AddServer) -> Result<NewServer, Failure> {
    let name = new.name.clone();
    if !is_server_name(&name) {
        return Err(Failure::usage(said::mcp_bad_name(&name)));
    }
    match (new.command.split_first(), new.url.as_deref().map(str::trim)) {
        (Some((command, args)), None) if !command.trim().is_empty() => {
            let transport = Transport::Stdio { command: command.clone(), args: args.to_vec() };
            Ok(NewServer { name, transport, secrets: pairs(&new.env, '=', said::mcp_bad_env)? })
        }
        (None, Some(url)) if import::is_web_address(url) => {
            let secrets = pairs(&new.headers, ':', said::mcp_bad_header)?;
            Ok(NewServer { name, transport: Transport::Http { url: url.to_owned() }, secrets })
        }
        (None, Some(url)) => Err(Failure::usage(said::mcp_bad_address(url))),
        _ => Err(Failure::usage(said::mcp_command_or_address())),
    }
}

fn pairs(
    written: &[String],
    between: char,
    complaint: fn(String) -> Said,
) -> Result<Vec<(String, Secret)>, Failure> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(between)?;
        let name = name.trim();
        let is_plain =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        is_plain.then(|| (name.to_owned(), Secret::new(value.trim())))
    };
    // The value may be a secret, so the complaint shows only what stands before it.
    let bad = |text: &String| {
        let name: String = text.split(between).next().unwrap_or_default().chars().take(40).collect();
        Failure::usage(complaint(name))
    };
    written.iter().map(|text| pair(text).ok_or_else(|| bad(text))).collect()
}

pub(crate) async fn tools(app: &App, name: Option<String>) -> Result<Vec<McpToolRow>, Failure> {
    let servers = match name {
        Some(name) => vec![server(app, &name).await?],
        None => app.db.read(store::servers).await?,
    };
    let read = app.db.read(move |tx| {
        let all = servers.iter().map(|server| store::of_server(tx, server.id));
        all.collect::<Result<Vec<_>, DbError>>()
    });
    Ok(read.await?.into_iter().flatten().map(tool_row).collect())
}

fn tool_row(tool: KnownTool) -> McpToolRow {
    let standing = tool.standing();
    let before = tool.approved.clone().filter(|_| standing == Standing::Changed);
    let text = tool.latest.as_ref().or(tool.approved.as_ref());
    McpToolRow {
        name: tool.name().to_owned(),
        standing,
        enabled: tool.enabled,
        read_only: text.is_some_and(|text| text.read_only),
        dont_ask: tool.dont_ask,
        in_tasks: tool.in_tasks,
        description: text.map(|text| text.description.clone()).unwrap_or_default(),
        schema: text.map(|text| text.schema.clone()).unwrap_or_default(),
        seen: text.map(kai_assistant::mcp::ToolText::digest).unwrap_or_default(),
        before: before.map(|text| AgreedText {
            description: text.description,
            schema: text.schema,
            read_only: text.read_only,
        }),
        server: tool.server_name,
        offered_as: tool.offered_as,
    }
}

/// Approves tools as the user saw them. If the server says something else about one by now, nothing is approved.
pub(crate) async fn approve(app: &App, name: &str, seen: Vec<SeenTool>) -> Result<Vec<McpToolRow>, Failure> {
    let id = server(app, name).await?.id;
    let approved = app.db.write(move |tx| {
        for SeenTool { name, seen } in &seen {
            if !store::approve(tx, id, name, seen)? {
                return Err(NotAgreed::Changed(name.clone()));
            }
        }
        Ok(())
    });
    approved.await.map_err(NotAgreed::failure)?;
    tools(app, Some(name.to_owned())).await
}

/// Why nothing was approved. An error, so that the transaction is undone.
enum NotAgreed {
    Changed(String),
    Store(DbError),
}

impl From<DbError> for NotAgreed {
    fn from(error: DbError) -> Self {
        Self::Store(error)
    }
}

impl NotAgreed {
    fn failure(self) -> Failure {
        match self {
            Self::Changed(tool) => Failure::failed(said::mcp_changed_meanwhile(tool)),
            Self::Store(error) => error.into(),
        }
    }
}

pub(crate) async fn switch(app: &App, name: &str, on: bool) -> Result<ServerRow, Failure> {
    let id = server(app, name).await?.id;
    app.db.write(move |tx| store::set_enabled(tx, id, on)).await?;
    if !on {
        end_sign_in(app, id);
    }
    listed(app, name).await
}

pub(crate) async fn set_tool(
    app: &App,
    name: &str,
    tool: &str,
    switch: ToolSwitch,
    on: bool,
) -> Result<McpToolRow, Failure> {
    let all = tools(app, Some(name.to_owned())).await?;
    let no_tool =
        || Failure::usage(said::mcp_no_tool(tool, name)).try_instead(format!("kai mcp tools {name}"));
    let found = all.iter().find(|row| row.name == tool || row.offered_as == tool).ok_or_else(no_tool)?;
    if switch == ToolSwitch::InTasks && on && !found.read_only {
        return Err(Failure::usage(said::mcp_not_read_only(&found.name)));
    }
    let offered_as = found.offered_as.clone();
    app.db.write(move |tx| store::set_tool(tx, &offered_as, switch, on)).await?;
    let changed = tools(app, Some(name.to_owned())).await?.into_iter();
    changed.into_iter().find(|row| row.offered_as == found.offered_as).ok_or_else(no_tool)
}

/// Connects anew, and says what the server answers.
pub(crate) async fn test(app: &App, name: &str) -> Result<ServerTest, Failure> {
    let hub = hub(app)?;
    let server = enabled(app, name).await?;
    hub.reconnect(server.id).await;
    let reached = hub.reach(server.id).await;
    let stderr = hub.stderr(server.id).await.iter().map(|line| line.line(LONGEST_LINE)).collect();
    let mut row = listed(app, name).await?;
    if let Err(error) = &reached {
        row.why = Some(error.said());
    }
    Ok(ServerTest {
        server: row,
        works: reached.is_ok(),
        tools: tools(app, Some(name.to_owned())).await?,
        stderr,
    })
}

/// How many characters of a line of a program are shown.
const LONGEST_LINE: usize = 500;

async fn remove(app: &App, name: &str) -> Result<String, Failure> {
    remove_undoable(app, name).await.map(|removed| removed.name)
}

/// Removes a server, and returns what is needed to put it back.
pub(crate) async fn remove_undoable(app: &App, name: &str) -> Result<RemovedServer, Failure> {
    let id = server(app, name).await?.id;
    let removed = app.db.write(move |tx| store::remove(tx, id)).await?;
    end_sign_in(app, id);
    removed.ok_or_else(|| Failure::usage(said::mcp_no_server(name)))
}

/// Adds the servers of another program's file. They are approved tool by tool, like any other.
pub(crate) async fn import(app: &App, text: &str, preview: bool) -> Result<Imported, Failure> {
    hub(app)?;
    let known = app.db.read(store::servers).await?;
    let plan = import::plan(text, |name| known.iter().any(|server| server.name == name));
    let plan = plan.map_err(|why| Failure::usage(unreadable(&why)))?;
    let added = plan.servers.iter().map(imported).collect();
    let left_out =
        plan.left_out.iter().map(|(name, why)| LeftOutServer { name: name.clone(), why: left_out(*why) });
    let left_out = left_out.collect();
    if !preview {
        let now = app.clock.now();
        app.db
            .write(move |tx| plan.servers.iter().try_for_each(|new| store::add(tx, new, now).map(drop)))
            .await
            .map_err(|error: DbError| error)?;
    }
    Ok(Imported { added, left_out, preview })
}

fn imported(new: &NewServer) -> ImportedServer {
    ImportedServer {
        name: new.name.clone(),
        target: target(&new.transport),
        is_program: is_program(&new.transport),
        secrets: new.secrets.iter().map(|(name, _)| name.clone()).collect(),
    }
}

fn unreadable(why: &Unreadable) -> Said {
    match why {
        Unreadable::TooLarge => said::mcp_import_too_large(),
        Unreadable::NotJson { line } => said::mcp_import_not_json(*line),
        Unreadable::NoServers => said::mcp_import_no_servers(),
    }
}

fn left_out(why: LeftOut) -> Said {
    match why {
        LeftOut::Incomplete => said::mcp_left_out_incomplete(),
        LeftOut::Address => said::mcp_left_out_address(),
        LeftOut::OldTransport => said::mcp_left_out_old(),
        LeftOut::Known => said::mcp_left_out_known(),
        LeftOut::AsksForInput => said::mcp_left_out_input(),
    }
}

/// Begins signing in to a server. Returns the page on which the user does it. Only the daemon stays to hear how it ends.
pub(crate) async fn begin_sign_in(app: &App, name: &str) -> Result<String, Failure> {
    let (hub, server) = (hub(app)?, server(app, name).await?);
    if app.daemon.is_none() {
        return Err(Failure::failed(said::mcp_sign_in_needs_kai()).try_instead("kai serve"));
    }
    let url = hub.sign_in(server.id).await.map_err(|error| Failure::failed(error.said()))?;
    if import::is_web_address(&url) {
        return Ok(url);
    }
    hub.end_sign_in(server.id);
    Err(Failure::failed(said::mcp_bad_address(url)))
}

/// The page of a sign-in that waits for the user. It is a link on our page, so it has to lead to the web.
pub(crate) fn sign_in_page(app: &App, name: &str) -> Option<String> {
    app.toolbox.servers()?.sign_in_page(name).filter(|url| import::is_web_address(url))
}

fn end_sign_in(app: &App, id: ServerId) {
    if let Some(hub) = app.toolbox.servers() {
        hub.end_sign_in(id);
    }
}

/// Begins signing in to a server, and opens its page in the browser.
async fn sign_in(app: &App, name: &str) -> Result<SignInPage, Failure> {
    let url = begin_sign_in(app, name).await?;
    let opened = match &app.opener {
        Some(opener) => opener.open(&Target::Web(url.clone())).await.is_ok(),
        None => false,
    };
    Ok(SignInPage { server: name.to_owned(), url, opened })
}

/// Waits until a sign-in that was begun is over, and says how the server is then.
async fn signed_in(app: &App, name: &str) -> Result<ServerRow, Failure> {
    let (hub, id) = (hub(app)?, enabled(app, name).await?.id);
    let (mut changes, mut stored) = (hub.changes(), app.db.changes());
    loop {
        let is_over = !hub.is_signing_in(id) && hub.status(id) != Status::Connecting;
        // Looked at last: a sign-in also ends because its server was removed or turned off, and that is what to say.
        enabled(app, name).await?;
        if is_over {
            return listed(app, name).await;
        }
        let told = tokio::select! {
            told = changes.changed() => told,
            told = stored.changed() => told,
        };
        if told.is_err() {
            return listed(app, name).await;
        }
    }
}

pub(crate) async fn sign_out(app: &App, name: &str) -> Result<ServerRow, Failure> {
    let id = server(app, name).await?.id;
    end_sign_in(app, id);
    app.db.write(move |tx| store::set_tokens(tx, id, None)).await?;
    if let Some(hub) = app.toolbox.servers() {
        hub.reconnect(id).await;
    }
    listed(app, name).await
}
