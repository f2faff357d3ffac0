//! A real browser, steered over the `WebDriver` protocol: Debian's chromium and its driver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::Daemon;

pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
    profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The port that it chose may be taken by somebody else in that very moment; then it ends.
        let (driver, port) = (0..10).find_map(|_| driver()).unwrap();
        let address = format!("127.0.0.1:{port}");
        let mut browser = Self { driver, address, session: String::new(), profile };
        browser.begin();
        browser
    }

    fn begin(&mut self) {
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        let mut args = vec![
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-background-timer-throttling",
            "--hide-scrollbars",
            // Without a network, the first page waits half a minute for names that nobody asked us for.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            &profile,
        ];
        if rustix::process::geteuid().is_root() {
            // Chromium refuses its own sandbox to root only.
            args.push("--no-sandbox");
        }
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
            // A page that has to wait for a connection is a defect, not patience.
            "timeouts": {"pageLoad": 30_000},
        }}});
        let begun = self.ask("POST", "/session", &wanted);
        begun["sessionId"].as_str().unwrap().clone_into(&mut self.session);
    }

    pub(crate) fn open(&self, url: &str) {
        self.post("url", &json!({"url": url}));
    }

    /// Opens a tab, goes there and stays; returns the tab's name.
    pub(crate) fn new_tab(&self) -> String {
        let tab = self.post("window/new", &json!({"type": "tab"}))["handle"].as_str().unwrap().to_owned();
        self.switch_to(&tab);
        tab
    }

    pub(crate) fn tab(&self) -> String {
        self.ask("GET", &format!("/session/{}/window", self.session), &Value::Null)
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Leaves all pages for a new, empty tab before their daemon ends, and forgets what they complained about.
    pub(crate) fn leave(&self) {
        let all = self.ask("GET", &format!("/session/{}/window/handles", self.session), &Value::Null);
        let last = self.new_tab();
        for tab in all.as_array().unwrap() {
            self.switch_to(tab.as_str().unwrap());
            self.ask("DELETE", &format!("/session/{}/window", self.session), &Value::Null);
        }
        self.switch_to(&last);
        self.complaints();
    }

    pub(crate) fn switch_to(&self, tab: &str) {
        self.post("window", &json!({"handle": tab}));
    }

    /// Signs in and waits until the page is kept true.
    pub(crate) fn enter(&self, daemon: &Daemon) {
        self.open(&daemon.link);
        self.until_live();
    }

    pub(crate) fn until_live(&self) {
        self.until("the page to live", "return document.querySelector('.app')?.dataset.live === 'yes'");
    }

    /// The size of the window's inside, and whether the person likes it dark.
    pub(crate) fn look(&self, width: u32, height: u32, dark: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = |cmd: &str, params: Value| {
            self.post("goog/cdp/execute", &json!({"cmd": cmd, "params": params}));
        };
        command("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        command("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Types into an element; `\u{e007}` is Enter.
    pub(crate) fn type_into(&self, testid: &str, text: &str) {
        let id = self.element(testid);
        self.post(&format!("element/{id}/value"), &json!({"text": text}));
    }

    /// Presses keys where the focus is.
    pub(crate) fn press(&self, keys: &str) {
        let strokes = keys.chars().flat_map(|key| {
            let key = key.to_string();
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        let actions: Vec<Value> = strokes.collect();
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Presses a key while another is held.
    pub(crate) fn chord(&self, held: &str, key: &str) {
        let stroke = |kind: &str, key: &str| json!({"type": kind, "value": key});
        let actions = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)];
        let actions: Vec<Value> = actions.iter().map(|(kind, key)| stroke(kind, key)).collect();
        self.post("actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Waits until an element with this test id is there.
    pub(crate) fn until_seen(&self, testid: &str) {
        self.until(testid, &format!("return !!document.querySelector('[data-testid=\"{testid}\"]')"));
    }

    pub(crate) fn until_gone(&self, testid: &str) {
        self.until(testid, &format!("return !document.querySelector('[data-testid=\"{testid}\"]')"));
    }

    /// Waits until the page has these words.
    pub(crate) fn until_says(&self, words: &str) {
        let words = Value::from(words);
        self.until(&words.to_string(), &format!("return document.body.innerText.includes({words})"));
    }

    /// Errors on the console: scripts that failed, and everything that the content security policy forbade. That a
    /// change was refused is no error.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let logged = self.post("se/log", &json!({"type": "browser"}));
        let lines = logged.as_array().unwrap().iter();
        lines
            .filter(|line| line["level"] == "SEVERE")
            .map(|line| line["message"].as_str().unwrap().to_owned())
            .filter(|message| !message.contains("status of 409"))
            .collect()
    }

    /// Runs script and returns what it returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs this in every page that this tab opens from now on, before the page's own scripts.
    pub(crate) fn run_first(&self, script: &str) {
        let params = json!({"source": script});
        let command = json!({"cmd": "Page.addScriptToEvaluateOnNewDocument", "params": params});
        self.post("goog/cdp/execute", &command);
    }

    /// The text of all elements with this test id.
    pub(crate) fn texts(&self, testid: &str) -> Vec<String> {
        let script = format!(
            "return [...document.querySelectorAll('[data-testid=\"{testid}\"]')].map(e => e.innerText)"
        );
        serde_json::from_value(self.run(&script)).unwrap()
    }

    /// Clicks as a person does, on what can be seen.
    /// Clicks when the page would take it: what has just moved under the finger takes nothing for a moment, and a Send
    /// whose draft is not in view brings it there first.
    pub(crate) fn click(&self, testid: &str) {
        let moving = format!("return !document.querySelector('[data-testid=\"{testid}\"][data-moved]')");
        let unseen = format!(
            "const it = document.querySelector('[data-testid=\"{testid}\"]');
             if (it?.ariaDisabled === 'true') it.click();
             return it?.ariaDisabled === 'true'"
        );
        self.until("it to be in view", &format!("{unseen} === false"));
        self.until("a steady button", &moving);
        self.click_at_once(testid);
    }

    /// The page may put another element in its place between finding it and clicking it; then that one is clicked.
    pub(crate) fn click_at_once(&self, testid: &str) {
        for _ in 0..20 {
            let id = self.element(testid);
            let path = format!("/session/{}/element/{id}/click", self.session);
            let clicked = self.try_ask("POST", &path, &json!({}));
            if clicked["error"] != "stale element reference" {
                assert!(clicked["error"].is_null(), "{testid}: {}", clicked["message"]);
                return;
            }
        }
        panic!("{testid} does not stay");
    }

    fn element(&self, testid: &str) -> String {
        let using = json!({"using": "css selector", "value": format!("[data-testid=\"{testid}\"]")});
        let found = self.post("element", &using);
        found.as_object().and_then(|o| o.values().next()).and_then(Value::as_str).unwrap().to_owned()
    }

    /// Waits until the page agrees.
    pub(crate) fn until(&self, what: &str, script: &str) {
        let end = Instant::now() + Duration::from_secs(40);
        while self.run(script) != Value::Bool(true) {
            assert!(
                Instant::now() < end,
                "{what} did not happen; the page says: {}",
                self.run("return document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{what}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let value = self.try_ask(method, path, body);
        assert!(value["error"].is_null(), "{method} {path}: {}", value["message"]);
        value
    }

    /// What the browser answers, which may be an error.
    fn try_ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json",
            self.address
        );
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let answer = body_of(&mut BufReader::new(stream));
        let value: Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
        value["value"].clone()
    }

    /// Keeps a picture of the page where somebody asked for them.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("KAI_PICTURES") else { return };
        let taken = self.ask("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        let file = Path::new(&folder).join(format!("{name}.png"));
        let mut decode = Command::new("base64")
            .args(["-d"])
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(file).unwrap())
            .spawn()
            .unwrap();
        decode.stdin.take().unwrap().write_all(taken.as_str().unwrap().as_bytes()).unwrap();
        assert!(decode.wait().unwrap().success());
    }
}

/// The driver keeps its connections open, so the length tells where an answer ends.
fn body_of(from: &mut impl BufRead) -> String {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends chromium too; without it the driver would leave it behind.
        let head = format!(
            "DELETE /session/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.session, self.address
        );
        if let Ok(mut stream) = TcpStream::connect(&self.address) {
            drop(stream.set_read_timeout(Some(Duration::from_secs(10))));
            drop(stream.write_all(head.as_bytes()));
            drop(stream.read(&mut [0; 64]));
        }
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}

/// Chromium's driver and its port; `None` if it did not come so far.
fn driver() -> Option<(Child, String)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("chromedriver is missing (package chromium-driver): {e}"));
    let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = lines.map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("started successfully on port ")?;
        Some(rest.trim_end_matches('.').to_owned())
    });
    if port.is_none() {
        let _ = driver.wait();
    }
    port.map(|port| (driver, port))
}
