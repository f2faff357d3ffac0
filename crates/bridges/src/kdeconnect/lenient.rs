//! JSON values that accept what real devices send. Pure.
//!
//! The same field is a number from one device, a string from the next, and missing from a third. A value of an
//! unexpected kind counts as missing, so that one odd field never costs a whole packet. Lists have a limit, because a
//! few bytes of JSON can become many bytes in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A whole number, or a string that holds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Number(pub(super) Option<i64>);

/// A text. Numbers are taken as they are spelled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Text(pub(super) Option<String>);

/// A truth value, or a number or string that stands for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flag(pub(super) Option<bool>);

/// A list of at most `MOST` items. Items that are of another kind are left out; both they and those beyond the limit
/// are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List<T, const MOST: usize> {
    pub(super) items: Vec<T>,
    pub(super) left_out: usize,
    /// It was a list at all.
    pub(super) given: bool,
}

impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0, given: false }
    }
}

/// An object. Anything else is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Object<T>(pub(super) Option<T>);

/// What a JSON value is, as far as scalars go.
enum Scalar {
    Truth(bool),
    Whole(i64),
    /// Too large for `i64`, or not whole.
    Other(f64),
    Words(String),
    Nothing,
}

impl Scalar {
    fn number(self) -> Option<i64> {
        match self {
            Self::Whole(number) => Some(number),
            Self::Words(text) => text.trim().parse().ok(),
            Self::Truth(_) | Self::Other(_) | Self::Nothing => None,
        }
    }

    fn text(self) -> Option<String> {
        match self {
            Self::Words(text) => Some(text),
            Self::Whole(number) => Some(number.to_string()),
            Self::Other(number) => Some(number.to_string()),
            Self::Truth(_) | Self::Nothing => None,
        }
    }

    fn flag(self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(truth),
            Self::Whole(number) => Some(number != 0),
            Self::Words(text) => match text.as_str() {
                "true" | "1" => Some(true),
                "false" | "0" => Some(false),
                _ => None,
            },
            Self::Other(_) | Self::Nothing => None,
        }
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar::Truth(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "only shown, never counted with")]
    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(i64::try_from(number).map_or(Scalar::Other(number as f64), Scalar::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Other(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Words(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Scalar, E> {
        Ok(Scalar::Words(text))
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Nothing)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Ok(Self(value.deserialize_any(ScalarVisitor)?.number()))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Ok(Self(value.deserialize_any(ScalarVisitor)?.text()))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Ok(Self(value.deserialize_any(ScalarVisitor)?.flag()))
    }
}

/// A kind of value that can be an item of a [`List`].
pub(super) trait Item<'de>: Deserialize<'de> {
    type Inner;
    fn inner(self) -> Option<Self::Inner>;
}

impl Item<'_> for Text {
    type Inner = String;
    fn inner(self) -> Option<String> {
        self.0
    }
}

impl<'de, T: Deserialize<'de>> Item<'de> for Object<T> {
    type Inner = T;
    fn inner(self) -> Option<T> {
        self.0
    }
}

struct ListVisitor<I, T, const MOST: usize>(PhantomData<(I, T)>);

impl<'de, I: Item<'de, Inner = T>, T, const MOST: usize> Visitor<'de> for ListVisitor<I, T, MOST> {
    type Value = List<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = List { given: true, ..List::default() };
        while list.items.len() < MOST {
            let Some(item) = seq.next_element::<I>()? else { return Ok(list) };
            match item.inner() {
                Some(item) => list.items.push(item),
                None => list.left_out += 1,
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            list.left_out += 1;
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        ScalarVisitor.visit_map(map).map(|_| List::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(List::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(List::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(List::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(List::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(List::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(List::default())
    }
}

/// Reads a list of texts.
pub(super) fn texts<'de, D, const MOST: usize>(value: D) -> Result<List<String, MOST>, D::Error>
where
    D: Deserializer<'de>,
{
    value.deserialize_any(ListVisitor::<Text, String, MOST>(PhantomData))
}

/// Reads a list of objects.
pub(super) fn objects<'de, D, T, const MOST: usize>(value: D) -> Result<List<T, MOST>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    value.deserialize_any(ListVisitor::<Object<T>, T, MOST>(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|inner| Object(Some(inner)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        ScalarVisitor.visit_seq(seq).map(|_| Object(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Object(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Object(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Object(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Object(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Object(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Object(None))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(ObjectVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Default)]
    #[serde(default)]
    struct Odd {
        number: Number,
        text: Text,
        flag: Flag,
        #[serde(deserialize_with = "texts")]
        list: List<String, 2>,
    }

    #[test]
    fn odd_values_count_as_missing_and_never_cost_the_rest() {
        for (json, number, text, flag) in [
            ("{}", None, None, None),
            (r#"{"number":7,"text":"a","flag":true}"#, Some(7), Some("a"), Some(true)),
            (r#"{"number":" -7 ","text":7,"flag":"true"}"#, Some(-7), Some("7"), Some(true)),
            (r#"{"number":"x","text":null,"flag":0}"#, None, None, Some(false)),
            (r#"{"number":18446744073709551615,"text":[1,[2]],"flag":{"a":1}}"#, None, None, None),
            (r#"{"number":4.5,"text":{"a":[]},"flag":"maybe","list":"no"}"#, None, None, None),
        ] {
            let odd: Odd = serde_json::from_str(json).unwrap();
            assert_eq!((odd.number.0, odd.text.0.as_deref(), odd.flag.0), (number, text, flag), "{json}");
            assert!(!odd.list.given);
        }
    }

    #[test]
    fn lists_are_cut_and_what_is_left_out_is_counted() {
        for (json, items, left_out) in [
            (r#"{"list":["a"]}"#, vec!["a"], 0),
            (r#"{"list":[null,"a",[],{"x":1},"b"]}"#, vec!["a", "b"], 3),
            (r#"{"list":["a","b","c",{}]}"#, vec!["a", "b"], 2),
        ] {
            let odd: Odd = serde_json::from_str(json).unwrap();
            let items = items.into_iter().map(str::to_owned).collect();
            assert_eq!(odd.list, List { items, left_out, given: true }, "{json}");
        }
    }
}
