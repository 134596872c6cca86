use super::*;

/// A function that replaces a file.
type Replace = fn(&Path, &[u8]) -> Result<(), Failure>;

/// The mode of a file in an empty folder of its own.
fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").mode() & 0o777
}

/// 0666 is more than any usual `umask` leaves.
#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let folder = std::env::temp_dir().join(format!("lastbyte-files-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("file");
    let all: [(Replace, bool); 3] = [(write, true), (publish, true), (replace, false)];
    for (number, (replace_it, keeps)) in all.into_iter().enumerate() {
        for kept in [0o666, 0o664, 0o640, 0o600, 0o400] {
            fs::write(&path, "before").expect("it is written");
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).expect("ours");
            assert!(replace_it(&path, b"after").is_ok());
            // Keys are private, whatever was there.
            let expected = if keeps { kept } else { 0o600 };
            assert_eq!(mode(&path), expected, "{number}");
            assert_eq!(fs::read(&path).expect("a file"), b"after");
            fs::remove_file(&path).expect("ours");
        }
    }
    assert!(replace(&path, b"secret").is_ok());
    assert_eq!(mode(&path), 0o600, "new, and private");
    fs::remove_dir_all(&folder).expect("ours");
}
