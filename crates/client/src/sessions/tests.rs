use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("lastbyte-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

const NOW: fn() -> Duration = || Duration::from_secs(1_700_000_000);

fn origin() -> Origin {
    Origin {
        scheme: Scheme::Https,
        host: "a.example".to_owned(),
        port: 443,
    }
}

fn remembered() -> Remembered {
    Remembered {
        token: vec![1, 2, 0xff],
        settings: Some(http3::Settings {
            qpack_blocked_streams: 7,
            ..http3::Settings::default()
        }),
        remote: Some("[::1]:443".parse().expect("an address")),
    }
}

#[test]
fn contents_round_trip() {
    let contents = Contents {
        servers: [(origin(), remembered())].into(),
        ..Contents::default()
    };
    let text = render(&contents);
    let read = parse(text.as_bytes(), NOW());
    assert_eq!((read.servers, read.damaged), (contents.servers, 0));
    // A line of a later version.
    let later = format!("{text}colour a.example 443 blue\n");
    assert_eq!(parse(later.as_bytes(), NOW()).damaged, 0);
}

#[test]
fn damaged_lines_are_counted_and_the_rest_is_kept() {
    let contents = Contents {
        servers: [(origin(), remembered())].into(),
        ..Contents::default()
    };
    let good = render(&contents);
    for (line, damaged) in [
        ("session 00", 1),
        ("session 0", 1),
        ("session zz", 1),
        ("token a.example", 1),
        ("token a.example x 00", 1),
        ("remote a.example 443 nowhere", 1),
        ("", 1),
        ("\u{fffd}", 1),
    ] {
        let read = parse(format!("{good}{line}\n").as_bytes(), NOW());
        assert_eq!((read.damaged, read.servers.len()), (damaged, 1), "{line}");
    }
    assert_eq!(parse(b"", NOW()).damaged, 1);
    assert_eq!(parse(b"something else\n", NOW()).damaged, 1);
}

#[test]
fn a_missing_file_is_empty_and_a_missing_folder_is_an_error() {
    let folder = folder("sessions-none");
    let path = folder.join("sessions");
    let (file, warning) = SessionFile::open(&path, NOW).expect("nothing there");
    assert_eq!(warning, None);
    file.save().expect("a good folder");
    let text = fs::read_to_string(&path).expect("written");
    assert_eq!(text, format!("{FIRST_LINE}\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(SessionFile::open(&folder.join("no/such/folder"), NOW).is_err());
    fs::remove_dir_all(&folder).expect("ours");
}

/// In a shared folder, another user may have created the files: secrets must not be written through a symbolic link.
#[cfg(unix)]
#[test]
fn links_are_not_followed_and_existing_files_are_not_written() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let folder = folder("sessions-links");
    let (path, elsewhere) = (folder.join("sessions"), folder.join("elsewhere"));
    fs::write(&elsewhere, "theirs").expect("room");
    symlink(&elsewhere, folder.join("sessions.new")).expect("room");
    let (file, _) = SessionFile::open(&path, NOW).expect("nothing there");
    file.save().expect("a good folder");
    assert_eq!(fs::read_to_string(&elsewhere).expect("there"), "theirs");
    // An existing file, which others can read, is not reused for the secrets.
    fs::write(folder.join("sessions.new"), "").expect("room");
    let readable_by_all = fs::Permissions::from_mode(0o666);
    fs::set_permissions(folder.join("sessions.new"), readable_by_all).expect("ours");
    // Keep it open, so that its inode number is not reused.
    let theirs = File::open(folder.join("sessions.new")).expect("there");
    let before = theirs.metadata().expect("open").ino();
    file.save().expect("a good folder");
    let about = fs::metadata(&path).expect("there");
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    assert_ne!(about.ino(), before);
    fs::remove_file(folder.join("sessions.lock")).expect("there");
    symlink(&elsewhere, folder.join("sessions.lock")).expect("room");
    assert!(file.save().is_err(), "the lock is a link");
    fs::remove_dir_all(&folder).expect("ours");
}

/// A wrong path in an option does not delete a private key.
#[test]
fn a_file_of_something_else_is_not_replaced() {
    let folder = folder("sessions-other");
    let path = folder.join("key.pem");
    fs::write(&path, "secret").expect("room");
    let error = SessionFile::open(&path, NOW).expect_err("it has no sessions");
    assert!(error.to_string().contains("not a session file"), "{error}");
    fs::remove_file(&path).expect("there");
    // Neither is one that is written while the file is open.
    let (file, _) = SessionFile::open(&path, NOW).expect("nothing there");
    fs::write(&path, "secret").expect("room");
    assert!(file.save().is_err());
    assert_eq!(fs::read(&path).expect("there"), b"secret");
    // An empty one is.
    fs::write(&path, "").expect("room");
    let (file, _) = SessionFile::open(&path, NOW).expect("an empty file");
    file.save().expect("a good folder");
    fs::remove_dir_all(&folder).expect("ours");
}
