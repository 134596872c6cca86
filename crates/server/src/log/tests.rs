#![expect(clippy::disallowed_methods, reason = "the test reads what was written")]

use std::{fs, io::Read as _};

use lastbyte_record::packed::Packing;

use super::*;
use crate::site::Temporary;
use lastbyte_origin::log::QUEUE_BYTES_MAX;

fn finished(writer: LogWriter, thread: LogThread) -> LogStatistics {
    drop(writer);
    let (statistics, error) = thread.finish();
    assert!(error.is_none(), "{error:?}");
    statistics
}

#[test]
fn lines_are_written_in_order_and_appended() {
    let directory = Temporary::new("log");
    let path = directory.0.join("log");
    for run in 0..2 {
        let (writer, thread) = start(&path, &LogSettings::default()).expect("a file");
        for line in 0..1000 {
            writer.write(format!("{run}.{line}"));
        }
        let counts = writer.counts();
        let statistics = finished(writer, thread);
        assert_eq!((statistics.written, counts.read()), (1000, statistics));
    }
    let text = fs::read_to_string(&path).expect("text");
    let expected = (0..2).flat_map(|run| (0..1000).map(move |line| format!("{run}.{line}")));
    assert!(text.lines().eq(expected));
}

#[test]
fn full_logs_are_rotated_and_a_limited_number_is_kept() {
    let directory = Temporary::new("rotate");
    let path = directory.0.join("log");
    let settings = LogSettings {
        rotate_at: Some(1),
        keep: 2,
        ..LogSettings::default()
    };
    for run in 0..5 {
        let (writer, thread) = start(&path, &settings).expect("a file");
        writer.write(format!("{run}"));
        finished(writer, thread);
    }
    let read = |name: &str| fs::read_to_string(directory.0.join(name)).ok();
    assert_eq!(read("log").as_deref(), Some("4\n"));
    assert_eq!(read("log.1").as_deref(), Some("3\n"));
    assert_eq!(read("log.2").as_deref(), Some("2\n"));
    assert_eq!(read("log.3"), None);
}

#[test]
fn a_log_renamed_by_another_process_is_reopened_under_its_name() {
    let directory = Temporary::new("moved");
    let path = directory.0.join("log");
    let (writer, thread) = start(&path, &LogSettings::default()).expect("a file");
    let write = |line: &str| {
        let before = thread.counts.read().written;
        writer.write(line.into());
        while thread.counts.read().written == before {
            thread::yield_now();
        }
    };
    write("first");
    fs::rename(&path, directory.0.join("moved")).expect("it is there");
    write("second");
    fs::remove_file(&path).expect("it is there");
    write("third");
    write("fourth");
    let read = |name: &str| fs::read_to_string(directory.0.join(name)).expect("a log");
    assert_eq!(read("moved"), "first\n");
    assert_eq!(read("log"), "third\nfourth\n");
    assert_eq!(finished(writer, thread).written, 4);
}

#[test]
fn lines_lost_on_a_full_disk_are_counted() {
    let (writer, thread) =
        start(Path::new("/dev/full"), &LogSettings::default()).expect("a device");
    for _ in 0..10 {
        writer.write("line".into());
    }
    drop(writer);
    let (statistics, error) = thread.finish();
    assert_eq!(statistics.failed, 10);
    assert_eq!(
        error.map(|error| error.kind()),
        Some(io::ErrorKind::StorageFull)
    );
}

#[test]
fn a_pipe_without_a_reader_is_an_error() {
    let directory = Temporary::new("pipe");
    let path = directory.0.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
    let error = start(&path, &LogSettings::default()).expect_err("no reader");
    assert_eq!(error.to_string(), "no process reads the pipe");
}

#[test]
fn a_stalled_disk_keeps_at_most_16_mib() {
    const LEN: usize = 8000;
    /// What a pipe holds, and what is written to it at a time.
    const ON_THE_WAY: usize = 2 * WRITE_LEN + LEN;
    let directory = Temporary::new("stalled");
    let path = directory.0.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
    // It is not read until all lines are queued or dropped.
    let reader = OpenOptions::new().read(true).write(true).open(&path);
    let (writer, thread) = start(&path, &LogSettings::default()).expect("a pipe");
    // Without spare room in the string.
    let line = |number: u32| format!("{number:0LEN$}").into_boxed_str().into_string();
    let mut kept = Vec::new();
    for number in 0..4000 {
        let before = thread.counts.read().dropped;
        writer.write(line(number));
        if thread.counts.read().dropped == before {
            kept.push(number);
        }
    }
    let bytes = kept.len() * LEN;
    let range = QUEUE_BYTES_MAX - LEN..=QUEUE_BYTES_MAX + ON_THE_WAY;
    assert!(range.contains(&bytes), "{bytes} bytes");
    drop(writer);
    // Once the disk goes on, every line that was kept is written.
    let mut lines = io::BufRead::lines(io::BufReader::new(reader.expect("a pipe")));
    for number in &kept {
        let read = lines.next().expect("a line").expect("text");
        assert!(read == line(*number), "{number}");
    }
    let (statistics, error) = thread.finish();
    assert!(error.is_none(), "{error:?}");
    assert_eq!(statistics.written, kept.len() as u64);
    assert_eq!(statistics.dropped, 4000 - kept.len() as u64);
}

#[test]
fn lines_of_any_length_pass_a_queue_that_is_read() {
    let directory = Temporary::new("passed");
    let path = directory.0.join("log");
    let (writer, thread) = start(&path, &LogSettings::default()).expect("a file");
    // Twice what the queue holds; each line is written before the next.
    for count in 1..=32 {
        writer.write("x".repeat(1 << 20));
        while thread.counts.read().written < count {
            thread::yield_now();
        }
    }
    assert_eq!(finished(writer, thread).written, 32);
}

/// All lines of a compressed file, read with the library's own reader.
fn unpacked(path: &Path, packing: Packing) -> String {
    let mut text = String::new();
    let file = File::open(path).expect("a file");
    match packing {
        Packing::None => io::BufReader::new(file).read_to_string(&mut text),
        Packing::Gzip => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        Packing::Zstd => ruzstd::decoding::StreamingDecoder::new(file)
            .expect("a frame")
            .read_to_string(&mut text),
    }
    .expect("it can be read to its end");
    text
}

fn packed(packing: Packing) -> LogSettings {
    LogSettings {
        rotate_at: Some(1),
        keep: 3,
        packing,
    }
}

#[test]
fn rotated_logs_are_compressed_without_loss() {
    for packing in [Packing::Gzip, Packing::Zstd] {
        let directory = Temporary::new(&format!("packed{}", packing.suffix()));
        let path = directory.0.join("log");
        let settings = packed(packing);
        for run in 0..6 {
            let mut output = Output::open(&path, &settings).expect("a file");
            output.archive.wait();
            output.write(format!("{run}\n").as_bytes()).expect("room");
        }
        // A process that ends during compression leaves the file unchanged: the next start compresses it.
        let mut archive = Archive::open(&path, &settings);
        archive.wait();
        let name = |number: u32| {
            directory
                .0
                .join(format!("log.{number}{}", packing.suffix()))
        };
        let texts: Vec<String> = (1..=3)
            .map(|number| unpacked(&name(number), packing))
            .collect();
        assert_eq!(texts, ["4\n", "3\n", "2\n"]);
        assert_eq!(
            fs::read_to_string(&path).expect("text"),
            "5\n",
            "it can be read at once"
        );
        let count = fs::read_dir(&directory.0).expect("a folder").count();
        assert_eq!(count, 4, "nothing else is left");
    }
}

#[test]
fn files_left_by_a_crash_are_compressed_and_rotated() {
    let directory = Temporary::new("packed-crash");
    let path = directory.0.join("log");
    let write = |name: &str, text: &str| fs::write(directory.0.join(name), text).expect("room");
    // Partially compressed, and compressed but not removed.
    write("log.1", "one\n");
    write("log.1.gz.part", "rubbish");
    write("log.2", "two\n");
    write("log.2.gz", "rubbish");
    let mut archive = Archive::open(&path, &packed(Packing::Gzip));
    archive.wait();
    let read = |name: &str| unpacked(&directory.0.join(name), Packing::Gzip);
    assert_eq!(
        (read("log.1.gz"), read("log.2.gz")),
        ("one\n".into(), "two\n".into())
    );
    // Uncompressed from then on: existing files are renamed all the same.
    write("log", "zero\n");
    let mut archive = Archive::open(&path, &packed(Packing::None));
    archive.rotate().expect("room");
    assert_eq!(
        (read("log.2.gz"), read("log.3.gz")),
        ("one\n".into(), "two\n".into())
    );
    write("log", "now\n");
    archive.rotate().expect("room");
    let mut names: Vec<_> = fs::read_dir(&directory.0)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("a name")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["log.1", "log.2", "log.3.gz"]);
}

#[test]
fn no_log_is_rotated_while_others_are_compressed() {
    let directory = Temporary::new("packed-busy");
    let path = directory.0.join("log");
    let mut output = Output::open(&path, &packed(Packing::None)).expect("a file");
    let (release, until) = std::sync::mpsc::sync_channel::<()>(0);
    output.archive.work(move || {
        let _ = until.recv();
    });
    for _ in 0..3 {
        output.write(b"line\n").expect("room");
    }
    assert_eq!(fs::read_to_string(&path).expect("text"), "line\n".repeat(3));
    drop(release);
    output.archive.wait();
    output.write(b"line\n").expect("room");
    assert_eq!(fs::read_to_string(&path).expect("text"), "line\n");
}
