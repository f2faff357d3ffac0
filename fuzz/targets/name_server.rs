#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kai_llm::names::fuzz::answer(bytes));
