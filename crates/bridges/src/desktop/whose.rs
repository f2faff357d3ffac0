//! Which app is behind a connection of the session bus: as the bus and the kernel say, not as it says itself.

use std::collections::HashMap;
use std::path::Path;

use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::names::BusName;

/// What is known of a sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct App {
    /// The sandbox's name for it, or the program's.
    pub(super) name: Option<String>,
    /// It hands on what others posted, which was heard already.
    pub(super) hands_on: bool,
}

/// Looks senders up, and remembers a few: unique names are never given twice.
pub(super) struct Whose {
    bus: DBusProxy<'static>,
    known: HashMap<String, App>,
}

const REMEMBERED: usize = 200;

impl Whose {
    /// A monitor may not speak, so this needs a connection of its own.
    pub(super) async fn on(bus: &Connection) -> zbus::Result<Self> {
        Ok(Self { bus: DBusProxy::new(bus).await?, known: HashMap::new() })
    }

    /// Asked at once: a program like notify-send is gone in a moment, and then nothing is known of it.
    pub(super) async fn app(&mut self, sender: &str) -> App {
        if let Some(app) = self.known.get(sender) {
            return app.clone();
        }
        let app = match self.pid(sender).await {
            Some(pid) => of_process(Path::new("/proc").join(pid.to_string()).as_path()),
            None => App::default(),
        };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(sender.to_owned(), app.clone());
        app
    }

    async fn pid(&self, sender: &str) -> Option<u32> {
        let name = BusName::try_from(sender).ok()?;
        self.bus.get_connection_unix_process_id(name).await.ok()
    }
}

fn of_process(folder: &Path) -> App {
    let exe = std::fs::read_link(folder.join("exe")).ok();
    let program = exe.and_then(|exe| Some(exe.file_name()?.to_string_lossy().into_owned()));
    let program = program.map(|name| name.trim_end_matches(" (deleted)").to_owned());
    let groups = std::fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
    let hands_on = program.as_ref().is_some_and(|name| name.starts_with("xdg-desktop-portal"));
    App { name: sandboxed(&groups).or(program), hands_on }
}

/// The name that flatpak or snap gave to the group of a process. Pure.
fn sandboxed(groups: &str) -> Option<String> {
    let unit = groups.lines().find_map(|line| line.rsplit('/').next())?;
    if let Some(flatpak) = unit.strip_prefix("app-flatpak-") {
        let name = flatpak.strip_suffix(".scope")?;
        return Some(name.rsplit_once('-').map_or(name, |(name, _)| name).to_owned());
    }
    let snap = unit.strip_prefix("snap.")?;
    snap.split('.').next().map(str::to_owned)
}

/// The name that a desktop file gives to an app, looked for where they lie.
pub(super) fn label(app: &str) -> Option<String> {
    let plain = app.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)) && !app.is_empty();
    let folders = ["/usr/share/applications", "/usr/local/share/applications"];
    let files = folders.iter().filter(|_| plain).map(|folder| format!("{folder}/{app}.desktop"));
    files.filter_map(|file| std::fs::read_to_string(file).ok()).find_map(|text| named_in(&text))
}

/// The first `Name=`, which belongs to the app itself; later ones are those of its actions. Pure.
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
    fn a_desktop_file_names_its_app() {
        let text =
            "[Desktop Entry]\nType=Application\nName[de]=Uhr\nName=Clock\n\n[Desktop Action x]\nName=New";
        assert_eq!(named_in(text).as_deref(), Some("Clock"));
        assert_eq!(named_in("[Desktop Entry]\n"), None);
        assert_eq!(label("../../etc/passwd"), None);
    }
}
