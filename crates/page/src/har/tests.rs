use super::*;
use crate::{Load, View, corpus};

/// A recording in the format of Chromium's developer tools.
const CHROMIUM: &str = include_str!("tests/chromium.har");
/// Events of Chromium 156 on a page made for the purpose, as its developer tools write them.
const RECORDED: &str = include_str!("tests/chromium-recorded.har");
/// A recording in the format of Firefox's developer tools.
const FIREFOX: &str = include_str!("tests/firefox.har");
/// A recording in the format of `WebPageTest`.
const WEBPAGETEST: &str = include_str!("tests/webpagetest.har");

fn recording(text: &str) -> Recording {
    read(text.as_bytes(), false).expect("it is there")
}

fn only_page(text: &str) -> Page {
    let mut recording = recording(text);
    assert_eq!(recording.pages.len(), 1);
    recording.pages.remove(0)
}

fn error(text: &str) -> String {
    read(text.as_bytes(), false)
        .expect_err("an error")
        .to_string()
}

/// A HAR file of entries.
fn har(entries: &[String]) -> String {
    format!("{{\"log\":{{\"entries\":[{}]}}}}", entries.join(","))
}

/// An entry without anything optional.
fn bare(url: &str, millis: u32) -> String {
    format!(
        "{{\"startedDateTime\":\"2024-05-01T10:00:{:02}.{:03}Z\",\"time\":10,\"request\":{{\"url\":\"{url}\"}},\
         \"response\":{{\"status\":200}}}}",
        millis / 1000,
        millis % 1000
    )
}

#[test]
fn chromium_files_give_triggers_priorities_sizes_and_hosts() {
    let recording = recording(CHROMIUM);
    let page = &recording.pages[0];
    assert_eq!(page.name, "www.shop.example/start");
    let names: Vec<_> = page
        .hosts
        .iter()
        .map(|host| (host.name.as_str(), host.party))
        .collect();
    assert_eq!(
        names,
        [
            ("shop.example", Party::First),
            ("www.shop.example", Party::First),
            ("cdn.party.example", Party::Third),
        ]
    );
    assert!(!page.hosts[0].has_http3 && page.hosts[1].has_http3 && page.hosts[2].has_http3);
    let triggers: Vec<_> = page
        .resources
        .iter()
        .map(|resource| (resource.kind, resource.trigger))
        .collect();
    assert_eq!(
        triggers,
        [
            (Kind::Document, None),
            (Kind::Document, Some(Trigger::Complete { of: 0 })),
            // Requested when a quarter of the document had arrived.
            (
                Kind::Stylesheet,
                Some(Trigger::Bytes {
                    of: 1,
                    offset: 5000
                })
            ),
            (
                Kind::Script,
                Some(Trigger::Bytes {
                    of: 1,
                    offset: 5000
                })
            ),
            (Kind::Font, Some(Trigger::Executed { of: 2 })),
            (Kind::Fetch, Some(Trigger::Executed { of: 3 })),
        ]
    );
    assert_eq!(page.document(), 1);
    let document = &page.resources[1];
    assert_eq!((document.body, document.response_header), (20_000, 300));
    // 80 ms until the first byte, of which 30 ms are a round trip.
    assert_eq!(document.wait, Duration::from_millis(50));
    let style = &page.resources[2];
    assert!(style.is_blocking && style.is_cacheable);
    assert_eq!(
        style.priority,
        Priority {
            urgency: 0,
            is_incremental: false
        }
    );
    let script = &page.resources[3];
    // `_priority` is low: asynchronous. The request's field is preferred where there is one.
    assert!(!script.is_blocking);
    assert_eq!(script.priority.urgency, 3);
    assert!(!script.is_cacheable, "no-store");
    assert_eq!(
        page.resources[5].priority,
        Priority {
            urgency: 1,
            is_incremental: true
        }
    );
    // 20 ms after the end of the script, of which its execution takes 2.5 ms.
    assert_eq!(page.resources[5].delay, Duration::from_micros(17_500));
    assert_eq!(recording.skipped, BTreeMap::from([("not HTTP", 1)]));
    assert_eq!(recording.assumed, BTreeMap::new());
}

#[test]
fn a_page_that_chromium_loaded_has_the_dependencies_that_it_was_made_with() {
    let recording = recording(RECORDED);
    let page = &recording.pages[0];
    assert_eq!(page.name, "localhost:21000/start");
    let parties: Vec<Party> = page.hosts.iter().map(|host| host.party).collect();
    assert_eq!(parties, [Party::First, Party::Third]);
    let found: Vec<_> = page
        .resources
        .iter()
        .map(|resource| {
            let of = resource.trigger.map(Trigger::of);
            (
                resource.kind.name(),
                of,
                resource.priority.urgency,
                resource.is_blocking,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("document", None, 0, false),
            ("document", Some(0), 0, false),
            ("stylesheet", Some(1), 0, true),
            ("script", Some(1), 1, true),
            ("script", Some(1), 3, false),
            ("image", Some(1), 2, false),
            ("fetch", Some(3), 1, false),
            ("image", Some(2), 3, false),
            ("font", Some(2), 0, false),
            ("other", Some(1), 1, false),
            ("image", Some(1), 3, false),
            ("fetch", Some(4), 1, false),
        ]
    );
    assert_eq!(page.resources[1].body, 60_204);
    assert!(page.resources[2].is_cacheable);
    // The icon and an image that a script made after a fetch have no initiator.
    assert_eq!(recording.assumed.values().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn firefox_files_lack_initiators_and_priorities_which_are_assumed() {
    let recording = recording(FIREFOX);
    let page = &recording.pages[0];
    let kinds: Vec<_> = page
        .resources
        .iter()
        .map(|resource| resource.kind)
        .collect();
    assert_eq!(
        kinds,
        [Kind::Document, Kind::Stylesheet, Kind::Font, Kind::Image]
    );
    assert_eq!(page.resources[2].trigger, Some(Trigger::Executed { of: 1 }));
    assert!(matches!(
        page.resources[3].trigger,
        Some(Trigger::Bytes { of: 0, .. })
    ));
    assert_eq!(page.resources[1].body, 4000);
    assert!(page.resources[1].is_blocking);
    // A `Priority` field of the request is preferred to the priorities of Chromium.
    assert_eq!(
        page.resources[3].priority,
        Priority {
            urgency: 5,
            is_incremental: true
        }
    );
    assert_eq!(recording.assumed.values().sum::<usize>(), 6);
    // The port is not a connection.
    assert_eq!((page.hosts[0].group, page.hosts[1].group), (0, 1));
}

#[test]
fn webpagetest_files_hold_several_runs() {
    let recording = recording(WEBPAGETEST);
    assert_eq!(recording.pages.len(), 2);
    let page = &recording.pages[0];
    let script = &page.resources[1];
    assert_eq!((script.kind, script.body), (Kind::Script, 30_000));
    assert!(script.is_blocking);
    assert!(page.hosts[0].has_http3);
    assert_eq!(page.resources[2].trigger, Some(Trigger::Executed { of: 1 }));
    assert_eq!(page.resources[2].priority.urgency, 3);
    // Two hosts on one connection.
    assert_eq!(page.hosts[1].group, page.hosts[0].group);
}

#[test]
fn each_recording_loads_to_its_end() {
    for text in [CHROMIUM, RECORDED, FIREFOX, WEBPAGETEST] {
        for page in recording(text).pages {
            let mut load = Load::new(&page, View::First, lastbyte_units::Time::ZERO);
            let mut now = lastbyte_units::Time::ZERO;
            loop {
                while let Some(resource) = load.next_request() {
                    load.on_complete(resource, now);
                }
                let Some(deadline) = load.deadline() else {
                    break;
                };
                now = deadline;
                load.on_deadline(now);
            }
            assert!(load.loaded().is_some() && load.first_render() <= load.loaded());
        }
    }
}

#[test]
fn nothing_but_host_names_and_the_path_of_the_document_is_kept() {
    let text = CHROMIUM.replace("www.shop.example", "secret-host.example");
    let known: String = recording(&text).pages.iter().map(corpus::write).collect();
    for secret in ["token=", "Cookie", "session", "/fonts/", "alert("] {
        assert!(CHROMIUM.contains(secret), "the recording has `{secret}`");
        assert!(!known.contains(secret), "the page has `{secret}`");
    }
    assert!(known.contains("secret-host"));
    let anonymous = read(text.as_bytes(), true).expect("it is there").pages;
    let written: String = anonymous.iter().map(corpus::write).collect();
    assert!(
        !written.contains("secret") && !written.contains("party.example"),
        "{written}"
    );
    assert_eq!(anonymous[0].name, "page0");
    assert_eq!(anonymous[0].hosts[2].name, "h2.page0.example");
    assert_eq!(anonymous[0].hosts[2].party, Party::Third);
}

#[test]
fn a_file_with_the_least_is_read_and_what_is_assumed_is_counted() {
    let text = har(&[
        bare("https://a.example/", 0),
        bare("https://a.example/x?token=1", 20),
    ]);
    let recording = recording(&text);
    let page = &recording.pages[0];
    assert_eq!(page.resources.len(), 2);
    assert_eq!(page.resources[0].body, 0);
    assert_eq!(
        recording.assumed,
        BTreeMap::from([
            ("body size: 0 bytes", 2),
            (
                "initiator: the last style sheet for fonts, the last script for data, else the document",
                1
            ),
            ("priority: Chromium's for the kind", 2),
            ("request header size: 450 bytes", 2),
            ("response header size: 400 bytes", 2),
            ("server time: 0 ms", 2),
        ])
    );
}

#[test]
fn broken_files_are_refused_with_a_reason() {
    let blocked = bare("https://a.example/", 0).replace("200", "0");
    let cases = [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        (
            "{\"log\":",
            "not JSON: EOF while parsing a value at line 1 column 7",
        ),
        ("{} x", "not JSON: trailing characters at line 1 column 4"),
        (
            "{\"log\":{\"entries\":3}}",
            "not a HAR file: no list `log.entries` (expected HTTP Archive 1.1 or 1.2)",
        ),
        (
            "{\"log\":{\"entries\":[]}}",
            "no page: `log.entries` is empty",
        ),
        (
            &har(&[blocked]),
            "no page: all 1 requests are left out, the first reason is no response (blocked, aborted or failed)",
        ),
        (
            &har(&[bare("https:///x", 0)]),
            "no page: all 1 requests are left out, the first reason is no host in the URL",
        ),
        (
            &har(&[bare("https://a.example/", 0).replace("2024-05-01T", "yesterday")]),
            "no page: all 1 requests are left out, the first reason is no valid `startedDateTime`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected);
    }
}

#[test]
fn large_files_are_bounded() {
    let mut many = vec![bare("https://a.example/", 0)];
    many.resize(Page::RESOURCES_MAX + 1, bare("https://a.example/x", 1));
    assert_eq!(
        error(&har(&many)),
        "page ``: 10001 requests (expected at most 10000)"
    );
    // A page of as many redirects as there may be is read, and not in time quadratic in their number.
    many.truncate(Page::RESOURCES_MAX);
    let redirects: Vec<String> = many
        .iter()
        .map(|entry| entry.replace("200", "302"))
        .collect();
    assert_eq!(
        only_page(&har(&redirects)).resources.len(),
        Page::RESOURCES_MAX
    );
    let lists = "[],".repeat(2_000_000);
    assert!(
        error(&format!("{{\"log\":{{\"entries\":[{lists}[]]}}}}"))
            .starts_with("not JSON: too many values (expected at most 2000000)")
    );
    // What is not needed costs nothing.
    let content = format!(
        "\"content\":{{\"text\":\"{}\",\"x\":[{lists}0]}},",
        "a".repeat(1_000_000)
    );
    let entry =
        bare("https://a.example/", 0).replace("\"status\"", &format!("{content}\"status\""));
    assert_eq!(only_page(&har(&[entry])).resources.len(), 1);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&deep).starts_with("not JSON: recursion limit exceeded"));
    let pages: Vec<String> = (0..1001)
        .map(|page| {
            bare("https://a.example/", 0).replacen('{', &format!("{{\"pageref\":\"{page}\","), 1)
        })
        .collect();
    assert_eq!(error(&har(&pages)), "1001 pages (expected at most 1000)");
}

#[test]
fn rfc3986_6_2_3_a_default_port_and_a_final_dot_make_no_other_host() {
    let urls = [
        "https://a.example/",
        "https://a.example:443/1",
        "https://A.example./2",
        "HTTPS://u@a.example:443/3",
        "https://a.example:444/4",
        "http://a.example:80/5",
    ];
    let entries = urls.iter().zip(0..).map(|(url, at)| bare(url, at));
    let page = only_page(&har(&entries.collect::<Vec<_>>()));
    let names: Vec<&str> = page.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a.example", "a.example:444"]);
}

#[test]
fn a_request_without_a_page_belongs_to_that_of_the_request_before() {
    let of =
        |page: &str, entry: String| entry.replacen('{', &format!("{{\"pageref\":\"{page}\","), 1);
    let entries = [
        of("one", bare("https://a.example/", 0)),
        bare("https://a.example/worker", 10),
        of("two", bare("https://b.example/", 20)),
        bare("https://b.example/worker", 30),
    ];
    let pages = recording(&har(&entries)).pages;
    let counts: Vec<usize> = pages.iter().map(|page| page.resources.len()).collect();
    assert_eq!(counts, [2, 2]);
}

#[test]
fn absurd_numbers_are_clamped() {
    let entry = |url: &str, millis, more: &str| {
        bare(url, millis).replace("\"time\":10", &format!("\"time\":1e300,{more}"))
    };
    let numbers = "\"_objectSize\":1e300,\"timings\":{\"wait\":1e300,\"connect\":1,\"receive\":-5}";
    let text = har(&[
        entry("https://a.example/", 0, numbers),
        entry("https://b.example/", 10, numbers),
    ]);
    let page = only_page(&text);
    assert_eq!(page.resources[0].body, Page::BODY_MAX);
    assert_eq!(page.resources[0].wait, Duration::from_secs(60));
    let minus = text.replace("1e300", "-1e300");
    assert_eq!(only_page(&minus).resources[0].wait, Duration::ZERO);
}

#[test]
fn an_initiator_that_comes_later_or_is_itself_gives_no_cycle() {
    let with = |url: &str, millis, by: &str| {
        bare(url, millis).replacen(
            '{',
            &format!("{{\"_initiator\":{{\"type\":\"script\",\"url\":\"{by}\"}},"),
            1,
        )
    };
    let page = only_page(&har(&[
        bare("https://a.example/", 0),
        with("https://a.example/1", 20, "https://a.example/2"),
        with("https://a.example/2", 30, "https://a.example/1"),
        with("https://a.example/3", 40, "https://a.example/3"),
    ]));
    let of: Vec<_> = page.resources[1..]
        .iter()
        .map(|resource| resource.trigger.expect("it is there").of())
        .collect();
    assert_eq!(of, [0, 1, 0]);
}

#[test]
fn the_stack_of_an_asynchronous_initiator_is_followed() {
    let stack = "\"_initiator\":{\"type\":\"script\",\"stack\":{\"callFrames\":[{\"url\":\"\"}],\"parent\":{\
                 \"callFrames\":[{\"url\":\"https://a.example/s.js\"}]}}},";
    let page = only_page(&har(&[
        bare("https://a.example/", 0),
        bare("https://a.example/s.js", 20),
        bare("https://a.example/data", 50).replacen('{', &format!("{{{stack}"), 1),
    ]));
    assert_eq!(page.resources[2].trigger, Some(Trigger::Executed { of: 1 }));
    assert_eq!(page.resources[2].delay, Duration::from_millis(20));
}

#[test]
fn caches_keep_what_rfc_9111_says() {
    let date = "Date: Wed, 01 May 2024 10:00:00 GMT";
    let cases: [(&str, u16, &[&str], bool); 16] = [
        ("GET", 200, &["Cache-Control: max-age=60"], true),
        (
            "GET",
            200,
            &["Cache-Control: private, MAX-AGE=\"60\""],
            true,
        ),
        ("GET", 200, &["Cache-Control: max-age=60", "Age: 60"], false),
        ("GET", 200, &["Cache-Control: max-age=60", "Age: 59"], true),
        ("GET", 200, &["Cache-Control: max-age=60, no-cache"], false),
        ("GET", 200, &["Cache-Control: no-store, max-age=60"], false),
        ("GET", 200, &["Cache-Control: max-age=soon"], false),
        ("POST", 200, &["Cache-Control: max-age=60"], false),
        ("GET", 302, &["Cache-Control: max-age=60"], false),
        ("GET", 404, &["Cache-Control: max-age=60"], true),
        ("GET", 200, &["Cache-Control: max-age=60", "Vary: *"], false),
        ("GET", 200, &[], false),
        (
            "GET",
            200,
            &[date, "Expires: Wed, 01 May 2024 10:00:01 GMT"],
            true,
        ),
        ("GET", 200, &[date, "Expires: 0"], false),
        (
            "GET",
            200,
            &[date, "Last-Modified: Mon, 01 Apr 2024 10:00:00 GMT"],
            true,
        ),
        // `max-age` is preferred (§5.3).
        (
            "GET",
            200,
            &[
                date,
                "Expires: Thu, 02 May 2024 10:00:00 GMT",
                "Cache-Control: max-age=0",
            ],
            false,
        ),
    ];
    for (method, status, fields, expected) in cases {
        let header = |name: &str| {
            fields
                .iter()
                .filter_map(|field| field.split_once(": "))
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        };
        assert_eq!(
            cache::is_fresh(method, status, &header),
            expected,
            "{method} {status} {fields:?}"
        );
    }
}

#[test]
fn dates_of_both_formats_are_read() {
    assert_eq!(iso_date_ms("1970-01-01T00:00:00.000Z"), Some(0.0));
    assert_eq!(
        iso_date_ms("2024-02-29T12:00:00.5Z"),
        Some(1_709_208_000_500.0)
    );
    assert_eq!(
        iso_date_ms("2024-02-29T14:00:00.5+02:00"),
        Some(1_709_208_000_500.0)
    );
    assert_eq!(
        iso_date_ms("2024-02-29T10:30:00-0130"),
        Some(1_709_208_000_000.0)
    );
    for text in [
        "",
        "2024-02-29",
        "2024-13-01T00:00:00Z",
        "2024-01-01T25:00:00Z",
        "2024-01-01T10:NaN:00Z",
        "T",
    ] {
        assert_eq!(iso_date_ms(text), None, "{text}");
    }
    assert_eq!(http_date("Thu, 01 Jan 1970 00:00:01 GMT"), Some(1));
    assert_eq!(
        http_date("Thu, 29 Feb 2024 12:00:00 GMT"),
        Some(1_709_208_000)
    );
    assert_eq!(http_date("Thu, 29 ebM 2024 12:00:00 GMT"), None);
    assert_eq!(http_date("now"), None);
}

#[test]
fn sites_are_told_apart_by_their_registrable_part() {
    for (host, expected) in [
        ("www.a.example", "a.example"),
        ("a.example", "a.example"),
        ("cdn.a.co.uk", "a.co.uk"),
        ("a.co.uk:8443", "a.co.uk"),
        ("x.shop.de", "shop.de"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("localhost", "localhost"),
    ] {
        assert_eq!(registrable(host), expected);
    }
}
