//! Guests: what the user decides about programs that ask Kai over MCP, and what such a program gets.

use std::path::Path;

use jiff::Timestamp;
use kai_assistant::agent::{CallRunner, Nobody};
use kai_assistant::db::DbError;
use kai_assistant::gate::{self, Level, RunKind};
use kai_assistant::guests::{Deed, Did, Guest, GuestState, rules, store};
use kai_assistant::ledger::{self, GuestEvent, Record};
use kai_assistant::settings::{MCP_SERVER_ENABLED, Values};
use kai_assistant::tool::{Run, ToolResult};
use kai_assistant::{hex, moment};
use kai_llm::{CallId, ToolCall, ToolSpec};
use kai_words::{Lang, said};
use rusqlite::Transaction;
use serde_json::{Value, json};

use crate::app::App;
use crate::app::sessions::Token;
use crate::call::guests::{
    DeedRow, GuestCall, GuestReply, GuestResult, GuestRow, GuestToken, GuestsCall, OfferedTool, Wants,
    Welcome, Who,
};
use crate::call::json as as_json;
use crate::failure::Failure;
use crate::home;

/// How many of the things that each guest did are listed.
const LISTED: usize = 20;

/// Answers what the user asks about guests.
pub(crate) async fn answer(app: &App, call: GuestsCall) -> Result<Value, Failure> {
    match call {
        GuestsCall::List => as_json(list(app).await?),
        GuestsCall::Allow { name } => {
            as_json(decide(app, name, GuestState::Allowed, GuestEvent::Allowed).await?)
        }
        GuestsCall::Block { name } => {
            as_json(decide(app, name, GuestState::Blocked, GuestEvent::Blocked).await?)
        }
        GuestsCall::Token { name } => as_json(token(app, &name).await?),
        GuestsCall::Forget { name } => as_json(forget(app, name).await?),
    }
}

pub(crate) async fn list(app: &App) -> Result<Vec<GuestRow>, DbError> {
    let known = app.db.read(|tx| {
        let guests = store::all(tx)?.into_iter();
        guests
            .map(|guest| Ok((store::deeds(tx, guest.id, LISTED)?, guest)))
            .collect::<Result<Vec<_>, DbError>>()
    });
    Ok(known.await?.into_iter().map(|(deeds, guest)| row(app, guest, deeds)).collect())
}

fn row(app: &App, guest: Guest, deeds: Vec<Deed>) -> GuestRow {
    let deed = |deed: Deed| DeedRow {
        at: deed.at.as_millisecond(),
        at_local: app.local(deed.at),
        tool: deed.tool,
        what: deed.what,
    };
    GuestRow {
        id: guest.id,
        name: guest.name,
        state: guest.state,
        has_token: guest.has_token,
        first_seen: guest.first_seen.as_millisecond(),
        last_seen: guest.last_seen.map(Timestamp::as_millisecond),
        last_seen_local: guest.last_seen.map(|at| moment::local(at, &app.clock.zone())),
        deeds: deeds.into_iter().map(deed).collect(),
    }
}

/// The guest with this name. What was typed is folded as an introduction is, and nothing else counts: one program
/// could call itself like another's number, or in other capitals.
fn meant(tx: &Transaction<'_>, typed: &str) -> Result<Guest, Failure> {
    let name = rules::known_as(typed).unwrap_or_default();
    let found = store::named(tx, &name)?;
    found.ok_or_else(|| Failure::failed(said::guests_unknown(name)).try_instead("kai mcp guests list"))
}

async fn decide(app: &App, name: String, state: GuestState, event: GuestEvent) -> Result<GuestRow, Failure> {
    let now = app.clock.now();
    let decided = app.db.write(move |tx| {
        let guest = meant(tx, &name)?;
        store::decide(tx, guest.id, state)?;
        ledger::append(tx, &Record::Guest { guest: guest.name.clone(), event }, now)?;
        Ok::<_, Failure>((Guest { state, ..guest.clone() }, store::deeds(tx, guest.id, LISTED)?))
    });
    let (guest, deeds) = decided.await?;
    Ok(row(app, guest, deeds))
}

/// Makes a token. A program that comes over HTTP cannot introduce itself without one, so the name may be new.
async fn token(app: &App, typed: &str) -> Result<GuestToken, Failure> {
    let name = rules::known_as(typed).ok_or_else(|| Failure::usage(said::guests_no_name()))?;
    let (token, now) = (Token::random()?, app.clock.now());
    let hash = token.hash();
    let given = app.db.write(move |tx| {
        let guest = store::give_token(tx, &name, &hash, now)?;
        ledger::append(tx, &Record::Guest { guest: guest.name.clone(), event: GuestEvent::Token }, now)?;
        Ok::<_, DbError>(guest)
    });
    let Guest { name, state, .. } = given.await?;
    Ok(GuestToken { name, state, token: token.0 })
}

async fn forget(app: &App, name: String) -> Result<String, Failure> {
    let now = app.clock.now();
    let forgotten = app.db.write(move |tx| {
        let guest = meant(tx, &name)?;
        store::forget(tx, guest.id)?;
        let record = Record::Guest { guest: guest.name.clone(), event: GuestEvent::Forgotten };
        ledger::append(tx, &record, now)?;
        Ok::<_, Failure>(guest.name)
    });
    forgotten.await
}

/// Answers what a guest asks. `None` if its token is not one of ours.
pub(crate) async fn host(app: &App, call: GuestCall) -> Result<Option<GuestReply>, Failure> {
    let values = app.values().await?;
    let Some(visitor) = recognised(app, call.who, &values, call.wants == Wants::Enter).await? else {
        return Ok(None);
    };
    let Visitor { name, welcome, guest } = visitor;
    let reply = GuestReply { name, welcome, tools: vec![], result: None };
    let Some(guest) = guest.filter(|_| welcome == Welcome::Allowed) else { return Ok(Some(reply)) };
    Ok(Some(match call.wants {
        Wants::Enter | Wants::Nothing => reply,
        Wants::Tools => GuestReply { tools: offered(app, &values).await?, ..reply },
        Wants::Call { tool, arguments } => {
            GuestReply { result: called(app, &guest, &values, tool, arguments).await?, ..reply }
        }
    }))
}

/// A guest that was recognised.
struct Visitor {
    name: String,
    welcome: Welcome,
    /// `None` if nothing was stored of it, because the user lets no program in.
    guest: Option<Guest>,
}

/// Whoever is meant. A name that is new is stored, unless the user lets no program in.
async fn recognised(app: &App, who: Who, values: &Values, enters: bool) -> Result<Option<Visitor>, Failure> {
    let (on, now) = (values.on(&MCP_SERVER_ENABLED), app.clock.now());
    if let (Who::Named(claimed), false) = (&who, on) {
        let name = rules::known_as(claimed).unwrap_or_default();
        return Ok(Some(Visitor { name, welcome: Welcome::Off, guest: None }));
    }
    let known = {
        let who = who.clone();
        app.db.read(move |tx| known(tx, &who)).await?
    };
    // A program that only asks what has changed writes nothing.
    let found = match (known, who) {
        (Some(guest), _) if !(enters && on) => Some(guest),
        (None, Who::Holder(_)) => None,
        (_, who) => app.db.write(move |tx| entering(tx, &who, now)).await?,
    };
    let stands = |guest: Guest| {
        let welcome = match guest.state {
            _ if !on => Welcome::Off,
            GuestState::Asked => Welcome::Asked,
            GuestState::Allowed => Welcome::Allowed,
            GuestState::Blocked => Welcome::Blocked,
        };
        Visitor { name: guest.name.clone(), welcome, guest: Some(guest) }
    };
    Ok(found.map(stands))
}

fn known(tx: &Transaction<'_>, who: &Who) -> Result<Option<Guest>, DbError> {
    match who {
        Who::Named(claimed) => rules::known_as(claimed).map_or(Ok(None), |name| store::named(tx, &name)),
        Who::Holder(hash) => {
            let hash = hex::decode(hash).and_then(|hash| <[u8; 32]>::try_from(hash).ok());
            hash.map_or(Ok(None), |hash| store::with_token(tx, &hash))
        }
    }
}

/// Stores a guest that is new, and that it was here.
fn entering(tx: &Transaction<'_>, who: &Who, now: Timestamp) -> Result<Option<Guest>, DbError> {
    let guest = match who {
        Who::Named(claimed) => {
            rules::known_as(claimed).map(|name| store::introduced(tx, &name, now)).transpose()?
        }
        Who::Holder(_) => known(tx, who)?,
    };
    if let Some(guest) = &guest {
        store::seen(tx, guest.id, now)?;
    }
    Ok(guest)
}

/// The tools that a guest is offered: those that the user enabled and that the gate lets guests use.
async fn offered(app: &App, values: &Values) -> Result<Vec<OfferedTool>, DbError> {
    app.toolbox.check(&app.db, values).await?;
    let lang = App::lang(values, &app.env);
    let usable = |spec: &ToolSpec| gate::offered(RunKind::Guest, Level::People, &spec.name);
    Ok(app.toolbox.offered(values).into_iter().filter(usable).map(|spec| described(spec, lang)).collect())
}

/// What every tool that drafts says to a guest.
const ONLY_DRAFTS: &str = "This only makes a draft. It waits in Kai, where the user can change or discard it; only their tap on Send there \
     sends it, and you cannot.";

fn described(spec: ToolSpec, lang: Lang) -> OfferedTool {
    let read_only = gate::only_reads(&spec.name);
    let more = if read_only { String::new() } else { format!(" {ONLY_DRAFTS}") };
    OfferedTool {
        // A title says where it can break, which only our own page knows how to read.
        title: lang.tool_name(&spec.name).replace('\u{ad}', ""),
        description: format!("{}{more}", spec.description),
        name: spec.name,
        schema: Value::clone(&spec.parameters),
        read_only,
    }
}

/// Runs a call of a guest. `None` if there is no such tool for it. What it read is recorded before it gets it.
async fn called(
    app: &App,
    guest: &Guest,
    values: &Values,
    tool: String,
    arguments: String,
) -> Result<Option<GuestResult>, DbError> {
    if !offered(app, values).await?.iter().any(|offered| offered.name == tool) {
        return Ok(None);
    }
    let argument_chars = arguments.chars().count();
    let call = ToolCall { id: CallId("guest".to_owned()), name: tool, arguments, signature: None };
    let (db, clock, toolbox) = (&app.db, app.clock.as_ref(), &app.toolbox);
    let hands = CallRunner { db, clock, toolbox, foreign: &[], face: &Nobody, run: Run::by_guest(guest.id) };
    let verdict = gate::verdict(RunKind::Guest, Level::People, &call.name);
    let (result, _) = hands.run(&call, values, verdict).await?;
    let record = Record::GuestCall {
        guest: guest.name.clone(),
        tool: call.name.clone(),
        argument_chars,
        success: result.success,
        result_chars: result.text.chars().count(),
        seen: result.meaning.mentions.clone(),
    };
    let (id, now, did) = (guest.id, clock.now(), did(&call.name, &result));
    db.write(move |tx| {
        store::seen(tx, id, now)?;
        if let Some(did) = did {
            store::note(tx, id, &call.name, did, now)?;
        }
        ledger::append(tx, &record, now)
    })
    .await?;
    Ok(Some(GuestResult { text: result.text, success: result.success }))
}

/// What is kept of a call. A draft was noted when it was staged.
fn did(tool: &str, result: &ToolResult) -> Option<Did> {
    let messages = i64::try_from(result.meaning.mentions.len()).unwrap_or(i64::MAX);
    match result.success {
        false => Some(Did::Failed),
        true if gate::only_reads(tool) => Some(Did::Read(messages)),
        true => None,
    }
}

/// What to paste into another program, so that it starts `kai mcp serve`.
pub(crate) struct Paste {
    /// A short name, for scripts.
    pub(crate) program: &'static str,
    /// Where it goes, in the user's language.
    pub(crate) place: &'static str,
    pub(crate) json: Value,
}

/// What to paste into each program that we know of, for this home.
pub(crate) fn pastes(home: &kai_assistant::home::Home, lang: Lang) -> Vec<Paste> {
    let program = std::env::current_exe().unwrap_or_else(|_| "kai".into());
    let args = arguments(&home.dir, home::is_default(home));
    let entry = json!({"command": program.to_string_lossy(), "args": args});
    let mut typed = entry.clone();
    typed["type"] = "stdio".into();
    vec![
        Paste {
            program: "claude_desktop",
            place: lang.guests_paste_claude(),
            json: json!({"mcpServers": {"kai": entry}}),
        },
        Paste {
            program: "zed",
            place: lang.guests_paste_zed(),
            json: json!({"context_servers": {"kai": entry}}),
        },
        Paste {
            program: "vs_code",
            place: lang.guests_paste_vscode(),
            json: json!({"servers": {"kai": typed}}),
        },
    ]
}

/// The arguments of `kai mcp serve`. Other programs start it without this one's environment, so it is told its home
/// unless that is the usual one.
fn arguments(home: &Path, is_default: bool) -> Vec<String> {
    let home = [String::from("--home"), home.to_string_lossy().into_owned()];
    let home = if is_default { vec![] } else { home.to_vec() };
    home.into_iter().chain(["mcp", "serve"].map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_home_is_named() {
        assert_eq!(arguments(Path::new("/h"), true), ["mcp", "serve"]);
        assert_eq!(arguments(Path::new("/h"), false), ["--home", "/h", "mcp", "serve"]);
    }
}
