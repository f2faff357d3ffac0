//! One guest's conversation with Kai: who it is, and which tools it was told of.

use serde_json::Value;

use super::protocol::{self, Asked};
use crate::call::guests::{GuestCall, GuestReply, OfferedTool, Wants, Welcome, Who};
use crate::failure::Failure;

/// Hands a call to the daemon or to the store. `None` if the guest's token is not one of ours.
pub(super) type Ask<'a> = &'a dyn Fn(GuestCall) -> Result<Option<GuestReply>, Failure>;

/// A conversation over one connection, which begins with an introduction.
#[derive(Default)]
pub(super) struct Session {
    /// The name with which the guest introduced itself.
    name: Option<String>,
    /// What it was told last about itself.
    stands: Option<GuestReply>,
    /// The tools that it was told of, if it asked.
    listed: Option<Vec<OfferedTool>>,
}

impl Session {
    /// The messages to send after this one, in order.
    pub(super) fn respond(&mut self, message: &[u8], ask: Ask<'_>) -> Vec<Value> {
        let asked = protocol::read(message);
        let checks = matches!(asked, Asked::Ping(_) | Asked::CallTool { .. });
        let answer = self.answer(asked, ask);
        let changed = if checks { self.look_again(ask) } else { None };
        answer.into_iter().chain(changed).collect()
    }

    fn answer(&mut self, asked: Asked, ask: Ask<'_>) -> Option<Value> {
        match (asked, &self.name) {
            (Asked::Nothing, _) => None,
            (Asked::Refused(answer), _) => Some(answer),
            (Asked::Ping(id), _) => Some(protocol::pong(&id)),
            (Asked::Initialize { id, .. }, Some(_)) => {
                Some(protocol::out_of_order(&id, "You have introduced yourself already."))
            }
            (Asked::Initialize { id, name, version }, None) => Some(self.introduce(&id, name, version, ask)),
            (Asked::ListTools(id) | Asked::CallTool { id, .. }, None) => {
                Some(protocol::out_of_order(&id, "Introduce yourself first, with initialize."))
            }
            (asked, Some(name)) => {
                let answered = carried_out(asked, &Who::Named(name.clone()), ask)?;
                self.stands = answered.stands.or_else(|| self.stands.take());
                self.listed = answered.listed.or_else(|| self.listed.take());
                Some(answered.message)
            }
        }
    }

    fn introduce(&mut self, id: &Value, name: String, version: &'static str, ask: Ask<'_>) -> Value {
        match ask(GuestCall { who: Who::Named(name.clone()), wants: Wants::Enter }) {
            Ok(Some(reply)) => {
                let message = protocol::welcome(id, version, &reply, true);
                (self.name, self.stands) = (Some(name), Some(reply));
                message
            }
            Ok(None) => {
                protocol::failed(id, "This name cannot be shown. Introduce yourself with another one.")
            }
            Err(failure) => protocol::failed(id, &failure.to_string()),
        }
    }

    /// A notification, if the tools are others than the guest was told. It is sent once.
    pub(super) fn look_again(&mut self, ask: Ask<'_>) -> Option<Value> {
        let listed = self.listed.as_ref()?;
        let who = Who::Named(self.name.clone()?);
        let now = ask(GuestCall { who, wants: Wants::Tools }).ok()??;
        let changed = now.tools != *listed;
        self.listed = Some(now.tools.clone());
        self.stands = Some(now);
        changed.then(protocol::changed)
    }

    /// Why the guest gets nothing now, for whoever reads the log of the program that started us.
    pub(super) fn waits_for(&self) -> Option<String> {
        self.stands.as_ref().and_then(protocol::waits_for)
    }

    /// Whether the guest was told that there is nothing for it, and the user may change that.
    pub(super) fn may_become_welcome(&self) -> bool {
        let waits = |reply: &GuestReply| reply.welcome != Welcome::Allowed;
        self.listed.is_some() && self.stands.as_ref().is_some_and(waits)
    }
}

/// An answer, and what the guest has learnt by it.
struct Answered {
    message: Value,
    stands: Option<GuestReply>,
    listed: Option<Vec<OfferedTool>>,
}

/// Answers what a guest asks that is known by now.
fn carried_out(asked: Asked, who: &Who, ask: Ask<'_>) -> Option<Answered> {
    let (id, wants, tool) = match asked {
        Asked::ListTools(id) => (id, Wants::Tools, None),
        Asked::CallTool { id, tool, arguments } => {
            (id, Wants::Call { tool: tool.clone(), arguments }, Some(tool))
        }
        Asked::Refused(message) => return Some(Answered { message, stands: None, listed: None }),
        Asked::Ping(id) => {
            return Some(Answered { message: protocol::pong(&id), stands: None, listed: None });
        }
        Asked::Nothing | Asked::Initialize { .. } => return None,
    };
    let reply = match ask(GuestCall { who: who.clone(), wants }) {
        Ok(Some(reply)) => reply,
        Ok(None) => {
            return Some(Answered { message: protocol::failed(&id, STRANGER), stands: None, listed: None });
        }
        Err(failure) => {
            let message = protocol::failed(&id, &failure.to_string());
            return Some(Answered { message, stands: None, listed: None });
        }
    };
    let (message, listed) = match (&tool, &reply.result) {
        (None, _) => (protocol::tools(&id, &reply.tools), Some(reply.tools.clone())),
        (Some(_), Some(result)) => (protocol::called(&id, result), None),
        (Some(tool), None) => (protocol::no_tool(&id, tool, &reply), None),
    };
    Some(Answered { message, stands: Some(reply), listed })
}

const STRANGER: &str = "Kai does not know you any more.";

/// Answers one message of a guest that is known by its token. Every message stands for itself.
pub(super) fn answer_holder(message: &[u8], who: &Who, ask: Ask<'_>) -> Option<Value> {
    match protocol::read(message) {
        Asked::Initialize { id, version, .. } => {
            let entered = ask(GuestCall { who: who.clone(), wants: Wants::Enter });
            Some(match entered {
                Ok(Some(reply)) => protocol::welcome(&id, version, &reply, false),
                Ok(None) => protocol::failed(&id, STRANGER),
                Err(failure) => protocol::failed(&id, &failure.to_string()),
            })
        }
        asked => carried_out(asked, who, ask).map(|answered| answered.message),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use serde_json::json;

    use super::*;
    use crate::call::guests::GuestResult;

    /// A Kai that lets everybody in as told, and remembers what it was asked.
    struct House {
        welcome: Cell<Welcome>,
        asked: RefCell<Vec<GuestCall>>,
    }

    impl House {
        fn new(welcome: Welcome) -> Self {
            Self { welcome: Cell::new(welcome), asked: RefCell::default() }
        }

        fn answer(&self, call: &GuestCall) -> GuestReply {
            let (Who::Named(name) | Who::Holder(name)) = call.who.clone();
            self.asked.borrow_mut().push(call.clone());
            let tool = OfferedTool {
                name: "check_sms".to_owned(),
                title: "Check SMS".to_owned(),
                description: "List.".to_owned(),
                schema: json!({"type": "object"}),
                read_only: true,
            };
            let lets = self.welcome.get() == Welcome::Allowed;
            let tools = if lets && call.wants == Wants::Tools { vec![tool] } else { vec![] };
            let is_call = matches!(&call.wants, Wants::Call { tool, .. } if tool == "check_sms");
            let result =
                (lets && is_call).then(|| GuestResult { text: "{\"count\":0}".to_owned(), success: true });
            GuestReply { name, welcome: self.welcome.get(), tools, result }
        }

        fn play(&self, session: &mut Session, method: &str, params: &Value) -> Vec<Value> {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            session.respond(message.to_string().as_bytes(), &|call| Ok(Some(self.answer(&call))))
        }
    }

    fn hello() -> Value {
        json!({"protocolVersion": "2025-06-18", "clientInfo": {"name": "Zed"}})
    }

    #[test]
    fn nothing_is_told_before_an_introduction_and_nobody_is_two() {
        let (house, mut session) = (House::new(Welcome::Allowed), Session::default());
        for method in ["tools/list", "tools/call"] {
            let answers = house.play(&mut session, method, &json!({"name": "check_sms"}));
            assert_eq!(answers[0]["error"]["code"], -32600, "{method}");
        }
        assert_eq!(house.play(&mut session, "ping", &json!({})), [protocol::pong(&1.into())]);
        assert!(house.asked.borrow().is_empty());
        assert_eq!(
            house.play(&mut session, "initialize", &hello())[0]["result"]["protocolVersion"],
            "2025-06-18"
        );
        let again = house.play(&mut session, "initialize", &json!({"clientInfo": {"name": "Other"}}));
        assert_eq!(again[0]["error"]["code"], -32600);
        house.play(&mut session, "tools/list", &json!({}));
        assert!(house.asked.borrow().iter().all(|call| call.who == Who::Named("Zed".to_owned())));
    }

    #[test]
    fn who_is_allowed_later_is_told_once() {
        let (house, mut session) = (House::new(Welcome::Asked), Session::default());
        let welcome = house.play(&mut session, "initialize", &hello());
        let words = welcome[0]["result"]["instructions"].as_str().unwrap();
        assert!(words.contains("kai mcp guests allow \"Zed\""), "{words}");
        assert!(!session.may_become_welcome(), "it has not asked for tools yet");
        assert_eq!(house.play(&mut session, "tools/list", &json!({}))[0]["result"]["tools"], json!([]));
        assert!(session.may_become_welcome());
        let call = json!({"name": "check_sms"});
        let refused = house.play(&mut session, "tools/call", &call);
        assert_eq!(refused.len(), 1, "nothing has changed");
        assert!(refused[0]["error"]["message"].as_str().unwrap().starts_with("Unknown tool: check_sms"));
        house.welcome.set(Welcome::Allowed);
        let answers = house.play(&mut session, "tools/call", &call);
        assert_eq!(answers[0]["result"]["isError"], false);
        assert_eq!(answers[1..], [protocol::changed()]);
        assert!(!session.may_become_welcome());
        assert_eq!(house.play(&mut session, "ping", &json!({})).len(), 1, "told once");
        assert_eq!(
            house.play(&mut session, "tools/list", &json!({}))[0]["result"]["tools"][0]["name"],
            "check_sms"
        );
    }

    #[test]
    fn what_kai_cannot_do_is_an_error_in_words() {
        let mut session = Session::default();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()}).to_string();
        let broken = |_: GuestCall| Err(Failure::failed("The store is locked."));
        let answers = session.respond(hello.as_bytes(), &broken);
        assert_eq!(answers[0]["error"], json!({"code": -32603, "message": "The store is locked."}));
    }

    #[test]
    fn a_message_with_a_token_stands_for_itself() {
        let (house, who) = (House::new(Welcome::Allowed), Who::Holder("00".to_owned()));
        let play = |method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
            answer_holder(message.as_bytes(), &who, &|call| Ok(Some(house.answer(&call))))
        };
        assert_eq!(play("tools/list", json!({})).unwrap()["result"]["tools"].as_array().unwrap().len(), 1);
        let welcome = play("initialize", hello()).unwrap();
        assert_eq!(welcome["result"]["capabilities"]["tools"]["listChanged"], false);
        assert_eq!(play("ping", json!({})), Some(protocol::pong(&1.into())));
        assert!(house.asked.borrow().iter().all(|call| call.who == who), "whatever name it claims");
        let unknown =
            answer_holder(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, &who, &|_| Ok(None));
        assert_eq!(unknown.unwrap()["error"]["code"], -32603);
    }
}
