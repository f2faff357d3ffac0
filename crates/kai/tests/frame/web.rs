//! The page's door: what gets in, and everything that must not.

use std::sync::Arc;

use crate::kit::{Daemon, Home};

fn theme(home: &Home) -> String {
    home.run(&["settings", "get", "theme"]).out.trim().to_owned()
}

/// A daemon, a cookie and the CSRF token of its page.
fn signed_in(home: &Home) -> (Daemon, String, String) {
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let page = daemon.get("/", &cookie);
    assert_eq!(page.status, 200, "{}", page.text);
    let csrf = page.csrf();
    (daemon, cookie, csrf)
}

#[test]
fn a_link_signs_in_once_and_a_second_time_is_refused() {
    let home = Home::new();
    let daemon = home.start();
    assert_eq!(daemon.get("/", "").status, 401);
    let path = format!("/login?token={}", daemon.token());
    let first = daemon.get(&path, "");
    assert_eq!((first.status, first.header("location")), (303, Some("/")));
    let cookie = first.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let replayed = daemon.get(&path, "");
    assert_eq!((replayed.status, replayed.header("set-cookie")), (403, None));
    assert!(replayed.text.contains("kai link"), "the page says what to do");
    let fresh = home.run(&["link"]).out;
    let path = fresh.trim().split_once(&daemon.address).unwrap().1.to_owned();
    assert_eq!(daemon.get(&path, "").status, 303);
}

#[test]
fn looking_ahead_does_not_use_the_link_up() {
    let home = Home::new();
    let daemon = home.start();
    let path = format!("/login?token={}", daemon.token());
    let head = daemon.send("HEAD", &path, &[], "");
    assert_eq!(head.header("set-cookie"), None);
    for (name, value) in
        [("Sec-Purpose", "prefetch;prerender"), ("Purpose", "prefetch"), ("X-Moz", "prefetch")]
    {
        let ahead = daemon.send("GET", &path, &[(name, value)], "");
        assert_eq!((ahead.status, ahead.header("set-cookie")), (204, None), "{name}");
    }
    assert_eq!(daemon.send("POST", &path, &[], "").status, 401, "a POST is no way in");
    assert_eq!(daemon.get(&path, "").status, 303, "the person still gets in");
}

#[test]
fn of_many_with_the_same_link_one_gets_in() {
    let home = Home::new();
    let daemon = Arc::new(home.start());
    let path = format!("/login?token={}", daemon.token());
    let tries: Vec<_> = (0..12)
        .map(|_| {
            let (daemon, path) = (Arc::clone(&daemon), path.clone());
            std::thread::spawn(move || daemon.get(&path, "").status)
        })
        .collect();
    let statuses: Vec<u16> = tries.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
}

#[test]
fn guessed_tokens_and_cookies_open_nothing() {
    let home = Home::new();
    let daemon = home.start();
    for token in ["", "x", &"0".repeat(64), "%27%20OR%201=1--"] {
        let answer = daemon.get(&format!("/login?token={token}"), "");
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{token}");
    }
    let cookie = daemon.sign_in();
    let name = cookie.split_once('=').unwrap().0;
    for cookie in [format!("{name}="), format!("{name}={}", "0".repeat(64)), "kai_session=1".to_owned()] {
        assert_eq!(daemon.get("/", &cookie).status, 401, "{cookie}");
    }
}

#[test]
fn a_foreign_host_is_not_answered() {
    let home = Home::new();
    let (daemon, cookie, _) = signed_in(&home);
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.0.9:8787"] {
        let answer = daemon.send("GET", "/", &[("Host", host), ("Cookie", &cookie)], "");
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.text.contains("csrf"), "nothing of the page is told to {host}");
        let login = daemon.send("GET", "/login?token=x", &[("Host", host)], "");
        assert_eq!(login.status, 421, "{host}");
    }
    assert_eq!(daemon.send_raw("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status, 400, "no host at all");
    let two = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        daemon.address
    );
    assert_eq!(daemon.send_raw(&two).status, 400, "two hosts");
    home.run(&["settings", "set", "allowed_hosts", "kai.lan"]);
    assert_eq!(daemon.send("GET", "/", &[("Host", "kai.lan"), ("Cookie", &cookie)], "").status, 200);
}

#[test]
fn a_foreign_origin_changes_nothing_even_with_cookie_and_token() {
    let home = Home::new();
    let (daemon, cookie, csrf) = signed_in(&home);
    let body = format!("csrf={csrf}&key=theme&value=dark");
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://evil.example:443"] {
        let headers = [("Cookie", cookie.as_str()), ("Origin", origin)];
        assert_eq!(daemon.send("POST", "/settings/set", &headers, &body).status, 403, "{origin}");
        assert_eq!(daemon.send("GET", "/", &headers, "").status, 403, "{origin}");
    }
    assert_eq!(theme(&home), "system");
    let own = format!("http://{}", daemon.address);
    let headers = [("Cookie", cookie.as_str()), ("Origin", own.as_str())];
    assert_eq!(daemon.send("POST", "/settings/set", &headers, &body).status, 303);
    assert_eq!(theme(&home), "dark");
}

#[test]
fn a_change_needs_session_and_token() {
    let home = Home::new();
    let (daemon, cookie, csrf) = signed_in(&home);
    let post =
        |cookie: &str, body: &str| daemon.send("POST", "/settings/set", &[("Cookie", cookie)], body).status;
    assert_eq!(post("", &format!("csrf={csrf}&key=theme&value=dark")), 401, "no session");
    assert_eq!(post(&cookie, "key=theme&value=dark"), 403, "no token");
    assert_eq!(post(&cookie, "csrf=&key=theme&value=dark"), 403, "an empty token");
    assert_eq!(
        post(&cookie, &format!("csrf={}&key=theme&value=dark", "0".repeat(64))),
        403,
        "another's token"
    );
    assert_eq!(daemon.send("POST", "/sign-out", &[("Cookie", &cookie)], "a=b").status, 403);
    assert_eq!(theme(&home), "system");
    assert_eq!(
        post(&cookie, &format!("csrf={csrf}&key=theme&value=blue")),
        400,
        "a value that the setting does not take"
    );
    let headers = [("Cookie", cookie.as_str()), ("X-CSRF-Token", csrf.as_str())];
    assert_eq!(
        daemon.send("POST", "/settings/set", &headers, "key=theme&value=light").status,
        303,
        "a token in the header"
    );
    assert_eq!(theme(&home), "light");
    let large = format!("csrf={csrf}&key=theme&value={}", "x".repeat(2_000_000));
    assert_eq!(post(&cookie, &large), 413);
}

#[test]
fn a_get_changes_nothing() {
    let home = Home::new();
    let (daemon, cookie, csrf) = signed_in(&home);
    for method in ["GET", "HEAD"] {
        for path in
            [format!("/settings/set?key=theme&value=dark&csrf={csrf}"), format!("/sign-out?csrf={csrf}")]
        {
            let answer = daemon.send(method, &path, &[("Cookie", &cookie), ("X-CSRF-Token", &csrf)], "");
            assert_eq!(answer.status, 405, "{method} {path}");
        }
    }
    assert_eq!(theme(&home), "system");
    assert_eq!(daemon.get("/", &cookie).status, 200, "still signed in");
}

#[test]
fn signing_out_and_revoking_end_sessions() {
    let home = Home::new();
    let (daemon, cookie, csrf) = signed_in(&home);
    let out = daemon.send("POST", "/sign-out", &[("Cookie", &cookie)], &format!("csrf={csrf}"));
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(daemon.get("/", &cookie).status, 401);

    let link = home.run(&["link"]).out;
    let path = link.trim().split_once(&daemon.address).unwrap().1.to_owned();
    let cookie = daemon.get(&path, "").header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(daemon.get("/", &cookie).status, 200);
    assert_eq!(home.run(&["link", "--revoke-all", "--json"]).json()["sessions"], 1);
    assert_eq!(daemon.get("/", &cookie).status, 401);
}

#[test]
fn every_answer_carries_the_protections() {
    let home = Home::new();
    let (daemon, cookie, _) = signed_in(&home);
    let page = daemon.get("/", &cookie);
    let style =
        page.text.split("href=\"").find(|part| part.contains(".css")).unwrap().split('"').next().unwrap();
    for (path, status) in [("/", 200), (style, 200), ("/nothing", 404), ("/assets/other.css", 404)] {
        let answer = daemon.get(path, &cookie);
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

#[test]
fn a_session_outlives_the_daemon() {
    let home = Home::new();
    let daemon = home.start();
    let cookie = daemon.sign_in();
    drop(daemon);
    let again = home.start();
    assert_eq!(again.get("/", &cookie).status, 200);
}

/// Two clicks at once lead into one demo, and it ends with the Kai that started it.
#[cfg(feature = "foss")]
#[test]
fn two_posts_to_the_demo_start_one() {
    let home = Home::new();
    let (daemon, cookie, csrf) = signed_in(&home);
    let daemon = Arc::new(daemon);
    let start = Arc::new(std::sync::Barrier::new(3));
    let posts: Vec<_> = (0..3)
        .map(|_| {
            let (daemon, start) = (Arc::clone(&daemon), Arc::clone(&start));
            let (cookie, body) = (cookie.clone(), format!("csrf={csrf}"));
            std::thread::spawn(move || {
                start.wait();
                daemon.send("POST", "/demo", &[("Cookie", &cookie)], &body)
            })
        })
        .collect();
    let answers: Vec<_> = posts.into_iter().map(|post| post.join().unwrap()).collect();
    let host = |answer: &crate::kit::Answer| {
        let (_, to) = answer.text.split_once("href=\"http://").unwrap_or_else(|| panic!("{}", answer.text));
        to.split('/').next().unwrap().to_owned()
    };
    let hosts: Vec<String> = answers.iter().map(host).collect();
    assert!(hosts.iter().all(|host| *host == hosts[0]), "{hosts:?}");
    assert_eq!(Arc::into_inner(daemon).unwrap().stop("-TERM").0, Some(0));
    assert!(std::net::TcpStream::connect(&hosts[0]).is_err(), "nothing is left behind");
}

/// The heartbeat's conversation is deleted: its banner goes with it, and comes back with it.
#[test]
fn no_banner_leads_to_a_conversation_that_is_gone() {
    use crate::provider::{Act, Provider};
    let provider = Provider::start([Act::says("The roof leaks.")]);
    let home = crate::ask::with_model(&provider);
    assert_eq!(home.run(&["heartbeat", "run", "--force"]).out, "The roof leaks.\n");
    let (daemon, cookie, csrf) = signed_in(&home);
    let banner = || daemon.get("/new", &cookie).text.contains("heartbeat-banner");
    assert!(banner());
    let id = home.run(&["status", "--json"]).json()["heartbeat"]["report"].as_i64().unwrap();
    let post = |path: &str, body: &str| {
        let body = format!("csrf={csrf}{body}");
        assert_eq!(daemon.send("POST", path, &[("Cookie", &cookie)], &body).status, 303, "{path}");
    };
    post(&format!("/c/{id}/delete"), "");
    assert_eq!(daemon.get(&format!("/c/{id}"), &cookie).status, 404);
    assert!(!banner());
    assert!(home.run(&["status", "--json"]).json()["heartbeat"]["report"].is_null());
    post("/undo", "&number=1&act=restore");
    assert!(banner(), "as it was");
}
