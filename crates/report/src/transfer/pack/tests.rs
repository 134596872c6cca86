use super::*;

#[test]
fn base64_matches_the_rfc_test_vectors() {
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg"),
        ("fo", "Zm8"),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg"),
        ("fooba", "Zm9vYmE"),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
}

#[test]
fn packed_values_are_read_back() {
    let points = [
        Point::new(0.0, 0.0),
        Point::new(39.1234, 1200.0),
        Point::new(39.1234, 2400.0),
        Point::new(1e9, -1e15),
        Point::new(1e9, 1e15),
    ];
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for c in packed(&points, 1.0).bytes() {
        let digit = ALPHABET.iter().position(|known| *known == c);
        bits = bits << 6 | digit.expect("a digit of base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    let mut bytes = bytes.into_iter();
    let mut next = || {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = bytes.next().expect("another byte");
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
            }
        }
    };
    let (mut time, mut value) = (0, 0);
    for point in points {
        time += next();
        value += next();
        assert_eq!(time, (point.ms * 1000.0).round() as i64);
        assert_eq!(value, (point.value as i64).clamp(-(1 << 51), 1 << 51));
    }
    assert!(bytes.next().is_none());
}

#[test]
fn a_packet_takes_about_six_characters() {
    let points: Vec<Point> = (0..10_000)
        .map(|i| Point::new(f64::from(i) * 0.171, f64::from(i) * 1200.0))
        .collect();
    assert!(packed(&points, 1.0).len() < 60_000);
}
