//! Many people, slow people, and people who say nothing, on one page.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{asked_for, open_files, resident, settled};
use crate::kit::{Daemon, Home};

/// How much may be kept of all that, in kilobytes: buffers that an allocator does not give back.
const SLACK: u64 = 12 * 1024;

fn quiet_home() -> Home {
    let home = Home::new();
    assert_eq!(home.run(&["settings", "set", "heartbeat_enabled", "false"]).code, 0);
    home
}

fn connect(daemon: &Daemon) -> TcpStream {
    let stream = TcpStream::connect(&daemon.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn ask(daemon: &Daemon, path: &str, cookie: &str) -> TcpStream {
    let mut stream = connect(daemon);
    let host = &daemon.address;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n").unwrap();
    stream
}

/// Does `work` again and again until told to stop; returns how often.
fn again_and_again(
    count: usize,
    until: &Arc<AtomicBool>,
    work: impl Fn(usize) + Clone + Send + 'static,
) -> Vec<JoinHandle<u64>> {
    let thread = |n: usize| {
        let (work, until) = (work.clone(), Arc::clone(until));
        std::thread::spawn(move || {
            let mut times = 0;
            while !until.load(Ordering::Relaxed) {
                work(n);
                times += 1;
            }
            times
        })
    };
    (0..count).map(thread).collect()
}

fn total(threads: Vec<JoinHandle<u64>>) -> u64 {
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

#[test]
#[ignore = "a minute of load; scripts/soak runs it"]
fn a_minute_of_load_leaves_memory_flat() {
    let seconds = asked_for("KAI_SOAK_SECONDS", 60);
    let home = quiet_home();
    let daemon = Arc::new(home.start());
    let cookie = daemon.sign_in();
    let stop = Arc::new(AtomicBool::new(false));
    let (asking, taken) = (Arc::clone(&daemon), cookie.clone());
    let readers = again_and_again(6, &stop, move |n| {
        let path = ["/", "/settings/general", "/nowhere", "/new", "/assets/no", "/c/77"][n];
        let status = asking.get(path, &taken).status;
        assert!(matches!(status, 200 | 404), "{path}: {status}");
    });
    // Slow readers: a byte now and then.
    let (asking, taken) = (Arc::clone(&daemon), cookie.clone());
    let slow = again_and_again(20, &stop, move |_| {
        let mut stream = ask(&asking, "/", &taken);
        for _ in 0..10 {
            drop(stream.read(&mut [0; 1]));
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    // Live pages that stay.
    let pages: Vec<TcpStream> = (0..40).map(|_| ask(&daemon, "/events", &cookie)).collect();
    std::thread::sleep(Duration::from_secs(10));
    let warm = resident(&daemon);
    std::thread::sleep(Duration::from_secs(seconds.saturating_sub(10)));
    let after = resident(&daemon);
    stop.store(true, Ordering::Relaxed);
    let (pages_read, slow_reads) = (total(readers), total(slow));
    drop(pages);
    println!(
        "load: {seconds} s, {pages_read} pages read, {slow_reads} by slow readers, 40 live pages; \
         {warm} KiB after 10 s, {after} KiB at the end"
    );
    assert!(after <= warm + SLACK, "{warm} KiB grew to {after} KiB");
    assert_eq!(daemon.get("/", &cookie).status, 200);
}

#[test]
#[ignore = "waits for time limits; scripts/soak runs it"]
fn who_says_nothing_keeps_nobody_out_for_long() {
    let home = quiet_home();
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let mut idle: Vec<TcpStream> = (0..300).map(|_| connect(&daemon)).collect();
    for (n, stream) in idle.iter_mut().enumerate() {
        // Nothing at all, half a line, half a head.
        let said = ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\n"][n % 3];
        // The oldest have made room for the newest.
        drop(stream.write_all(said.as_bytes()));
    }
    let began = Instant::now();
    assert_eq!(daemon.get("/", &cookie).status, 200);
    println!("silence: 300 silent connections; the page answers in {} ms", began.elapsed().as_millis());
    let mut ended = 0;
    for stream in &mut idle {
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => ended += 1,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => ended += 1,
            Err(error) => panic!("still open after {:?}: {error}", began.elapsed()),
        }
    }
    println!("silence: {ended} of 300 ended by Kai after {} s", began.elapsed().as_secs());
    // A body that never comes.
    let mut stream = connect(&daemon);
    let host = &daemon.address;
    let head = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000";
    write!(stream, "POST /say HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{head}\r\n\r\ntext=").unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut answer = Vec::new();
    assert!(stream.read_to_end(&mut answer).is_ok(), "a body that never comes is waited for for ever");
    let files = settled(|| open_files(&daemon) as u64);
    println!("silence: {files} files open at the end");
    assert!(files < 60, "{files}");
}

#[test]
#[ignore = "10,000 connections; scripts/soak runs it"]
fn ten_thousand_reconnects_leave_nothing_behind() {
    let wanted = asked_for("KAI_SOAK_RECONNECTS", 10_000);
    let home = quiet_home();
    let daemon = Arc::new(home.start());
    let cookie = daemon.sign_in();
    let one = |daemon: &Daemon| {
        let mut stream = ask(daemon, "/events", &cookie);
        let mut first = [0; 64];
        let length = stream.read(&mut first).unwrap();
        assert!(first[..length].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&first));
    };
    (0..200).for_each(|_| one(&daemon));
    let (warm, files) = (settled(|| resident(&daemon)), settled(|| open_files(&daemon) as u64));
    let left = AtomicU64::new(wanted);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    one(&daemon);
                }
            });
        }
    });
    let took = began.elapsed();
    let (after, open) = (settled(|| resident(&daemon)), settled(|| open_files(&daemon) as u64));
    println!(
        "reconnects: {wanted} in {} s; {warm} KiB before, {after} KiB after; {files} files before, {open} after",
        took.as_secs()
    );
    assert!(after <= warm + SLACK && open <= files + 4);
    assert_eq!(daemon.get("/", &cookie).status, 200);
}
