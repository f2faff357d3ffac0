//! Formulas: turns the LaTeX that models write into `MathML`, which browsers draw and screen readers read. What it does
//! not know is shown as it was written.

/// The formula as a `math` element. Everything in it that comes from the text is escaped.
pub(super) fn render(latex: &str, display: bool) -> String {
    let mut reader = Reader { rest: latex, depth: 0, display };
    let mut inside = String::new();
    while !reader.rest.is_empty() {
        inside += &reader.row();
        // A brace or `\right` too many ends the row; it is dropped.
        reader.skip();
    }
    if display {
        format!("<math display=\"block\">{inside}</math>")
    } else {
        format!("<math>{inside}</math>")
    }
}

/// Is the text between two dollar signs a formula, and not what stands between two prices?
pub(super) fn is_formula(latex: &str) -> bool {
    let price = latex.starts_with(|c: char| c.is_ascii_digit());
    !price
        || latex.contains(['\\', '^', '_', '=', '+', '<', '>'])
        || !latex.contains(char::is_whitespace) && !latex.contains(|c: char| c.is_alphabetic() || c == '/')
}

/// Formulas nest at most this deep; what is deeper is shown as written.
const DEEPEST: usize = 24;

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
    display: bool,
}

impl<'a> Reader<'a> {
    /// Reads up to the end of the group: a closing brace, a cell's or row's end, `\right`, or the formula's end.
    fn row(&mut self) -> String {
        let mut row = String::new();
        loop {
            self.rest = self.rest.trim_start();
            if self.at_end() {
                return row;
            }
            let (base, kind) = self.atom();
            row += &self.scripts(base, kind);
        }
    }

    fn at_end(&self) -> bool {
        let ends = ["}", "&", "\\\\", "\\right", "\\end{"];
        self.rest.is_empty() || ends.iter().any(|end| self.rest.starts_with(end) && !self.is_longer(end))
    }

    /// Does the command go on, as `\rightarrow` does after `\right`?
    fn is_longer(&self, end: &str) -> bool {
        end == "\\right" && self.rest[end.len()..].starts_with("arrow")
    }

    /// Drops what ended the formula too early.
    fn skip(&mut self) {
        let length = if self.rest.starts_with("\\right") {
            6
        } else {
            self.rest.chars().next().map_or(0, char::len_utf8)
        };
        self.rest = &self.rest[length..];
    }

    /// One thing: a letter, a number, a sign, a group or a command.
    fn atom(&mut self) -> (String, Base) {
        let Some(first) = self.rest.chars().next() else { return (String::new(), Base::Letter) };
        match first {
            '{' => (self.group(), Base::Letter),
            '\\' => self.command(),
            '0'..='9' => {
                let end = self
                    .rest
                    .find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
                    .unwrap_or(self.rest.len());
                let end = self.rest[..end].trim_end_matches(['.', ',']).len();
                (element("mn", self.take(end)), Base::Letter)
            }
            c if c.is_alphabetic() => (element("mi", self.take(c.len_utf8())), Base::Letter),
            c => (
                element(
                    "mo",
                    match self.take(c.len_utf8()) {
                        "-" => "−",
                        "*" => "∗",
                        "'" => "′",
                        other => other,
                    },
                ),
                Base::Letter,
            ),
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// `{…}`, or the one thing that stands there without braces.
    fn group(&mut self) -> String {
        self.rest = self.rest.trim_start();
        if self.depth >= DEEPEST {
            return element("mtext", self.raw_group());
        }
        self.depth += 1;
        let group = if let Some(inside) = self.rest.strip_prefix('{') {
            self.rest = inside;
            let row = self.row();
            self.rest = self.rest.strip_prefix('}').unwrap_or(self.rest);
            format!("<mrow>{row}</mrow>")
        } else {
            self.atom().0
        };
        self.depth -= 1;
        group
    }

    /// What stands between the braces, as it was written.
    fn raw_group(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        let Some(inside) = self.rest.strip_prefix('{') else {
            let one = self.rest.chars().next().map_or(0, char::len_utf8);
            return self.take(one);
        };
        let mut open = 1_usize;
        for (at, c) in inside.char_indices() {
            match c {
                '{' => open += 1,
                '}' => open -= 1,
                _ => {}
            }
            if open == 0 {
                self.rest = &inside[at + 1..];
                return &inside[..at];
            }
        }
        self.rest = "";
        inside
    }

    /// A backslash and a name, or a backslash and one sign.
    fn command(&mut self) -> (String, Base) {
        self.rest = &self.rest[1..];
        let letters = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let length = if letters > 0 { letters } else { self.rest.chars().next().map_or(0, char::len_utf8) };
        let name = self.take(length);
        (self.named(name), if LIMITS.contains(&name) { Base::Limits } else { Base::Letter })
    }

    fn named(&mut self, name: &str) -> String {
        match name {
            "frac" | "dfrac" | "tfrac" => {
                let (over, under) = (self.group(), self.group());
                format!("<mfrac>{over}{under}</mfrac>")
            }
            "binom" => {
                let (over, under) = (self.group(), self.group());
                format!(
                    "<mrow><mo>(</mo><mtable><mtr><mtd>{over}</mtd></mtr><mtr><mtd>{under}</mtd></mtr></mtable><mo>)</mo></mrow>"
                )
            }
            "sqrt" => self.root(),
            "text" | "textbf" | "textit" | "mathrm" | "operatorname" | "mbox" | "textrm" => {
                element("mtext", self.raw_group())
            }
            "mathbf" | "mathbb" | "mathcal" | "mathit" | "boldsymbol" | "displaystyle" | "boxed" => {
                self.group()
            }
            "left" | "right" | "big" | "Big" | "bigg" | "Bigg" | "bigl" | "bigr" => self.fence(name),
            "begin" => self.table(),
            "hat" | "bar" | "vec" | "dot" | "ddot" | "tilde" | "overline" | "widehat" => self.accent(name),
            "," | ";" | ":" | "!" | " " | "quad" | "qquad" | "limits" | "nolimits" | "nonumber" => {
                element("mtext", "\u{a0}")
            }
            "{" | "}" | "%" | "$" | "&" | "#" | "_" => element("mo", name),
            "|" => element("mo", "‖"),
            _ => symbol(name),
        }
    }

    fn root(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let Some((index, after)) = self.rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
            return format!("<msqrt>{}</msqrt>", self.group());
        };
        self.rest = after;
        let index = element("mtext", index);
        format!("<mroot>{}{index}</mroot>", self.group())
    }

    /// `\left(` … `\right)`: brackets that grow with what they hold.
    fn fence(&mut self, name: &str) -> String {
        let open = self.bracket();
        if name != "left" || self.depth >= DEEPEST {
            return open;
        }
        self.depth += 1;
        let inside = self.row();
        self.depth -= 1;
        let close = match self.rest.strip_prefix("\\right") {
            Some(rest) => {
                self.rest = rest;
                self.bracket()
            }
            None => String::new(),
        };
        format!("<mrow>{open}{inside}{close}</mrow>")
    }

    fn bracket(&mut self) -> String {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('\\') {
            return self.group();
        }
        let one = self.rest.chars().next().map_or(0, char::len_utf8);
        match self.take(one) {
            "." => String::new(),
            sign => element("mo", sign),
        }
    }

    /// `\begin{…}` … `\end{…}`: a matrix, cases, or lines of one formula.
    fn table(&mut self) -> String {
        let name = self.raw_group();
        if self.depth >= DEEPEST {
            return element("mtext", name);
        }
        self.depth += 1;
        let mut table = String::from("<mtr><mtd>");
        loop {
            table += &self.row();
            if let Some(rest) = self.rest.strip_prefix('&') {
                self.rest = rest;
                table += "</mtd><mtd>";
            } else if let Some(rest) = self.rest.strip_prefix("\\\\") {
                self.rest = rest;
                table += "</mtd></mtr><mtr><mtd>";
            } else if let Some(rest) = self.rest.strip_prefix("\\end") {
                self.rest = rest;
                self.raw_group();
                break;
            } else if self.rest.is_empty() {
                break;
            } else {
                self.skip();
            }
        }
        self.depth -= 1;
        let (open, close) = around(name);
        format!("<mrow>{open}<mtable>{table}</mtd></mtr></mtable>{close}</mrow>")
    }

    fn accent(&mut self, name: &str) -> String {
        let over = match name {
            "hat" | "widehat" => "^",
            "vec" => "→",
            "dot" => "˙",
            "ddot" => "¨",
            "tilde" => "~",
            _ => "‾",
        };
        format!("<mover>{}{}</mover>", self.group(), element("mo", over))
    }

    /// Adds what stands above and below on the right, or above and below a sum.
    fn scripts(&mut self, base: String, kind: Base) -> String {
        let (mut below, mut above) = (None, None);
        loop {
            self.rest = self.rest.trim_start();
            if below.is_none() && self.rest.starts_with('_') {
                self.rest = &self.rest[1..];
                below = Some(self.group());
            } else if above.is_none() && self.rest.starts_with('^') {
                self.rest = &self.rest[1..];
                above = Some(self.group());
            } else {
                break;
            }
        }
        let limits = self.display && kind == Base::Limits;
        let tags = if limits { ["munder", "mover", "munderover"] } else { ["msub", "msup", "msubsup"] };
        match (below, above) {
            (None, None) => base,
            (Some(below), None) => format!("<{0}>{base}{below}</{0}>", tags[0]),
            (None, Some(above)) => format!("<{0}>{base}{above}</{0}>", tags[1]),
            (Some(below), Some(above)) => format!("<{0}>{base}{below}{above}</{0}>", tags[2]),
        }
    }
}

/// Where a thing's scripts stand in a formula of its own line: at its corner, or above and below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Letter,
    Limits,
}

const LIMITS: [&str; 8] = ["sum", "prod", "lim", "max", "min", "sup", "inf", "bigcup"];

fn element(tag: &str, text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            c => escaped.push(c),
        }
    }
    format!("<{tag}>{escaped}</{tag}>")
}

/// The brackets around a table of this name.
fn around(name: &str) -> (String, String) {
    let (open, close) = match name {
        "pmatrix" => ("(", ")"),
        "bmatrix" => ("[", "]"),
        "vmatrix" => ("|", "|"),
        "cases" => ("{", ""),
        _ => ("", ""),
    };
    let sign = |sign: &str| if sign.is_empty() { String::new() } else { element("mo", sign) };
    (sign(open), sign(close))
}

fn symbol(name: &str) -> String {
    if let Some((_, letter)) = LETTERS.iter().find(|(known, _)| *known == name) {
        return element("mi", letter);
    }
    if let Some((_, sign)) = SIGNS.iter().find(|(known, _)| *known == name) {
        return element("mo", sign);
    }
    if FUNCTIONS.contains(&name) {
        return element("mi", name);
    }
    element("mtext", &format!("\\{name}"))
}

const FUNCTIONS: [&str; 18] = [
    "sin", "cos", "tan", "cot", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "exp",
    "lim", "max", "min", "det", "gcd",
];

const LETTERS: [(&str, &str); 42] = [
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ϵ"),
    ("varepsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("iota", "ι"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("upsilon", "υ"),
    ("phi", "ϕ"),
    ("varphi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Theta", "Θ"),
    ("Lambda", "Λ"),
    ("Xi", "Ξ"),
    ("Pi", "Π"),
    ("Sigma", "Σ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
    ("infty", "∞"),
    ("partial", "∂"),
    ("nabla", "∇"),
    ("hbar", "ℏ"),
    ("ell", "ℓ"),
    ("emptyset", "∅"),
    ("degree", "°"),
];

const SIGNS: [(&str, &str); 57] = [
    ("times", "×"),
    ("cdot", "⋅"),
    ("div", "÷"),
    ("pm", "±"),
    ("mp", "∓"),
    ("ast", "∗"),
    ("circ", "∘"),
    ("leq", "≤"),
    ("le", "≤"),
    ("geq", "≥"),
    ("ge", "≥"),
    ("neq", "≠"),
    ("ne", "≠"),
    ("approx", "≈"),
    ("equiv", "≡"),
    ("sim", "∼"),
    ("propto", "∝"),
    ("ll", "≪"),
    ("gg", "≫"),
    ("in", "∈"),
    ("notin", "∉"),
    ("subset", "⊂"),
    ("subseteq", "⊆"),
    ("supset", "⊃"),
    ("cup", "∪"),
    ("cap", "∩"),
    ("setminus", "∖"),
    ("land", "∧"),
    ("wedge", "∧"),
    ("lor", "∨"),
    ("vee", "∨"),
    ("neg", "¬"),
    ("forall", "∀"),
    ("exists", "∃"),
    ("to", "→"),
    ("rightarrow", "→"),
    ("leftarrow", "←"),
    ("Rightarrow", "⇒"),
    ("Leftarrow", "⇐"),
    ("implies", "⟹"),
    ("iff", "⟺"),
    ("leftrightarrow", "↔"),
    ("mapsto", "↦"),
    ("ldots", "…"),
    ("dots", "…"),
    ("cdots", "⋯"),
    ("vdots", "⋮"),
    ("sum", "∑"),
    ("prod", "∏"),
    ("int", "∫"),
    ("oint", "∮"),
    ("bigcup", "⋃"),
    ("mid", "∣"),
    ("langle", "⟨"),
    ("rangle", "⟩"),
    ("lfloor", "⌊"),
    ("rfloor", "⌋"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn formulas_become_mathml() {
        for (latex, expected) in [
            ("x^2", "<math><msup><mi>x</mi><mn>2</mn></msup></math>"),
            ("a_i^{10}", "<math><msubsup><mi>a</mi><mi>i</mi><mrow><mn>10</mn></mrow></msubsup></math>"),
            ("\\frac{1}{2}", "<math><mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac></math>"),
            ("\\sqrt[3]{8}", "<math><mroot><mrow><mn>8</mn></mrow><mtext>3</mtext></mroot></math>"),
            ("a \\leq \\alpha", "<math><mi>a</mi><mo>≤</mo><mi>α</mi></math>"),
            ("\\left(x\\right)", "<math><mrow><mo>(</mo><mi>x</mi><mo>)</mo></mrow></math>"),
            ("\\text{if } a<b", "<math><mtext>if </mtext><mi>a</mi><mo>&lt;</mo><mi>b</mi></math>"),
            ("\\nonsense{x}", "<math><mtext>\\nonsense</mtext><mrow><mi>x</mi></mrow></math>"),
            ("x \\rightarrow y", "<math><mi>x</mi><mo>→</mo><mi>y</mi></math>"),
            ("}x\\right)", "<math><mi>x</mi><mo>)</mo></math>"),
            (
                "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}",
                "<math><mrow><mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable><mo>)</mo></mrow></math>",
            ),
        ] {
            assert_eq!(render(latex, false), expected, "{latex}");
        }
        let sum = render("\\sum_{i=1}^n i", true);
        assert!(sum.starts_with("<math display=\"block\"><munderover><mo>∑</mo>"), "{sum}");
    }

    #[test]
    fn prices_are_no_formulas() {
        for price in ["20/US", "5 and 10", "20 (about 18 €)"] {
            assert!(!is_formula(price), "{price}");
        }
        for formula in ["x", "2^{10}", "3+4", "42", "2\\pi r"] {
            assert!(is_formula(formula), "{formula}");
        }
    }

    #[test]
    fn what_nests_without_end_ends() {
        for nested in [
            "{".repeat(5000),
            "\\frac{".repeat(5000),
            "\\left(".repeat(5000),
            "x^".repeat(5000),
            "\\sqrt".repeat(5000),
            "\\begin{a}".repeat(5000),
        ] {
            assert!(render(&nested, true).len() < 2_000_000);
        }
    }

    proptest! {
        #[test]
        fn every_tag_that_opens_closes(latex in "(\\\\(frac|sqrt|left|right|begin\\{a\\}|end\\{a\\}|sum|text|hat|x|\\\\)|[{}\\[\\]^_&<>\"'a1 ()]){0,30}") {
            let html = render(&latex, true);
            let mut open = vec![];
            for tag in html.split('<').skip(1) {
                let tag = tag.split(['>', ' ']).next().unwrap();
                match tag.strip_prefix('/') {
                    Some(closed) => prop_assert_eq!(open.pop(), Some(closed)),
                    None => open.push(tag),
                }
            }
            prop_assert!(open.is_empty());
        }
    }
}
