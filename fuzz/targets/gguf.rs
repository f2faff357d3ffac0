#![no_main]

// Two files of a crate whose engine is of no use here.
#[path = "../../crates/local/src/fuzz.rs"]
mod fuzz;
#[path = "../../crates/local/src/gguf.rs"]
mod gguf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::header(bytes));
