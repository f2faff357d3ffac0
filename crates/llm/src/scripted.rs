//! A model that plays a script, for tests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::detail::{Detail, Hint};
use crate::model::{Delta, Deltas, Judging, Replying, Scale};
use crate::{CallId, Model, ModelError, Place, Reply, Request, ToolCall, Usage};

/// How the model responds to one request.
#[derive(Debug, Clone)]
pub struct Act {
    /// Pause before the first piece.
    delay: Duration,
    /// The text as it is streamed, with a pause of `pace` before each piece but the first.
    pieces: Vec<String>,
    pace: Duration,
    outcome: Result<Reply, ModelError>,
}

impl Act {
    pub fn reply(reply: Reply) -> Self {
        let pieces = vec![reply.text.clone()];
        Self { delay: Duration::ZERO, pieces, pace: Duration::ZERO, outcome: Ok(reply) }
    }

    pub fn text(text: &str) -> Self {
        Self::reply(Reply { text: text.to_owned(), usage: Usage { input: 1, output: 1 }, ..Reply::default() })
    }

    /// Replies with tool calls given as `(id, tool, arguments)`.
    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let call = |(id, name, arguments): &(&str, &str, &str)| ToolCall {
            id: CallId((*id).to_owned()),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            signature: None,
        };
        let calls = calls.iter().map(call).collect();
        Self::reply(Reply { calls, usage: Usage { input: 1, output: 1 }, ..Reply::default() })
    }

    /// Fails at once, or after streaming the pieces of [`Act::streaming`].
    pub fn fails(error: ModelError) -> Self {
        Self { delay: Duration::ZERO, pieces: Vec::new(), pace: Duration::ZERO, outcome: Err(error) }
    }

    /// Waits before the first piece.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Streams the text word by word, with a pause before each but the first.
    #[must_use]
    pub fn word_by_word(mut self, pace: Duration) -> Self {
        self.pieces = self.pieces.concat().split_inclusive(' ').map(str::to_owned).collect();
        self.pace = pace;
        self
    }

    /// Streams these pieces, independently of the outcome.
    #[must_use]
    pub fn streaming(mut self, pieces: &[&str]) -> Self {
        self.pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
        self
    }
}

/// Chooses the act for a request.
type Rule = Box<dyn Fn(&Request) -> Act + Send + Sync>;

/// Says by how much the first of two answers is likelier.
type Taste = Box<dyn Fn(&Request) -> Result<f32, ModelError> + Send + Sync>;

enum Script {
    List(Mutex<VecDeque<Act>>),
    Rule(Rule),
}

/// A model that plays its acts in order and records the requests.
pub struct Scripted {
    script: Script,
    seen: Mutex<Vec<Request>>,
    window: usize,
    place: Option<Place>,
    scale: Scale,
    taste: Option<Taste>,
    judged: Mutex<Vec<Request>>,
}

impl Scripted {
    pub fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        Self::playing(Script::List(Mutex::new(acts.into_iter().collect())))
    }

    /// Chooses each act with a function instead of taking it from a list.
    pub fn by(rule: impl Fn(&Request) -> Act + Send + Sync + 'static) -> Self {
        Self::playing(Script::Rule(Box::new(rule)))
    }

    fn playing(script: Script) -> Self {
        Self {
            script,
            seen: Mutex::default(),
            window: 128_000,
            place: None,
            scale: Scale::Full,
            taste: None,
            judged: Mutex::default(),
        }
    }

    #[must_use]
    pub fn with_window(mut self, window: usize) -> Self {
        self.window = window;
        self
    }

    /// Sets the server and name that the model reports.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Makes it a small model.
    #[must_use]
    pub fn small(mut self) -> Self {
        self.scale = Scale::Small;
        self
    }

    /// Lets it compare answers: `taste` says by how much it prefers the first one.
    #[must_use]
    pub fn preferring(
        mut self,
        taste: impl Fn(&Request) -> Result<f32, ModelError> + Send + Sync + 'static,
    ) -> Self {
        self.taste = Some(Box::new(taste));
        self
    }

    /// The requests for which it compared two answers so far.
    pub fn judged(&self) -> Vec<Request> {
        locked(&self.judged).clone()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.seen).clone()
    }

    fn next(&self, request: &Request) -> Act {
        let finished = || {
            let what = Detail::Told("its script has no more answers".to_owned());
            let hint = Hint::Told("write a longer one.".to_owned());
            Act::fails(ModelError::BadSetup { what, hint })
        };
        match &self.script {
            Script::List(acts) => locked(acts).pop_front().unwrap_or_else(finished),
            Script::Rule(rule) => rule(request),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model for Scripted {
    fn body(&self, request: &Request) -> Vec<u8> {
        crate::wire::json(request)
    }

    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a> {
        locked(&self.seen).push(request.clone());
        let act = self.next(request);
        Box::pin(async move {
            pause(act.delay).await;
            for (at, piece) in act.pieces.iter().filter(|piece| !piece.is_empty()).enumerate() {
                pause(if at == 0 { Duration::ZERO } else { act.pace }).await;
                deltas(Delta::Text(piece));
            }
            act.outcome
        })
    }

    fn window(&self) -> usize {
        self.window
    }

    fn place(&self) -> Option<Place> {
        self.place.clone()
    }

    fn scale(&self) -> Scale {
        self.scale
    }

    fn prefers<'a>(&'a self, request: &'a Request, _: [&'a str; 2]) -> Option<Judging<'a>> {
        let taste = self.taste.as_ref()?;
        Some(Box::pin(async move {
            locked(&self.judged).push(request.clone());
            taste(request)
        }))
    }
}

/// Lets a test keep a handle to the model it passes on.
impl Model for Arc<Scripted> {
    fn body(&self, request: &Request) -> Vec<u8> {
        (**self).body(request)
    }

    fn reply<'a>(&'a self, request: &'a Request, deltas: Deltas<'a>) -> Replying<'a> {
        (**self).reply(request, deltas)
    }

    fn window(&self) -> usize {
        (**self).window()
    }

    fn place(&self) -> Option<Place> {
        (**self).place()
    }

    fn scale(&self) -> Scale {
        (**self).scale()
    }

    fn prefers<'a>(&'a self, request: &'a Request, answers: [&'a str; 2]) -> Option<Judging<'a>> {
        (**self).prefers(request, answers)
    }
}

/// Sleeps, but uses no timer when there is nothing to wait for.
async fn pause(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn acts_are_played_in_order_and_requests_remembered() {
        let slow =
            Act::text("one two three").after(Duration::from_secs(5)).word_by_word(Duration::from_secs(1));
        let broken = Act::fails(ModelError::Overloaded).streaming(&["hal"]);
        let model = Scripted::new([Act::calls(&[("1", "look", "{}")]), slow, broken]);
        let heard = Mutex::new(Vec::new());
        let deltas = |delta: Delta<'_>| {
            if let Delta::Text(piece) = delta {
                locked(&heard).push(piece.to_owned());
            }
        };
        let (request, start) =
            (Request { system: "s".into(), ..Request::default() }, tokio::time::Instant::now());

        assert_eq!(model.reply(&request, &deltas).await.unwrap().calls[0].name, "look");
        assert_eq!(model.reply(&request, &deltas).await.unwrap().text, "one two three");
        assert_eq!(start.elapsed(), Duration::from_secs(7));
        assert_eq!(model.reply(&request, &deltas).await, Err(ModelError::Overloaded));
        assert_eq!(*locked(&heard), ["one ", "two ", "three", "hal"]);
        assert!(model.reply(&request, &deltas).await.unwrap_err().to_string().contains("no more answers"));
        assert_eq!(model.requests(), vec![request; 4]);
    }
}
