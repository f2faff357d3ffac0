//! Reads a form with a file in it (`multipart/form-data`). The guard has already read the whole body into memory, so
//! parsing it means finding the boundaries between its parts.

/// The raw value of a field; `None` if there is no such field or the form is malformed.
pub(super) fn field<'a>(content_type: &str, body: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mark = format!("--{}", boundary(content_type)?);
    let named = format!("name=\"{name}\"");
    parts(body, mark.as_bytes()).find_map(|part| {
        let (head, value) = split_at(part, b"\r\n\r\n")?;
        let head = std::str::from_utf8(head).ok()?;
        let is_it = |line: &str| {
            line.to_ascii_lowercase().starts_with("content-disposition:")
                && line.split(';').any(|said| said.trim() == named)
        };
        head.lines().any(is_it).then_some(value)
    })
}

fn boundary(content_type: &str) -> Option<&str> {
    let said = content_type.strip_prefix("multipart/form-data")?;
    let boundary = said.split(';').find_map(|said| said.trim().strip_prefix("boundary="))?;
    Some(boundary.trim_matches('"')).filter(|boundary| !boundary.is_empty())
}

/// The parts between the boundaries, without the line breaks that belong to the boundaries.
fn parts<'a, 'm>(body: &'a [u8], mark: &'m [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'm> {
    let mut rest = split_at(body, mark).map(|(_, rest)| rest);
    std::iter::from_fn(move || {
        let (part, after) = split_at(rest?, mark)?;
        rest = Some(after);
        part.strip_prefix(b"\r\n")?.strip_suffix(b"\r\n")
    })
}

/// Splits around the first occurrence of `mark`.
fn split_at<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((&bytes[..at], &bytes[at + mark.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=----x1";

    fn body(parts: &[(&str, &str)]) -> String {
        let part = |(head, value): &(&str, &str)| {
            format!("------x1\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n")
        };
        parts.iter().map(part).collect::<String>() + "------x1--\r\n"
    }

    #[test]
    fn a_field_is_found_whatever_stands_in_the_others() {
        let file = "name=\"file\"; filename=\"a.json\"\r\nContent-Type: application/json";
        let sent =
            body(&[("name=\"csrf\"", "abc"), (file, "{\"a\": 1}\r\n\r\nname=\"x\""), ("name=\"y\"", "")]);
        for (name, expected) in [
            ("csrf", Some("abc")),
            ("file", Some("{\"a\": 1}\r\n\r\nname=\"x\"")),
            ("y", Some("")),
            ("x", None),
            ("a.json", None),
        ] {
            let found = field(TYPE, sent.as_bytes(), name).map(|value| std::str::from_utf8(value).unwrap());
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn what_is_broken_has_no_fields() {
        let whole = body(&[("name=\"csrf\"", "abc")]);
        for (kind, sent) in [
            (TYPE, ""),
            (TYPE, "------x1"),
            (TYPE, "------x1\r\nname=\"csrf\"\r\n\r\nabc\r\n------x1--"),
            (TYPE, &whole[..whole.len() - 20]),
            ("multipart/form-data", &whole),
            ("multipart/form-data; boundary=", &whole),
            ("text/plain; boundary=----x1", &whole),
            ("multipart/form-data; boundary=other", &whole),
        ] {
            assert_eq!(field(kind, sent.as_bytes(), "csrf"), None, "{kind} {sent}");
        }
    }
}
