//! Draws a QR code on the terminal.

use qrcodegen::{QrCode, QrCodeEcc};

/// The light border that scanners need around the code, in modules.
const QUIET: i32 = 3;

/// The text as a QR code, two rows of modules per line. Its colours are spelled out, black on white, because scanners
/// expect dark modules on a light ground whatever the terminal's own colours are. `None` if the text is too long.
pub(crate) fn drawn(text: &str) -> Option<String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let edge = -QUIET..code.size() + QUIET;
    let line = |y: i32| {
        let modules = edge.clone().map(|x| match (code.get_module(x, y), code.get_module(x, y + 1)) {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        });
        format!("\u{1b}[30;107m{}\u{1b}[0m\n", modules.collect::<String>())
    };
    Some(edge.clone().step_by(2).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules of a drawn code: true is dark.
    fn modules(drawn: &str) -> Vec<Vec<bool>> {
        let mut rows = vec![];
        for line in drawn.lines() {
            let line = line.trim_start_matches("\u{1b}[30;107m").trim_end_matches("\u{1b}[0m");
            rows.push(line.chars().map(|c| matches!(c, '█' | '▀')).collect());
            rows.push(line.chars().map(|c| matches!(c, '█' | '▄')).collect());
        }
        rows
    }

    #[test]
    fn a_link_is_drawn_module_by_module_with_a_border() {
        let link = "http://192.168.1.20:8787/login?token=7K3M-9QXD-2VFT";
        let code = QrCode::encode_text(link, QrCodeEcc::Low).unwrap();
        let drawn = modules(&drawn(link).unwrap());
        let at = |x: i32, y: i32| {
            let (x, y) = (usize::try_from(x + QUIET).unwrap(), usize::try_from(y + QUIET).unwrap());
            drawn[y][x]
        };
        for y in -QUIET..code.size() + QUIET {
            for x in -QUIET..code.size() + QUIET {
                let is_inside = (0..code.size()).contains(&x) && (0..code.size()).contains(&y);
                assert_eq!(at(x, y), is_inside && code.get_module(x, y), "{x},{y}");
            }
        }
        assert!(drawn[0].len() < 50, "it fits on a terminal: {}", drawn[0].len());
        assert_eq!(super::drawn(&"x".repeat(5_000)), None);
    }
}
