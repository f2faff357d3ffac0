//! An MCP server that exists only in memory: it knows the weather of a town that does not exist, and keeps alerts.

use std::sync::{Arc, Mutex};

use kai_assistant::lock::lock;
use kai_assistant::mcp::ToolText;
use kai_assistant::mcp::port::{
    Boxed, Connected, Connector, Launch, Link, LinkError, LinkEvent, Outcome, Progress, SigningIn, Transport,
};
use kai_assistant::mcp::store::NewServer;
use kai_assistant::untrusted::Untrusted;
use serde_json::{Map, Value, json};

/// The server, and the way to it. Clones are the same server.
#[derive(Clone, Default)]
pub struct Weather {
    alerts: Arc<Mutex<Vec<String>>>,
}

impl Weather {
    /// Its name in the list of servers.
    pub const NAME: &'static str = "weather";

    /// The server as it is added. Its command line says what it is.
    pub fn server() -> NewServer {
        let name = Self::NAME.to_owned();
        let transport = Transport::Stdio { command: "simulated".to_owned(), args: vec![name.clone()] };
        NewServer { name, transport, secrets: vec![] }
    }

    /// What it offers: one tool that only reads, and one that changes something.
    pub fn offers() -> Vec<ToolText> {
        let day = json!({"type": "object", "properties": {"day": {"type": "string", "description": "today or tomorrow"}}});
        let tools = [
            ("forecast", "Tells what the weather will be.", true),
            ("set_rain_alert", "Sets an alert for rain on a day.", false),
        ];
        let read = |(name, about, reads): (&str, &str, bool)| ToolText::read(name, about, &day, reads).ok();
        tools.into_iter().filter_map(read).collect()
    }

    /// The days that an alert was set for, in order.
    pub fn alerts(&self) -> Vec<String> {
        lock(&self.alerts).clone()
    }

    fn answer(&self, tool: &str, day: &str) -> Outcome {
        let text = match tool {
            "forecast" if day == "today" => {
                "Today: sunny, 21 °C, a light wind from the south. No rain before midnight.".to_owned()
            }
            "forecast" => "Tomorrow: dry until noon, then rain, 14 °C, wind from the west.".to_owned(),
            "set_rain_alert" => {
                lock(&self.alerts).push(day.to_owned());
                format!("The alert is set: {day}, as soon as it begins to rain.")
            }
            _ => {
                return Outcome { failed: true, text: Untrusted::new("No such tool."), ..Outcome::default() };
            }
        };
        Outcome { text: Untrusted::new(text), ..Outcome::default() }
    }
}

/// Every other server stays out of reach.
fn elsewhere(transport: Transport) -> LinkError {
    let why = "everything here is simulated".to_owned();
    match transport {
        Transport::Stdio { command, .. } => LinkError::NotStarted { command, why },
        Transport::Http { .. } => LinkError::Unreachable { why },
    }
}

impl Connector for Weather {
    fn connect(&self, launch: Launch) -> Boxed<'_, Result<Connected, LinkError>> {
        Box::pin(async move {
            if launch.transport != Self::server().transport {
                return Err(elsewhere(launch.transport));
            }
            let calls_itself = Untrusted::new("Weather (simulated)");
            Ok(Connected { link: Arc::new(self.clone()), tools: Self::offers(), calls_itself })
        })
    }

    fn sign_in(&self, launch: Launch) -> Boxed<'_, Result<SigningIn, LinkError>> {
        Box::pin(async { Err(elsewhere(launch.transport)) })
    }
}

impl Link for Weather {
    fn tools(&self) -> Boxed<'_, Result<Vec<ToolText>, LinkError>> {
        Box::pin(async { Ok(Self::offers()) })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Map<String, Value>,
        _: Progress<'a>,
    ) -> Boxed<'a, Result<Outcome, LinkError>> {
        Box::pin(async move {
            let day = arguments.get("day").and_then(Value::as_str).unwrap_or("tomorrow");
            Ok(self.answer(tool, day))
        })
    }

    fn event(&self) -> Boxed<'_, LinkEvent> {
        Box::pin(std::future::pending())
    }

    fn stderr(&self) -> Vec<Untrusted> {
        vec![]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(transport: Transport) -> Launch {
        let keep_tokens: kai_assistant::mcp::port::KeepTokens = Arc::new(|_| ());
        Launch { name: Weather::NAME.to_owned(), transport, secrets: vec![], tokens: None, keep_tokens }
    }

    #[tokio::test]
    async fn it_answers_and_nobody_else_is_reached() {
        let weather = Weather::default();
        let connected = weather.connect(launch(Weather::server().transport)).await.ok().unwrap();
        let reads: Vec<bool> = connected.tools.iter().map(|tool| tool.read_only).collect();
        assert_eq!(reads, [true, false]);
        let call = async |tool: &str, day: Value| {
            let arguments = json!({"day": day}).as_object().unwrap().clone();
            connected.link.call(tool, arguments, &|_| ()).await.unwrap()
        };
        assert!(call("forecast", "today".into()).await.text.as_written().starts_with("Today: sunny"));
        assert!(call("forecast", Value::Null).await.text.as_written().starts_with("Tomorrow: dry"));
        assert_eq!(weather.alerts(), Vec::<String>::new(), "reading changes nothing");
        assert!(!call("set_rain_alert", "tomorrow".into()).await.failed);
        assert_eq!(weather.alerts(), ["tomorrow"]);
        assert!(call("erase", Value::Null).await.failed);
        let program = Transport::Stdio { command: "sh".to_owned(), args: vec![] };
        let refused = weather.connect(launch(program)).await.err();
        assert!(matches!(refused, Some(LinkError::NotStarted { command, .. }) if command == "sh"));
        let web = Transport::Http { url: "https://example.org/".to_owned() };
        let refused = weather.connect(launch(web.clone())).await.err();
        assert!(matches!(refused, Some(LinkError::Unreachable { .. })));
        assert!(weather.sign_in(launch(web)).await.is_err());
    }
}
