//! Plural rules: which plural category a number belongs to in a language. The categories are those of CLDR.

/// A plural rule; a language file names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plural {
    /// One text for all numbers: Japanese, Chinese, Turkish.
    None,
    /// One is singular: English, German, Spanish.
    One,
    /// Zero and one are singular: French, Portuguese.
    ZeroOne,
    Czech,
    Polish,
    /// Russian, Ukrainian.
    EastSlavic,
    Arabic,
}

/// The place of a category among a plural's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Zero,
    One,
    Two,
    Few,
    Many,
    Other,
}

impl Plural {
    /// The rule by the name that language files use.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "one" => Self::One,
            "zero-one" => Self::ZeroOne,
            "czech" => Self::Czech,
            "polish" => Self::Polish,
            "east-slavic" => Self::EastSlavic,
            "arabic" => Self::Arabic,
            _ => Self::None,
        }
    }

    pub(crate) fn category(self, n: u64) -> Category {
        let (ones, tens) = (n % 10, n % 100);
        match self {
            Self::None => Category::Other,
            Self::One => {
                if n == 1 {
                    Category::One
                } else {
                    Category::Other
                }
            }
            Self::ZeroOne => {
                if n < 2 {
                    Category::One
                } else {
                    Category::Other
                }
            }
            Self::Czech => match n {
                1 => Category::One,
                2..=4 => Category::Few,
                _ => Category::Other,
            },
            Self::Polish if n == 1 => Category::One,
            Self::EastSlavic if ones == 1 && tens != 11 => Category::One,
            Self::Polish | Self::EastSlavic => {
                let few = (2..=4).contains(&ones) && !(12..=14).contains(&tens);
                if few { Category::Few } else { Category::Many }
            }
            Self::Arabic => match (n, tens) {
                (0, _) => Category::Zero,
                (1, _) => Category::One,
                (2, _) => Category::Two,
                (_, 3..=10) => Category::Few,
                (_, 11..=99) => Category::Many,
                _ => Category::Other,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_belong_to_the_categories_that_cldr_names() {
        use Category::{Few, Many, One, Other, Two, Zero};
        for (rule, expected) in [
            (Plural::None, &[(0, Other), (1, Other), (7, Other)][..]),
            (Plural::One, &[(0, Other), (1, One), (2, Other), (11, Other)]),
            (Plural::ZeroOne, &[(0, One), (1, One), (2, Other)]),
            (Plural::Czech, &[(0, Other), (1, One), (2, Few), (4, Few), (5, Other), (22, Other)]),
            (Plural::Polish, &[(0, Many), (1, One), (2, Few), (5, Many), (12, Many), (21, Many), (22, Few)]),
            (
                Plural::EastSlavic,
                &[(0, Many), (1, One), (3, Few), (11, Many), (14, Many), (21, One), (24, Few)],
            ),
            (
                Plural::Arabic,
                &[
                    (0, Zero),
                    (1, One),
                    (2, Two),
                    (3, Few),
                    (10, Few),
                    (11, Many),
                    (99, Many),
                    (100, Other),
                    (103, Few),
                ],
            ),
        ] {
            for (n, category) in expected {
                assert_eq!(rule.category(*n), *category, "{rule:?} {n}");
            }
        }
    }
}
