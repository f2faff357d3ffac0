//! Files from elsewhere, spoiled: they are refused, or what they bring in goes out again and comes in as the same.

use super::*;

fn example() -> String {
    let memory = |key: &str, hits| (key.to_owned(), "Likes tea".to_owned(), hits);
    let full = filled(&[memory("tea", 3), memory("coffee", 7)], &["hello".to_owned(), "again".to_owned()]);
    serde_json::to_string(&take(&full, None)).unwrap()
}

proptest! {
    #[test]
    fn what_is_taken_in_goes_out_and_comes_in_again(
        text in kai_mutate::text(vec![example(), r#"{"kai_export":1,"sections":{"settings":{"theme":"dark"}}}"#.to_owned()]),
        replace in any::<bool>(),
    ) {
        let Ok(export) = Export::parse(&text) else { return Ok(()) };
        let mode = if replace { Mode::Replace } else { Mode::Merge };
        let first = home();
        let outcomes = put(&first, &export, mode, None).unwrap();
        prop_assert!(outcomes.len() <= Section::ALL.len());
        let taken = take(&first, None);
        let second = home();
        let again = put(&second, &taken, mode, None).unwrap();
        prop_assert!(again.iter().all(|o| o.problem.is_none() && o.skipped.is_empty()), "{again:?}");
        prop_assert_eq!(take(&second, None).sections, taken.sections);
    }
}
