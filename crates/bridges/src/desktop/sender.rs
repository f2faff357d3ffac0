//! Identifies the app behind a connection on the session bus, by what the bus and the kernel say, not by what it says
//! itself.
//!
//! A program like notify-send is gone a moment after it has posted, and then nobody can say who it was. So the bus is
//! asked as soon as a connection appears. If even that was too late, we look up which programs have posted before under
//! the name that the sender gives itself; if none has, the sender is marked as unknown.

use std::collections::HashMap;
use std::path::Path;

use tokio::task::JoinHandle;
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;

/// What is known about a sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct App {
    /// The name its sandbox gives it, or its program's name.
    pub(super) name: Option<String>,
    /// It forwards other apps' notifications, which we have already seen.
    pub(super) hands_on: bool,
    /// Other programs it may be, because they use the same name.
    pub(super) perhaps: Vec<String>,
}

/// Looks up senders and caches the result. The bus never reuses a unique name.
pub(super) struct SenderLookup {
    bus: DBusProxy<'static>,
    known: HashMap<String, Lookup>,
    names: Names,
}

enum Lookup {
    InFlightGuard(JoinHandle<App>),
    Done(App),
}

/// When this many senders are cached, the cache is cleared. Some may have left without our noticing.
const REMEMBERED: usize = 2_000;

impl SenderLookup {
    /// Uses its own connection, because a monitor may not send messages.
    pub(super) async fn on(bus: &Connection) -> zbus::Result<Self> {
        Ok(Self { bus: DBusProxy::new(bus).await?, known: HashMap::new(), names: Names::default() })
    }

    /// The connection that has a well-known name now.
    pub(super) async fn owner(&self, name: &'static str) -> Option<String> {
        let name = BusName::try_from(name).ok()?;
        self.bus.get_name_owner(name).await.ok().map(|owner| owner.to_string())
    }

    /// Starts looking up a new connection at once, because it may be gone in a moment.
    pub(super) fn appeared(&mut self, sender: &str) {
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let (bus, name) = (self.bus.clone(), sender.to_owned());
        let asking = tokio::spawn(async move { looked_up(&bus, &name).await });
        self.known.insert(sender.to_owned(), Lookup::InFlightGuard(asking));
    }

    /// Forgets a connection that has closed.
    pub(super) fn vanished(&mut self, sender: &str) {
        self.known.remove(sender);
    }

    /// The app behind a connection that calls itself `called`.
    pub(super) async fn app(&mut self, sender: &str, called: &str) -> App {
        if !self.known.contains_key(sender) {
            self.appeared(sender);
        }
        let app = match self.known.remove(sender) {
            Some(Lookup::Done(app)) => app,
            Some(Lookup::InFlightGuard(asking)) => asking.await.unwrap_or_default(),
            None => App::default(),
        };
        self.known.insert(sender.to_owned(), Lookup::Done(app.clone()));
        self.names.complete(app, called)
    }
}

async fn looked_up(bus: &DBusProxy<'static>, sender: &str) -> App {
    let Ok(name) = BusName::try_from(sender) else { return App::default() };
    match bus.get_connection_unix_process_id(name).await {
        Ok(pid) => of_process(Path::new("/proc").join(pid.to_string()).as_path()),
        Err(_) => App::default(),
    }
}

/// Which programs have posted under a name they chose themselves, newest last.
#[derive(Debug, Default)]
struct Names(HashMap<String, Vec<String>>);

/// How many names are remembered.
const NAMES: usize = 500;
/// How many programs are remembered for each name.
const PROGRAMS: usize = 5;

impl Names {
    /// Learns the name of a known sender, or identifies an unknown one by its name. Pure.
    fn complete(&mut self, app: App, called: &str) -> App {
        let called = called.trim().to_lowercase();
        let Some(name) = &app.name else {
            let mut perhaps = self.0.get(&called).cloned().unwrap_or_default();
            return App { name: perhaps.pop(), perhaps, ..app };
        };
        if called.is_empty() {
            return app;
        }
        if self.0.len() >= NAMES && !self.0.contains_key(&called) {
            self.0.clear();
        }
        let programs = self.0.entry(called).or_default();
        programs.retain(|program| program != name);
        programs.push(name.clone());
        let surplus = programs.len().saturating_sub(PROGRAMS);
        programs.drain(..surplus);
        app
    }
}

fn of_process(folder: &Path) -> App {
    let exe = std::fs::read_link(folder.join("exe")).ok();
    let program = exe.and_then(|exe| Some(exe.file_name()?.to_string_lossy().into_owned()));
    let program = program.map(|name| name.trim_end_matches(" (deleted)").to_owned());
    let groups = std::fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
    let hands_on = program.as_ref().is_some_and(|name| name.starts_with("xdg-desktop-portal"));
    App { name: sandboxed(&groups).or(program), hands_on, perhaps: vec![] }
}

/// The app name that flatpak or snap put into the process's cgroup. Pure.
fn sandboxed(groups: &str) -> Option<String> {
    let unit = groups.lines().find_map(|line| line.rsplit('/').next())?;
    if let Some(flatpak) = unit.strip_prefix("app-flatpak-") {
        let name = flatpak.strip_suffix(".scope")?;
        return Some(name.rsplit_once('-').map_or(name, |(name, _)| name).to_owned());
    }
    let snap = unit.strip_prefix("snap.")?;
    snap.split('.').next().map(str::to_owned)
}

/// The app's name from its desktop file, if there is one in the usual folders.
pub(super) fn label(app: &str) -> Option<String> {
    let plain = app.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)) && !app.is_empty();
    let folders = ["/usr/share/applications", "/usr/local/share/applications"];
    let files = folders.iter().filter(|_| plain).map(|folder| format!("{folder}/{app}.desktop"));
    files.filter_map(|file| std::fs::read_to_string(file).ok()).find_map(|text| named_in(&text))
}

/// The first `Name=`, which is the app's own; later ones belong to its actions. Pure.
fn named_in(desktop_file: &str) -> Option<String> {
    let name = desktop_file.lines().find_map(|line| line.strip_prefix("Name="))?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_names_its_app() {
        let user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice";
        for (groups, expected) in [
            (format!("{user}/app-flatpak-org.signal.Signal-4711.scope\n"), Some("org.signal.Signal")),
            (format!("{user}/app-flatpak-org.a-b.C-12.scope"), Some("org.a-b.C")),
            (format!("{user}/snap.firefox.firefox.0af1.scope"), Some("firefox")),
            (format!("{user}/app-gnome-org.gnome.Calendar-99.scope"), None),
            ("0::/init.scope".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(sandboxed(&groups).as_deref(), expected, "{groups}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_program() {
        let own = of_process(Path::new("/proc/self"));
        assert!(own.name.is_some() && !own.hands_on, "{own:?}");
        assert_eq!(of_process(Path::new("/proc/nobody")), App::default());
    }

    #[test]
    fn one_that_is_gone_is_who_called_itself_so_before() {
        let mut names = Names::default();
        let is = |name: &str| App { name: Some(name.to_owned()), ..App::default() };
        let unknown = App::default;
        assert_eq!(names.complete(unknown(), "Mail"), unknown(), "nobody ever called itself so");
        assert_eq!(names.complete(is("notify-send"), " MAIL "), is("notify-send"));
        assert_eq!(names.complete(unknown(), "Mail"), is("notify-send"));
        assert_eq!(names.complete(unknown(), "Post"), unknown());
        names.complete(is("thunderbird"), "Mail");
        let both = App { perhaps: vec!["notify-send".to_owned()], ..is("thunderbird") };
        assert_eq!(names.complete(unknown(), "Mail"), both);
        names.complete(is("gdbus"), "");
        assert_eq!(names.complete(unknown(), ""), unknown(), "no name is no name");
        for n in 0..2 * NAMES {
            names.complete(is(&n.to_string()), &n.to_string());
            names.complete(is(&n.to_string()), "all");
        }
        assert!(names.0.len() <= NAMES && names.0["all"].len() <= PROGRAMS, "there is an end");
    }

    #[test]
    fn a_desktop_file_names_its_app() {
        let text =
            "[Desktop Entry]\nType=Application\nName[de]=Uhr\nName=Clock\n\n[Desktop Action x]\nName=New";
        assert_eq!(named_in(text).as_deref(), Some("Clock"));
        assert_eq!(named_in("[Desktop Entry]\n"), None);
        assert_eq!(label("../../etc/passwd"), None);
    }
}
