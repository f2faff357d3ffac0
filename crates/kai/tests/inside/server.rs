//! An MCP server that is played in memory: as many tools as it is told, and a sign-in if it wants one.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kai_assistant::mcp::ToolText;
use kai_assistant::mcp::port::{
    Boxed, Connected, Connector, Launch, Link, LinkError, LinkEvent, Outcome, Progress, Secret, SigningIn,
};
use kai_assistant::untrusted::Untrusted;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

/// What the played server says and wants. Clones are the same server.
#[derive(Clone, Default)]
pub(super) struct PlayedServer(Arc<Says>);

#[derive(Default)]
struct Says {
    tools: Mutex<Vec<ToolText>>,
    wants_sign_in: AtomicBool,
    /// Sign-ins last until the user is done; otherwise everybody signs in at once.
    waits_for_the_user: AtomicBool,
    /// How many sign-ins were begun, and how those end that still last.
    begun: AtomicUsize,
    lasting: Mutex<Vec<oneshot::Sender<Result<(), LinkError>>>>,
    /// The secrets that came with the last connection.
    secrets: Mutex<Vec<(String, String)>>,
}

impl PlayedServer {
    /// A server with these tools: name, description, and whether it only reads.
    pub(super) fn with(tools: &[(&str, &str, bool)]) -> Self {
        let server = Self::default();
        server.says(tools);
        server
    }

    pub(super) fn says(&self, tools: &[(&str, &str, bool)]) {
        let schema =
            json!({"type": "object", "properties": {"zone": {"type": "string", "description": "Which"}}});
        let text =
            |(name, about, reads): &(&str, &str, bool)| ToolText::read(name, about, &schema, *reads).unwrap();
        *self.0.tools.lock().unwrap() = tools.iter().map(text).collect();
    }

    pub(super) fn wants_sign_in(&self) {
        self.0.wants_sign_in.store(true, Ordering::SeqCst);
    }

    /// Sign-ins from now on last until the user is done.
    pub(super) fn waits_for_the_user(&self) {
        self.0.waits_for_the_user.store(true, Ordering::SeqCst);
    }

    /// The user has signed in on the newest page.
    pub(super) fn user_signs_in(&self) {
        self.ends(Ok(()));
    }

    /// The user has refused on the newest page.
    pub(super) fn user_refuses(&self, why: &str) {
        self.ends(Err(LinkError::NotSignedIn { why: Untrusted::new(why) }));
    }

    fn ends(&self, how: Result<(), LinkError>) {
        let newest = self.0.lasting.lock().unwrap().pop().unwrap();
        newest.send(how).unwrap();
    }

    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        self.0.secrets.lock().unwrap().clone()
    }
}

impl Connector for PlayedServer {
    fn connect(&self, launch: Launch) -> Boxed<'_, Result<Connected, LinkError>> {
        Box::pin(async move {
            let revealed = |(name, value): &(String, Secret)| (name.clone(), value.reveal().to_owned());
            *self.0.secrets.lock().unwrap() = launch.secrets.iter().map(revealed).collect();
            if launch.name == "broken" {
                let (command, why) = ("nope".to_owned(), "there is no such file".to_owned());
                return Err(LinkError::NotStarted { command, why });
            }
            if self.0.wants_sign_in.load(Ordering::SeqCst) && launch.tokens.is_none() {
                return Err(LinkError::SignIn);
            }
            let tools = self.0.tools.lock().unwrap().clone();
            Ok(Connected { link: Arc::new(self.clone()), tools, calls_itself: Untrusted::new("played <1>") })
        })
    }

    fn sign_in(&self, launch: Launch) -> Boxed<'_, Result<SigningIn, LinkError>> {
        let number = self.0.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let (ends, ended) = oneshot::channel();
        if self.0.waits_for_the_user.load(Ordering::SeqCst) {
            self.0.lasting.lock().unwrap().push(ends);
        } else {
            ends.send(Ok(())).unwrap();
        }
        let done = Box::pin(async move {
            let how = ended.await.unwrap_or(Err(LinkError::Silent));
            if how.is_ok() {
                (launch.keep_tokens)(Secret::new("{}"));
            }
            how
        });
        Box::pin(async move { Ok(SigningIn { url: format!("https://sign.test/{number}"), done }) })
    }
}

impl Link for PlayedServer {
    fn tools(&self) -> Boxed<'_, Result<Vec<ToolText>, LinkError>> {
        Box::pin(async { Ok(self.0.tools.lock().unwrap().clone()) })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        _: Map<String, Value>,
        _: Progress<'a>,
    ) -> Boxed<'a, Result<Outcome, LinkError>> {
        Box::pin(
            async move { Ok(Outcome { text: Untrusted::new(format!("{tool} ran")), ..Outcome::default() }) },
        )
    }

    fn event(&self) -> Boxed<'_, LinkEvent> {
        Box::pin(std::future::pending())
    }

    fn stderr(&self) -> Vec<Untrusted> {
        vec![Untrusted::new("ready")]
    }
}
