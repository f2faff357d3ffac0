//! The environment of programs that Kai starts: only the variables listed here, because Kai's own environment may
//! contain API keys.

use std::ffi::{OsStr, OsString};

/// The variables that are passed on.
#[derive(Debug, Clone, Default)]
pub struct Environment(Vec<(OsString, OsString)>);

/// Paths and locale; the desktop session; and what a browser or mail program opened by `xdg-open` needs for its
/// display and input methods.
const NAMES: [&str; 37] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    // Where certificates lie, if not in the usual place.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
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
    // Needed under WSL, where Windows opens things for Linux.
    "WSL_DISTRO_NAME",
    "WSL_INTEROP",
    // Needed by Termux, and by Android's own programs that its scripts call.
    "PREFIX",
    "BOOTCLASSPATH",
    "DEX2OATBOOTCLASSPATH",
    "SYSTEMSERVERCLASSPATH",
    "EXTERNAL_STORAGE",
];

/// Prefixes of variables that are passed on.
const FAMILIES: [&str; 4] = ["LC_", "XDG_", "TERMUX_", "ANDROID_"];

/// Passed on in Termux only: its programs need them to find their own system, but elsewhere they change what a
/// program does.
const IN_TERMUX: [&str; 2] = ["LD_PRELOAD", "LD_LIBRARY_PATH"];

/// What a program that somebody else wrote may see of these: paths, locale and time zone.
const BASICS: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "PREFIX",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Prefixes of variables that such a program may see. The last two exist in Termux only.
const BASIC_FAMILIES: [&str; 3] = ["LC_", "TERMUX_", "ANDROID_"];

impl Environment {
    /// Selects the variables to pass on.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables: Vec<_> = variables.into_iter().collect();
        let in_termux = variables.iter().any(|(name, _)| name == "TERMUX_VERSION");
        Self(variables.into_iter().filter(|(name, _)| is_passed_on(name, in_termux)).collect())
    }

    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The variables for a program that is not part of the platform. It does not need the desktop session.
    pub(crate) fn basics(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.0.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        texts.filter(|(name, _)| {
            BASICS.contains(name)
                || IN_TERMUX.contains(name)
                || BASIC_FAMILIES.iter().any(|family| name.starts_with(family))
        })
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
    fn a_foreign_program_sees_no_desktop_session() {
        let names = ["PATH", "HOME", "LC_TIME", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"];
        let all = Environment::of(names.map(|name| (OsString::from(name), OsString::from("x"))));
        let seen: Vec<&str> = all.basics().map(|(name, _)| name).collect();
        assert_eq!(seen, ["PATH", "HOME", "LC_TIME"]);
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
