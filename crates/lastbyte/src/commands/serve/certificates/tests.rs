use std::os::unix::fs::symlink;

use super::*;

/// 2026-01-01.
const NOW: u64 = 1_767_225_600;

/// An empty folder of a test.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lastbyte-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).expect("room");
    path
}

/// Certificate and key in PEM, valid in these days around [`NOW`].
fn pair(name: &str, from: i64, until: i64) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let day = |days: i64| {
        let (year, month, day) = date_of_days((NOW / DAY).cast_signed() + days);
        let (month, day) = (u8::try_from(month), u8::try_from(day));
        rcgen::date_time_ymd(
            i32::try_from(year).expect("a year"),
            month.expect("a month"),
            day.expect("a day"),
        )
    };
    params.not_before = day(from);
    params.not_after = day(until);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

fn names(identities: &[Identity]) -> Vec<String> {
    let contents = identities.iter().map(|one| one.contents().expect("one"));
    contents.flat_map(|contents| contents.names).collect()
}

/// The files of a server with one pair.
struct Files {
    chain: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new(folder: &Path) -> Self {
        Self {
            chain: folder.join("chain.pem"),
            key: folder.join("key.pem"),
        }
    }

    fn write(&self, (chain, key): &(String, String)) {
        fs::write(&self.chain, chain).expect("room");
        fs::write(&self.key, key).expect("room");
    }

    fn watched(&self) -> CertificateFiles {
        CertificateFiles::of(vec![(self.chain.clone(), self.key.clone())]).expect("a pair")
    }
}

#[test]
fn a_summary_names_eight_certificates_and_counts_the_others() {
    let folder = folder("certificates-many");
    let pairs = (0..10).map(|number| {
        let (chain, key) = pair(&format!("{number}.example"), 0, 90);
        let [chain_path, key_path] =
            ["pem", "key"].map(|ending| folder.join(format!("{number}.{ending}")));
        fs::write(&chain_path, chain).expect("room");
        fs::write(&key_path, key).expect("room");
        (chain_path, key_path)
    });
    let pairs: Vec<(PathBuf, PathBuf)> = pairs.collect();
    for (count, rest) in [(8, ""), (9, ", and 1 more"), (10, ", and 2 more")] {
        let files = CertificateFiles::of(pairs[..count].to_vec()).expect("pairs");
        let named: Vec<String> = (0..8)
            .map(|number| format!("`{number}.example` until 2026-04-01"))
            .collect();
        assert_eq!(files.summary(), format!("{}{rest}", named.join(", ")));
    }
    fs::remove_dir_all(&folder).expect("it is there");
}

#[test]
fn a_renewed_pair_is_used_once_it_is_complete() {
    let folder = folder("certificates-renewed");
    let files = Files::new(&folder);
    files.write(&pair("old.example", -10, 80));
    let mut watched = files.watched();
    assert!(matches!(watched.look(NOW), Look::Unchanged));
    let renewed = pair("new.example", 0, 90);
    fs::write(&files.chain, &renewed.0).expect("room");
    assert!(
        matches!(watched.look(NOW), Look::Unchanged),
        "its key is missing"
    );
    assert_eq!(names(&watched.identities()), ["old.example"]);
    fs::write(&files.key, &renewed.1).expect("room");
    let Look::Renewed(identities) = watched.look(NOW) else {
        panic!("it is complete")
    };
    assert_eq!(names(&identities), ["new.example"]);
    assert_eq!(watched.summary(), "`new.example` until 2026-04-01");
    assert!(matches!(watched.look(NOW), Look::Unchanged));
    fs::remove_dir_all(&folder).expect("its own");
}

#[test]
fn what_cannot_be_used_is_reported_once_and_the_current_certificate_stays() {
    let folder = folder("certificates-failed");
    let files = Files::new(&folder);
    let first = pair("first.example", -10, 80);
    files.write(&first);
    let mut watched = files.watched();
    let other = pair("other.example", 0, 90);
    let mixed = (other.0.clone(), first.1.clone());
    let cut = (first.0.replace("-----END", "----"), first.1.clone());
    for (wrong, expected) in [
        (mixed, "does not match the first certificate"),
        (cut, "cannot read"),
        (
            pair("late.example", -90, -1),
            "the certificate of `late.example` expired on 2025-12-31",
        ),
        (
            pair("early.example", 1, 90),
            "the certificate of `early.example` is not valid before 2026-01-02",
        ),
    ] {
        files.write(&wrong);
        assert!(matches!(watched.look(NOW), Look::Unchanged), "{expected}");
        let Look::Failed(why) = watched.look(NOW) else {
            panic!("nothing more was written: {expected}")
        };
        assert!(why.contains(expected), "{why}");
        assert!(matches!(watched.look(NOW), Look::Unchanged), "once");
        assert_eq!(names(&watched.identities()), ["first.example"]);
        files.write(&first);
        assert!(matches!(watched.look(NOW), Look::Restored), "{expected}");
    }
    fs::remove_file(&files.key).expect("its own");
    assert!(matches!(watched.look(NOW), Look::Unchanged));
    assert!(matches!(watched.look(NOW), Look::Failed(_)), "no key");
    fs::remove_dir_all(&folder).expect("its own");
}

#[test]
fn a_link_to_other_files_is_a_change() {
    let folder = folder("certificates-link");
    for (version, name) in [("1", "one.example"), ("2", "two.example")] {
        fs::create_dir(folder.join(version)).expect("room");
        Files::new(&folder.join(version)).write(&pair(name, -10, 80));
    }
    let live = folder.join("live");
    symlink(folder.join("1"), &live).expect("room");
    let mut watched = Files::new(&live).watched();
    symlink(folder.join("2"), folder.join("next")).expect("room");
    fs::rename(folder.join("next"), &live).expect("one step");
    let Look::Renewed(identities) = watched.look(NOW) else {
        panic!("another pair")
    };
    assert_eq!(names(&identities), ["two.example"]);
    fs::remove_dir_all(&folder).expect("its own");
}

#[test]
fn certificates_that_expire_soon_are_warned_of() {
    let folder = folder("certificates-warned");
    let files = Files::new(&folder);
    let path = files.chain.display().to_string();
    for (from, until, expected) in [
        (-76, 14, None),
        (-77, 13, Some("expires on 2026-01-14, in 13 days")),
        // A certificate of six days, renewed after four.
        (-4, 2, None),
        (-5, 1, Some("expires on 2026-01-02, in 1 days")),
        (-90, -1, Some("expired on 2025-12-31")),
        (1, 90, Some("is not valid before 2026-01-02")),
    ] {
        files.write(&pair("a.example", from, until));
        let expected: Vec<String> = expected
            .iter()
            .map(|what| format!("the certificate in `{path}` {what}"))
            .collect();
        assert_eq!(files.watched().warnings(NOW), expected);
    }
    fs::remove_dir_all(&folder).expect("its own");
}
