use super::*;

#[test]
fn paths_name_sizes_by_their_units() {
    let expected = [
        ("/0", Some(0)),
        ("/1000", Some(1000)),
        ("/32k", Some(32 << 10)),
        ("/1m", Some(1 << 20)),
        ("/2G", Some(2 << 30)),
        ("/1024g", Some(1 << 40)),
        ("/400kB", Some(400_000)),
        ("/400KiB", Some(400 << 10)),
        ("/1MB", Some(1_000_000)),
        ("/1MiB", Some(1 << 20)),
        ("/2GB", Some(2_000_000_000)),
        ("/2GiB", Some(2 << 30)),
        ("/7B", Some(7)),
        ("/1Mb", None),
        ("/1025g", None),
        ("/99999999999999999999g", None),
        ("/", None),
        ("/k", None),
        ("/1x", None),
        ("/1kb", None),
        ("/-1", None),
        ("1k", None),
    ];
    for (path, len) in expected {
        assert_eq!(size_of_path(path), len, "{path}");
    }
}

#[test]
fn bytes_are_the_same_at_an_offset_however_they_are_read() {
    let object = Generated { len: 300_000 };
    let mut whole = vec![0; 300_000];
    object.read_at(0, &mut whole).expect("it has them");
    for (offset, len) in [(0, 1), (65_520, 3), (131_041, 70_000), (299_999, 1), (7, 0)] {
        let mut part = vec![0; len];
        object
            .read_at(offset as u64, &mut part)
            .expect("it has them");
        assert_eq!(part, whole[offset..offset + len]);
    }
    // A misplaced piece of the size of a packet or a page is detected.
    for shift in [1, 1200, 1452, 4096, 65_536] {
        assert_ne!(whole[..100], whole[shift..shift + 100]);
    }
}

#[test]
fn objects_have_each_byte_about_as_often() {
    let mut bytes = vec![0; PERIOD];
    let object = Generated { len: 1 << 20 };
    object.read_at(0, &mut bytes).expect("bytes");
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    // 256 each on average.
    assert!(
        counts.iter().all(|count| (150..400).contains(count)),
        "{counts:?}"
    );
}
