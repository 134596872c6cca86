//! Any text for a spec: it parses or the error says why not, and what parses builds. Shared by the replay of the corpus and
//! the fuzz target.

use lastbyte_congestion::{ControllerFactory, Environment, Registry};

pub(crate) fn play(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    match Registry::builtin().parse(text) {
        Ok(spec) => {
            assert_eq!(spec.to_string(), text);
            let controller = spec.build(&Environment {
                max_datagram_size: 1200,
                seed: 1,
            });
            assert!(controller.window() >= 1200);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
