//! Frames of HTTP/3 (RFC 9114 §7).
