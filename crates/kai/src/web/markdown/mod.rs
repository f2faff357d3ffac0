//! Renders a model's Markdown as safe HTML. The text is untrusted: raw HTML is shown as text, nothing is loaded from
//! other sites, and a link shows where it leads and opens in a new tab.

mod code;
pub(super) mod links;
mod math;
mod source;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use kai_words::Lang;
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, TextMergeStream,
};

/// The second line of defence: removes every tag and attribute not allowed here, whatever the parser let through.
static SAFE: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut safe = Builder::default();
    safe.rm_tags(["img", "area", "map", "figure", "figcaption"])
        // Only for the button that copies a code block, and the box in which a wide table scrolls.
        .add_tags(["button", "div"])
        .add_tag_attributes("button", ["type", "data-copy", "data-testid"])
        .add_tag_attributes("div", ["tabindex", "role", "aria-label"])
        .add_tag_attributes("span", ["role", "aria-label"])
        .add_tag_attributes("math", ["display"])
        .add_tags(MATH)
        .add_allowed_classes("button", ["small", "js-only"])
        .add_allowed_classes("div", ["wide"])
        .add_allowed_classes("span", ["c", "s", "n", "k", "task"])
        .add_allowed_classes("bdi", ["leads"])
        .add_allowed_classes("a", ["doubtful"])
        .add_allowed_classes("td", ALIGNED)
        .add_allowed_classes("th", ALIGNED)
        .add_allowed_classes("ol", ["notes"])
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::Custom(Box::new(only_leaving)))
        .link_rel(Some("noopener noreferrer"))
        .set_tag_attribute_value("a", "target", "_blank");
    // These take their direction from their own text; paragraphs do so by the style sheet, since an element with a
    // `dir` of its own does not count for the list or the message around it.
    for block in ["ul", "ol", "blockquote", "pre", "table"] {
        safe.set_tag_attribute_value(block, "dir", "auto");
    }
    safe
});

/// Within this page, a text may only link to the question whether to follow a link.
fn only_leaving(path: &str) -> Option<Cow<'_, str>> {
    path.starts_with(links::ASK).then(|| path.into())
}

const MATH: [&str; 18] = [
    "math",
    "mrow",
    "mi",
    "mn",
    "mo",
    "mtext",
    "mfrac",
    "msqrt",
    "mroot",
    "msub",
    "msup",
    "msubsup",
    "munder",
    "mover",
    "munderover",
    "mtable",
    "mtr",
    "mtd",
];

/// The classes of a table's cells whose column is not aligned to its beginning.
const ALIGNED: [&str; 2] = ["mid", "end"];

const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_MATH);

/// Renders a text. The language is that of the copy buttons.
pub(super) fn render(text: &str, lang: Lang) -> Markup {
    let source = source::with_dollars(text);
    let mut depth = 0;
    let mut writer = Writer::new(lang);
    for event in TextMergeStream::new(Parser::new_ext(&source, EXTENSIONS)) {
        if within(&mut depth, &event) {
            writer.take(event);
        }
    }
    let mut written = String::with_capacity(text.len() * 3 / 2);
    pulldown_cmark::html::push_html(&mut written, writer.finish().into_iter());
    PreEscaped(SAFE.clean(&written).to_string())
}

/// How deep quotes and lists may nest. Cleaning the HTML takes time quadratic in the depth, and nobody reads the
/// hundredth level.
const DEEPEST: usize = 40;

/// Should the event be written? Skips the start and end of containers nested too deep, but keeps their content.
fn within(depth: &mut usize, event: &Event<'_>) -> bool {
    match event {
        Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => {
            *depth += 1;
            *depth <= DEEPEST
        }
        Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => {
            *depth = depth.saturating_sub(1);
            *depth < DEEPEST
        }
        _ => true,
    }
}

/// Turns what the parser found into what the page shows: raw HTML into text, images into links, links with their
/// host, code in colours, formulas, and notes at the end.
struct Writer<'a> {
    lang: Lang,
    out: Vec<Event<'a>>,
    link: Option<Link<'a>>,
    /// The code block that is being written: its language and its text.
    code: Option<(CowStr<'a>, String)>,
    table: Table,
    notes: Notes<'a>,
    /// The headings that the text stands under, as it numbers them.
    headings: Vec<HeadingLevel>,
}

/// The link that is being written, and what stands in it so far.
struct Link<'a> {
    address: CowStr<'a>,
    inside: Vec<Event<'a>>,
    /// Images in it that have not ended yet.
    images: usize,
}

/// The table that is being written: how its columns are aligned, and where the next cell stands.
#[derive(Default)]
struct Table {
    columns: Vec<Alignment>,
    at: usize,
    in_head: bool,
}

/// Footnotes, in the order in which the text names them.
#[derive(Default)]
struct Notes<'a> {
    named: Vec<CowStr<'a>>,
    texts: Vec<(CowStr<'a>, Vec<Event<'a>>)>,
    /// Where the events of the page stood when this note began.
    inside: Option<(CowStr<'a>, usize)>,
}

impl<'a> Writer<'a> {
    fn new(lang: Lang) -> Self {
        Self {
            lang,
            out: vec![],
            link: None,
            code: None,
            table: Table::default(),
            notes: Notes::default(),
            headings: vec![],
        }
    }

    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => self.text(text),
            Event::InlineMath(latex) if !math::is_formula(&latex) => {
                self.put(Event::Text(format!("${latex}$").into()));
            }
            Event::InlineMath(latex) => self.put(Event::InlineHtml(math::render(&latex, false).into())),
            Event::DisplayMath(latex) => self.put(Event::InlineHtml(math::render(&latex, true).into())),
            Event::TaskListMarker(done) => self.put(Event::InlineHtml(task(done, self.lang).into())),
            Event::FootnoteReference(name) => {
                let number = self.notes.number(name);
                self.put(Event::InlineHtml(format!("<sup>{number}</sup>").into()));
            }
            other => self.put(other),
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        match tag {
            // The browser would fetch an image from wherever the text says, so it becomes a link. A link cannot stand
            // in another.
            Tag::Image { dest_url, .. } | Tag::Link { dest_url, .. } => match &mut self.link {
                Some(link) => link.images += 1,
                none => *none = Some(Link { address: dest_url, inside: vec![], images: 0 }),
            },
            Tag::Heading { level, id, classes, attrs } => {
                self.headings.retain(|above| *above < level);
                self.headings.push(level);
                self.put(Event::Start(Tag::Heading { level: self.heading(), id, classes, attrs }));
            }
            Tag::CodeBlock(kind) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info,
                    CodeBlockKind::Indented => "".into(),
                };
                self.code = Some((info, String::new()));
            }
            Tag::Table(columns) => {
                self.table = Table { columns: columns.clone(), at: 0, in_head: false };
                self.put(Event::Html(wide(self.lang).into()));
                self.put(Event::Start(Tag::Table(columns)));
            }
            Tag::TableHead => {
                (self.table.at, self.table.in_head) = (0, true);
                self.put(Event::Html("<thead><tr>".into()));
            }
            Tag::TableRow => {
                self.table.at = 0;
                self.put(Event::Start(Tag::TableRow));
            }
            Tag::TableCell => {
                let cell = self.table.cell();
                self.put(Event::InlineHtml(cell.into()));
            }
            Tag::FootnoteDefinition(name) => self.notes.inside = Some((name, self.out.len())),
            other => self.put(Event::Start(other)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Image | TagEnd::Link => self.end_link(),
            TagEnd::Heading(_) => self.put(Event::End(TagEnd::Heading(self.heading()))),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Table => {
                self.put(Event::End(TagEnd::Table));
                self.put(Event::Html("</div>\n".into()));
            }
            TagEnd::TableHead => {
                self.table.in_head = false;
                self.put(Event::Html("</tr></thead><tbody>\n".into()));
            }
            TagEnd::TableCell => {
                let end = if self.table.in_head { "</th>" } else { "</td>" };
                self.put(Event::InlineHtml(end.into()));
            }
            TagEnd::FootnoteDefinition => {
                if let Some((name, from)) = self.notes.inside.take() {
                    let text = self.out.split_off(from.min(self.out.len()));
                    self.notes.texts.push((name, text));
                }
            }
            other => self.put(Event::End(other)),
        }
    }

    /// The level of the heading that is being written. The page has its own headings above, and none is left out below
    /// them, whatever the text numbers its own.
    fn heading(&self) -> HeadingLevel {
        match self.headings.len() {
            0 | 1 => HeadingLevel::H3,
            2 => HeadingLevel::H4,
            3 => HeadingLevel::H5,
            _ => HeadingLevel::H6,
        }
    }

    fn text(&mut self, text: CowStr<'a>) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(&text);
            return;
        }
        if self.link.is_some() {
            self.put(Event::Text(text));
            return;
        }
        let mut from = 0;
        for bare in links::bare_addresses(&text) {
            self.put(Event::Text(text[from..bare.at.start].to_owned().into()));
            let label = text[bare.at.clone()].to_owned();
            from = bare.at.end;
            self.write_link(&bare.address, vec![Event::Text(label.into())]);
        }
        let rest = if from == 0 { text } else { text[from..].to_owned().into() };
        self.put(Event::Text(rest));
    }

    fn put(&mut self, event: Event<'a>) {
        match &mut self.link {
            Some(link) => link.inside.push(event),
            None => self.out.push(event),
        }
    }

    fn end_link(&mut self) {
        match &mut self.link {
            Some(link) if link.images > 0 => link.images -= 1,
            link => {
                if let Some(Link { address, inside, .. }) = link.take() {
                    self.write_link(&address, inside);
                }
            }
        }
    }

    /// Writes the link with the host beside its text. What cannot be followed looks like text.
    fn write_link(&mut self, address: &str, inside: Vec<Event<'a>>) {
        let Some(target) = links::target(address, &text_of(&inside)) else {
            self.out.extend(inside);
            return;
        };
        let (open, close) = anchor(&target);
        self.out.push(Event::InlineHtml(open.into()));
        self.out.extend(inside);
        self.out.push(Event::InlineHtml(close.into()));
    }

    fn end_code(&mut self) {
        let Some((info, code)) = self.code.take() else { return };
        let block = html! {
            button type="button" class="small js-only" data-copy data-testid="code-copy" { (self.lang.talk_copy()) }
            pre { code {
                @for (kind, piece) in code::pieces(&code, &info) {
                    @match kind.class() {
                        Some(class) => span class=(class) { (piece) },
                        None => (piece),
                    }
                }
            } }
        };
        self.put(Event::Html(format!("{}\n", block.into_string()).into()));
    }

    /// Everything that is shown, with the notes at the end.
    fn finish(mut self) -> Vec<Event<'a>> {
        let notes = std::mem::take(&mut self.notes);
        if notes.texts.is_empty() {
            return self.out;
        }
        self.put(Event::Html("<hr><ol class=\"notes\">".into()));
        for (_, text) in notes.in_order() {
            self.put(Event::Html("<li>".into()));
            self.out.extend(text);
            self.put(Event::Html("</li>".into()));
        }
        self.put(Event::Html("</ol>".into()));
        self.out
    }
}

impl<'a> Notes<'a> {
    /// The note's number: the notes count from one, in the order in which the text names them.
    fn number(&mut self, name: CowStr<'a>) -> usize {
        let known = self.named.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.named.push(name);
            self.named.len() - 1
        }) + 1
    }

    /// The notes by number. Those that the text never names come last.
    fn in_order(self) -> Vec<(CowStr<'a>, Vec<Event<'a>>)> {
        let Self { named, mut texts, .. } = self;
        texts.sort_by_key(|(name, _)| named.iter().position(|known| known == name).unwrap_or(usize::MAX));
        texts
    }
}

impl Table {
    /// The beginning of the next cell.
    fn cell(&mut self) -> String {
        let tag = if self.in_head { "th" } else { "td" };
        let class = match self.columns.get(self.at) {
            Some(Alignment::Center) => " class=\"mid\"",
            Some(Alignment::Right) => " class=\"end\"",
            _ => "",
        };
        self.at += 1;
        format!("<{tag}{class}>")
    }
}

/// The text that people read in these events.
fn text_of(events: &[Event<'_>]) -> String {
    let text = |event: &Event<'_>| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        Event::SoftBreak | Event::HardBreak => " ".to_owned(),
        _ => String::new(),
    };
    events.iter().map(text).collect()
}

/// The tags before and after a link's text.
fn anchor(target: &links::Target) -> (String, String) {
    let way = if target.imitates { links::ask_first(&target.href) } else { target.href.clone() };
    let class = target.imitates.then_some("doubtful");
    let open = html! { a class=[class] href=(way) title=(target.href) {} };
    let open = open.into_string().trim_end_matches("</a>").to_owned();
    let beside = html! { @if let Some(beside) = &target.beside { " " bdi class="leads" { (beside) } } };
    (open, format!("{}</a>", beside.into_string()))
}

fn task(done: bool, lang: Lang) -> String {
    let (mark, name) = if done { ("☑", lang.talk_task_done()) } else { ("☐", lang.talk_task_open()) };
    html! { span class="task" role="img" aria-label=(name) { (mark) } " " }.into_string()
}

/// The box in which a wide table scrolls. It takes the focus, so that arrow keys can scroll it.
fn wide(lang: Lang) -> String {
    let open = html! { div class="wide" tabindex="0" role="group" aria-label=(lang.talk_table()) {} };
    open.into_string().trim_end_matches("</div>").to_owned()
}

/// The check that any text renders to plain tags and external links only. The targets in `fuzz/` use it too.
#[cfg(any(test, fuzzing))]
pub(crate) mod checks {
    pub(crate) fn check(text: &str) {
        let html = super::render(text, kai_words::Lang::ENGLISH).into_string();
        for tag in tags(&html) {
            assert!(harmless(&tag), "<{tag}> in {html}");
        }
    }

    /// Everything in the HTML between `<` and `>`. Text contains no `<` of its own, since it is escaped.
    fn tags(html: &str) -> Vec<String> {
        let (mut tags, mut rest) = (vec![], html);
        while let Some(at) = rest.find('<') {
            let mut quoted = false;
            let inside = &rest[at + 1..];
            let end = inside.find(|c| {
                quoted ^= c == '"';
                c == '>' && !quoted
            });
            let end = end.unwrap_or_else(|| panic!("a tag has no end: {html}"));
            tags.push(inside[..end].to_owned());
            rest = &inside[end + 1..];
        }
        tags
    }

    /// The tags that a model's text may produce, each with its attributes.
    const ALLOWED: &[(&str, &[&str])] = &[
        ("a", &["class", "href", "title", "target", "rel"]),
        ("bdi", &["class"]),
        ("blockquote", &["dir"]),
        ("br", &[]),
        ("code", &[]),
        ("del", &[]),
        ("div", &["class", "tabindex", "role", "aria-label"]),
        ("em", &[]),
        ("h3", &[]),
        ("h4", &[]),
        ("h5", &[]),
        ("h6", &[]),
        ("hr", &[]),
        ("li", &[]),
        ("math", &["display"]),
        ("ol", &["start", "dir", "class"]),
        ("p", &[]),
        ("pre", &["dir"]),
        ("span", &["class", "role", "aria-label"]),
        ("strong", &[]),
        ("sup", &[]),
        ("table", &["dir"]),
        ("tbody", &[]),
        ("td", &["class"]),
        ("th", &["class"]),
        ("thead", &[]),
        ("tr", &[]),
        ("ul", &["dir"]),
    ];

    /// The classes that the style sheet has for what a text contains.
    const CLASSES: [&str; 11] =
        ["c", "s", "n", "k", "task", "leads", "doubtful", "mid", "end", "notes", "wide"];

    /// Is the tag allowed on the page?
    pub(super) fn harmless(tag: &str) -> bool {
        // Our own button, compared exactly. A model cannot produce one, since its HTML is shown as text.
        let copy = "button type=\"button\" class=\"small js-only\" data-copy=\"\" data-testid=\"code-copy\"";
        if tag == copy || tag == "/button" {
            return true;
        }
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag.strip_prefix('/').unwrap_or(tag), ""));
        let known = ALLOWED.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed);
        let Some(allowed) = known.or_else(|| super::MATH.contains(&name).then_some(&[])) else {
            return false;
        };
        let mut leads = vec![];
        while !rest.is_empty() {
            let Some((attribute, after)) = rest.split_once("=\"") else { return false };
            let Some((value, after)) = after.split_once('"') else { return false };
            if !allowed.contains(&attribute) {
                return false;
            }
            let wrong = match attribute {
                "dir" => value != "auto",
                "class" => !CLASSES.contains(&value),
                _ => false,
            };
            if wrong {
                return false;
            }
            leads.extend((attribute == "href").then(|| value.to_lowercase()));
            rest = after.trim_start();
        }
        let ways = ["http:", "https:", "mailto:", "/leave?to=http"];
        leads.iter().all(|to| ways.iter().any(|way| to.starts_with(way)))
    }
}

#[cfg(test)]
mod tests {
    use super::checks::{check, harmless};
    use super::*;

    #[test]
    fn what_a_model_writes_can_do_nothing() {
        for (written, expected) in [
            ("**Two** `new`", "<p><strong>Two</strong> <code>new</code></p>\n"),
            ("# Big", "<h3>Big</h3>\n"),
            ("### a\n\n# b\n\n#### c\n\n## d", "<h3>a</h3>\n<h3>b</h3>\n<h4>c</h4>\n<h4>d</h4>\n"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n"),
            (
                "![cat](https://evil.test/?secret)",
                "<p><a href=\"https://evil.test/?secret\" title=\"https://evil.test/?secret\" target=\"_blank\" rel=\"noopener noreferrer\">cat <bdi class=\"leads\">evil.test</bdi></a></p>\n",
            ),
            ("[x](javascript:alert(1))", "<p>x</p>\n"),
            ("[x](/sign-out)", "<p>x</p>\n"),
            ("[x](/leave?to=https://a.test)", "<p>x</p>\n"),
            (
                "[https://bank.com](https://evil.test/)",
                "<p><a class=\"doubtful\" href=\"/leave?to=https%3A%2F%2Fevil.test%2F\" title=\"https://evil.test/\" target=\"_blank\" rel=\"noopener noreferrer\">https://bank.com <bdi class=\"leads\">evil.test</bdi></a></p>\n",
            ),
        ] {
            assert_eq!(render(written, Lang::ENGLISH).into_string(), expected, "{written}");
        }
    }

    #[test]
    fn what_models_write_is_shown_as_they_mean_it() {
        for (written, expected) in [
            (
                "Go to https://a.test/x.",
                "<p>Go to <a href=\"https://a.test/x\" title=\"https://a.test/x\" target=\"_blank\" rel=\"noopener noreferrer\">https://a.test/x</a>.</p>\n",
            ),
            ("`https://a.test`", "<p><code>https://a.test</code></p>\n"),
            (
                "|a|b|\n|:-:|--:|\n|1|2|",
                "<th class=\"mid\">a</th><th class=\"end\">b</th></tr></thead><tbody>\n<tr><td class=\"mid\">1</td><td class=\"end\">2</td></tr>\n</tbody></table>\n</div>\n",
            ),
            (
                "- [x] done\n- [ ] open",
                "<li><span class=\"task\" role=\"img\" aria-label=\"Done\">☑</span> done</li>\n<li><span class=\"task\" role=\"img\" aria-label=\"Open\">☐</span> open</li>",
            ),
            (
                "a[^x]\n\n[^x]: Why.",
                "<p>a<sup>1</sup></p>\n<hr><ol class=\"notes\" dir=\"auto\"><li>\n<p>Why.</p>\n</li></ol>",
            ),
            (
                "```rust\nlet a;\n```",
                "<pre dir=\"auto\"><code><span class=\"k\">let</span> a;\n</code></pre>",
            ),
            ("Area $\\pi r^2$.", "<p>Area <math><mi>π</mi><msup><mi>r</mi><mn>2</mn></msup></math>.</p>"),
            ("It costs $5 and then $10.", "<p>It costs $5 and then $10.</p>"),
            ("US$20/US$30", "<p>US$20/US$30</p>"),
        ] {
            let html = render(written, Lang::ENGLISH).into_string();
            assert!(html.contains(expected), "{written}: {html}");
            check(written);
        }
    }

    const WRITTEN: [&str; 8] = [
        "- [x] a\n- [ ] b[^1]\n\n[^1]: n $x^{2}$ and $$\\frac{a}{b}$$ \\(c\\) www.a.test/x_(y) a@b.test\n\n|a|b|\n|:-|-:|\n|`x`|$y$|\n",
        "[https://bank.com](https://evil.test) <https://pаypal.com> ```py\ndef f(): 'x' # y\n``` \\[\\begin{a}1&2\\\\3\\end{a}\\]",
        "# Head\n\nSome **bold**, *soft* and `code`, see <https://a.test/?a=1&b=2> or [here](https://b.test \"t\").\n\n* a\n* b\n  1. c\n",
        "| a | b |\n|---|:-:|\n| 1 | ~~2~~ |\n\n> quoted\n> > twice\n\n```rust\nfn a() {}\n```\n\n    indented\n\n---\n",
        "![cat](https://evil.test/?d=secret) [![x](http://y)](javascript:alert(1)) [r]: data:text/html,x\n\n[r] [x](<javascript:a b>)",
        "<script>alert(1)</script><img src=x onerror=alert(1)> <a href=\"javascript:a()\" onclick=b()>x</a> <svg/onload=a()>",
        "[x](JaVaScRiPt:alert&#40;1&#41;) [y](\\x01javascript:a) [z](data:text/html;base64,PHNjcmlwdD4=) <javascript:a()>",
        "&lt;script&gt; &#60;script&#62; <!-- x --> <![CDATA[ <b> ]]> <?php ?> <style>*{}</style> <iframe srcdoc='<script>'>",
    ];

    mod fuzz {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn whatever_is_written_only_plain_tags_and_links_come_out(text in kai_mutate::text(WRITTEN.map(str::to_owned).to_vec())) {
                check(&text);
            }
        }
    }

    #[test]
    fn the_check_itself_can_fail() {
        for (tag, expected) in [
            ("p", true),
            ("/p", true),
            ("ol start=\"3\"", true),
            ("a href=\"https://x/?a=b\" title=\"<b\" target=\"_blank\" rel=\"noopener noreferrer\"", true),
            ("script", false),
            ("img src=\"x\"", false),
            ("p onclick=\"a()\"", false),
            ("p class=\"banner\"", false),
            ("span class=\"k\"", true),
            ("span class=\"banner\"", false),
            ("msup", true),
            ("math display=\"block\"", true),
            ("mi href=\"https://x\"", false),
            ("a href=\"/leave?to=https%3A%2F%2Fx\"", true),
            ("a href=\"/leave?to=javascript\"", false),
            ("ul dir=\"auto\"", true),
            ("ul dir=\"rtl\"", false),
            ("p dir=\"auto\"", false),
            ("a href=\"javascript:a()\"", false),
            ("a href=\"/sign-out\"", false),
            ("a href=\"https://x\" onclick=\"a()\"", false),
        ] {
            assert_eq!(harmless(tag), expected, "{tag}");
        }
    }

    #[test]
    fn what_nests_without_end_is_cut_flat() {
        for (piece, tag) in [(">", "blockquote"), ("> * ", "ul"), ("* a\n", "ul")] {
            let text = (0..200)
                .map(|n| format!("{}{piece}", " ".repeat(n * 2 * usize::from(piece.ends_with('\n')))));
            let html = render(&format!("{}b", text.collect::<String>()), Lang::ENGLISH).into_string();
            let open = html.matches(&format!("<{tag} dir=\"auto\">")).count();
            assert!(
                (1..=DEEPEST).contains(&open) && html.matches(&format!("</{tag}>")).count() == open,
                "{open} {tag}"
            );
            assert!(html.contains('b'), "what stands in it stays");
        }
    }
}
