//! Disks that fill, files that change while they are sent.

use std::{
    fs::{self, File, OpenOptions},
    path::{Path, PathBuf},
    process::Command,
};

use crate::serving::{Serving, folder, lines, stderr};

/// Begins to serve in a file system of 16 KiB, half of which is filled. `None`, and it says so, where none can be mounted.
fn on_a_small_disk(folder: &Path) -> Option<Serving> {
    let script = "mount -t tmpfs -o size=16k none small && head -c 8192 /dev/zero >small/filler && exec \"$@\"";
    let by = ["unshare", "-rm", "sh", "-c", script, "sh"];
    let can = Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    match can {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            lastbyte_testkit::skip(&format!(
                "no file system can be mounted: {}",
                stderr(&output)
            ));
            return None;
        }
        Err(error) => {
            lastbyte_testkit::skip(&format!("no `unshare`: {error}"));
            return None;
        }
    }
    let flags = ["--self-signed", "--access-log", "small/access"];
    Some(Serving::start_as(folder, &by, "127.0.0.1:0", &flags))
}

#[test]
fn a_full_disk_loses_log_lines_and_no_response() {
    let folder = folder("hostile-full");
    fs::create_dir(folder.join("small")).expect("a folder");
    let Some(serving) = on_a_small_disk(&folder) else {
        return;
    };
    // As the server sees it.
    let inside = PathBuf::from(format!("/proc/{}/root", serving.process.child.id()));
    let absolute = folder.canonicalize().expect("a path");
    let small = inside
        .join(absolute.strip_prefix("/").expect("an absolute path"))
        .join("small");
    let failed = "lastbyte_log_lines_total{log=\"requests\",fate=\"failed\"}";
    let written = "lastbyte_log_lines_total{log=\"requests\",fate=\"written\"}";
    let mut count = 0;
    while serving.metric(failed) == 0 {
        let output = serving.get(&folder, "/1000", &["--http", "2"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(output.stdout.len(), 1000);
        count += 1;
        assert!(count < 200, "the disk never fills");
    }
    fs::remove_file(small.join("filler")).expect("it fills");
    let failures = serving.metric(failed);
    let last = serving.get(&folder, "/1001", &["--http", "2"]);
    assert!(last.status.success(), "{}", stderr(&last));
    serving.wait_for(written, |written| written + failures == count + 1);
    let access = fs::read_to_string(small.join("access")).expect("a log");
    assert!(access.ends_with('\n'));
    let mut torn = 0;
    let mut whole = Vec::new();
    for line in access.lines() {
        match serde_json::from_str::<serde_json::Value>(line) {
            Ok(line) => whole.push(line),
            Err(_) => torn += 1,
        }
    }
    assert!(torn <= 1, "{access}");
    assert_eq!(whole.last().expect("lines")["path"], "/1001");
    assert_eq!(
        whole.len() as u64,
        count + 1 - failures,
        "the count reported is correct"
    );
    let (code, printed) = serving.end();
    assert_eq!(code, 1, "{printed}");
    assert!(
        printed.contains("lines could not be written to `small/access`: No space left on device"),
        "{printed}"
    );
}

const LEN: u64 = 2 << 30;

/// Asks for a large file of zeros over each version of HTTP; when the answer has begun, something happens to the file.
fn while_it_is_sent(name: &str, happens: impl Fn(&Path), check: impl Fn(Option<i32>, u64, &str)) {
    let folder = folder(name);
    fs::create_dir(folder.join("www")).expect("a folder");
    let serving = Serving::start(&folder, &["--self-signed", "--access-log", "access", "www"]);
    for version in ["1.1", "2", "3"] {
        let path = folder.join("www/big");
        File::create(&path)
            .and_then(|file| file.set_len(LEN))
            .expect("room for a hole");
        let mut client = serving.begin(&folder, "/big", &["-v", "-o", "body", "--http", version]);
        client.until("< HTTP/");
        happens(&path);
        let (code, printed) = client.wait();
        let came = fs::metadata(folder.join("body")).map_or(0, |file| file.len());
        check(code, came, &format!("HTTP/{version}: {printed}"));
        let _ = fs::remove_file(folder.join("body"));
    }
    assert_eq!(serving.end().0, 0);
    let statuses: Vec<_> = lines(&folder.join("access"))
        .iter()
        .map(|line| line["status"].as_u64())
        .collect();
    assert_eq!(statuses, [Some(200); 3]);
    drop(fs::remove_dir_all(folder));
}

#[test]
fn a_file_truncated_while_it_is_sent_is_not_delivered_as_complete() {
    let cut = |path: &Path| {
        let file = OpenOptions::new().write(true).open(path).expect("a file");
        file.set_len(1000).expect("it is cut");
    };
    while_it_is_sent("hostile-cut", cut, |code, came, printed| {
        assert_eq!(code, Some(18), "{printed}");
        assert!(came < LEN, "{came} bytes, {printed}");
    });
}

#[test]
fn a_file_replaced_while_it_is_sent_is_completed_from_the_old_one() {
    let replace = |path: &Path| {
        let other = path.with_extension("other");
        fs::write(&other, "something else").expect("room");
        fs::rename(other, path).expect("it is replaced");
    };
    while_it_is_sent("hostile-replaced", replace, |code, came, printed| {
        assert_eq!(code, Some(0), "{printed}");
        assert_eq!(came, LEN, "{printed}");
    });
}
