//! A post office for tests: Dovecot for IMAP and Exim for SMTP as private instances of an ordinary user, with folders,
//! ports and certificates of their own. What is sent by SMTP to one of its accounts arrives in that account's inbox.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::port::free;

/// The domain of all accounts.
pub const DOMAIN: &str = "post.test";

/// How a post office is set up.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Each account has this name before the `@`, and this password.
    pub accounts: Vec<(String, String)>,
    /// The folder that is marked as the one for sent mails, created with each account. `None` if none is.
    pub sent: Option<String>,
    /// Folders lie below the inbox: `INBOX.Sent`.
    pub below_inbox: bool,
    /// Ways to sign in to IMAP, such as `plain login`.
    pub mechanisms: Option<String>,
    /// The largest mail that SMTP takes, in bytes.
    pub largest: Option<usize>,
    /// The names in the servers' certificate, instead of those under which they are reached.
    pub certified: Option<Vec<String>>,
}

impl Setup {
    /// Accounts with these names; the password of each is `secret of NAME`.
    pub fn of(names: &[&str]) -> Self {
        let account = |name: &&str| ((*name).to_owned(), format!("secret of {name}"));
        Self { accounts: names.iter().map(account).collect(), ..Self::default() }
    }
}

/// Ports on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Plain, with STARTTLS.
    pub imap: u16,
    /// TLS from the first byte on.
    pub imaps: u16,
    pub smtp: u16,
    pub smtps: u16,
}

/// A running post office. It stops when it is dropped.
pub struct PostOffice {
    folder: TempDir,
    pub setup: Setup,
    pub ports: Ports,
    servers: Vec<Child>,
    delivered: AtomicU64,
}

impl PostOffice {
    /// Starts one whose accounts have these names.
    pub fn open(names: &[&str]) -> Self {
        Self::with(Setup::of(names))
    }

    pub fn with(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = Ports { imap: free(), imaps: free(), smtp: free(), smtps: free() };
        let mut office = Self { folder, setup, ports, servers: vec![], delivered: AtomicU64::new(0) };
        office.write_everything();
        let dovecot = office.start("/usr/sbin/dovecot", &["-F", "-c"], "dovecot.conf");
        let exim = office.start("/usr/sbin/exim4", &["-bdf", "-C"], "exim.conf");
        office.servers = vec![dovecot, exim];
        for port in [office.ports.imap, office.ports.smtp] {
            office.wait_for(port);
        }
        office
    }

    pub fn address(&self, name: &str) -> String {
        format!("{name}@{DOMAIN}")
    }

    pub fn password(&self, name: &str) -> String {
        let found = self.setup.accounts.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("there is no account {name}")).1.clone()
    }

    /// The certificate of the authority that signed the servers' certificates, in PEM. They are for `localhost` and
    /// `127.0.0.1`, unless the setup names others.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Puts bytes into an account's inbox, as they are.
    pub fn deliver(&self, name: &str, raw: &[u8]) {
        self.put(name, "INBOX", raw);
    }

    /// Puts bytes into a folder of an account.
    pub fn put(&self, name: &str, mailbox: &str, raw: &[u8]) {
        let maildir = self.maildir(name, mailbox);
        let number = self.delivered.fetch_add(1, Ordering::SeqCst);
        let file = format!("{:010}.{}.post", 1_000_000_000 + number, std::process::id());
        fs::write(maildir.join("tmp").join(&file), raw).unwrap();
        own(&maildir.join("tmp").join(&file));
        fs::rename(maildir.join("tmp").join(&file), maildir.join("new").join(&file)).unwrap();
    }

    /// Deletes all mails of a folder. New ones get higher numbers.
    pub fn empty(&self, name: &str, mailbox: &str) {
        for sub in ["new", "cur"] {
            for entry in fs::read_dir(self.maildir(name, mailbox).join(sub)).unwrap() {
                fs::remove_file(entry.unwrap().path()).unwrap();
            }
        }
    }

    /// The mails of a folder with the flags of each (`S` for seen), oldest first.
    pub fn mails(&self, name: &str, mailbox: &str) -> Vec<(String, Vec<u8>)> {
        let maildir = self.maildir(name, mailbox);
        let entries = ["cur", "new"].iter().filter_map(|sub| fs::read_dir(maildir.join(sub)).ok());
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.unwrap().path()).collect();
        files.sort_by_key(|file| file.file_name().map(ToOwned::to_owned));
        let flags = |file: &Path| {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            name.split_once(":2,").map(|(_, flags)| flags.to_owned()).unwrap_or_default()
        };
        files.iter().map(|file| (flags(file), fs::read(file).unwrap())).collect()
    }

    /// Waits until a folder has so many mails, and returns them.
    pub fn wait_for_mails(&self, name: &str, mailbox: &str, count: usize) -> Vec<Vec<u8>> {
        for _ in 0..1_000 {
            let mails = self.mails(name, mailbox);
            if mails.len() >= count {
                return mails.into_iter().map(|(_, raw)| raw).collect();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{name} has {} mails in {mailbox}. {}", self.mails(name, mailbox).len(), self.logs());
    }

    /// Whether an account has this folder.
    pub fn has_mailbox(&self, name: &str, mailbox: &str) -> bool {
        self.maildir(name, mailbox).join("cur").is_dir()
    }

    /// Makes a folder, as another mail program would.
    pub fn make_mailbox(&self, name: &str, mailbox: &str) {
        make_maildir(&self.maildir(name, mailbox));
    }

    /// Numbers the mails of an inbox anew.
    pub fn renumber(&self, name: &str, validity: u32) {
        let maildir = self.maildir(name, "INBOX");
        for entry in fs::read_dir(&maildir).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_name().to_str().unwrap().starts_with("dovecot") && entry.path().is_file() {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        fs::write(maildir.join("dovecot-uidlist"), format!("3 V{validity} N1\n")).unwrap();
        own(&maildir.join("dovecot-uidlist"));
    }

    /// Where the mails of a folder lie: in its `new` and `cur`.
    pub fn maildir(&self, name: &str, mailbox: &str) -> PathBuf {
        let inbox = self.folder.path().join("mail").join(name).join("Maildir");
        let below = mailbox.strip_prefix("INBOX.").unwrap_or(mailbox);
        if mailbox == "INBOX" { inbox } else { inbox.join(format!(".{below}")) }
    }

    /// What the servers have logged.
    pub fn logs(&self) -> String {
        let files = ["dovecot.log", "exim/log/main", "exim/log/panic", "exim/log/reject"];
        let read = |file: &&str| fs::read_to_string(self.folder.path().join(file)).unwrap_or_default();
        files.iter().map(read).collect::<Vec<_>>().join("\n")
    }

    /// Stops both servers.
    pub fn stop(&mut self) {
        for server in &mut self.servers {
            // Dovecot stops its own processes when it is asked to.
            let _ = Command::new("kill").arg(server.id().to_string()).status();
        }
        for server in &mut self.servers {
            let _ = server.wait();
        }
        self.servers.clear();
    }

    fn write_everything(&self) {
        let folder = self.folder.path();
        for sub in ["run", "state", "mail", "exim", "exim/log"] {
            fs::create_dir(folder.join(sub)).unwrap();
        }
        let reached = || vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        certify(folder, self.setup.certified.clone().unwrap_or_else(reached));
        let write = |file: &str, text: String| fs::write(folder.join(file), text).unwrap();
        let lines = |line: fn(&str, &str) -> String| -> String {
            self.setup.accounts.iter().map(|(name, password)| line(name, password)).collect()
        };
        write("passwd", lines(|name, password| format!("{name}@{DOMAIN}:{{PLAIN}}{password}::::::\n")));
        write("passwords", lines(|name, password| format!("{name}@{DOMAIN}: {password}\n")));
        write("users", lines(|name, _| format!("{name}: {name}\n")));
        write("dovecot.conf", dovecot(folder, &self.setup, self.ports));
        write("exim.conf", exim(folder, &self.setup, self.ports));
        for (name, _) in &self.setup.accounts {
            fs::create_dir(folder.join("mail").join(name)).unwrap();
            make_maildir(&self.maildir(name, "INBOX"));
        }
        own_all(folder);
    }

    /// Starts a server with these settings.
    fn start(&self, program: &str, args: &[&str], settings: &str) -> Child {
        let mut command = Command::new(if is_root() { "setpriv" } else { program });
        if is_root() {
            let user = NOBODY.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--no-new-privs", program]);
        }
        command.args(args).arg(self.folder.path().join(settings)).current_dir(self.folder.path());
        let log = fs::File::create(self.folder.path().join("started.log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap_or_else(|error| panic!("{program} does not start: {error}"))
    }

    fn wait_for(&self, port: u16) {
        for _ in 0..500 {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                if BufReader::new(stream).read_line(&mut String::new()).is_ok_and(|read| read > 0) {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let started = fs::read_to_string(self.folder.path().join("started.log")).unwrap_or_default();
        panic!("nothing answers on port {port}: {started} {}", self.logs());
    }
}

impl Drop for PostOffice {
    fn drop(&mut self) {
        self.stop();
    }
}

fn make_maildir(maildir: &Path) {
    for sub in ["", "tmp", "new", "cur"] {
        fs::create_dir_all(maildir.join(sub)).unwrap();
    }
    if maildir.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
        fs::write(maildir.join("maildirfolder"), "").unwrap();
    }
    own_all(maildir);
}

fn own_all(path: &Path) {
    own(path);
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own_all(&entry.unwrap().path());
        }
    }
}

/// Gives a file to whoever runs the servers.
fn own(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// Who runs the servers if the tests are run by root.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn who(question: &str) -> String {
    if is_root() {
        return if question == "-un" { "nobody".to_owned() } else { "nogroup".to_owned() };
    }
    let asked = Command::new("id").arg(question).output().unwrap();
    String::from_utf8(asked.stdout).unwrap().trim().to_owned()
}

/// Makes an authority, and a certificate with these names that it signed.
fn certify(folder: &Path, names: Vec<String>) {
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(params, authority_key);
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let write = |file: &str, text: String| fs::write(folder.join(file), text).unwrap();
    write("authority.pem", authority.pem());
    write("certificate.pem", certificate.pem());
    write("key.pem", key.serialize_pem());
}

fn dovecot(folder: &Path, setup: &Setup, ports: Ports) -> String {
    let (place, user, group) = (folder.display(), who("-un"), who("-gn"));
    let Ports { imap, imaps, .. } = ports;
    let mechanisms = setup.mechanisms.as_deref().unwrap_or("plain login");
    let version = Command::new("/usr/sbin/dovecot").arg("--version").output().unwrap().stdout;
    let (first, rest) = if version.starts_with(b"2.3") {
        ("", dovecot_2_3(folder, &user, &group))
    } else {
        (DOVECOT_2_4, dovecot_2_4(folder, &user, &group))
    };
    let prefix = if setup.below_inbox { "INBOX." } else { "" };
    let separator = if setup.below_inbox { "." } else { "/" };
    let sent = setup.sent.as_ref().map_or_else(String::new, |name| {
        format!("  mailbox \"{name}\" {{\n    auto = subscribe\n    special_use = \\Sent\n  }}\n")
    });
    format!(
        "{first}base_dir = {place}/run
state_dir = {place}/state
log_path = {place}/dovecot.log
protocols = imap
listen = 127.0.0.1
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
ssl = yes
auth_mechanisms = {mechanisms}
auth_failure_delay = 0
mail_max_userip_connections = 100
mailbox_list_index = no
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
namespace inbox {{
  inbox = yes
  prefix = {prefix}
  separator = {separator}
{sent}}}
{rest}"
    )
}

/// What the settings have to begin with.
const DOVECOT_2_4: &str = "dovecot_config_version = 2.4.0\ndovecot_storage_version = 2.4.0\n";

fn dovecot_2_3(folder: &Path, user: &str, group: &str) -> String {
    let folder = folder.display();
    format!(
        "ssl_cert = <{folder}/certificate.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
mail_location = maildir:~/Maildir
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {folder}/passwd
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/mail/%n
}}
"
    )
}

fn dovecot_2_4(folder: &Path, user: &str, group: &str) -> String {
    let folder = folder.display();
    format!(
        "ssl_server_cert_file = {folder}/certificate.pem
ssl_server_key_file = {folder}/key.pem
auth_allow_cleartext = yes
mail_driver = maildir
mail_path = ~/Maildir
passdb passwd-file {{
  passwd_file_path = {folder}/passwd
  default_password_scheme = PLAIN
}}
userdb static {{
  fields {{
    uid = {user}
    gid = {group}
    home = {folder}/mail/%{{user | username}}
  }}
}}
"
    )
}

fn exim(folder: &Path, setup: &Setup, ports: Ports) -> String {
    let (place, user, group) = (folder.display(), who("-un"), who("-gn"));
    let Ports { smtp, smtps, .. } = ports;
    let largest = setup.largest.unwrap_or(50 * 1024 * 1024);
    format!(
        "exim_user = {user}
exim_group = {group}
spool_directory = {place}/exim
log_file_path = {place}/exim/log/%s
pid_file_path = {place}/exim/pid
primary_hostname = {DOMAIN}
local_interfaces = 127.0.0.1
daemon_smtp_ports = {smtp} : {smtps}
tls_on_connect_ports = {smtps}
tls_advertise_hosts = *
tls_certificate = {place}/certificate.pem
tls_privatekey = {place}/key.pem
auth_advertise_hosts = *
message_size_limit = {largest}
never_users =
host_lookup =
helo_lookup_domains =
rfc1413_hosts =
smtp_accept_max = 100
acl_smtp_rcpt = to_us
acl_smtp_data = accept
{}",
        exim_rules(folder, &user, &group)
    )
}

/// Who may send to whom, and where that lies.
fn exim_rules(folder: &Path, user: &str, group: &str) -> String {
    let folder = folder.display();
    format!(
        "
begin acl
to_us:
  deny
    message = sign in first
    !authenticated = *
  accept
    domains = {DOMAIN}
    local_parts = lsearch;{folder}/users
  deny
    message = no such mailbox here

begin routers
ours:
  driver = accept
  domains = {DOMAIN}
  local_parts = lsearch;{folder}/users
  transport = maildir

begin transports
maildir:
  driver = appendfile
  directory = {folder}/mail/$local_part_data/Maildir
  maildir_format
  create_directory = false
  user = {user}
  group = {group}

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${{if eq{{$auth3}}{{${{lookup{{$auth2}}lsearch{{{folder}/passwords}}}}}}}}
  server_set_id = $auth2
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = Username:: : Password::
  server_condition = ${{if eq{{$auth2}}{{${{lookup{{$auth1}}lsearch{{{folder}/passwords}}}}}}}}
  server_set_id = $auth1
"
    )
}
