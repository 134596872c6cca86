//! Any text for a spec: it parses or says why not, and what parses builds.

#![no_main]

use lastbyte_congestion::{Environment, Registry};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(spec) = Registry::builtin().parse(text) {
        assert_eq!(spec.to_string(), text);
        let controller = spec.build(&Environment {
            max_datagram_size: 1200,
            seed: 1,
        });
        assert!(controller.window() >= 1200);
    }
});
