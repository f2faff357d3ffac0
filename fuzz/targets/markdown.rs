#![no_main]

#[path = "../../crates/kai/src/web/markdown/mod.rs"]
mod markdown;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| markdown::checks::check(&String::from_utf8_lossy(bytes)));
