//! How long ago something was, in a few words. Pure.

use kai_words::Lang;

pub(super) fn ago(minutes: i64, lang: Lang) -> String {
    match minutes {
        ..1 => lang.sms_ago_now().to_owned(),
        1..60 => lang.sms_ago_minutes(minutes),
        60..1440 => lang.sms_ago_hours(minutes / 60),
        _ => lang.sms_ago_days(minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_is_written_as_the_language_does() {
        for (minutes, in_english, in_german) in [
            (0, "just now", "gerade eben"),
            (59, "59m ago", "vor 59 Min."),
            (60, "1h ago", "vor 1 Std."),
            (1440, "1d ago", "vor 1 Tag"),
            (2880, "2d ago", "vor 2 Tagen"),
        ] {
            assert_eq!(
                (ago(minutes, Lang::ENGLISH), ago(minutes, Lang::of("de"))),
                (in_english.into(), in_german.into())
            );
        }
    }
}
