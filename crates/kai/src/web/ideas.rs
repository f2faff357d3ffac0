//! Suggestions for a first message that fit what Kai can do right now.

use kai_assistant::settings::Values;
use kai_assistant::toolbox::Toolbox;
use kai_words::Lang;

use super::messages;
use super::messages::Label;

/// How many suggestions there are.
const SHOWN: usize = 4;

/// A suggestion, and the tool that it needs.
type Idea = (&'static str, Label);

/// What both editions suggest, after what the foss edition does.
const EVERYWHERE: &[Idea] = &[
    ("check_email", Lang::chat_idea_mail),
    ("web_search", Lang::chat_idea_news),
    ("schedule_task", Lang::chat_idea_remind),
    ("memory_store", Lang::chat_idea_remember),
    ("memory_store", Lang::chat_idea_know),
    ("get_local_time", Lang::chat_idea_day),
];

/// Suggestions whose tools can be used now.
pub(super) fn ideas(toolbox: &Toolbox, values: &Values, lang: Lang) -> Vec<&'static str> {
    let all = messages::IDEAS.iter().chain(EVERYWHERE);
    let fitting = all.filter(|(tool, _)| toolbox.usable(tool, values).is_ok());
    fitting.take(SHOWN).map(|(_, label)| label(lang)).collect()
}

/// Suggestions that the demo's scripted model understands.
pub(super) fn of_demo(lang: Lang) -> Vec<&'static str> {
    vec![
        lang.chat_demo_idea_grandma(),
        lang.chat_demo_idea_answer(),
        lang.chat_demo_idea_priya(),
        lang.chat_demo_idea_mia(),
        lang.chat_demo_idea_code(),
        lang.chat_demo_idea_forecast(),
        lang.chat_demo_idea_rain(),
    ]
}
