//! What programs that Kai starts find in their environment: what they need by name, and nothing else. Kai's own
//! environment may hold keys of models.

use std::ffi::{OsStr, OsString};

/// The variables that are passed on.
#[derive(Debug, Clone, Default)]
pub struct Environment(Vec<(OsString, OsString)>);

/// Where programs, files and words are; the desktop session; what a browser or mail program that is opened by
/// `xdg-open` needs to appear and be typed into.
const NAMES: [&str; 35] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "GNOME_DESKTOP_SESSION_ID",
    "KDE_FULL_SESSION",
    "KDE_SESSION_VERSION",
    "BROWSER",
    "GTK_IM_MODULE",
    "QT_IM_MODULE",
    "XMODIFIERS",
    "GDK_BACKEND",
    "GDK_SCALE",
    "GTK_THEME",
    "QT_QPA_PLATFORM",
    "QT_QPA_PLATFORMTHEME",
    "QT_SCALE_FACTOR",
    "MOZ_ENABLE_WAYLAND",
    // Windows opens things for a Linux that runs in it.
    "WSL_DISTRO_NAME",
    "WSL_INTEROP",
    // Termux, and Android's own programs that its scripts call.
    "PREFIX",
    "BOOTCLASSPATH",
    "DEX2OATBOOTCLASSPATH",
    "SYSTEMSERVERCLASSPATH",
    "EXTERNAL_STORAGE",
];

/// Whole families of them.
const FAMILIES: [&str; 4] = ["LC_", "XDG_", "TERMUX_", "ANDROID_"];

/// Without these, Termux's programs do not find their own system; elsewhere they change what a program does.
const IN_TERMUX: [&str; 2] = ["LD_PRELOAD", "LD_LIBRARY_PATH"];

impl Environment {
    /// What of these variables is passed on.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables: Vec<_> = variables.into_iter().collect();
        let in_termux = variables.iter().any(|(name, _)| name == "TERMUX_VERSION");
        Self(variables.into_iter().filter(|(name, _)| is_passed_on(name, in_termux)).collect())
    }

    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn is_passed_on(name: &OsStr, in_termux: bool) -> bool {
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name)
        || FAMILIES.iter().any(|family| name.starts_with(family))
        || (in_termux && IN_TERMUX.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(names: &[&str]) -> Vec<String> {
        let given = names.iter().map(|name| (OsString::from(name), OsString::from("x")));
        Environment::of(given).variables().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_not_named_is_not_passed_on() {
        let needed =
            ["PATH", "HOME", "LANG", "LC_TIME", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "ANDROID_ROOT"];
        let not = [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "KAI_HOME",
            "KAI_LOG",
            "CREDENTIALS_DIRECTORY",
            "NOTIFY_SOCKET",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "MY_LC_X",
            "path",
            "",
        ];
        assert_eq!(passed(&[&needed[..], &not].concat()), needed);
        let termux = ["TERMUX_VERSION", "PREFIX", "LD_PRELOAD"];
        assert_eq!(passed(&[&termux[..], &["LD_AUDIT", "OPENAI_API_KEY"]].concat()), termux);
    }
}
