//! `kai mcp serve`: another program reads and drafts, over its input and output and over HTTP, and only the user sends.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::kit::Done;
use crate::phone::Phone;
use crate::sms::{ALICE, ready};

const CODE: &str = "482913";

/// A program that asks Kai, as Claude Desktop or Zed do.
struct Program {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
    asked: u64,
}

impl Program {
    fn start(phone: &Phone) -> Self {
        let mut command = phone.command();
        command.args(["mcp", "serve"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Self { child, to, from, asked: 0 }
    }

    /// One that has introduced itself.
    fn named(phone: &Phone, name: &str) -> Self {
        let mut program = Self::start(phone);
        let hello = program.ask("initialize", &hello(name));
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        program.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        program
    }

    fn write(&mut self, line: &str) {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next message that is no notification of a change.
    fn read(&mut self) -> Value {
        loop {
            let line = self.from.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            if message["method"] != "notifications/tools/list_changed" {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool: whether it worked, and its text; or the error of a call that there is not.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(bool, String), Value> {
        called(&self.ask("tools/call", &json!({"name": tool, "arguments": arguments})))
    }

    /// Closes its end; the code and what stood on stderr.
    fn leave(mut self) -> (Option<i32>, String) {
        drop(self.to.take());
        assert!(self.from.next().is_none(), "nothing more is said");
        let code = self.child.wait().unwrap().code();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn hello(name: &str) -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}})
}

fn called(answer: &Value) -> Result<(bool, String), Value> {
    if answer["error"].is_object() {
        return Err(answer["error"].clone());
    }
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    Ok((answer["result"]["isError"] == false, text.to_owned()))
}

/// A phone with a message and a code, whose user lets programs in.
fn open() -> Phone {
    let phone = ready();
    let code = format!("Your login code is {CODE}. Tell nobody.");
    phone.inbox(&[(41, ALICE, "before"), (42, ALICE, "Dinner at 8?"), (43, "+15550177", &code)]);
    works(&phone, &["settings", "set", "mcp_server_enabled", "true"]);
    works(&phone, &["sms", "poll"]);
    phone
}

fn works(phone: &Phone, words: &[&str]) -> Done {
    let done = phone.run(words);
    assert_eq!(done.code, 0, "{words:?}: {done:?}");
    done
}

fn drafts(phone: &Phone) -> Value {
    works(phone, &["drafts", "list", "--json"]).json()
}

#[test]
fn a_program_reads_and_drafts_once_it_is_allowed_and_only_the_user_sends() {
    while_it_is_off_nobody_is_let_in_and_nothing_is_kept();
    a_new_name_gets_nothing_until_it_is_allowed_and_again_when_it_is_blocked();
    it_reads_without_codes_and_its_drafts_wait();
    a_killed_daemon_is_no_end();
}

fn while_it_is_off_nobody_is_let_in_and_nothing_is_kept() {
    let phone = ready();
    let mut program = Program::start(&phone);
    let hello = program.ask("initialize", &hello("Zed"));
    let words = hello["result"]["instructions"].as_str().unwrap();
    assert!(words.contains("kai settings set mcp_server_enabled true"), "{words}");
    assert_eq!(program.tools(), [""; 0]);
    assert!(program.call("check_sms", &json!({})).is_err());
    let (code, said) = program.leave();
    assert_eq!(code, Some(0));
    assert!(said.contains("kai settings set mcp_server_enabled true"), "{said}");
    assert_eq!(works(&phone, &["mcp", "guests", "list", "--json"]).json(), json!([]));
}

fn a_new_name_gets_nothing_until_it_is_allowed_and_again_when_it_is_blocked() {
    let phone = open();
    let mut program = Program::named(&phone, " Zed\u{202e}\n editor ");
    assert_eq!(program.tools(), [""; 0]);
    let refused = program.call("check_sms", &json!({})).unwrap_err();
    assert_eq!(refused["code"], -32602);
    let words = refused["message"].as_str().unwrap();
    assert!(words.starts_with("Unknown tool: check_sms") && words.contains("\"Zed editor\""), "{words}");
    let listed = works(&phone, &["mcp", "guests", "list", "--json"]).json();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["state"]),
        (&"Zed editor".into(), &"asked".into()),
        "{listed}"
    );

    works(&phone, &["mcp", "guests", "allow", "Zed editor"]);
    let told = program.from.next().unwrap().unwrap();
    assert!(told.contains("notifications/tools/list_changed"), "it is told unasked: {told}");
    let expected =
        ["list_tasks", "check_sms", "read_sms", "search_sms", "send_sms", "reply_sms", "check_drafts"];
    assert_eq!(program.tools(), expected, "notifications are not enabled, so they do not exist");
    for hidden in ["memory_store", "open_url", "check_notifications", "schedule_task", "tap_draft", "kai"] {
        let refused = program.call(hidden, &json!({})).unwrap_err();
        assert_eq!(refused["message"], format!("Unknown tool: {hidden}"));
    }
    works(&phone, &["settings", "set", "sms_send_enabled", "false"]);
    assert!(program.call("send_sms", &json!({"to": ALICE, "body": "Hi"})).is_err(), "it does not exist now");
    works(&phone, &["settings", "set", "sms_send_enabled", "true"]);

    works(&phone, &["mcp", "guests", "block", "Zed editor"]);
    assert_eq!(program.tools(), [""; 0]);
    assert!(program.call("check_sms", &json!({})).is_err());
    works(&phone, &["mcp", "guests", "forget", "Zed editor"]);
    assert!(program.call("check_sms", &json!({})).is_err());
    let listed = works(&phone, &["mcp", "guests", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "asked", "it is new again: {listed}");
    assert_eq!(drafts(&phone), json!([]));
    phone.run(&["mcp", "guests", "allow", "nobody"]).refused(1, "No program has introduced itself");
}

fn it_reads_without_codes_and_its_drafts_wait() {
    let phone = open();
    // What the user lets Kai's own models see is not meant for guests.
    works(&phone, &["settings", "set", "code_redaction_enabled", "false"]);
    let mut program = Program::named(&phone, "Zed");
    works(&phone, &["mcp", "guests", "allow", "Zed"]);
    for (tool, arguments) in
        [("check_sms", json!({})), ("read_sms", json!({"id": 43})), ("search_sms", json!({"query": "login"}))]
    {
        let (worked, text) = program.call(tool, &arguments).unwrap();
        assert!(worked && !text.contains(CODE), "{tool}: {text}");
    }
    let (_, dinner) = program.call("read_sms", &json!({"id": 42})).unwrap();
    assert!(dinner.contains("Dinner at 8?"), "{dinner}");
    let (worked, wrong) = program.call("read_sms", &json!({"id": 4711})).unwrap();
    assert!(!worked && wrong.contains("There is no received SMS"), "{wrong}");

    works(&phone, &["tools", "call", "send_sms", &json!({"to": ALICE, "body": "Mine"}).to_string()]);
    for number in 0..5 {
        let (worked, text) =
            program.call("reply_sms", &json!({"sms_id": 42, "body": format!("Yes {number}")})).unwrap();
        assert!(worked && text.contains("Nothing was sent"), "{text}");
    }
    let again = program.call("reply_sms", &json!({"sms_id": 42, "body": "Yes 4"})).unwrap();
    assert!(again.0, "the same draft is not staged twice: {}", again.1);
    let (worked, full) = program.call("send_sms", &json!({"to": ALICE, "body": "A sixth"})).unwrap();
    assert!(!worked && full.contains("5 drafts of yours are already waiting"), "{full}");
    let (_, own) = program.call("check_drafts", &json!({})).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&own).unwrap()["count"], 5, "its own only: {own}");
    let waiting = drafts(&phone);
    assert_eq!(waiting.as_array().unwrap().len(), 6);
    assert_eq!((&waiting[1]["origin"], &waiting[1]["guest"]), (&"guest".into(), &"Zed".into()), "{waiting}");
    let shown = works(&phone, &["drafts", "show", &waiting[1]["id"].to_string()]).out;
    assert!(shown.contains("from the program \"Zed\""), "{shown}");
    assert_eq!(phone.left(), "", "nothing was sent");

    let did = works(&phone, &["mcp", "guests", "list", "--json"]).json()[0]["deeds"].clone();
    let noted = |tool: &str, what: &str| {
        did.as_array().unwrap().iter().filter(|deed| deed["tool"] == tool && deed["did"] == what).count()
    };
    assert_eq!((noted("read_sms", "read"), noted("read_sms", "failed")), (2, 1), "{did}");
    assert_eq!((noted("reply_sms", "drafted"), noted("send_sms", "failed")), (5, 1), "{did}");
    let listed = works(&phone, &["mcp", "guests", "list"]).out;
    assert!(listed.contains("\"Zed\"  allowed") && listed.contains("reply_sms: draft"), "{listed}");
    let ledger = works(&phone, &["ledger", "show"]).out;
    assert!(ledger.contains("The program \"Zed\" called read_sms and got"), "{ledger}");
    let who = works(&phone, &["ledger", "who", "42", "--json"]).json();
    assert!(who.as_array().unwrap().iter().any(|row| row["what"] == "guest_call"), "{who}");
    assert_eq!(works(&phone, &["ledger", "verify", "--json"]).json()["whole"], true);
    let (code, said) = program.leave();
    assert_eq!((code, said.lines().count()), (Some(0), 1), "it was told once to wait: {said}");
}

fn a_killed_daemon_is_no_end() {
    let phone = open();
    let mut daemon = phone.start();
    let mut program = Program::named(&phone, "Zed");
    works(&phone, &["mcp", "guests", "allow", "Zed"]);
    assert!(program.call("read_sms", &json!({"id": 42})).unwrap().0);
    daemon.kill();
    assert!(program.call("read_sms", &json!({"id": 42})).unwrap().0, "the store answers");
    let _again = phone.start();
    let (worked, text) = program.call("send_sms", &json!({"to": ALICE, "body": "Hi"})).unwrap();
    assert!(worked, "{text}");
    assert_eq!(drafts(&phone)[0]["guest"], "Zed");
    assert_eq!(phone.left(), "");
}

#[test]
fn garbage_and_huge_lines_are_answered_in_words() {
    let phone = open();
    let mut program = Program::named(&phone, "Zed");
    works(&phone, &["mcp", "guests", "allow", "Zed"]);
    for (line, code) in [
        ("{", -32700),
        ("\u{1}\u{7f}garbage", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602),
    ] {
        program.write(line);
        let answer = program.read();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":"{}"}}"#, "x".repeat(5_000_000));
    program.write(&huge);
    let answer = program.read();
    assert!(answer["error"]["message"].as_str().unwrap().contains("at most 1048576 bytes"), "{answer}");
    program.write("");
    let body = "x".repeat(900_000);
    let (worked, text) = program.call("send_sms", &json!({"to": ALICE, "body": body})).unwrap();
    assert!(!worked && text.len() < 10_000, "{text}");
    assert!(program.call("check_sms", &json!({})).unwrap().0, "it goes on");
    assert_eq!(program.leave().0, Some(0));
}

/// `kai mcp serve --http`, ended with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(phone: &Phone) -> Self {
        let mut command = phone.command();
        command.args(["mcp", "serve", "--http", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("Serving MCP at http://").unwrap_or_else(|| panic!("{first:?}"));
        let address = url.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, address }
    }

    /// The status and the body of an answer.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let mut head =
            format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        let host = ("Host", self.address.as_str());
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        for (name, value) in headers.iter().chain((!has_host).then_some(&host)) {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // A body that is too long is not read to its end.
        drop(stream.write_all(body.as_bytes()));
        let mut text = String::new();
        drop(stream.read_to_string(&mut text));
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// A message with this token.
    fn ask(&self, token: &str, method: &str, params: &Value) -> (u16, Value) {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let bearer = format!("Bearer {token}");
        self.send("POST", &[JSON, ("Authorization", &bearer)], &message)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn over_http_a_guest_is_who_holds_its_token_and_no_web_page_gets_in() {
    let phone = open();
    let token = |name: &str| {
        let made = works(&phone, &["mcp", "guests", "token", name, "--json"]).json();
        made["token"].as_str().unwrap().to_owned()
    };
    let (one, two) = (token("one"), token("two"));
    works(&phone, &["mcp", "guests", "allow", "one"]);
    let served = Served::start(&phone);
    let (status, welcome) = served.ask(&one, "initialize", &hello("two"));
    assert_eq!((status, &welcome["result"]["capabilities"]["tools"]["listChanged"]), (200, &false.into()));
    let tools = |token: &str| served.ask(token, "tools/list", &json!({})).1["result"]["tools"].clone();
    assert_eq!(tools(&one).as_array().unwrap().len(), 7, "whatever it calls itself");
    assert_eq!(tools(&two), json!([]), "a token is not a permission");
    let call = json!({"name": "send_sms", "arguments": {"to": ALICE, "body": "Hi"}});
    assert!(called(&served.ask(&one, "tools/call", &call).1).unwrap().0);
    assert!(called(&served.ask(&two, "tools/call", &call).1).is_err());
    assert_eq!((&drafts(&phone)[0]["guest"], phone.left()), (&"one".into(), String::new()));

    let bearer = format!("Bearer {one}");
    let held = ("Authorization", bearer.as_str());
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let (origin, rebound) = (("Origin", "https://evil.test"), ("Host", "evil.test"));
    let own = format!("http://{}", served.address);
    for (name, method, headers, body, expected) in [
        ("as it should be", "POST", &[JSON, held][..], ping, 200),
        ("a notification", "POST", &[JSON, held], told, 202),
        ("its own origin", "POST", &[JSON, held, ("Origin", &own)], ping, 200),
        ("no token", "POST", &[JSON], ping, 401),
        ("another token", "POST", &[JSON, ("Authorization", "Bearer 00")], ping, 401),
        ("a token that is none, for nothing", "POST", &[JSON, ("Authorization", "Bearer 00")], told, 401),
        ("another page", "POST", &[JSON, held, origin], ping, 403),
        ("another name of ours", "POST", &[JSON, held, rebound], ping, 421),
        ("a form", "POST", &[("Content-Type", "text/plain"), held], ping, 415),
        (
            "a version that we do not speak",
            "POST",
            &[JSON, held, ("MCP-Protocol-Version", "1999-01-01")],
            ping,
            400,
        ),
        ("a stream", "GET", &[held], "", 405),
        ("the end of a session", "DELETE", &[held], "", 405),
    ] {
        assert_eq!(served.send(method, headers, body).0, expected, "{name}");
    }
    let (status, garbage) = served.send("POST", &[JSON, held], "[{");
    assert_eq!((status, &garbage["error"]["code"]), (200, &(-32700).into()));
    assert_eq!(served.send("POST", &[JSON, held], &"x".repeat(1_100_000)).0, 413);

    let newer = token("one");
    assert_eq!(served.ask(&one, "ping", &json!({})).0, 401, "the old token is void");
    assert_eq!(served.ask(&newer, "ping", &json!({})).0, 200);
    works(&phone, &["mcp", "guests", "forget", "one"]);
    assert_eq!(served.ask(&newer, "ping", &json!({})).0, 401);
}

#[test]
fn what_to_paste_starts_this_kai_on_this_home() {
    let phone = Phone::new(&[]);
    let home = phone.home.path().to_str().unwrap().to_owned();
    let config = works(&phone, &["mcp", "serve", "--print-config", "--json"]).json();
    for entry in [
        &config["claude_desktop"]["mcpServers"]["kai"],
        &config["zed"]["context_servers"]["kai"],
        &config["vs_code"]["servers"]["kai"],
    ] {
        assert_eq!(entry["args"], json!(["--home", home, "mcp", "serve"]), "{config}");
        assert_eq!(entry["command"], crate::kit::KAI);
    }
    let text = works(&phone, &["mcp", "serve", "--print-config"]).out;
    assert!(text.contains("claude_desktop_config.json") && text.contains("settings.json"), "{text}");
}
