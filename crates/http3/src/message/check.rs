//! What a message must be (RFC 9114 §4.2, §4.3).
