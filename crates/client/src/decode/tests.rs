use std::io::Write as _;

use super::*;

/// The body, compressed by brotli 1.0.9 of Node.js.
const BROTLI: &str = "\
    5b3f0d83fee2c08e958135a47ae0a861e3d60ec4c0b6ed4d56ebe0bc90fb4e71705ec979c441a8708c90978f32e4d1440262\
    824d1cbbf763fe070600449850c68554da58e7434cb9d4d6c75cfbdcf70110821114c30992a21996e30551921555d30dd3b2\
    1dd7f383308a9334cb8bb2aa9bb6eb87719a9775db8ff3ba9ff7fbfd0104232886132445332cc70ba2242baaa61ba6653bae\
    e7076114276996176555376dd70fe3342febb61fe7753feff7038830a18c0ba9b4b1ce076114276996176555376dd70fe334\
    2febb61fe7753feff783723a7b9f04\
";

/// The body, compressed by zstd 1.5.4.
const ZSTD: &str = "\
    28b52ffda4400d03002c0800b40f000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223\
    2425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455\
    565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f8081828384858687\
    88898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9\
    babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaeb\
    ecedeeeff0f1f2f3f4f5f6f7f8f9fa01007b817f7f6ea44d0000083201003c0d3910027fd22ed4\
";

/// 256 MiB of zeros, compressed by brotli 1.0.9 of Node.js.
const BOMB: &str = "\
    cbffff3f002400e2b14072effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f001200715800baf7\
    7ffcffff034002200e0b40f7fe8fffff7f004800c46101e8defff1ffff0f000980382c00ddfb3ffeffff012001108705a07b\
    ffc7ffff3f002400e2b00074effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f001200715800ba\
    f77ffcffff034002200e0b40f7fe8fffff7f004800c46101e8defff1ffff0f000980382c00ddfb3ffeffff012001108705a0\
    7bffc7ffff3f002400e2b00074effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f001200715800\
    baf77ffcffff034002200e0b40f7fe8fffff7f004800c46101e8defff1ffff0f000980382c00ddfb3ffeffff012001108705\
    a07bffc7ffff3f002400e2b00074effff8ffff078004401c1680eefd1fffffff00900088c302d0bdffe3ffff1f0012007158\
    00baf77ffcffff034002200e0b40f7fe8fffff7f004800c46101e8defff1ffff0f000980382c00ddfbbffcffff0320011087\
    05a07bff07\
";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs
        .map(|pair| u8::from_str_radix(&pair, 16).expect("hex"))
        .collect()
}

fn body() -> Vec<u8> {
    (0..200_000).map(|at| (at % 251) as u8).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).expect("memory");
    encoder.finish().expect("memory")
}

fn all() -> [(&'static str, Vec<u8>); 4] {
    [
        ("gzip", gzip(&body())),
        ("deflate", zlib(&body())),
        ("br", bytes(BROTLI)),
        ("zstd", bytes(ZSTD)),
    ]
}

fn decode(coding: &str, compressed: &[u8], piece_len: usize) -> Result<Vec<u8>, Failure> {
    let mut decoder = Decoder::new(coding)?.expect("a coding");
    let mut out = Vec::new();
    let mut sink = |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        Ok(())
    };
    for piece in compressed.chunks(piece_len) {
        decoder.push(piece, &mut sink)?;
    }
    decoder.finish()?;
    Ok(out)
}

#[test]
fn content_is_decoded_from_pieces_of_any_size() {
    for (coding, compressed) in all() {
        for piece_len in [1, 7, 1000, 1 << 20] {
            let decoded = decode(coding, &compressed, piece_len);
            let decoded = decoded.unwrap_or_else(|error| panic!("{coding}: {error}"));
            assert!(decoded == body(), "{coding} in pieces of {piece_len}");
        }
    }
}

#[test]
fn truncated_and_corrupt_content_is_an_error() {
    for (coding, compressed) in all() {
        let cut = &compressed[..compressed.len() / 2];
        assert!(
            matches!(decode(coding, cut, 64), Err(Failure::Encoding(_))),
            "{coding}"
        );
        let nonsense = decode(coding, &[0x11; 300], 64);
        assert!(matches!(nonsense, Err(Failure::Encoding(_))), "{coding}");
    }
    let mut flipped = gzip(&body());
    let last = flipped.len() - 5;
    flipped[last] ^= 1;
    assert!(matches!(
        decode("gzip", &flipped, 64),
        Err(Failure::Encoding(_))
    ));
    assert!(matches!(Decoder::new("x-mine"), Err(Failure::Encoding(_))));
    assert!(matches!(
        Decoder::new("gzip, br"),
        Err(Failure::Encoding(_))
    ));
    assert!(matches!(Decoder::new(" Identity "), Ok(None)));
}

#[test]
fn empty_content_is_valid() {
    for (coding, _) in all() {
        assert_eq!(decode(coding, &[], 1).expect("nothing"), b"");
    }
}

/// A few hundred bytes that expand to 256 MiB are rejected at the limit.
#[test]
fn excessive_expansion_is_an_error() {
    let bomb = bytes(BOMB);
    assert!(bomb.len() < 1000);
    let mut decoder = Decoder::new("br").expect("known").expect("a coding");
    let (mut output_len, mut longest) = (0, 0);
    let result = decoder.push(&bomb, &mut |bytes| {
        output_len += bytes.len() as u64;
        longest = longest.max(bytes.len());
        Ok(())
    });
    assert!(matches!(result, Err(Failure::Encoding(_))), "{result:?}");
    assert!(
        output_len <= UNCHECKED_LEN && longest <= BUFFER_LEN,
        "{output_len} {longest}"
    );
}

/// Zeros reach nearly the largest ratio of DEFLATE, 1032. Small bodies pass with it.
#[test]
fn excessive_expansion_of_gzip_is_an_error() {
    let zeros = vec![0; UNCHECKED_LEN as usize];
    let small = decode("gzip", &gzip(&zeros), 4096).expect("it is small enough");
    assert_eq!(small.len(), zeros.len());
    let bomb = gzip(&[&zeros[..], &[0]].concat());
    let result = decode("gzip", &bomb, 4096);
    assert!(matches!(result, Err(Failure::Encoding(_))), "{result:?}");
    // A ratio of about 200 is reached by no ordinary content, and one of 100 is accepted at any length.
    let mut random = 1_u32;
    let mut line = |_| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut line = vec![b'x'; 1000];
        line[..4].copy_from_slice(&random.to_le_bytes());
        line
    };
    let dense: Vec<u8> = (0..80_000).flat_map(&mut line).collect();
    let compressed = gzip(&dense);
    let ratio = dense.len() / compressed.len();
    assert!((50..200).contains(&ratio), "{ratio}");
    let decoded = decode("gzip", &compressed, 4096).expect("it is not excessive");
    assert_eq!(decoded.len(), dense.len());
}

#[test]
fn rfc1952_2_2_all_members_are_decoded() {
    let (one, two) = (gzip(b"hello "), gzip(&body()));
    let whole = [b"hello ", &body()[..]].concat();
    let empty = gzip(b"");
    for padding in [0, 1, 500] {
        let zeros = vec![0; padding];
        let members = [&one[..], &empty, &two, &zeros].concat();
        for piece_len in [1, 7, one.len(), one.len() + 1, 1 << 20] {
            let decoded = decode("gzip", &members, piece_len).expect("all members");
            assert!(decoded == whole, "{padding} zeros, pieces of {piece_len}");
        }
    }
}

#[test]
fn data_after_the_end_is_an_error() {
    for (coding, compressed) in all() {
        for after in [
            &b"garbage"[..],
            b"\0garbage",
            b"\x1f",
            b"\x1f\x8b",
            b"\x28\xb5",
        ] {
            let content = [&compressed[..], after].concat();
            for piece_len in [1, 1 << 20] {
                let result = decode(coding, &content, piece_len);
                assert!(
                    matches!(result, Err(Failure::Encoding(_))),
                    "{coding} and {after:?}"
                );
            }
        }
    }
}

/// Wherever it is cut, and whichever bit is changed in content with a checksum.
#[test]
fn no_part_of_content_is_taken_for_the_whole() {
    for (coding, compressed) in all() {
        let last = compressed.len() - 20;
        for cut in (1..last).step_by(40).chain(last..compressed.len()) {
            let result = decode(coding, &compressed[..cut], 1 << 20);
            assert!(
                matches!(result, Err(Failure::Encoding(_))),
                "{coding}: {cut} bytes"
            );
        }
    }
    for (coding, mut compressed) in [("zstd", bytes(ZSTD)), ("gzip", gzip(&body()))] {
        let middle = compressed.len() / 2;
        compressed[middle] ^= 1;
        let result = decode(coding, &compressed, 1 << 20);
        assert!(matches!(result, Err(Failure::Encoding(_))), "{coding}");
    }
}

#[test]
fn rfc8878_3_1_2_skippable_frames_are_skipped() {
    let frame = bytes(ZSTD);
    let long = [&b"\x5f\x2a\x4d\x18\x40\x0d\x03\x00"[..], &vec![7; 200_000]].concat();
    let content = [
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00four",
        &frame[..],
        &long,
        &frame,
        b"\x51\x2a\x4d\x18\x00\x00\x00\x00",
    ]
    .concat();
    for piece_len in [1000, 1 << 20] {
        let decoded = decode("zstd", &content, piece_len).expect("good content");
        assert!(decoded == body().repeat(2), "pieces of {piece_len}");
    }
    let cut = &content[..content.len() - 1];
    assert!(matches!(decode("zstd", cut, 64), Err(Failure::Encoding(_))));
}

/// RFC 9110 §8.4.1.2: "Some non-conformant implementations send the "deflate" compressed data without the zlib wrapper."
#[test]
fn rfc9110_8_4_1_2_deflate_without_zlib_is_decoded() {
    for level in [0, 1, 9] {
        for body in [&body()[..], b"a", b""] {
            let mut encoder =
                flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(level));
            encoder.write_all(body).expect("memory");
            let raw = encoder.finish().expect("memory");
            for piece_len in [1, 1 << 20] {
                let decoded = decode("deflate", &raw, piece_len).expect("good content");
                assert!(decoded == body, "level {level}");
            }
        }
    }
}

#[test]
fn rfc9110_8_4_codings_are_a_list() {
    for one in ["identity, gzip", ",gzip,,", "GZIP\t, identity"] {
        let decoder = Decoder::new(one).unwrap_or_else(|error| panic!("{one}: {error}"));
        assert!(decoder.is_some(), "{one}");
    }
    for several in ["gzip, gzip", "gzip,br", "identity, gzip, x"] {
        let result = Decoder::new(several);
        assert!(matches!(result, Err(Failure::Encoding(_))), "{several}");
    }
    assert!(matches!(Decoder::new("identity, , "), Ok(None)));
}

/// A zstd frame of blocks that repeat one byte 128 KiB times, with a window of 1 KiB.
fn repeated(blocks: usize) -> Vec<u8> {
    let start = [0x28, 0xb5, 0x2f, 0xfd, 0, 0];
    let block = [2, 0, 0x10, b'x'].repeat(blocks);
    // An empty last block.
    [&start[..], &block, &[1, 0, 0]].concat()
}

#[test]
fn excessive_expansion_of_zstd_is_an_error() {
    assert_eq!(
        decode("zstd", &repeated(3), 5).expect("good content").len(),
        3 * (128 << 10)
    );
    // 5 GB in 160 kB, at once: decoded block by block, it ends at the limit.
    let mut decoder = Decoder::new("zstd").expect("known").expect("a coding");
    let (mut received, mut largest) = (0, 0);
    let result = decoder.push(&repeated(40_000), &mut |bytes| {
        received += bytes.len();
        largest = largest.max(bytes.len());
        Ok(())
    });
    assert!(matches!(result, Err(Failure::Encoding(_))));
    assert!(received <= 64 << 20 && largest <= BUFFER_LEN);
    let Kind::Zstd(zstd) = &decoder.kind else {
        panic!("another coding");
    };
    let frame = zstd.frame.as_ref().expect("in a frame");
    assert!(frame.decoder.can_collect() <= 128 << 10);
}

/// The content of a frame waits in its window.
#[test]
fn large_windows_of_zstd_are_an_error() {
    // Of 2^41 bytes, and a single segment as large.
    for header in [&[0, 31 << 3][..], &[0xe0, 0, 0, 0, 0, 0, 2, 0, 0]] {
        let content = [&[0x28, 0xb5, 0x2f, 0xfd][..], header, &[2, 0, 0x10, b'x']].concat();
        let result = decode("zstd", &content, 64);
        assert!(matches!(result, Err(Failure::Encoding(_))), "{header:?}");
    }
}
