//! What a model wrote, as safe HTML. It is a stranger's text: raw HTML stays text, nothing is loaded from elsewhere, and
//! a link shows where it leads and opens away from the page.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::Builder;
use maud::{Markup, PreEscaped};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The second line of defence: whatever the parser lets through, only this stays.
static SAFE: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut safe = Builder::default();
    safe.rm_tags(["img", "area", "map", "figure", "figcaption"])
        // The button that copies a piece of code, and nothing else.
        .add_tags(["button"])
        .add_tag_attributes("button", ["type", "class", "data-copy", "data-testid"])
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer"))
        .set_tag_attribute_value("a", "target", "_blank");
    safe
});

pub(super) fn render(text: &str) -> Markup {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut written = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut written, parser.map(tamed).flat_map(copyable));
    PreEscaped(SAFE.clean(&written).to_string())
}

fn tamed(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        // A picture would be fetched from wherever the text says.
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

/// A piece of code is what people copy most.
fn copyable(event: Event<'_>) -> impl Iterator<Item = Event<'_>> {
    let before = matches!(event, Event::Start(Tag::CodeBlock(_))).then(|| Event::Html(COPY.into()));
    before.into_iter().chain([event])
}

const COPY: &str =
    "<button type=\"button\" class=\"small js-only\" data-copy data-testid=\"code-copy\">Copy</button>";

/// The page has its own headings above.
fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(render(written).into_string(), expected, "{written}");
        }
    }
}
