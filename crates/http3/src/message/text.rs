//! Which bytes names and values are made of (RFC 9110 §5).
