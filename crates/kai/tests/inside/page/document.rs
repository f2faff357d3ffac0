//! A page as it was sent, to be looked into: elements by their test ids, their text, the fields of their forms.

/// Elements that hold nothing.
const VOID: [&str; 11] =
    ["input", "br", "meta", "link", "img", "hr", "path", "circle", "rect", "line", "!doctype"];

struct Element {
    tag: String,
    attributes: Vec<(String, String)>,
    parent: Option<usize>,
    /// The number of the first element after it and all it holds.
    end: usize,
    /// All text in it.
    text: String,
}

/// The elements of a page in the order in which they begin.
pub(super) struct Document {
    elements: Vec<Element>,
}

impl Document {
    pub(super) fn new(html: &str) -> Self {
        let mut document = Self { elements: vec![] };
        let mut open: Vec<usize> = vec![];
        let mut rest = html;
        while let Some((text, after)) = rest.split_once('<') {
            document.text(&open, text);
            let (tag, next) = split_tag(after);
            rest = next;
            if let Some(name) = tag.strip_prefix('/') {
                document.close(&mut open, name);
            } else {
                document.open(&mut open, tag);
            }
        }
        document.text(&open, rest);
        let all = document.elements.len();
        for at in open {
            document.elements[at].end = all;
        }
        document
    }

    /// Text belongs to all that it stands in.
    fn text(&mut self, open: &[usize], text: &str) {
        let text = decoded(text);
        for at in open {
            self.elements[*at].text.push_str(&text);
        }
    }

    fn open(&mut self, open: &mut Vec<usize>, tag: &str) {
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let (name, at) = (name.to_lowercase(), self.elements.len());
        let is_void = VOID.contains(&name.as_str());
        self.elements.push(Element {
            attributes: attributes_of(attributes),
            parent: open.last().copied(),
            end: at + 1,
            text: String::new(),
            tag: name,
        });
        if !is_void {
            open.push(at);
        }
    }

    fn close(&mut self, open: &mut Vec<usize>, name: &str) {
        let Some(from) = open.iter().rposition(|at| self.elements[*at].tag == name) else { return };
        let end = self.elements.len();
        open.drain(from..).for_each(|at| self.elements[at].end = end);
    }

    /// All with this test id.
    pub(super) fn all(&self, testid: &str) -> Vec<usize> {
        self.having("data-testid", testid)
    }

    /// All with this value of this attribute.
    pub(super) fn having(&self, name: &str, value: &str) -> Vec<usize> {
        (0..self.elements.len()).filter(|at| self.attribute(*at, name) == Some(value)).collect()
    }

    /// All text of the page.
    pub(super) fn whole_text(&self) -> &str {
        self.elements.iter().find(|element| element.tag == "html").map_or("", |html| &html.text)
    }

    pub(super) fn tagged(&self, tag: &str) -> usize {
        self.elements.iter().filter(|element| element.tag == tag).count()
    }

    /// What stands right in it.
    pub(super) fn children_of(&self, outer: usize) -> impl Iterator<Item = usize> {
        (0..self.elements.len()).filter(move |at| self.elements[*at].parent == Some(outer))
    }

    /// Does the one hold the other?
    pub(super) fn holds(&self, outer: usize, inner: usize) -> bool {
        outer < inner && inner < self.elements[outer].end
    }

    pub(super) fn attribute(&self, at: usize, name: &str) -> Option<&str> {
        let mut attributes = self.elements[at].attributes.iter();
        attributes.find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn text_of(&self, at: usize) -> &str {
        self.elements[at].text.trim()
    }

    pub(super) fn form_of(&self, at: usize) -> Option<usize> {
        let mut parents = std::iter::successors(Some(at), |at| self.elements[*at].parent);
        parents.find(|at| self.elements[*at].tag == "form")
    }

    /// Types into a field, in place of what is there.
    pub(super) fn fill(&mut self, at: usize, text: &str) {
        let element = &mut self.elements[at];
        element.attributes.retain(|(name, _)| name != "value");
        element.attributes.push(("value".to_owned(), text.to_owned()));
    }

    /// Turns a box that can be ticked.
    pub(super) fn tick(&mut self, at: usize) {
        let element = &mut self.elements[at];
        let before = element.attributes.len();
        element.attributes.retain(|(name, _)| name != "checked");
        if element.attributes.len() == before {
            element.attributes.push(("checked".to_owned(), String::new()));
        }
    }

    /// What a field holds now.
    pub(super) fn value(&self, at: usize) -> String {
        if let Some(value) = self.attribute(at, "value") {
            return value.to_owned();
        }
        let element = &self.elements[at];
        match element.tag.as_str() {
            "textarea" => element.text.strip_prefix('\n').unwrap_or(&element.text).to_owned(),
            "select" => {
                let options: Vec<usize> =
                    (at + 1..element.end).filter(|at| self.elements[*at].tag == "option").collect();
                let chosen = options.iter().find(|at| self.attribute(**at, "selected").is_some());
                chosen.or(options.first()).map(|at| self.value(*at)).unwrap_or_default()
            }
            "option" => self.text_of(at).to_owned(),
            _ => String::new(),
        }
    }

    /// What a browser sends of a form when one of its buttons is pressed.
    pub(super) fn fields(&self, form: usize, pressed: usize) -> Vec<(String, String)> {
        let sent = (form + 1..self.elements[form].end).filter(|at| self.is_sent(*at) || *at == pressed);
        sent.filter_map(|at| Some((self.attribute(at, "name")?.to_owned(), self.value(at))))
            .map(|(name, value)| (name, value.replace('\n', "\r\n")))
            .collect()
    }

    fn is_sent(&self, at: usize) -> bool {
        match (self.elements[at].tag.as_str(), self.attribute(at, "type").unwrap_or_default()) {
            _ if self.attribute(at, "disabled").is_some() => false,
            ("input", "checkbox" | "radio") => self.attribute(at, "checked").is_some(),
            ("input" | "textarea" | "select", _) => true,
            _ => false,
        }
    }
}

/// A tag without its brackets, and what follows it. A bracket in a value ends nothing.
fn split_tag(html: &str) -> (&str, &str) {
    let mut quoted = false;
    let end = html.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        (c == '>' && !quoted).then_some(at)
    });
    end.map_or((html, ""), |end| (&html[..end], &html[end + 1..]))
}

fn attributes_of(mut rest: &str) -> Vec<(String, String)> {
    let mut all = vec![];
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return all;
        }
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        rest = &rest[end..];
        let value = rest.strip_prefix("=\"").and_then(|quoted| quoted.split_once('"'));
        if let Some((value, after)) = value {
            rest = after;
            all.push((name, decoded(value)));
        } else {
            rest = rest.strip_prefix('=').unwrap_or(rest);
            all.push((name, String::new()));
        }
    }
}

fn decoded(text: &str) -> String {
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    plain.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn a_page_is_read_and_its_form_is_filled_in() {
    let html = r#"<!DOCTYPE html><form action="/a" id=x><input type="hidden" name="n" value="a &lt;b&gt;">
        <p data-testid="p">One <b>two</b></p><input type="checkbox" name="t" value="1" checked>
        <select name="s"><option>x</option><option value="y" selected>Why</option></select>
        <textarea data-testid="text" name="area">
old</textarea><button data-testid="go" name="act" value="yes">Go</button><button name="act" value="no"></button></form>"#;
    let mut page = Document::new(html);
    assert_eq!(page.text_of(page.all("p")[0]), "One two");
    let (go, area) = (page.all("go")[0], page.all("text")[0]);
    let form = page.form_of(go).unwrap();
    let sent = |page: &Document| {
        let fields = page.fields(form, go);
        fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
    };
    assert_eq!(sent(&page), "n=a <b>;t=1;s=y;area=old;act=yes");
    page.fill(area, "new\nline");
    page.tick(page.having("type", "checkbox")[0]);
    assert_eq!(sent(&page), "n=a <b>;s=y;area=new\r\nline;act=yes");
}
