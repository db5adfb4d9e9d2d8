#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| regent_fuzz::targets::http3::run(data));
