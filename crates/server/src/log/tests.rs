#![expect(clippy::disallowed_methods, reason = "the test reads what was written")]

use super::*;
use crate::site::Temporary;

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
        let (writer, thread) = start(&path, LogSettings::default()).expect("a file");
        for line in 0..1000 {
            writer.write(format!("{run}.{line}"));
        }
        assert_eq!(finished(writer, thread).written, 1000);
    }
    let text = fs::read_to_string(&path).expect("text");
    let expected = (0..2).flat_map(|run| (0..1000).map(move |line| format!("{run}.{line}")));
    assert!(text.lines().eq(expected));
}

#[test]
fn a_log_that_is_full_is_put_away_and_so_many_are_kept() {
    let directory = Temporary::new("rotate");
    let path = directory.0.join("log");
    let settings = LogSettings {
        rotate_at: Some(1),
        keep: 2,
    };
    for run in 0..5 {
        let (writer, thread) = start(&path, settings.clone()).expect("a file");
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
fn what_a_full_disk_does_not_take_is_counted() {
    let (writer, thread) = start(Path::new("/dev/full"), LogSettings::default()).expect("a device");
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
