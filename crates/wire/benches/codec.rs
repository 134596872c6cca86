//! (To come.)
fn main() {}
