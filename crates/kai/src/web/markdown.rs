//! Renders a model's Markdown as safe HTML. The text is untrusted: raw HTML is shown as text, nothing is loaded from
//! other sites, and a link shows its target and opens in a new tab.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::Builder;
use kai_words::Lang;
use maud::{Markup, PreEscaped};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The second line of defence: removes every tag and attribute not allowed here, whatever the parser let through.
static SAFE: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut safe = Builder::default();
    safe.rm_tags(["img", "area", "map", "figure", "figcaption"])
        // Only for the button that copies a code block.
        .add_tags(["button"])
        .add_tag_attributes("button", ["type", "class", "data-copy", "data-testid"])
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer"))
        .set_tag_attribute_value("a", "target", "_blank");
    // These take their direction from their own text; paragraphs do so by the style sheet, since an element with a
    // `dir` of its own does not count for the list or the message around it.
    for block in ["ul", "ol", "blockquote", "pre", "table"] {
        safe.set_tag_attribute_value(block, "dir", "auto");
    }
    safe
});

/// Renders a text. The language is that of the copy buttons.
pub(super) fn render(text: &str, lang: Lang) -> Markup {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut written = String::with_capacity(text.len() * 3 / 2);
    let mut depth = 0;
    let events =
        parser.filter(|event| within(&mut depth, event)).map(tamed).flat_map(|event| copyable(event, lang));
    html::push_html(&mut written, events);
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

/// Turns raw HTML into text and images into links, shows a link's target as its title, and lowers headings.
fn tamed(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        // The browser would fetch an image from wherever the text says, so it becomes a link.
        Event::Start(
            Tag::Image { link_type, dest_url, id, .. } | Tag::Link { link_type, dest_url, id, .. },
        ) => {
            let title = dest_url.clone();
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Event::Start(Tag::Heading { level: lower(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower(level))),
        other => other,
    }
}

/// Puts a copy button before each code block: code is what people copy most.
fn copyable(event: Event<'_>, lang: Lang) -> impl Iterator<Item = Event<'_>> {
    let before = matches!(event, Event::Start(Tag::CodeBlock(_))).then(|| Event::Html(copy(lang).into()));
    before.into_iter().chain([event])
}

fn copy(lang: Lang) -> String {
    let button = maud::html! {
        button type="button" class="small js-only" data-copy data-testid="code-copy" { (lang.talk_copy()) }
    };
    button.into_string()
}

/// Lowers a heading by two levels, since the page has its own headings above.
fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
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
        ("a", &["href", "title", "target", "rel"]),
        ("blockquote", &["dir"]),
        ("br", &[]),
        ("code", &[]),
        ("del", &[]),
        ("em", &[]),
        ("h3", &[]),
        ("h4", &[]),
        ("h5", &[]),
        ("h6", &[]),
        ("hr", &[]),
        ("li", &[]),
        ("ol", &["start", "dir"]),
        ("p", &[]),
        ("pre", &["dir"]),
        ("strong", &[]),
        ("table", &["dir"]),
        ("tbody", &[]),
        ("td", &[]),
        ("th", &[]),
        ("thead", &[]),
        ("tr", &[]),
        ("ul", &["dir"]),
    ];

    /// Is the tag allowed on the page?
    pub(super) fn harmless(tag: &str) -> bool {
        // Our own button, compared exactly. A model cannot produce one, since its HTML is shown as text.
        let copy = "button type=\"button\" class=\"small js-only\" data-copy=\"\" data-testid=\"code-copy\"";
        if tag == copy || tag == "/button" {
            return true;
        }
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag.strip_prefix('/').unwrap_or(tag), ""));
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else { return false };
        let mut leads = vec![];
        while !rest.is_empty() {
            let Some((attribute, after)) = rest.split_once("=\"") else { return false };
            let Some((value, after)) = after.split_once('"') else { return false };
            if !allowed.contains(&attribute) {
                return false;
            }
            if attribute == "dir" && value != "auto" {
                return false;
            }
            leads.extend((attribute == "href").then(|| value.to_lowercase()));
            rest = after.trim_start();
        }
        leads.iter().all(|to| ["http:", "https:", "mailto:"].iter().any(|scheme| to.starts_with(scheme)))
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
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n"),
            (
                "![cat](https://evil.test/?secret)",
                "<p><a href=\"https://evil.test/?secret\" title=\"https://evil.test/?secret\" target=\"_blank\" rel=\"noopener noreferrer\">cat</a></p>\n",
            ),
            (
                "[x](javascript:alert(1))",
                "<p><a title=\"javascript:alert(1)\" target=\"_blank\" rel=\"noopener noreferrer\">x</a></p>\n",
            ),
            (
                "[x](/sign-out)",
                "<p><a title=\"/sign-out\" target=\"_blank\" rel=\"noopener noreferrer\">x</a></p>\n",
            ),
        ] {
            assert_eq!(render(written, Lang::ENGLISH).into_string(), expected, "{written}");
        }
    }

    const WRITTEN: [&str; 6] = [
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
