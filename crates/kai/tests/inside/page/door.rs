//! The page's door: what gets in, and everything that must not.

use serde_json::json;

use super::house::House;
use super::model::{Act, Model};

/// A house, a cookie and the CSRF token of its page.
fn signed_in() -> (House, String, String) {
    let house = House::new();
    let cookie = house.sign_in();
    let page = house.get("/", &cookie);
    assert_eq!(page.status, 200, "{}", page.text);
    let csrf = page.csrf();
    (house, cookie, csrf)
}

#[test]
fn a_link_signs_in_once_and_a_second_time_is_refused() {
    let house = House::new();
    assert_eq!(house.get("/", "").status, 401);
    let path = house.link();
    let first = house.get(&path, "");
    assert_eq!((first.status, first.header("location")), (303, Some("/")));
    let cookie = first.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let replayed = house.get(&path, "");
    assert_eq!((replayed.status, replayed.header("set-cookie")), (403, None));
    assert!(replayed.text.contains("kai link"), "the page says what to do");
    assert_eq!(house.get(&house.link(), "").status, 303);
}

#[test]
fn looking_ahead_does_not_use_the_link_up() {
    let house = House::new();
    let path = house.link();
    let head = house.send("HEAD", &path, &[], "");
    assert_eq!(head.header("set-cookie"), None);
    for (name, value) in
        [("Sec-Purpose", "prefetch;prerender"), ("Purpose", "prefetch"), ("X-Moz", "prefetch")]
    {
        let ahead = house.send("GET", &path, &[(name, value)], "");
        assert_eq!((ahead.status, ahead.header("set-cookie")), (204, None), "{name}");
    }
    assert_eq!(house.send("POST", &path, &[], "").status, 401, "a POST is no way in");
    assert_eq!(house.get(&path, "").status, 303, "the person still gets in");
}

#[test]
fn of_many_with_the_same_link_one_gets_in() {
    let house = House::new();
    let path = house.link();
    let start = std::sync::Barrier::new(12);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let enter = || {
            start.wait();
            house.get(&path, "").status
        };
        let tries: Vec<_> = (0..12).map(|_| scope.spawn(enter)).collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
}

#[test]
fn guessed_tokens_and_cookies_open_nothing() {
    let house = House::new();
    for token in ["", "x", &"0".repeat(64), "%27%20OR%201=1--"] {
        let answer = house.get(&format!("/login?token={token}"), "");
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{token}");
    }
    let cookie = house.sign_in();
    let name = cookie.split_once('=').unwrap().0;
    for cookie in [format!("{name}="), format!("{name}={}", "0".repeat(64)), "kai_session=1".to_owned()] {
        assert_eq!(house.get("/", &cookie).status, 401, "{cookie}");
    }
}

/// A link is short, so that people can type it, and nobody can try many.
#[test]
fn a_link_is_typed_in_any_way_and_guessed_in_none() {
    let house = House::new();
    let link = house.link();
    let (path, token) = link.split_once("token=").unwrap();
    assert_eq!(token.len(), 14, "{link}");
    let typed = format!("{path}token={}", token.replace('-', "").to_lowercase());
    assert_eq!(house.get(&typed, "").status, 303);

    let link = house.link();
    let guesses = (0..30).map(|n| house.get(&format!("/login?token={n:012}"), "").status);
    let guesses: Vec<u16> = guesses.collect();
    assert_eq!(guesses.iter().filter(|status| **status == 403).count(), 20, "{guesses:?}");
    assert_eq!(guesses[20..], [429; 10]);
    let refused = house.get(&link, "");
    assert!(refused.status == 429 && refused.text.contains("Wait a minute"), "{}", refused.text);
    assert_eq!(house.get("/", "").status, 401, "nothing else is refused");
    house.clock.advance(jiff::SignedDuration::from_mins(1));
    assert_eq!(house.get(&link, "").status, 303, "the link was not used up");
}

#[test]
fn a_foreign_host_is_not_answered() {
    let (house, cookie, _) = signed_in();
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.0.9:8787"] {
        let answer = house.send("GET", "/", &[("Host", host), ("Cookie", &cookie)], "");
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.text.contains("csrf"), "nothing of the page is told to {host}");
        let login = house.send("GET", "/login?token=x", &[("Host", host)], "");
        assert_eq!(login.status, 421, "{host}");
    }
    house.set("language", "de");
    let told = house.send("GET", "/", &[("Host", "evil.example")], "").text;
    assert!(
        told.contains("Kai kennt diesen Namen nicht") && told.contains("auf dem Rechner, auf dem Kai läuft")
    );
    assert!(told.contains("<code>kai settings set allowed_hosts NAME</code>"), "{told}");
    assert!(!told.contains("evil.example"), "nobody is led to allow a name that a stranger chose: {told}");
    let by_script = house.send("GET", "/", &[("Host", "evil.example"), ("x-live", "1")], "").text;
    assert!(
        by_script.contains("{\"error\":\"Kai antwortet nur unter Namen, die Sie erlauben."),
        "{by_script}"
    );
    assert_eq!(house.send_raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status, 400, "no host at all");
    let two = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        house.address
    );
    assert_eq!(house.send_raw(two.as_bytes()).status, 400, "two hosts");
    house.set("allowed_hosts", "kai.lan");
    assert_eq!(house.send("GET", "/", &[("Host", "kai.lan"), ("Cookie", &cookie)], "").status, 200);
}

#[test]
fn a_foreign_origin_changes_nothing_even_with_cookie_and_token() {
    let (house, cookie, csrf) = signed_in();
    let body = format!("csrf={csrf}&key=theme&value=dark");
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://evil.example:443"] {
        let headers = [("Cookie", cookie.as_str()), ("Origin", origin)];
        assert_eq!(house.send("POST", "/settings/set", &headers, &body).status, 403, "{origin}");
        assert_eq!(house.send("GET", "/", &headers, "").status, 403, "{origin}");
    }
    assert_eq!(house.get_setting("theme"), "system");
    let own = format!("http://{}", house.address);
    let headers = [("Cookie", cookie.as_str()), ("Origin", own.as_str())];
    assert_eq!(house.send("POST", "/settings/set", &headers, &body).status, 303);
    assert_eq!(house.get_setting("theme"), "dark");
}

#[test]
fn a_change_needs_session_and_token() {
    let (house, cookie, csrf) = signed_in();
    let post =
        |cookie: &str, body: &str| house.send("POST", "/settings/set", &[("Cookie", cookie)], body).status;
    let guessed = format!("csrf={}&key=theme&value=dark", "0".repeat(64));
    let refused = format!("csrf={csrf}&key=theme&value=blue");
    for (why, cookie, body, status) in [
        ("no session", "", format!("csrf={csrf}&key=theme&value=dark"), 401),
        ("no token", &cookie, "key=theme&value=dark".to_owned(), 403),
        ("an empty token", &cookie, "csrf=&key=theme&value=dark".to_owned(), 403),
        ("another's token", &cookie, guessed, 403),
        ("a value that the setting does not take", &cookie, refused, 400),
        ("too much", &cookie, format!("csrf={csrf}&key=theme&value={}", "x".repeat(2_000_000)), 413),
    ] {
        assert_eq!(post(cookie, &body), status, "{why}");
    }
    assert_eq!(house.send("POST", "/sign-out", &[("Cookie", &cookie)], "a=b").status, 403);
    assert_eq!(house.get_setting("theme"), "system");
    let headers = [("Cookie", cookie.as_str()), ("X-CSRF-Token", csrf.as_str())];
    let in_header = house.send("POST", "/settings/set", &headers, "key=theme&value=light");
    assert_eq!(in_header.status, 303, "a token in the header");
    assert_eq!(house.get_setting("theme"), "light");
}

#[test]
fn a_get_changes_nothing() {
    let (house, cookie, csrf) = signed_in();
    for method in ["GET", "HEAD"] {
        for path in
            [format!("/settings/set?key=theme&value=dark&csrf={csrf}"), format!("/sign-out?csrf={csrf}")]
        {
            let answer = house.send(method, &path, &[("Cookie", &cookie), ("X-CSRF-Token", &csrf)], "");
            assert_eq!(answer.status, 405, "{method} {path}");
        }
    }
    assert_eq!(house.get_setting("theme"), "system");
    assert_eq!(house.get("/", &cookie).status, 200, "still signed in");
}

#[test]
fn signing_out_and_revoking_end_sessions() {
    let (house, cookie, csrf) = signed_in();
    let out = house.send("POST", "/sign-out", &[("Cookie", &cookie)], &format!("csrf={csrf}"));
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(house.get("/", &cookie).status, 401);

    let visitor = house.visitor("/");
    assert_eq!(visitor.answer.status, 200);
    let mut open = visitor.follow();
    assert_eq!(house.show("revoke_links")["sessions"], 1);
    while open.next() {}
    assert!(open.gone, "an open page is told");
    assert_eq!(house.get("/", &visitor.cookie).status, 401);
}

#[test]
fn every_answer_carries_the_protections() {
    let (house, cookie, _) = signed_in();
    let page = house.get("/", &cookie);
    let style =
        page.text.split("href=\"").find(|part| part.contains(".css")).unwrap().split('"').next().unwrap();
    for (path, status) in [("/", 200), (style, 200), ("/nothing", 404), ("/assets/other.css", 404)] {
        let answer = house.get(path, &cookie);
        assert_eq!(answer.status, status, "{path}");
        let csp = answer.header("content-security-policy").unwrap();
        assert!(csp.contains("default-src 'none'") && !csp.contains("unsafe"), "{path}: {csp}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
    }
    assert_eq!(page.header("cache-control"), Some("no-store"));
    for forbidden in ["<script>", "onclick=", "style=\"", "http://www", "https://"] {
        assert!(!page.text.contains(forbidden), "{forbidden} on the page");
    }
}

/// The heartbeat's conversation is deleted: its banner goes with it, and comes back with it.
#[test]
fn no_banner_leads_to_a_conversation_that_is_gone() {
    let model = Model::start([Act::says("The roof leaks.")]);
    let house = House::with_model(&model);
    assert_eq!(house.run("heartbeat_run", &json!({"force": true}))["report"], "The roof leaks.");
    let visitor = house.visitor("/new");
    let banner = || house.get("/new", &visitor.cookie).text.contains("heartbeat-banner");
    assert!(banner());
    let report = || house.show("status")["heartbeat"]["report"].clone();
    let id = report().as_i64().unwrap();
    assert_eq!(visitor.post(&format!("/c/{id}/delete"), "").status, 303);
    assert_eq!(house.get(&format!("/c/{id}"), &visitor.cookie).status, 404);
    assert!(!banner());
    assert!(report().is_null());
    assert_eq!(visitor.post("/undo", "number=1&act=restore").status, 303);
    assert!(banner(), "as it was");
}

#[test]
fn a_browser_can_install_the_page_and_learns_nothing_by_it() {
    let house = House::new();
    let manifest = house.get("/manifest.webmanifest", "");
    assert_eq!(manifest.header("content-type"), Some("application/manifest+json"));
    let manifest: serde_json::Value = serde_json::from_str(manifest.body()).unwrap();
    assert_eq!((&manifest["start_url"], &manifest["display"]), (&json!("/"), &json!("standalone")));
    for icon in manifest["icons"].as_array().unwrap() {
        assert_eq!(house.get(icon["src"].as_str().unwrap(), "").status, 200, "{icon}");
    }
    let worker = house.get("/sw.js", "");
    assert!(worker.body().contains(r#"["/offline","/assets/app."#), "{}", worker.text);
    house.set("language", "de");
    let offline = house.get("/offline", "");
    assert!(offline.status == 200 && offline.text.contains("Kai läuft nicht"), "{}", offline.text);
    assert!(!offline.text.contains("csrf"), "the page is the same for everybody");
}

#[test]
fn text_is_compressed_for_browsers_that_ask() {
    let (house, cookie, _) = signed_in();
    let plain = house.get("/settings/general", &cookie);
    assert_eq!(plain.header("content-encoding"), None);
    let headers = [("Cookie", cookie.as_str()), ("Accept-Encoding", "gzip, br")];
    let packed = house.send("GET", "/settings/general", &headers, "");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("vary"), Some("accept-encoding"));
}
