//! The MCP servers on the MCP page: how each is doing, what it says of its tools, and adding one.

use axum::Router;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use kai_assistant::legible::visible;
use kai_assistant::mcp::Standing;
use kai_words::{Lang, said};
use maud::{Markup, html};
use serde_json::Value;

use super::context::PageContext;
use super::form::Form;
use super::parts::{Button, Region, button, form, naming};
use super::split::words;
use crate::call::Call;
use crate::call::mcp::{AddServer, ImportedServer, McpCall, McpToolRow, SeenTool, ServerRow, ServerStatus};
use crate::commands::mcp;
use crate::failure::Failure;
use crate::web::bin::Kept;
use crate::web::reply;
use crate::web::state::Web;

const LIST: &str = "mcp";
const ADD: &str = "mcp-add";

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/settings/mcp/add", post(add))
        .route("/settings/mcp/preview", post(preview))
        .route("/settings/mcp/import", post(import))
        .route("/settings/mcp/test", post(test))
        .route("/settings/mcp/switch", post(switch))
        .route("/settings/mcp/remove", post(remove))
        .route("/settings/mcp/approve", post(approve))
        .route("/settings/mcp/tool", post(set_tool))
        .route("/settings/mcp/sign-in", post(sign_in))
        .route("/settings/mcp/sign-out", post(sign_out))
}

pub(super) async fn regions(ctx: &PageContext<'_>) -> Result<Vec<Region>, Failure> {
    let (app, lang) = (&ctx.web.app, ctx.lang);
    if app.toolbox.servers().is_none() {
        let none = html! { p { (lang.mcp_not_in_demo()) } };
        return Ok(vec![Region::card(LIST, lang.mcp_label(), none)]);
    }
    let rows = mcp::list(app).await?;
    let opened = ctx.place.open("server").filter(|name| rows.iter().any(|row| row.name == *name));
    let tools = match opened {
        Some(name) => mcp::tools(app, Some(name.to_owned())).await?,
        None => vec![],
    };
    Ok(vec![
        Region::card(LIST, lang.mcp_label(), list(ctx, &rows, &tools)),
        Region::card(ADD, lang.mcp_add(), if app.home.is_demo() { in_demo(lang) } else { adding(ctx) }),
    ])
}

/// The demo's server is simulated, and no other can be added there.
fn in_demo(lang: Lang) -> Markup {
    html! { p data-testid="mcp-demo" { (lang.mcp_demo()) } }
}

fn list(ctx: &PageContext<'_>, rows: &[ServerRow], tools: &[McpToolRow]) -> Markup {
    html! {
        p class="quiet" { (ctx.lang.mcp_lead()) }
        @if !rows.is_empty() {
            ul class="models" {
                @for row in rows { (server(ctx, row, tools)) }
            }
        }
    }
}

fn server(ctx: &PageContext<'_>, row: &ServerRow, tools: &[McpToolRow]) -> Markup {
    let lang = ctx.lang;
    let is_open = ctx.place.open("server") == Some(&row.name);
    html! {
        li class="model" data-testid="mcp-server" data-server=(row.name) {
            div class="model-head" {
                strong { (row.name) }
                (dot(row.status, lang))
                @if let Some(name) = &row.calls_itself { span class="quiet" { (lang.mcp_calls_itself()) " " bdi { (visible(name)) } } }
                @if row.signed_in { span class="tag" { (lang.mcp_signed_in()) } }
                @if row.new > 0 { span class="tag bad" { (lang.mcp_new(row.new)) } }
                @if row.changed > 0 { span class="tag bad" { (lang.mcp_changed(row.changed)) } }
            }
            p class="quiet" { span class="brief" { (visible(&row.target)) } }
            @if !row.secrets.is_empty() { p class="quiet" { (lang.mcp_with_secrets()) " " (visible(&row.secrets.join(", "))) } }
            @if let Some(why) = &row.why { p class="remark" data-testid="mcp-why" { (naming(ctx, why)) } }
            @if row.status != ServerStatus::Off { p class="quiet" data-testid="mcp-usable" { (lang.mcp_usable(row.usable)) } }
            div class="choices" { (acts(ctx, row, is_open)) }
            @if is_open { (tool_list(ctx, row, tools)) }
        }
    }
}

fn dot(status: ServerStatus, lang: Lang) -> Markup {
    let (class, says) = match status {
        ServerStatus::Connected => ("on", lang.mcp_status_connected()),
        ServerStatus::Connecting => ("waits", lang.mcp_status_connecting()),
        ServerStatus::Error => ("bad", lang.mcp_status_error()),
        ServerStatus::SignIn => ("bad", lang.mcp_status_sign_in()),
        ServerStatus::Off => ("off", lang.mcp_status_off()),
        ServerStatus::Idle => ("off", lang.mcp_status_idle()),
    };
    html! { span class="state" data-testid="mcp-status" data-status=(class) { (says) } }
}

fn acts(ctx: &PageContext<'_>, row: &ServerRow, is_open: bool) -> Markup {
    let lang = ctx.lang;
    let act = |action: &str, label: &str, testid: &str, on: &str| {
        let fields = [("server", row.name.as_str()), ("on", on)];
        button(ctx, LIST, action, &Button { label, testid, class: "", fields: &fields })
    };
    let to = ctx.place.opening("server", (!is_open).then_some(&row.name));
    let signing_in =
        mcp::sign_in_page(&ctx.web.app, &row.name).filter(|_| row.status == ServerStatus::SignIn);
    html! {
        a class="button" href=(format!("{to}#{LIST}")) data-show data-testid="mcp-tools" {
            (if is_open { lang.mcp_hide_tools() } else { lang.mcp_show_tools() })
        }
        @if let Some(page) = signing_in {
            a class="button primary" href=(page) target="_blank" rel="noopener noreferrer" data-testid="mcp-sign-in-page" { (lang.mcp_sign_in_page()) }
        } @else if row.status == ServerStatus::SignIn { (act("/settings/mcp/sign-in", lang.mcp_sign_in(), "mcp-sign-in", "")) }
        @if row.signed_in { (act("/settings/mcp/sign-out", lang.mcp_sign_out(), "mcp-sign-out", "")) }
        @if row.enabled {
            @if row.status != ServerStatus::Connecting { (act("/settings/mcp/test", lang.mcp_test(), "mcp-test", "")) }
            (act("/settings/mcp/switch", lang.mcp_turn_off(), "mcp-off", "false"))
        } @else {
            (act("/settings/mcp/switch", lang.mcp_turn_on(), "mcp-on", "true"))
        }
        (act("/settings/mcp/remove", lang.mcp_remove(), "mcp-remove", ""))
    }
}

fn waits(tool: &McpToolRow) -> bool {
    matches!(tool.standing, Standing::New | Standing::Changed)
}

fn tool_list(ctx: &PageContext<'_>, row: &ServerRow, tools: &[McpToolRow]) -> Markup {
    let lang = ctx.lang;
    let waiting: Vec<&McpToolRow> = tools.iter().filter(|tool| waits(tool)).collect();
    html! {
        @if tools.is_empty() { p class="quiet" { (lang.mcp_no_tools()) } }
        @if !waiting.is_empty() {
            p class="remark" { (lang.mcp_beyond()) }
            @if waiting.len() > 1 { (approving(ctx, row, &waiting, &lang.mcp_approve_all(waiting.len()), "mcp-approve-all")) }
        }
        ul class="abilities" {
            @for tool in tools { (tool_row(ctx, row, tool)) }
        }
    }
}

/// A form that approves tools exactly as they are shown.
fn approving(
    ctx: &PageContext<'_>,
    row: &ServerRow,
    tools: &[&McpToolRow],
    label: &str,
    testid: &str,
) -> Markup {
    let content = html! {
        input type="hidden" name="server" value=(row.name);
        @for (at, tool) in tools.iter().enumerate() {
            input type="hidden" name=(format!("tool-{at}")) value=(tool.name);
            input type="hidden" name=(format!("seen-{at}")) value=(tool.seen);
        }
        div class="choices" { button type="submit" class="primary" data-testid=(testid) { (label) } }
    };
    form(ctx, LIST, "/settings/mcp/approve", "", &content)
}

fn tool_row(ctx: &PageContext<'_>, row: &ServerRow, tool: &McpToolRow) -> Markup {
    let lang = ctx.lang;
    html! {
        li data-testid="mcp-tool" data-tool=(tool.name) {
            div class="model-head" {
                strong { (visible(&tool.name)) }
                @match tool.standing {
                    Standing::New => span class="tag bad" { (lang.mcp_standing_new()) },
                    Standing::Changed => span class="tag bad" { (lang.mcp_standing_changed()) },
                    Standing::Gone => span class="tag" { (lang.mcp_standing_gone()) },
                    Standing::Agreed if tool.enabled => span class="tag good" { (lang.mcp_standing_approved()) },
                    Standing::Agreed => span class="tag" { (lang.mcp_status_off()) },
                }
                @if tool.read_only { span class="tag" { (lang.mcp_reads()) } }
            }
            @if let Some(before) = &tool.before {
                p class="label" { (lang.mcp_before()) }
                (described(&before.description, &before.schema, lang))
                p class="label" { (lang.mcp_now()) }
            }
            (described(&tool.description, &tool.schema, lang))
            @if waits(tool) { (approving(ctx, row, &[tool], lang.mcp_approve(), "mcp-approve")) }
            @if tool.standing == Standing::Agreed { (switches(ctx, row, tool)) }
        }
    }
}

/// What a server says of a tool. All of it is a stranger's text.
fn described(description: &str, schema: &Value, lang: Lang) -> Markup {
    let parameters = schema.get("properties").and_then(Value::as_object);
    html! {
        blockquote class="quiet" dir="auto" {
            @if description.is_empty() { (lang.mcp_no_description()) } @else { (visible(description)) }
        }
        @if let Some(parameters) = parameters.filter(|all| !all.is_empty()) {
            details {
                summary { (lang.mcp_parameters(parameters.len())) }
                pre { (visible(&serde_json::to_string_pretty(schema).unwrap_or_default())) }
            }
        }
    }
}

fn switches(ctx: &PageContext<'_>, row: &ServerRow, tool: &McpToolRow) -> Markup {
    let lang = ctx.lang;
    let one = |what: &str, on: bool, label: &str| {
        let content = html! {
            input type="hidden" name="server" value=(row.name);
            input type="hidden" name="tool" value=(tool.name);
            input type="hidden" name="what" value=(what);
            input type="hidden" name="on" value=(!on);
            button class="switch" type="submit" role="switch" aria-checked=(on) data-testid=(format!("mcp-{what}")) {
                span { (label) } span class="track" {}
            }
        };
        form(ctx, LIST, "/settings/mcp/tool", "", &content)
    };
    html! {
        (one("enabled", tool.enabled, lang.mcp_switch_enabled()))
        @if tool.enabled {
            @if !tool.read_only { (one("dont_ask", tool.dont_ask, lang.mcp_switch_dont_ask())) }
            @if tool.read_only { (one("in_tasks", tool.in_tasks, lang.mcp_switch_in_tasks())) }
        }
    }
}

/// The ways to add servers; the address says which one is open.
fn adding(ctx: &PageContext<'_>) -> Markup {
    let lang = ctx.lang;
    let chosen = ctx.place.open("way").unwrap_or_default();
    let way = |id: &str, label: &str| {
        let here = chosen == id;
        let to = ctx.place.opening("way", (!here).then_some(id));
        html! { li { a class="button" href=(format!("{to}#{ADD}")) data-show data-testid=(format!("mcp-way-{id}"))
        aria-current=[here.then_some("true")] { (label) } } }
    };
    html! {
        ul class="presets" aria-label=(lang.mcp_add()) {
            (way("program", lang.mcp_way_program()))
            (way("address", lang.mcp_way_address()))
            (way("import", lang.mcp_way_import()))
        }
        @match chosen {
            "program" => (program(ctx)),
            "address" => (address(ctx)),
            "import" => (importing(ctx)),
            _ => {}
        }
    }
}

fn typed<'a>(ctx: &'a PageContext<'_>, field: &str) -> &'a str {
    ctx.error.and_then(|told| told.typed(ADD, field)).unwrap_or_default()
}

fn line(ctx: &PageContext<'_>, field: &str, label: &str, hint: &str) -> Markup {
    let id = format!("mcp-{field}");
    html! {
        label for=(id) { (label) }
        input type="text" id=(id) data-testid=(id) name=(field) value=(typed(ctx, field)) placeholder=(hint)
            autocomplete="off" autocapitalize="none" spellcheck="false";
    }
}

/// A field for secrets, one a line. What was typed is never shown again.
fn secrets(id: &str, label: &str, hint: &str) -> Markup {
    html! {
        label for=(id) { (label) }
        textarea id=(id) data-testid=(id) name="secrets" rows="2" placeholder=(hint) autocomplete="off" spellcheck="false" {}
    }
}

fn program(ctx: &PageContext<'_>) -> Markup {
    let lang = ctx.lang;
    let content = html! {
        (line(ctx, "name", lang.mcp_name(), "time"))
        (line(ctx, "command", lang.mcp_command(), lang.mcp_command_hint()))
        (secrets("mcp-env", lang.mcp_env(), "API_KEY=…"))
        p class="quiet" { (lang.mcp_program_help()) }
        div class="choices" { button type="submit" class="primary" data-testid="mcp-add-save" { (lang.mcp_add_this()) } }
    };
    form(ctx, ADD, "/settings/mcp/add", "fields", &content)
}

fn address(ctx: &PageContext<'_>) -> Markup {
    let lang = ctx.lang;
    let content = html! {
        (line(ctx, "name", lang.mcp_name(), "notes"))
        (line(ctx, "url", lang.mcp_address(), "https://notes.example/mcp"))
        (secrets("mcp-headers", lang.mcp_headers(), lang.mcp_headers_hint()))
        p class="quiet" { (lang.mcp_address_help()) }
        div class="choices" { button type="submit" class="primary" data-testid="mcp-add-save" { (lang.mcp_add_this()) } }
    };
    form(ctx, ADD, "/settings/mcp/add", "fields", &content)
}

fn importing(ctx: &PageContext<'_>) -> Markup {
    let lang = ctx.lang;
    let Some(pasted) = ctx.web.ephemeral.servers() else {
        let content = html! {
            label for="mcp-paste" { (lang.mcp_paste()) }
            textarea id="mcp-paste" data-testid="mcp-paste" name="text" rows="6" required spellcheck="false" autocomplete="off"
                placeholder="{\"mcpServers\": { … }}" {}
            p class="quiet" { (lang.mcp_paste_help()) }
            div class="choices" { button type="submit" class="primary" data-testid="mcp-preview" { (lang.mcp_preview()) } }
        };
        return form(ctx, ADD, "/settings/mcp/preview", "fields", &content);
    };
    let (plan, number) = (&pasted.plan, pasted.number.to_string());
    let act = |label: &str, testid: &str, class: &str, yes: &str| {
        let fields = [("number", number.as_str()), ("yes", yes)];
        button(ctx, ADD, "/settings/mcp/import", &Button { label, testid, class, fields: &fields })
    };
    html! {
        ul class="outcomes" data-testid="mcp-plan" {
            @for server in &plan.added { li { strong { (server.name) } (planned(server, lang)) } }
            @for server in &plan.left_out {
                li { strong { (server.name) } span class="remark" { (lang.mcp_left_out()) " " (naming(ctx, &server.why)) } }
            }
        }
        @if plan.added.iter().any(|server| server.is_program) { p class="remark" { (lang.mcp_programs_run()) } }
        div class="choices" {
            @if !plan.added.is_empty() { (act(&lang.mcp_add_all(plan.added.len()), "mcp-import", "primary", "yes")) }
            (act(lang.mcp_cancel(), "mcp-import-cancel", "", ""))
        }
    }
}

fn planned(server: &ImportedServer, lang: Lang) -> Markup {
    html! {
        span class="brief" { (visible(&server.target)) }
        @if !server.secrets.is_empty() { span class="quiet" { (lang.mcp_with_secrets()) " " (visible(&server.secrets.join(", "))) } }
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

async fn add(headers: HeaderMap, form: Form) -> Response {
    let (name, url) = (form.field("name").trim().to_owned(), form.field("url").trim().to_owned());
    let Some(command) = words(form.field("command")) else {
        return form.refuse(Failure::usage(said::mcp_open_quote()));
    };
    let secrets = lines(form.field("secrets"));
    let (env, headers_typed) = if url.is_empty() { (secrets, vec![]) } else { (vec![], secrets) };
    let url = Some(url).filter(|url| !url.is_empty());
    let new = AddServer { name: name.clone(), command, url, headers: headers_typed, env };
    let done = match mcp::added(form.app(), &new).await {
        Ok(()) => begin_test(&form, name.clone()).await,
        Err(failure) => Err(failure),
    };
    match done {
        // Load the page again, so that secrets do not stay in the fields, with the server's tools open.
        Ok(()) => reply::done(&headers, &format!("/settings/mcp?open=server%3A{name}#{LIST}")),
        Err(failure) => form.refuse(failure),
    }
}

/// Connects to a server anew. The page shows how that goes, so nobody has to wait.
async fn begin_test(form: &Form, name: String) -> Result<(), Failure> {
    let web = form.web.clone();
    let work = async move {
        // What came of it is the server's state, which the page shows.
        let tested = mcp::test(&web.app, &name).await.map(drop);
        web.turns.move_on();
        tested
    };
    form.start(work).await
}

async fn test(form: Form) -> Response {
    let begun = begin_test(&form, form.field("server").to_owned()).await;
    form.answer(begun)
}

async fn switch(form: Form) -> Response {
    let done = mcp::switch(form.app(), form.field("server"), form.field("on") == "true").await;
    form.answer(done)
}

async fn remove(form: Form) -> Response {
    let done = put_away(&form).await;
    form.answer(done)
}

/// Removes a server and puts it into the undo bin.
async fn put_away(form: &Form) -> Result<(), Failure> {
    let removed = mcp::remove_undoable(form.app(), form.field("server")).await?;
    form.web.bin.put(Kept::Server(Box::new(removed)), form.app().clock.now());
    Ok(())
}

async fn approve(form: Form) -> Response {
    let seen = (0..).map_while(|at: usize| {
        let (name, seen) = (form.field(&format!("tool-{at}")), form.field(&format!("seen-{at}")));
        (!name.is_empty()).then(|| SeenTool { name: name.to_owned(), seen: seen.to_owned() })
    });
    let tools: Vec<SeenTool> = seen.collect();
    let done = mcp::approve(form.app(), form.field("server"), tools).await;
    form.answer(done)
}

async fn set_tool(form: Form) -> Response {
    let (server, tool) = (form.field("server").to_owned(), form.field("tool").to_owned());
    let on = form.field("on") == "true";
    let call = match form.field("what") {
        "dont_ask" => McpCall::DontAsk { server, tool, on },
        "in_tasks" => McpCall::InTasks { server, tool, on },
        _ => McpCall::Switch { server, tool: Some(tool), on },
    };
    let done = form.call(Call::Mcp(call)).await;
    form.answer(done)
}

/// Shows what a pasted file would add.
async fn preview(form: Form) -> Response {
    let text = form.field("text").to_owned();
    let done = mcp::import(form.app(), &text, true).await;
    let done = done.map(|plan| form.web.ephemeral.keep_servers(text, plan));
    form.answer(done)
}

/// Adds what this page showed, or forgets it.
async fn import(headers: HeaderMap, form: Form) -> Response {
    match add_pasted(&form).await {
        Ok(()) => reply::done(&headers, &format!("/settings/mcp#{LIST}")),
        Err(failure) => form.refuse(failure),
    }
}

async fn add_pasted(form: &Form) -> Result<(), Failure> {
    let number = form.field("number").parse().unwrap_or_default();
    let pasted = form.web.ephemeral.take_servers(number);
    if form.field("yes") != "yes" {
        return Ok(());
    }
    // Another tab may have pasted another list, whose programs nobody has seen here.
    let pasted = pasted.ok_or_else(|| Failure::failed(said::mcp_list_gone()))?;
    mcp::import(form.app(), &pasted.text, false).await.map(drop)
}

/// Begins signing in; the card then links to the page on which the user does it, as long as somebody waits there.
async fn sign_in(form: Form) -> Response {
    let begun = mcp::begin_sign_in(form.app(), form.field("server")).await;
    form.answer(begun)
}

async fn sign_out(form: Form) -> Response {
    let done = mcp::sign_out(form.app(), form.field("server")).await;
    form.answer(done)
}
