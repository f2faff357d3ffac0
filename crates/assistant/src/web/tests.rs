//! Tests the web tools against small servers on loopback: DNS rebinding, redirects into the local network, and services
//! that answer well and badly.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::guard::Guard;
use super::*;
use crate::MIGRATIONS;
use crate::db::Db;
use crate::settings;
use crate::tool::{AnyTool, Run, execute};

/// An address that counts as public in these tests.
const OUTSIDE: &str = "127.0.0.1";
/// An address that does not count as public.
const INSIDE: &str = "127.0.0.2";

/// A server that answers each request by its path and records the requests.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(ip: &str, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (seen, answer) = (Arc::clone(&server.seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&seen), Arc::clone(&answer)));
            }
        });
        server
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.address.port())
    }
}

async fn talk(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, answer: Arc<impl Fn(&str) -> Vec<u8>>) {
    let mut bytes = Vec::new();
    while !whole(&bytes) {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(length) if length > 0 => bytes.extend_from_slice(&piece[..length]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&bytes).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().push(request);
    let answered = answer(&path);
    drop(stream.write_all(&answered).await);
}

fn whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

fn html(body: &str) -> Vec<u8> {
    http("200 OK", "Content-Type: text/html\r\n", body)
}

fn to(location: &str) -> Vec<u8> {
    http("302 Found", &format!("Location: {location}\r\n"), "")
}

/// A resolver that returns the configured answers for a name one after the other, and then repeats the last.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<BTreeMap<String, Lookups>>>);

#[derive(Default)]
struct Lookups {
    times: usize,
    answers: Vec<Vec<IpAddr>>,
}

impl Names {
    fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), Lookups { times: 0, answers });
        self
    }

    fn asked(&self, name: &str) -> usize {
        self.0.lock().unwrap()[name].times
    }
}

impl Resolver for Names {
    fn lookup(&self, host: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>> {
        let mut names = self.0.lock().unwrap();
        let answer = names.get_mut(&host).map(|asked| {
            asked.times += 1;
            asked.answers[(asked.times - 1).min(asked.answers.len() - 1)].clone()
        });
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}

fn web(names: &Names) -> Web {
    Web::guarded_by(Guard { stand_ins: vec![OUTSIDE.parse().unwrap()] }, names.clone())
}

fn db() -> Db {
    Db::in_memory(MIGRATIONS).unwrap()
}

async fn set(db: &Db, key: &'static str, value: &str) {
    let value = value.to_owned();
    db.write(move |tx| settings::store(tx, key, &value)).await.unwrap();
}

/// Calls a tool and returns the JSON that a model would read.
async fn call(tool: &dyn AnyTool, arguments: &Value) -> Value {
    let result = execute(Ok(tool), &settings::Values::default(), &arguments.to_string(), &Run::BY_HAND).await;
    serde_json::from_str(&result.text).unwrap_or_else(|error| panic!("{error}: {}", result.text))
}

async fn fetch(names: &Names, url: &str) -> Value {
    call(&FetchUrl { db: db(), web: web(names) }, &json!({"url": url})).await
}

fn error(result: &Value) -> &str {
    assert_eq!(result["success"], false, "{result}");
    result["error"].as_str().unwrap()
}

#[tokio::test]
async fn a_page_is_fetched_under_its_own_name_after_one_lookup() {
    let server = Server::start(OUTSIDE, |_| html("<title>T</title><nav>n</nav><p>Hello &amp; bye</p>")).await;
    let names = Names::default().with("page.test", &[&[OUTSIDE], &[INSIDE]]);
    let url = server.at("page.test", "/a?b=c");
    let page = fetch(&names, &url).await;
    assert_eq!(
        page,
        json!({"success": true, "untrusted": true, "url": url, "title": "T", "text": "Hello & bye"})
    );
    let request = server.seen().remove(0).to_ascii_lowercase();
    assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nhost: page.test:{}\r\n", server.address.port())), "{request}");
    assert!(!request.contains("cookie") && !request.contains("accept-encoding"), "{request}");
    assert_eq!(names.asked("page.test"), 1, "what was judged is what was connected to");
}

#[tokio::test]
async fn a_secure_page_is_asked_for_by_name_at_the_judged_address() {
    let listener = TcpListener::bind((OUTSIDE, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let greeting = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let length = stream.read(&mut bytes).await.unwrap();
        bytes.truncate(length);
        bytes
    });
    let names = Names::default().with("page.test", &[&[OUTSIDE]]);
    let refused = fetch(&names, &format!("https://page.test:{port}/")).await;
    assert!(error(&refused).contains("page.test could not be reached"), "{refused}");
    let greeting = greeting.await.unwrap();
    assert_eq!(greeting[0], 22, "a TLS handshake");
    assert!(greeting.windows(9).any(|name| name == b"page.test"), "with the name that was meant");
}

#[tokio::test]
async fn redirects_are_followed_five_times() {
    let server = Server::start(OUTSIDE, |path| match path {
        "/end" => html("arrived"),
        "/0" => to("/end"),
        "/loop" => to("http://page.test/nowhere-without-a-port"),
        other => to(&(other[1..].parse::<u32>().unwrap() - 1).to_string()),
    })
    .await;
    let names = Names::default().with("page.test", &[&[OUTSIDE]]);
    let arrived = fetch(&names, &server.at("page.test", "/4")).await;
    assert_eq!(
        (&arrived["text"], &arrived["url"]),
        (&json!("arrived"), &json!(server.at("page.test", "/end")))
    );
    assert_eq!(names.asked("page.test"), 6, "every step is looked up and judged anew");
    let given_up = fetch(&names, &server.at("page.test", "/5")).await;
    assert!(error(&given_up).contains("more than 5 times"), "{given_up}");
}

#[tokio::test]
async fn no_redirect_leads_inside() {
    let inside = Server::start(INSIDE, |_| html("secrets")).await;
    let ports = inside.address.port();
    let places = [
        format!("http://{INSIDE}:{ports}/"),
        format!("//inside.test:{ports}/"),
        format!("http://2130706434:{ports}/"),
        format!("http://[::ffff:{INSIDE}]:{ports}/"),
        format!("http://0x7f.0.0.2:{ports}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://localhost/".to_owned(),
    ];
    let targets = places.clone();
    let server = Server::start(OUTSIDE, move |path| to(&targets[path[1..].parse::<usize>().unwrap()])).await;
    let names = Names::default()
        .with("page.test", &[&[OUTSIDE]])
        .with("inside.test", &[&[INSIDE]])
        .with("localhost", &[&["::1"]]);
    for (number, place) in places.iter().enumerate() {
        let refused = fetch(&names, &server.at("page.test", &format!("/{number}"))).await;
        assert!(error(&refused).contains("not a public internet address"), "{place}: {refused}");
    }
    assert!(inside.seen().is_empty(), "nothing was asked of the inside");
    let file = Server::start(OUTSIDE, |_| to("file:///etc/passwd")).await;
    let refused = fetch(&names, &file.at("page.test", "/")).await;
    assert!(error(&refused).contains("Only http:// and https://"), "{refused}");
}

#[tokio::test]
async fn a_name_that_changes_its_mind_or_mixes_is_refused() {
    let inside = Server::start(INSIDE, |_| html("secrets")).await;
    let port = inside.address.port();
    let server = Server::start(OUTSIDE, move |_| to(&format!("http://rebind.test:{port}/again"))).await;
    let names = Names::default()
        .with("rebind.test", &[&[OUTSIDE], &[INSIDE]])
        .with("mixed.test", &[&[OUTSIDE, INSIDE]])
        .with("mapped.test", &[&["::ffff:127.0.0.2"]])
        .with("empty.test", &[&[]]);
    for (url, word) in [
        (server.at("rebind.test", "/"), "leads to 127.0.0.2"),
        (server.at("mixed.test", "/"), "leads to 127.0.0.2"),
        (server.at("mapped.test", "/"), "not a public internet address"),
        (server.at("empty.test", "/"), "could not be reached"),
        (server.at("unknown.test", "/"), "the host name is unknown"),
        (inside.at(INSIDE, "/"), "127.0.0.2 leads to 127.0.0.2"),
    ] {
        let refused = fetch(&names, &url).await;
        assert!(error(&refused).contains(word), "{url}: {refused}");
    }
    assert_eq!(names.asked("rebind.test"), 2);
    assert!(inside.seen().is_empty(), "nothing was asked of the inside");
}

#[tokio::test]
async fn bad_addresses_and_bad_servers_are_answered_in_words() {
    let server = Server::start(OUTSIDE, |path| match path {
        "/gone" => http("404 Not Found", "Content-Type: text/html\r\n", "<p>gone</p>"),
        "/packed" => http("200 OK", "Content-Type: text/html\r\nContent-Encoding: gzip\r\n", "xx"),
        "/image" => http("200 OK", "Content-Type: image/png\r\n", "xx"),
        "/short" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".to_vec(),
        "/nonsense" => b"hello\r\n\r\n".to_vec(),
        "/nowhere" => http("302 Found", "Location: http://\r\n", ""),
        _ => vec![],
    })
    .await;
    let names = Names::default().with("page.test", &[&[OUTSIDE]]);
    for (path, word) in [
        ("/gone", "error 404"),
        ("/packed", "compressed"),
        ("/image", "image/png"),
        ("/short", "could not be reached"),
        ("/nonsense", "does not answer in HTTP"),
        ("/nowhere", "not an address"),
        ("/silence", "closed without an answer"),
    ] {
        let refused = fetch(&names, &server.at("page.test", path)).await;
        assert!(error(&refused).contains(word), "{path}: {refused}");
    }
    let tool = FetchUrl { db: db(), web: web(&names) };
    for (arguments, word) in [
        (json!({}), "\"url\" must be a string"),
        (json!({"url": [7]}), "\"url\" must be a string"),
        (json!({"url": ""}), "not a web address"),
        (json!({"url": "example.org"}), "not a web address"),
        (json!({"url": "tel:123"}), "Only http:// and https://"),
        (json!({"url": "https://me:pw@page.test/"}), "user name or a password"),
    ] {
        let refused = call(&tool, &arguments).await;
        assert!(error(&refused).contains(word), "{arguments}: {refused}");
    }
}

#[tokio::test]
async fn an_endless_page_is_read_only_so_far() {
    let server = Server::start(OUTSIDE, |_| {
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 90000000\r\n\r\n".to_vec();
        [head, vec![b'a'; 3_000_000]].concat()
    })
    .await;
    let names = Names::default().with("page.test", &[&[OUTSIDE]]);
    let page = fetch(&names, &server.at("page.test", "/")).await;
    let note = page["note"].as_str().unwrap();
    assert!(note.contains("of 2000000 characters") && note.contains("first 2000000 bytes"), "{note}");
    assert_eq!(page["untrusted"], true);
}

/// A search tool whose services are all at the given server.
async fn searching(server: &Server, chosen: &[(&'static str, &str)]) -> WebSearch {
    let (db, at) = (db(), |path: &str| server.at(OUTSIDE, path));
    for (key, value) in chosen {
        set(&db, key, value).await;
    }
    let services = SearchServices {
        duckduckgo: at("/html/").into(),
        brave: at("/res/v1/web/search").into(),
        tavily: at("/tavily").into(),
    };
    WebSearch { db, web: web(&Names::default()), services }
}

#[tokio::test]
async fn every_search_service_is_asked_in_its_own_way() {
    let server = Server::start(OUTSIDE, |path| {
        let hit = r#"{"title": "A", "url": "https://a.test/", "content": "s", "description": "s"}"#;
        match path.split('?').next().unwrap_or_default() {
            "/html/" => html(
                "<div class='result'><a class='result__a' href='//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2F'>A</a>\
                 <a class='result__snippet'>s</a></div>",
            ),
            "/res/v1/web/search" => http("200 OK", "", &format!(r#"{{"type":"search","web":{{"results":[{hit}]}}}}"#)),
            _ => http("200 OK", "Content-Type: application/json\r\n", &format!(r#"{{"results":[{hit}]}}"#)),
        }
    })
    .await;
    let searx = server.at(OUTSIDE, "/sub/");
    for (chosen, line, word) in [
        (vec![], "GET /html/?q=a+%26+%C3%BC ", "user-agent: Mozilla/5.0 (compatible; Kai/"),
        (
            vec![("web_search_backend", "searxng"), ("web_search_searxng_url", searx.as_str())],
            "GET /sub/search?q=a+%26+%C3%BC&format=json ",
            "",
        ),
        (
            vec![("web_search_backend", "brave"), ("web_search_brave_key", "BK")],
            "GET /res/v1/web/search?q=a+%26+%C3%BC&count=5 ",
            "x-subscription-token: BK\r\n",
        ),
        (
            vec![("web_search_backend", "tavily"), ("web_search_tavily_key", "TK")],
            "POST /tavily ",
            "authorization: Bearer TK\r\n",
        ),
    ] {
        let found = call(&searching(&server, &chosen).await, &json!({"query": "a & ü"})).await;
        let hit = json!({"title": "A", "url": "https://a.test/", "snippet": "s"});
        assert_eq!(found, json!({"success": true, "untrusted": true, "results": [hit]}), "{chosen:?}");
        let request = server.seen().pop().unwrap();
        assert!(request.starts_with(line) && request.contains(word), "{request}");
    }
    let tavily = server.seen().pop().unwrap();
    assert!(tavily.ends_with(r#"{"max_results":5,"query":"a & ü"}"#), "{tavily}");
}

#[tokio::test]
async fn a_search_that_failed_is_an_error_and_never_nothing() {
    let server = Server::start(OUTSIDE, |path| match path.split('?').next().unwrap_or_default() {
        "/html/" => http("202 Accepted", "Content-Type: text/html\r\n", "<form id='challenge-form'></form>"),
        "/res/v1/web/search" => http("422 Unprocessable", "", "{}"),
        "/tavily" => http("401 Unauthorized", "", r#"{"detail":{"error":"key TK"}}"#),
        "/search" => http("403 Forbidden", "", "no"),
        _ => http("200 OK", "", "<html>A proxy's page</html>"),
    })
    .await;
    let (plain, odd) = (server.at(OUTSIDE, ""), server.at(OUTSIDE, "/odd"));
    for (chosen, word) in [
        (vec![], "proof that a person is searching"),
        (vec![("web_search_backend", "brave")], "needs web_search_brave_key"),
        (vec![("web_search_backend", "brave"), ("web_search_brave_key", "BK")], "error 422"),
        (vec![("web_search_backend", "tavily"), ("web_search_tavily_key", "TK")], "refused its key"),
        (vec![("web_search_backend", "searxng")], "needs web_search_searxng_url"),
        (
            vec![("web_search_backend", "searxng"), ("web_search_searxng_url", plain.as_str())],
            "search.formats",
        ),
        (
            vec![("web_search_backend", "searxng"), ("web_search_searxng_url", odd.as_str())],
            "does not understand",
        ),
        (
            vec![("web_search_backend", "searxng"), ("web_search_searxng_url", "http://127.0.0.1:1/")],
            "nothing is listening",
        ),
    ] {
        let refused = call(&searching(&server, &chosen).await, &json!({"query": "q"})).await;
        let said = error(&refused);
        assert!(said.contains(word) && !said.contains("TK") && !said.contains("BK"), "{chosen:?}: {said}");
    }
    let tool = searching(&server, &[]).await;
    for (arguments, word) in [
        (json!({}), "\"query\" must be a string"),
        (json!({"query": ["a"]}), "\"query\" must be a string"),
        (json!({"query": "  "}), "The query is empty"),
        (json!({"query": "x".repeat(401)}), "at most 400"),
    ] {
        let refused = call(&tool, &arguments).await;
        assert!(error(&refused).contains(word), "{arguments}: {refused}");
    }
}

#[tokio::test]
async fn the_location_comes_from_the_chosen_service() {
    let server = Server::start(OUTSIDE, |path| match path {
        "/who" => {
            http("200 OK", "", r#"{"success":true,"city":"Ulm","country":"Germany","country_code":"DE"}"#)
        }
        "/limit" => http("429 Too Many Requests", "", ""),
        _ => http("200 OK", "", r#"{"error":true,"reason":"RateLimited"}"#),
    })
    .await;
    let tool = |db: Db, ipwho: &str| {
        let (ipwho, ipapi) = (server.at(OUTSIDE, ipwho).into(), server.at(OUTSIDE, "/api").into());
        LocationFromIp { db, web: web(&Names::default()), services: LocationServices { ipwho, ipapi } }
    };
    let found = call(&tool(db(), "/who"), &json!({})).await;
    assert_eq!(
        (&found["city"], &found["country_code"], &found["ip"]),
        (&json!("Ulm"), &json!("DE"), &Value::Null)
    );
    assert!(error(&call(&tool(db(), "/limit"), &json!({})).await).contains("has reached its limit"));
    let other = db();
    set(&other, "location_service", "ipapi.co").await;
    assert!(error(&call(&tool(other, "/who"), &json!({})).await).contains("RateLimited"));
    let unknown = call(&tool(db(), "/who"), &json!({"city": "Ulm"})).await;
    assert!(unknown["success"].is_boolean(), "an argument that nobody asked for does no harm: {unknown}");
}

#[tokio::test]
async fn the_system_knows_this_machine_and_the_guard_refuses_it() {
    let found = SystemResolver.lookup("localhost".to_owned()).await.unwrap();
    assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    let tool = FetchUrl { db: db(), web: Web::new(SystemResolver) };
    for url in ["http://localhost:1/", "http://127.0.0.1:1/", "https://[::1]/"] {
        let refused = call(&tool, &json!({"url": url})).await;
        assert!(error(&refused).contains("not a public internet address"), "{refused}");
    }
}
