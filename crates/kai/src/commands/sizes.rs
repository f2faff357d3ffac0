//! Sizes of files and the progress of a download, in words.

use kai_words::Lang;

use crate::call::local::Progress;

const MB: u64 = 1_000_000;
const GB: u64 = 1_000 * MB;

/// A number of bytes as people say it: 1.1 GB, 98 MB.
pub(crate) fn size(bytes: u64, lang: Lang) -> String {
    // From here on, rounding gives a thousand MB.
    if bytes >= GB - MB / 2 {
        return lang.local_size_gb(lang.tenths((bytes + GB / 20) / (GB / 10)));
    }
    lang.local_size_mb((bytes + MB / 2) / MB)
}

/// The same with tenths of a MB, for speeds.
fn speed(bytes: u64, lang: Lang) -> String {
    lang.local_speed(lang.tenths((bytes + MB / 20) / (MB / 10)))
}

/// How far a download is, how fast, and how long it takes.
pub(crate) fn progress(progress: &Progress, lang: Lang) -> String {
    let of =
        lang.local_progress(progress.percent(), size(progress.received, lang), size(progress.total, lang));
    let Some(seconds) = progress.seconds_left() else { return of };
    let left = if seconds < 90 {
        lang.local_left_seconds(seconds)
    } else {
        lang.local_left_minutes((seconds + 30) / 60)
    };
    format!("{of} · {} · {left}", speed(progress.per_second, lang))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        let german = Lang::of("de");
        for (bytes, english, in_german) in [
            (0, "0 MB", "0 MB"),
            (98_400_000, "98 MB", "98 MB"),
            (999_400_000, "999 MB", "999 MB"),
            (999_600_000, "1.0 GB", "1,0 GB"),
            (1_117_320_736, "1.1 GB", "1,1 GB"),
            (2_497_280_256, "2.5 GB", "2,5 GB"),
        ] {
            assert_eq!(size(bytes, Lang::ENGLISH), english);
            assert_eq!(size(bytes, german), in_german);
        }
    }

    #[test]
    fn progress_names_speed_and_time_once_they_are_known() {
        let begun = Progress { received: 0, total: 1_117_320_736, per_second: 0 };
        assert_eq!(progress(&begun, Lang::ENGLISH), "0 % · 0 MB of 1.1 GB");
        let half = Progress { received: 558_660_368, per_second: 3_250_000, ..begun };
        assert_eq!(progress(&half, Lang::ENGLISH), "50 % · 559 MB of 1.1 GB · 3.3 MB/s · 3 min left");
    }
}
