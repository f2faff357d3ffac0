#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kai_bridges::mail::fuzz::compose_fields(bytes));
