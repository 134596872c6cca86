use super::*;

#[test]
fn a_size_without_bytes_is_a_power_of_two() {
    assert_eq!(size("300M"), Ok(300 << 20));
    assert_eq!(size("2g"), Ok(2 << 30));
    assert_eq!(size("300MB"), Ok(300_000_000));
    assert_eq!(size("300MiB"), Ok(300 << 20));
    for text in ["M", "", "1M", "x300M", "300", "-1G"] {
        assert_eq!(size(text).is_ok(), text == "1M", "{text}");
    }
}

#[test]
fn temporary_files_have_no_name() {
    let mut file = create().expect("a directory for temporary files");
    file.write_all(b"rows").expect("room for four bytes");
    file.rewind().expect("a file");
    let mut read = String::new();
    file.read_to_string(&mut read).expect("what was written");
    assert_eq!(read, "rows");
    let name = format!(".lastbyte-query-{}-", std::process::id());
    let mut left = directory().read_dir().expect("a directory");
    assert!(left.all(|entry| {
        entry.is_ok_and(|it| !it.file_name().to_string_lossy().starts_with(&name))
    }));
}
