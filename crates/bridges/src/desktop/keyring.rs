//! The desktop's keyring (from GNOME, KDE or a password manager), accessed through the freedesktop Secret Service.
//!
//! The key crosses the session bus unencrypted (a "plain" session): anyone who can listen on the user's own bus could
//! just as well ask the keyring for it.

use std::collections::HashMap;
use std::time::Duration;

use kai_assistant::home::{HomeId, Keyring, KeyringError, StoreKey};
use kai_words::{Said, said};
use serde::{Deserialize, Serialize};
use zbus::fdo::DBusProxy;
use zbus::names::BusName;
use zbus::zvariant::Type;
use zbus::{Connection, OwnedObjectPath, OwnedVariant, Variant, proxy};

/// The keyring on one session bus.
#[derive(Debug, Clone)]
pub struct SecretService {
    bus: String,
}

/// Timeout for calls that need no person. A bus that does not answer must not keep a command waiting.
const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout for calls that may need a person to find and answer the desktop's dialog.
const PERSON: Duration = Duration::from_mins(2);

/// Timeout for KDE to write a wallet, shorter than the others because it is a part of them.
const WRITING: Duration = Duration::from_secs(2);

impl SecretService {
    /// `bus` is the D-Bus address of the session, such as `unix:path=/run/user/1000/bus`.
    pub fn on(bus: String) -> Self {
        Self { bus }
    }

    /// Runs one exchange with the keyring. It is called before any async runtime exists, so it creates its own.
    fn ask<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(Session) -> zbus::Result<T>,
    ) -> Result<T, KeyringError> {
        let silent = |why: Said| KeyringError(said::key_keyring_silent(why));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| silent(e.to_string().into()))?;
        runtime.block_on(async {
            let exchange = async { work(Session::open(&self.bus).await?).await };
            let outcome = tokio::time::timeout(limit, exchange).await;
            outcome.map_err(|_| silent(said::key_keyring_late()))?.map_err(|e| silent(why(&e)))
        })
    }
}

impl Keyring for SecretService {
    fn usable(&self) -> bool {
        self.ask(PATIENCE, async |session| {
            let collection = session.collection().await?;
            if !collection.locked().await? {
                return Ok(true);
            }
            // KDE says that an open wallet is locked, until somebody unlocks it here, which then needs no person.
            let Some(wallet) = session.wallet(&collection).await? else { return Ok(false) };
            let is_open = wallet.proxy.is_open(&wallet.name).await?;
            if is_open {
                session.unlock(&collection.inner().path().to_owned().into()).await?;
            }
            Ok(is_open)
        })
        .is_ok_and(|usable| usable)
    }

    fn get(&self, home: &HomeId) -> Result<Option<StoreKey>, KeyringError> {
        self.ask(PERSON, async |session| {
            let Some(item) = session.find(&attributes(home)).await? else { return Ok(None) };
            let (_, _, value, _) = session.item(item).await?.get_secret(&session.path).await?;
            let text = zeroize::Zeroizing::new(value);
            Ok(std::str::from_utf8(&text).ok().and_then(StoreKey::from_hex))
        })
    }

    fn put(&self, home: &HomeId, key: &StoreKey) -> Result<(), KeyringError> {
        self.ask(PERSON, async |session| session.create(home, key).await)
    }

    fn note(&self, home: &HomeId) -> Result<Option<String>, KeyringError> {
        self.ask(PATIENCE, async |session| {
            let Some(item) = session.find_unlocked(&note_attributes(home)).await? else { return Ok(None) };
            let (_, _, value, _) = session.item(item).await?.get_secret(&session.path).await?;
            Ok(Some(String::from_utf8_lossy(&value).into_owned()))
        })
    }

    fn put_note(&self, home: &HomeId, note: &str) -> Result<(), KeyringError> {
        self.ask(PATIENCE, async |session| {
            let collection = session.collection().await?;
            if collection.locked().await? {
                return Err(locked());
            }
            session.keep(&collection, "End of Kai's ledger", &note_attributes(home), note.as_bytes()).await
        })
    }

    fn remove(&self, home: &HomeId) -> Result<(), KeyringError> {
        self.ask(PERSON, async |session| {
            for attributes in [attributes(home), note_attributes(home)] {
                let Some(item) = session.find(&attributes).await? else { continue };
                let prompt = session.item(item).await?.delete().await?;
                session.wait_for(prompt).await?;
            }
            Ok(())
        })
    }
}

/// An open session with the keyring.
struct Session {
    bus: Connection,
    service: ServiceProxy<'static>,
    path: OwnedObjectPath,
}

impl Session {
    async fn open(bus: &str) -> zbus::Result<Self> {
        let bus = zbus::connection::Builder::address(bus).build().await?;
        let service = ServiceProxy::new(&bus).await?;
        let (_, path) = service.open_session("plain", &Variant::from("")).await?;
        Ok(Self { bus, service, path })
    }

    async fn collection(&self) -> zbus::Result<CollectionProxy<'static>> {
        let path = self.service.read_alias("default").await?;
        if path.as_str() == "/" {
            return Err(zbus::Error::Failure(NO_DEFAULT.to_owned()));
        }
        CollectionProxy::builder(&self.bus).path(path).build().await
    }

    /// The wallet of KDE behind a collection, if KDE's wallets are this keyring. They may also run beside another
    /// keyring, and KDE asks a person to create a wallet that it is told to open and does not know.
    async fn wallet(&self, collection: &CollectionProxy<'static>) -> zbus::Result<Option<Wallet>> {
        let bus = DBusProxy::new(&self.bus).await?;
        let keyring = bus.get_name_owner(self.service.inner().destination().clone()).await?;
        for (service, path) in WALLETS {
            let owner = bus.get_name_owner(BusName::try_from(service)?).await;
            if owner.is_ok_and(|owner| owner == keyring) {
                let proxy = KWalletProxy::builder(&self.bus).destination(service).path(path).build().await?;
                let (names, label) = (proxy.wallets().await?, collection.label().await?);
                let name = wallet_of(&names, &label, collection.inner().path().as_str());
                return Ok(name.map(|name| Wallet { proxy, name }));
            }
        }
        Ok(None)
    }

    /// Makes KDE write the wallet behind a collection, if there is one.
    async fn write_wallet(&self, collection: &CollectionProxy<'static>) -> zbus::Result<()> {
        match self.wallet(collection).await? {
            Some(wallet) => wallet.write().await,
            None => Ok(()),
        }
    }

    async fn item(&self, path: OwnedObjectPath) -> zbus::Result<ItemProxy<'static>> {
        ItemProxy::builder(&self.bus).path(path).build().await
    }

    /// Finds an item without prompting the person.
    async fn find_unlocked(&self, attributes: &Attributes<'_>) -> zbus::Result<Option<OwnedObjectPath>> {
        let (unlocked, closed) = self.service.search_items(attributes.clone()).await?;
        match unlocked.into_iter().next() {
            None if !closed.is_empty() => Err(locked()),
            found => Ok(found),
        }
    }

    /// Finds an item, and unlocks it first if it is locked.
    async fn find(&self, attributes: &Attributes<'_>) -> zbus::Result<Option<OwnedObjectPath>> {
        let (unlocked, locked) = self.service.search_items(attributes.clone()).await?;
        if let Some(item) = unlocked.into_iter().next() {
            return Ok(Some(item));
        }
        let Some(item) = locked.into_iter().next() else { return Ok(None) };
        self.unlock(&item).await?;
        Ok(Some(item))
    }

    async fn unlock(&self, object: &OwnedObjectPath) -> zbus::Result<()> {
        let (_, prompt) = self.service.unlock(std::slice::from_ref(object)).await?;
        self.wait_for(prompt).await
    }

    async fn create(&self, home: &HomeId, key: &StoreKey) -> zbus::Result<()> {
        let collection = self.collection().await?;
        if collection.locked().await? {
            let path = collection.inner().path().to_owned().into();
            self.unlock(&path).await?;
        }
        self.keep(&collection, "Key of Kai's store", &attributes(home), key.hex().as_bytes()).await
    }

    async fn keep(
        &self,
        collection: &CollectionProxy<'static>,
        label: &str,
        attributes: &Attributes<'_>,
        value: &[u8],
    ) -> zbus::Result<()> {
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Variant::from(label)),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(attributes.clone())),
        ]);
        let secret = Secret(self.path.clone(), vec![], value.to_vec(), "text/plain".to_owned());
        let (_, prompt) = collection.create_item(properties, &secret, true).await?;
        self.wait_for(prompt).await?;
        // If this fails, KDE still has the value, and writes it a few seconds later.
        let _ = tokio::time::timeout(WRITING, self.write_wallet(collection)).await;
        Ok(())
    }

    /// Waits for the person to answer a prompt of the keyring. The path `/` means that no prompt is needed.
    async fn wait_for(&self, prompt: OwnedObjectPath) -> zbus::Result<()> {
        use futures_util::StreamExt;
        if prompt.as_str() == "/" {
            return Ok(());
        }
        let prompt = PromptProxy::builder(&self.bus).path(prompt).build().await?;
        let mut completed = prompt.receive_completed().await?;
        prompt.prompt("").await?;
        match completed.next().await {
            Some(signal) if !signal.args()?.dismissed => Ok(()),
            _ => Err(zbus::Error::Failure(DISMISSED.to_owned())),
        }
    }
}

/// The services of KDE's wallets, newest first: their names and where they are asked. From KDE Frameworks 6.14 on, they
/// are not the keyring: they pass what they are asked on to it (`ksecretd`), but not that it should write.
const WALLETS: [(&str, &str); 2] =
    [("org.kde.kwalletd6", "/modules/kwalletd6"), ("org.kde.kwalletd5", "/modules/kwalletd5")];

/// A wallet of KDE.
struct Wallet {
    proxy: KWalletProxy<'static>,
    name: String,
}

impl Wallet {
    /// Makes KDE write the wallet to the disk now. By itself it does so after five seconds. If it crashes before, a lost
    /// key loses the whole store, and a lost note looks as if somebody had overwritten it.
    async fn write(&self) -> zbus::Result<()> {
        // KDE has written a closed wallet already, and would ask a person to open it.
        if !self.proxy.is_open(&self.name).await? {
            return Ok(());
        }
        let handle = self.proxy.open(&self.name, NO_WINDOW, KAI).await?;
        self.proxy.sync(handle, KAI).await?;
        self.proxy.close(handle, false, KAI).await.map(drop)
    }
}

/// The wallet behind the collection with this label at this path, among all wallets. Neither says its name for certain:
/// the label leaves out the number of a second wallet of the same name, and the path has only ASCII letters, may end in
/// a number of its own, and stays when the wallet is renamed. Pure.
fn wallet_of(names: &[String], label: &str, path: &str) -> Option<String> {
    let segment = path.rsplit('/').next().unwrap_or_default();
    let exact = names.iter().find(|name| name.starts_with(label) && in_path(name) == segment);
    exact.or_else(|| names.iter().find(|name| *name == label)).cloned()
}

/// A wallet's name as KDE writes it into a path. Pure.
fn in_path(name: &str) -> String {
    let written = |byte: u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    };
    name.bytes().map(written).collect()
}

const NO_WINDOW: i64 = 0;
/// Our name, as KDE shows it where it lists who uses a wallet.
const KAI: &str = "Kai";

type Attributes<'a> = HashMap<&'static str, &'a str>;

fn attributes(home: &HomeId) -> Attributes<'_> {
    HashMap::from([("application", "kai"), ("home", home.as_str())])
}

/// The attributes of the note. Its application name differs, so that a search for the key does not find the note: a
/// search matches every item that has the given attributes, whatever others it has.
fn note_attributes(home: &HomeId) -> Attributes<'_> {
    HashMap::from([("application", "kai-ledger"), ("home", home.as_str())])
}

fn locked() -> zbus::Error {
    zbus::Error::Failure(LOCKED.to_owned())
}

/// Our own errors of the keyring.
const NO_DEFAULT: &str = "it has no default keyring";
const LOCKED: &str = "it is locked";
const DISMISSED: &str = "unlocking was dismissed";

/// The error in the user's language, if it is one of ours; otherwise as the bus tells it.
fn why(error: &zbus::Error) -> Said {
    match error {
        zbus::Error::Failure(why) if why == NO_DEFAULT => said::key_keyring_none(),
        zbus::Error::Failure(why) if why == LOCKED => said::key_keyring_locked(),
        zbus::Error::Failure(why) if why == DISMISSED => said::key_keyring_dismissed(),
        other => other.to_string().into(),
    }
}

/// Session, parameters, value, content type.
#[derive(Debug, Serialize, Deserialize, Type)]
struct Secret(OwnedObjectPath, Vec<u8>, Vec<u8>, String);

#[proxy(
    interface = "org.freedesktop.Secret.Service",
    default_service = "org.freedesktop.secrets",
    default_path = "/org/freedesktop/secrets"
)]
trait Service {
    fn open_session(
        &self,
        algorithm: &str,
        input: &Variant<'_>,
    ) -> zbus::Result<(OwnedVariant, OwnedObjectPath)>;
    fn search_items(
        &self,
        attributes: HashMap<&str, &str>,
    ) -> zbus::Result<(Vec<OwnedObjectPath>, Vec<OwnedObjectPath>)>;
    fn unlock(&self, objects: &[OwnedObjectPath]) -> zbus::Result<(Vec<OwnedObjectPath>, OwnedObjectPath)>;
    fn read_alias(&self, name: &str) -> zbus::Result<OwnedObjectPath>;
}

#[proxy(interface = "org.freedesktop.Secret.Collection", default_service = "org.freedesktop.secrets")]
trait Collection {
    fn create_item(
        &self,
        properties: HashMap<&str, Variant<'_>>,
        secret: &Secret,
        replace: bool,
    ) -> zbus::Result<(OwnedObjectPath, OwnedObjectPath)>;
    #[zbus(property)]
    fn locked(&self) -> zbus::Result<bool>;
    #[zbus(property)]
    fn label(&self) -> zbus::Result<String>;
}

#[proxy(interface = "org.kde.KWallet")]
trait KWallet {
    #[zbus(name = "wallets")]
    fn wallets(&self) -> zbus::Result<Vec<String>>;
    #[zbus(name = "isOpen")]
    fn is_open(&self, wallet: &str) -> zbus::Result<bool>;
    #[zbus(name = "open")]
    fn open(&self, wallet: &str, window: i64, app: &str) -> zbus::Result<i32>;
    #[zbus(name = "sync")]
    fn sync(&self, handle: i32, app: &str) -> zbus::Result<()>;
    #[zbus(name = "close")]
    fn close(&self, handle: i32, force: bool, app: &str) -> zbus::Result<i32>;
}

#[proxy(interface = "org.freedesktop.Secret.Item", default_service = "org.freedesktop.secrets")]
trait Item {
    fn get_secret(
        &self,
        session: &OwnedObjectPath,
    ) -> zbus::Result<(OwnedObjectPath, Vec<u8>, Vec<u8>, String)>;
    fn delete(&self) -> zbus::Result<OwnedObjectPath>;
}

#[proxy(interface = "org.freedesktop.Secret.Prompt", default_service = "org.freedesktop.secrets")]
trait Prompt {
    fn prompt(&self, window: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    fn completed(&self, dismissed: bool, result: Variant<'_>) -> zbus::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels and paths as kwalletd5 5.103 gave them to these wallets.
    #[test]
    fn a_wallet_is_known_by_its_label_and_its_path() {
        let names = ["kdewallet", "My Kai", "My Kai__1_", "My_20Kai", "Tresor für Kai"].map(str::to_owned);
        for (label, segment, expected) in [
            ("kdewallet", "kdewallet", Some("kdewallet")),
            ("Tresor für Kai", "Tresor_20f_c3_bcr_20Kai", Some("Tresor für Kai")),
            ("My Kai", "My_20Kai", Some("My Kai")),
            ("My Kai", "My_20Kai__1_", Some("My Kai__1_")),
            ("My_20Kai", "My_20Kai0", Some("My_20Kai")),
            // Renamed since KDE started.
            ("Tresor für Kai", "kdewallet", Some("Tresor für Kai")),
            ("", "kdewallet", Some("kdewallet")),
            ("Login", "login", None),
            ("", "login", None),
        ] {
            let path = format!("/org/freedesktop/secrets/collection/{segment}");
            assert_eq!(wallet_of(&names, label, &path).as_deref(), expected, "{label:?} at {segment}");
        }
        assert_eq!(wallet_of(&[], "kdewallet", "/org/freedesktop/secrets/collection/kdewallet"), None);
    }
}
