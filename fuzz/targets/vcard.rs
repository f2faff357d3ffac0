#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kai_bridges::kdeconnect::fuzz::vcard(&String::from_utf8_lossy(bytes)));
