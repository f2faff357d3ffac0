//! `shell_command` tried from the inside: everything that a command must not be able to do, in every sandbox there is
//! on this machine, as root and as an ordinary user.

use std::fs::{self, Permissions};
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ask::with_model;
use crate::kit::{Done, Home, KAI, kai, wait_for};
use crate::provider::{Act, Provider};
use crate::refusals::skipped;

/// A home whose commands run in one kind of sandbox.
struct House {
    home: Home,
    bubblewrap: bool,
    /// Not root, though the tests are.
    user: bool,
    /// Without bubblewrap in it.
    no_programs: Home,
    /// Where scratch folders are made.
    scratch: TempDir,
}

/// Who Kai is run by, if not by ourselves.
const USER: u32 = 65_533;

static QUIET: RwLock<()> = RwLock::new(());

impl House {
    fn new(bubblewrap: bool, user: bool) -> Self {
        let scratch = open_folder(0o777);
        let house = Self { home: Home::new(), bubblewrap, user, no_programs: Home::new(), scratch };
        house.give(house.home.path());
        assert_eq!(house.run(&["tools", "enable", "shell_command"]).code, 0);
        house
    }

    /// Every kind that there is here.
    fn all() -> Vec<Self> {
        let users: &[bool] = if ordinary_users_can_run_kai() { &[false, true] } else { &[false] };
        let ways = [true, false].into_iter().filter(|bubblewrap| !bubblewrap || bubblewrap_works());
        ways.flat_map(|bubblewrap| users.iter().map(move |user| Self::new(bubblewrap, *user))).collect()
    }

    fn name(&self) -> String {
        let way = if self.bubblewrap { "bubblewrap" } else { "built in" };
        format!("{way}{}", if self.user { ", as a user" } else { "" })
    }

    /// Makes a file theirs who run Kai.
    fn give(&self, path: &Path) {
        if self.user {
            chown(path, Some(USER), Some(USER)).unwrap();
        }
    }

    fn command(&self) -> Command {
        let mut command = kai(self.home.path());
        command.env("TMPDIR", self.scratch.path());
        if self.user {
            command = as_user(&command);
        }
        if !self.bubblewrap {
            command.env("PATH", self.no_programs.path());
        }
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        self.command().args(args).stdin(Stdio::null()).output().unwrap().into()
    }

    fn call(&self, arguments: &Value) -> Value {
        let _with_others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
        self.called(arguments)
    }

    /// What uses up all it can get. The kernel counts processes per user, and all sandboxes are one user: nobody else's
    /// command would get any.
    fn call_alone(&self, arguments: &Value) -> Value {
        let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
        self.called(arguments)
    }

    fn called(&self, arguments: &Value) -> Value {
        self.run(&["tools", "call", "shell_command", &arguments.to_string()]).json()
    }

    /// Scratch folders that nobody took away.
    fn leftovers(&self) -> usize {
        fs::read_dir(self.scratch.path()).unwrap().count()
    }

    /// What a command printed. It must have come to its own end.
    fn out(&self, command: &str) -> String {
        let said = self.call(&json!({ "command": command }));
        assert_eq!(said["timed_out"], false, "{}: {command}: {said}", self.name());
        said["stdout"].as_str().unwrap_or_else(|| panic!("{}: {said}", self.name())).to_owned()
    }
}

/// A folder that others may use too. The mode of a new one would be cut by the umask.
fn open_folder(mode: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    folder
}

fn as_user(command: &Command) -> Command {
    let mut user = Command::new("/usr/bin/setpriv");
    let id = USER.to_string();
    user.args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(command.get_program())
        .args(command.get_args());
    user.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    user
}

fn ordinary_users_can_run_kai() -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let works =
        || as_user(Command::new(KAI).arg("--version")).output().is_ok_and(|done| done.status.success());
    if root && !works() {
        skipped("commands as an ordinary user: the folder of the build is closed to others");
        return false;
    }
    root
}

fn bubblewrap_works() -> bool {
    let mut command = Command::new("bwrap");
    command.args([
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--",
        "/bin/true",
    ]);
    let mut command = if ordinary_users_can_run_kai() { as_user(&command) } else { command };
    let done = command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output();
    let works = done.as_ref().is_ok_and(|done| done.status.success());
    if !works {
        let why = done.map(|done| String::from_utf8_lossy(&done.stderr).into_owned()).unwrap_or_default();
        skipped(&format!(
            "commands in bubblewrap, which this machine does not let make namespaces: {}",
            why.trim()
        ));
    }
    works
}

/// Processes of which the command line holds this word.
fn running(word: &str) -> usize {
    let lines = fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.windows(word.len()).any(|part| part == word.as_bytes())).count()
}

#[test]
fn a_command_works_with_what_it_is_given_and_with_nothing_else() {
    for (at, house) in House::all().iter().enumerate() {
        a_command_runs_and_what_it_says_comes_back(house);
        ordinary_work_is_not_in_the_way_of_the_sandbox(house);
        an_allowed_folder_can_be_read_and_kais_home_never(house);
        it_inherits_neither_files_nor_a_terminal(house);
        // Whoever reads it is the same in every sandbox, so the gigabyte is written once.
        endless_output_is_read_and_not_kept(house, if at == 0 { 1_000_000_000 } else { 20_000_000 });
    }
}

#[test]
fn a_command_reaches_nothing_of_the_person_and_of_the_machine() {
    for house in House::all() {
        nothing_of_kai_and_of_the_person_can_be_read(&house);
        other_processes_can_neither_be_seen_nor_touched(&house);
        there_is_no_network_and_no_socket_of_any_kind(&house);
        nothing_outside_of_the_scratch_folder_can_be_changed(&house);
        #[cfg(target_arch = "x86_64")]
        calls_into_the_kernel_that_no_guest_needs_are_refused(&house);
    }
}

#[test]
fn a_command_ends_with_all_that_it_started_and_takes_no_more_than_its_share() {
    for house in House::all() {
        whatever_is_started_is_gone_when_the_command_ends_or_its_time_is_up(&house);
        a_killed_kai_takes_its_commands_with_it(&house);
        too_much_of_anything_is_stopped_with_a_sentence(&house);
    }
    stop_in_the_page_ends_the_command();
    where_no_sandbox_works_nothing_is_run_and_it_says_why();
}

fn a_command_runs_and_what_it_says_comes_back(house: &House) {
    let name = house.name();
    let said = house.call(&json!({
        "command": "echo \"$GREETING\nworld\"; echo no >&2; pwd > file; cat file; exit 3",
        "env": {"GREETING": "hello", "LD_PRELOAD": "/nowhere/evil.so"},
    }));
    assert_eq!((&said["success"], &said["exit_code"]), (&json!(true), &json!(3)), "{name}: {said}");
    let out: Vec<_> = said["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(out[..2], ["hello", "world"], "{name}");
    assert!(out[2].starts_with("/tmp"), "{name}: {out:?}");
    let complaints = said["stderr"].as_str().unwrap();
    assert!(complaints.ends_with("no\n") || complaints.contains("no\nERROR: ld.so"), "{name}: {complaints}");
    assert!(!complaints.contains("bwrap") && !complaints.contains("kai"), "{name}: {complaints}");
    assert_eq!(house.out("cat file 2> /dev/null || echo gone"), "gone\n", "{name}");
    let alias = house.run(&["tools", "call", "execute_shell_command", r#"{"command": "echo hi"}"#]);
    assert_eq!(alias.json()["stdout"], "hi\n", "{name}");
    assert_eq!(house.call(&json!({"command": "kill -9 $$"}))["exit_code"], 137, "{name}");
    let sandbox = if house.bubblewrap { "bubblewrap" } else { "built in (Landlock and seccomp)" };
    assert!(house.run(&["tools", "list"]).out.contains(&format!("(sandbox: {sandbox})\n")), "{name}");
    assert!(house.run(&["status"]).out.contains(&format!("enabled, sandbox: {sandbox}\n")), "{name}");
    let doctor = house.run(&["doctor"]).out;
    assert!(doctor.contains(&format!("enabled; commands run in a sandbox: {sandbox}\n")), "{name}: {doctor}");
}

fn nothing_of_kai_and_of_the_person_can_be_read(house: &House) {
    let name = house.name();
    let home = house.home.path().canonicalize().unwrap();
    let path = |file: &str| home.join(file).display().to_string();
    fs::write(home.join("note.txt"), "secret-word").unwrap();
    house.give(&home.join("note.txt"));
    let near = std::env::current_dir().unwrap().join("Cargo.toml");
    for file in [path("kai.key"), path("kai.db"), path("note.txt"), near.display().to_string()] {
        assert!(fs::metadata(&file).unwrap().len() > 0);
        let tried = format!(
            "cat '{file}' && echo READ; head -c 9 < '{file}' && echo READ; \
             perl -e 'open F, \"<\", $ARGV[0] and print \"READ\"' '{file}'"
        );
        assert_eq!(house.out(&tried), "", "{name}: {file}");
    }
    let listed =
        format!("ls -A '{}' /root /home /run /var/log /var/lib /boot /srv 2> /dev/null", home.display());
    assert_eq!(house.out(&listed), "", "{name}");
    let linked =
        format!("ln -s '{}' l; cat l/note.txt; ln '{}' hard; cat hard", home.display(), path("note.txt"));
    assert_eq!(house.out(&linked), "", "{name}");

    let names = "env | grep -v '^_\\|^PWD\\|^OLDPWD\\|^SHLVL' | cut -d= -f1 | sort";
    let mut env = house.command();
    env.env("SECRET", "of-the-environment").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x");
    env.args(["tools", "call", "shell_command", &json!({ "command": names }).to_string()]);
    let env = Done::from(env.output().unwrap()).json();
    assert_eq!(env["stdout"], "HOME\nLANG\nPATH\nTMPDIR\n", "{name}");
}

fn other_processes_can_neither_be_seen_nor_touched(house: &House) {
    let name = house.name();
    let mut other = Command::new("/bin/sleep");
    other.arg("6543210").env("SECRET", "xyzzy");
    let mut other = Kept(if house.user { as_user(&other) } else { other }.spawn().unwrap());
    let (them, us) = (other.0.id(), std::process::id());
    let tried = format!(
        "for pid in {them} {us} 1 $PPID; do for file in environ mem cmdline maps status fd/0 root/etc/shadow; do \
         head -c 99 /proc/$pid/$file; done; done 2> /dev/null | grep -a -c 'xyz[z]y\\|65432[1]0'"
    );
    assert_eq!(house.out(&tried), "0\n", "{name}");
    let killed = format!("kill -9 {them}; kill -9 -1; kill -9 -{them}; perl -e 'kill 9, {them}'");
    house.call(&json!({ "command": killed }));
    house.out(&format!("prlimit --pid {them} --nofile=1 --cpu=1; renice 19 {them}; taskset -p 1 {them}; ls -l /proc/{them}/cwd"));
    assert!(other.0.try_wait().unwrap().is_none(), "{name}: it was killed");
    let limits = fs::read_to_string(format!("/proc/{them}/limits")).unwrap();
    assert!(!limits.lines().any(|line| line.starts_with("Max open files") && line.contains(" 1 ")), "{name}");
    let parent = house.out("ps -e 2> /dev/null | wc -l");
    assert!(parent.trim().parse::<u32>().unwrap() < 10, "{name}: {parent}");
}

/// Put away when the test is over.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// In Perl, which is everywhere: each line tries one way out and prints what came of it.
const SOCKETS: &str = r#"
use Socket;
sub tried { my ($what, $worked) = @_; print "$what: ", ($worked ? "WORKED" : "refused"), "\n"; }
my ($port, $path, $abstract) = @ARGV;
for my $family (1, 2, 10, 16, 17, 40) { for my $type (1, 2, 3) { tried("socket $family $type", socket(my $s, $family, $type, 0)); } }
tried("pair", socketpair(my $a, my $b, 1, 1, 0));
tried("loopback", socket(my $t, 2, 1, 0) && connect($t, pack_sockaddr_in($port, inet_aton("127.0.0.1"))));
tried("datagram", socket(my $u, 2, 2, 0) && send($u, "x", 0, pack_sockaddr_in($port, inet_aton("127.0.0.1"))));
tried("path", socket(my $p, 1, 1, 0) && connect($p, pack_sockaddr_un($path)));
tried("abstract", socket(my $n, 1, 1, 0) && connect($n, pack_sockaddr_un("\0$abstract")));
tried("name", gethostbyname("example.org"));
"#;

fn there_is_no_network_and_no_socket_of_any_kind(house: &House) {
    let name = house.name();
    let page = house.command();
    let daemon = crate::kit::Daemon::start({ page }.args(["serve", "--port", "0"]));
    let port = daemon.address.rsplit(':').next().unwrap().to_owned();
    let open = open_folder(0o755);
    let bus = open.path().join("bus");
    let abstract_name = format!("kai-test-{}-{}", std::process::id(), name.len());
    let listeners = [
        UnixListener::bind(&bus).unwrap(),
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap(),
    ];
    fs::set_permissions(&bus, Permissions::from_mode(0o777)).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
    let other_port = tcp.local_addr().unwrap().port();
    let socket = house.home.path().join("kai.sock");
    for (port, path) in [(port, socket), (other_port.to_string(), bus.clone())] {
        let command = format!(
            "cat > t.pl <<'END'\n{SOCKETS}\nEND\nperl t.pl {port} '{}' {abstract_name}",
            path.display()
        );
        let said = house.out(&command);
        assert_eq!(said.lines().count(), 24, "{name}: {said}");
        assert!(said.lines().all(|line| line.ends_with(": refused")), "{name}: {said}");
    }
    let shells = format!(
        "(echo x > /dev/tcp/127.0.0.1/{other_port}) 2> /dev/null && echo WORKED; \
         curl -s -m 5 http://127.0.0.1:{other_port} 2> /dev/null && echo WORKED; \
         bash -c 'echo x > /dev/udp/127.0.0.1/{other_port}' 2> /dev/null && echo WORKED; \
         getent hosts example.org; dbus-send --address=unix:path={} / a.b 2> /dev/null && echo WORKED; true",
        bus.display()
    );
    assert_eq!(house.out(&shells), "", "{name}");
    let nobody = |it: &UnixListener| it.set_nonblocking(true).is_ok() && it.accept().is_err();
    assert!(listeners.iter().all(nobody), "{name}: somebody connected");
    tcp.set_nonblocking(true).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err() && datagrams.recv(&mut [0; 9]).is_err(), "{name}: somebody connected");
}

fn nothing_outside_of_the_scratch_folder_can_be_changed(house: &House) {
    let name = house.name();
    // Everybody may write here; only the sandbox says no.
    let open = open_folder(0o777);
    let file = open.path().join("file");
    fs::write(&file, "mine").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    house.give(&file);
    house.give(open.path());
    let state = || {
        let meta = fs::metadata(&file).unwrap();
        (
            fs::read_to_string(&file).unwrap(),
            meta.mode(),
            meta.mtime_nsec(),
            fs::read_dir(open.path()).unwrap().count(),
        )
    };
    let before = state();
    let set = ["settings", "set", "shell_folders", open.path().to_str().unwrap()];
    assert_eq!(house.run(&set).code, 0);
    let script = "f=$1; d=${f%/*}; echo x > $f; echo x >> $f; (: > $f); truncate -s 0 $f; rm $f; mv $f .; mv $f $d/other; \
         ln $f hard && echo x > hard; cp -f /etc/passwd $f; chmod 777 $f; touch $f; chown 0 $f; mkdir $d/new; \
         ln -s / $d/link; mkfifo $d/fifo; setfattr -n user.a -v b $f; perl -e 'utime 1,1,$ARGV[0]; chmod 0, $ARGV[0]; \
         open F, \"<\", $ARGV[0]; chmod 0, F; utime 1, 1, F; truncate $ARGV[0], 0; open G, \"+<\", $ARGV[0]; print G 1; \
         rename $ARGV[0], \"x\"; syscall(2, $ARGV[0], 0x200)' $f";
    for folder in [Value::Null, json!(open.path())] {
        let command = format!("set -- '{}'; {script}; echo END", file.display());
        let said = house.call(&json!({"command": command, "working_dir": folder}));
        assert!(said["stdout"].as_str().unwrap().ends_with("END\n"), "{name}: {said}");
        assert_eq!(state(), before, "{name}, working_dir {folder}");
    }
    let elsewhere = "for f in / /etc /usr /usr/local /var/tmp /dev /dev/shm /proc /run /opt $HOME/..; do \
         (echo x > $f/kai-was-here) 2> /dev/null && echo \"$f\"; done; rm -rf /tmp/../usr/bin/perl; ls /usr/bin/perl";
    let written = house.out(elsewhere);
    assert_eq!(written, "/usr/bin/perl\n", "{name}");
    for place in ["/", "/etc", "/usr", "/usr/local", "/var/tmp", "/dev", "/dev/shm", "/run", "/opt", "/tmp"] {
        assert!(!Path::new(place).join("kai-was-here").exists(), "{name}: {place}");
    }
}

fn an_allowed_folder_can_be_read_and_kais_home_never(house: &House) {
    let name = house.name();
    let project = open_folder(0o755);
    fs::create_dir(project.path().join("deep")).unwrap();
    fs::write(project.path().join("deep/notes"), "to read\n").unwrap();
    let inside =
        |folder: &Path, command: &str| house.call(&json!({"command": command, "working_dir": folder}));
    let refused = |folder: &Path, word: &str| {
        let said = inside(folder, "echo HERE");
        assert!(said["error"].as_str().is_some_and(|why| why.contains(word)), "{name}: {said}");
    };
    refused(project.path(), "(none so far)");
    let home = house.home.path().canonicalize().unwrap();
    let allow = format!("{}:{}", project.path().display(), home.parent().unwrap().display());
    assert_eq!(house.run(&["settings", "set", "shell_folders", &allow]).code, 0);
    let read = inside(&project.path().join("deep"), "pwd; cat notes; cat ../private; echo x > notes");
    let out = read["stdout"].as_str().unwrap();
    assert!(out.ends_with("/deep\nto read\n"), "{name}: only what was asked for is seen: {read}");
    assert_eq!(fs::read_to_string(project.path().join("deep/notes")).unwrap(), "to read\n");
    refused(&home, "Kai's own home");
    refused(home.parent().unwrap(), "Kai's own home");
    refused(Path::new("/usr"), "that the user allowed");
    refused(Path::new("relative"), "that the user allowed");
}

fn whatever_is_started_is_gone_when_the_command_ends_or_its_time_is_up(house: &House) {
    let word = format!("98765.{}", std::process::id());
    // All that tries to stay behind, at once; what holds the line is deaf.
    let deaf = format!(
        "nohup sleep {word} > /dev/null 2>&1 & \
         setsid sleep {word} & setsid -f sleep {word}; (setsid sh -c 'sleep {word} & sleep {word}' &); \
         ((sleep {word} &) &); \
         perl -MPOSIX -e 'fork and exit; setsid(); setpgid(0,0); fork and exit; exec \"sleep {word}\"'; \
         trap '' TERM HUP INT; sleep {word}; sleep {word}"
    );
    let stubborn = [
        deaf,
        format!("perl -e '$SIG{{TERM}} = \"IGNORE\"; while (1) {{ exit if fork }} # {word}' & sleep {word}"),
        format!("while :; do :; done # {word}"),
    ];
    let name = house.name();
    for command in &stubborn {
        let said = house.call_alone(&json!({"command": command, "timeout": 1}));
        assert_eq!(
            (&said["timed_out"], &said["exit_code"]),
            (&json!(true), &json!(137)),
            "{name}: {command}: {said}"
        );
        assert_eq!(said["error"], "The command was stopped after 1 s.", "{name}");
        assert_eq!(said["success"], false, "{name}: a time-out is an error");
        assert_eq!(running(&word), 0, "{name}: {command}");
    }
    let left = format!(
        "sleep {word} & setsid sleep {word} & perl -e 'while (1) {{ exit if fork }} # {word}' & echo done"
    );
    let said = house.call_alone(&json!({ "command": left }));
    assert_eq!((&said["stdout"], &said["exit_code"]), (&json!("done\n"), &json!(0)), "{name}: {said}");
    assert_eq!(running(&word), 0, "{name}");
}

fn a_killed_kai_takes_its_commands_with_it(house: &House) {
    let name = house.name();
    let word = format!("87654.{}{}", std::process::id(), name.len());
    let job = json!({"command": format!("setsid sleep {word} & trap '' HUP TERM; sleep {word}; sleep {word}"), "timeout": 120});
    let mut call = house.command();
    call.args(["tools", "call", "shell_command", &job.to_string()]).stdout(Stdio::null());
    let mut call = Kept(call.spawn().unwrap());
    // The word stands in the command line of Kai itself, of the shell and of at least one sleep.
    wait_for("its start", || running(&format!("sleep\0{word}")) >= 1);
    call.0.kill().unwrap();
    call.0.wait().unwrap();
    wait_for(&format!("{name}: the command's end with Kai"), || running(&word) == 0);
    wait_for(&format!("{name}: the end of its scratch folder"), || house.leftovers() == 0);
}

fn stop_in_the_page_ends_the_command() {
    let word = format!("76543.{}", std::process::id());
    let job = json!({"command": format!("sleep {word}"), "timeout": 120});
    let provider = Provider::start([Act::calls("shell_command", &job), Act::says("Done.")]);
    let home = with_model(&provider);
    home.run(&["tools", "enable", "shell_command"]);
    let daemon = home.start();
    let cookie = daemon.sign_in();
    let csrf = daemon.get("/new", &cookie).csrf();
    let post = |path: &str, more: &str| {
        let origin = format!("http://{}", daemon.address);
        let answer = daemon.send(
            "POST",
            path,
            &[("Cookie", &cookie), ("Origin", &origin)],
            &format!("csrf={csrf}{more}"),
        );
        assert!(answer.status < 400, "{path}: {}", answer.text);
    };
    post("/say", "&text=sleep");
    wait_for("its start", || running(&format!("sleep\0{word}")) >= 1);
    post("/c/1/stop", "");
    wait_for("its end", || running(&word) == 0);
}

fn too_much_of_anything_is_stopped_with_a_sentence(house: &House) {
    let word = format!("65432.{}", std::process::id());
    let cases = [
        (format!("perl -e 'while (1) {{ fork }} # {word}'"), "it started more than 64 processes"),
        (
            "for i in 1 2 3 4 5 6; do perl -e '$x = \"a\" x 300_000_000; sleep 20' & done; wait".to_owned(),
            "it used more than 1024 MB of memory",
        ),
        (
            "perl -e 'for (1 .. 30_000) { open F, \">\", $_ } sleep 20'".to_owned(),
            "it wrote more than 20000 files",
        ),
    ];
    let name = house.name();
    for (command, why) in &cases {
        let said = house.call_alone(&json!({ "command": command }));
        assert_eq!(said["note"], format!("The command was stopped: {why}."), "{name}: {command}: {said}");
        assert_eq!((&said["timed_out"], &said["exit_code"]), (&json!(false), &json!(137)), "{name}");
    }
    // The kernel may be faster than the guard, and then the bomb ends by itself.
    let bomb = house.call_alone(&json!({"command": format!("b() {{ b | b & }}; b; sleep 2 # {word}")}));
    let refused = bomb["stderr"].as_str().unwrap().contains("Cannot fork");
    assert!(refused || bomb["note"].as_str().unwrap().contains("64 processes"), "{name}: {bomb}");
    assert_eq!(running(&word), 0, "{name}");
    let huge =
        house.call(&json!({"command": "perl -e '$x = \"a\" x (10 * 1024 ** 3); print length $x'; echo $?"}));
    assert!(huge["stderr"].as_str().unwrap().contains("Out of memory"), "{name}: {huge}");
    let big = house.call_alone(&json!({"command": "head -c 400M /dev/zero > big; wc -c < big"}));
    let size: u64 = big["stdout"].as_str().unwrap().trim().parse().unwrap_or_default();
    assert!(size <= 256 * 1024 * 1024, "{name}: {big}");
    let hidden =
        "for i in 1 2 3 4 5 6; do (exec 3> f$i; rm f$i; head -c 60M /dev/zero >&3; sleep 3) & done; wait";
    let hidden = house.call_alone(&json!({ "command": hidden }));
    let full = hidden["stderr"].as_str().unwrap().contains("No space left");
    assert!(
        full || hidden["note"] == "The command was stopped: it wrote more than 256 MB.",
        "{name}: {hidden}"
    );
    assert_eq!(house.leftovers(), 0, "{name}: all scratch folders are gone");
}

fn endless_output_is_read_and_not_kept(house: &House, bytes: u64) {
    let loud = format!("echo first; yes | head -c {bytes}; echo last; yes | head -c 9000000 >&2");
    let said = house.call(&json!({"command": loud, "timeout": 100}));
    let (out, err) = (said["stdout"].as_str().unwrap(), said["stderr"].as_str().unwrap());
    assert!(out.starts_with("first\ny\n") && out.ends_with("y\nlast\n"), "{}: {said}", house.name());
    assert!(out.contains("bytes left out …]") && err.contains("bytes left out …]"), "{}", house.name());
    assert!(said["exit_code"] == 0 && said.to_string().len() < 8_000, "{}: {said}", house.name());
    let endless = house.call(&json!({"command": "yes & yes >&2", "timeout": 1}));
    assert_eq!(endless["timed_out"], true, "{}: {endless}", house.name());
}

/// The same call with a file that Kai's own starter left open, and with a terminal.
fn it_inherits_neither_files_nor_a_terminal(house: &House) {
    let name = house.name();
    let secret = house.home.path().join("secret");
    fs::write(&secret, "inherited").unwrap();
    let job = json!({"command": "(cat <&7); for n in 3 4 5 6 7 8 9 10 11 12; do [ -e /proc/self/fd/$n ] && echo OPEN $n; done; \
         perl -e 'open T, \"+<\", \"/dev/tty\" and print \"TTY\"; my $c = \"x\"; ioctl STDIN, 0x5412, $c and print \"TYPED\"; print -t STDIN ? \"TTY\" : \"no terminal\"'"});
    let mut call = house.command();
    call.args(["tools", "call", "shell_command", &job.to_string()]);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "exec 7< \"$0\" 8> /dev/null; exec \"$@\""])
        .arg(&secret)
        .arg(call.get_program())
        .args(call.get_args());
    shell.env_clear().envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_eq!(Done::from(shell.output().unwrap()).json()["stdout"], "no terminal", "{name}");

    let mut typed = Command::new("/usr/bin/script");
    let file = house.home.path().join("job.sh");
    let words = call.get_args().map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''")));
    let line = format!("{} {}", call.get_program().display(), words.collect::<Vec<_>>().join(" "));
    fs::File::create(&file).unwrap().write_all(line.as_bytes()).unwrap();
    typed.args(["-qec", &format!("sh {}", file.display()), "/dev/null"]).stdin(Stdio::null());
    typed.env_clear().envs(call.get_envs().filter_map(|(name, value)| Some((name, value?))));
    typed.env(
        "PATH",
        if house.bubblewrap { "/usr/bin:/bin".into() } else { PathBuf::from("/bin").into_os_string() },
    );
    let shown = Done::from(typed.output().unwrap()).out;
    assert!(
        shown.contains("no terminal") && !shown.contains("TTY") && !shown.contains("TYPED"),
        "{name}: {shown}"
    );
}

/// Each number must be answered with EPERM, or as if it did not exist.
#[cfg(target_arch = "x86_64")]
fn calls_into_the_kernel_that_no_guest_needs_are_refused(house: &House) {
    let everywhere = [
        (101, "ptrace"),
        (310, "process_vm_readv"),
        (311, "process_vm_writev"),
        (438, "pidfd_getfd"),
        (250, "keyctl"),
        (248, "add_key"),
        (321, "bpf"),
        (298, "perf_event_open"),
        (323, "userfaultfd"),
        (425, "io_uring_setup"),
        (165, "mount"),
        (272, "unshare"),
        (308, "setns"),
        (161, "chroot"),
        (303, "name_to_handle_at"),
        (41, "socket"),
        (300, "fanotify_init"),
        (169, "reboot"),
        (103, "syslog"),
        (435, "clone3"),
        (319, "memfd_create"),
        (463, "setxattrat"),
        (500, "of the future"),
        (0x4000_0000 + 39, "x32"),
        (0x4000_0000 + 101, "x32 ptrace"),
    ];
    let built_in = [
        (112, "setsid"),
        (109, "setpgid"),
        (29, "shmget"),
        (64, "semget"),
        (68, "msgget"),
        (240, "mq_open"),
        (90, "chmod"),
        (268, "fchmodat"),
        (452, "fchmodat2"),
        (92, "chown"),
        (188, "setxattr"),
        (132, "utime"),
        (253, "inotify_init"),
        (294, "inotify_init1"),
    ];
    let name = house.name();
    let more: &[(u32, &str)] = if house.bubblewrap { &[] } else { &built_in };
    let numbers =
        everywhere.iter().chain(more).map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(",");
    let said = house.out(&format!(
        "perl -e 'for my $n ({numbers}) {{ my $r = syscall($n, 0, 0, 0, 0, 0); print \"$n \", ($r == -1 && ($! == 1 || $! == 38) ? \
         \"refused\" : \"ALLOWED $r $!\"), \"\\n\" }}'"
    ));
    assert_eq!(said.lines().count(), everywhere.len() + more.len(), "{name}: {said}");
    assert!(said.lines().all(|line| line.ends_with(" refused")), "{name}: {said}");
    let namespaces =
        house.out("for flag in U m p n i u C; do unshare -$flag true 2> /dev/null && echo $flag; done; true");
    assert_eq!(namespaces, "", "{name}");
}

fn ordinary_work_is_not_in_the_way_of_the_sandbox(house: &House) {
    let name = house.name();
    for (command, expected) in [
        ("seq 1 1000 | awk '{s += $1} END {print s}' | tr -d '\\n' | wc -c", "6\n"),
        (
            "mkdir -p a/b; echo x > a/b/c; cp -r a d; mv d e; find . -type f | sort; rm -r a e",
            "./a/b/c\n./e/b/c\n",
        ),
        ("bash -c 'diff <(echo 1) <(echo 1) && echo same'", "same\n"),
        ("timeout 1 sleep 10; echo $?", "124\n"),
        ("sleep 10 & kill $!; wait $!; echo $?", "143\n"),
        ("perl -MPOSIX -e 'print strftime(\"%Y\", gmtime 0)'", "1970"),
        (
            "tar cf x.tar -C /usr/share/perl5 . 2> /dev/null || tar cf x.tar /usr/bin/env 2> /dev/null; tar tf x.tar > /dev/null && echo ok",
            "ok\n",
        ),
        ("printf 'b\\na\\n' > f; sort -o f f; touch f; sed -i s/a/c/ f; cat f", "c\nb\n"),
        ("mktemp > /dev/null && mktemp -d > /dev/null && echo $((6 * 7))", "42\n"),
    ] {
        assert_eq!(house.out(command), expected, "{name}: {command}");
    }
}

fn where_no_sandbox_works_nothing_is_run_and_it_says_why() {
    let (home, empty) = (Home::new(), Home::new());
    let run = |args: &[&str]| -> Done {
        let nowhere = empty.path().join("nowhere");
        kai(home.path()).env("PATH", empty.path()).env("TMPDIR", nowhere).args(args).output().unwrap().into()
    };
    let off = run(&["tools", "list", "--json"]).json();
    let row = |rows: &Value| {
        rows.as_array().unwrap().iter().find(|row| row["name"] == "shell_command").unwrap().clone()
    };
    assert_eq!((&row(&off)["enabled"], &row(&off)["note"]), (&json!(false), &Value::Null));
    assert!(run(&["doctor"]).out.contains("disabled, and Kai could not run commands"));
    run(&["tools", "enable", "shell_command"]);
    let on = row(&run(&["tools", "list", "--json"]).json());
    let why = on["why_not"].as_str().unwrap();
    assert!(why.contains("bubblewrap isn’t installed") && why.contains("has no scratch folder"), "{why}");
    assert_eq!(on["available"], false);
    let refused = run(&["tools", "call", "shell_command", r#"{"command": "touch /tmp/kai-was-here"}"#]);
    assert_eq!((refused.code, &refused.json()["error"]), (1, &json!(why)));
    assert!(!Path::new("/tmp/kai-was-here").exists());
    let doctor = run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("enabled, but Kai cannot run commands"), "{doctor:?}");
    assert!(
        run(&["status"]).out.contains("enabled, but cannot be used. Kai runs commands only in a sandbox")
    );
    run(&["__sandbox", "nobody"]).refused(2, "Only Kai itself uses this command");
}
