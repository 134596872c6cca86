use super::*;

fn valid() -> Page {
    Page {
        name: "p".to_owned(),
        hosts: vec![Host::first_party("www.example")],
        resources: vec![
            Resource::new(0, Kind::Document, 1000),
            Resource::new(0, Kind::Script, 10).triggered(
                Trigger::Bytes {
                    of: 0,
                    offset: 1000,
                },
                Duration::ZERO,
            ),
        ],
    }
}

#[test]
fn each_rule_of_a_page_is_checked() {
    type Change = fn(&mut Page);
    assert_eq!(valid().check(), Ok(()));
    let cases: [(&str, Change); 13] = [
        ("page `p`: 0 hosts (expected 1 to 10000)", |page| {
            page.hosts.clear();
        }),
        ("page `p`: 0 resources (expected 1 to 10000)", |page| {
            page.resources.clear();
        }),
        ("page `p`: 10001 resources (expected 1 to 10000)", |page| {
            let script = page.resources[1].clone();
            page.resources.resize(10_001, script);
        }),
        (
            "page `p`: resource 0: kind `script` (expected `document`)",
            |page| {
                page.resources[0].kind = Kind::Script;
            },
        ),
        ("page `p`: resource 1: host 1 (expected 0 to 0)", |page| {
            page.resources[1].host = 1;
        }),
        ("page `p`: resource 1: no trigger", |page| {
            page.resources[1].trigger = None;
        }),
        (
            "page `p`: resource 0: a trigger (the document has none)",
            |page| {
                page.resources[0].trigger = Some(Trigger::Complete { of: 0 });
            },
        ),
        (
            "page `p`: resource 1: trigger 1 (expected an earlier resource)",
            |page| {
                page.resources[1].trigger = Some(Trigger::Executed { of: 1 });
            },
        ),
        (
            "page `p`: resource 1: trigger at byte 1001 of resource 0, which has 1000",
            |page| {
                page.resources[1].trigger = Some(Trigger::Bytes {
                    of: 0,
                    offset: 1001,
                });
            },
        ),
        (
            "page `p`: resource 1: body of 1073741825 bytes (expected at most 1073741824)",
            |page| {
                page.resources[1].body = Page::BODY_MAX + 1;
            },
        ),
        (
            "page `p`: resource 1: header of 65537 bytes (expected at most 65536)",
            |page| {
                page.resources[1].request_header = Page::HEADER_MAX + 1;
            },
        ),
        (
            "page `p`: resource 1: header of 65537 bytes (expected at most 65536)",
            |page| {
                page.resources[1].response_header = Page::HEADER_MAX + 1;
            },
        ),
        (
            "page `p`: resource 1: urgency 8 (expected 0 to 7)",
            |page| {
                page.resources[1].priority.urgency = 8;
            },
        ),
    ];
    for (expected, change) in cases {
        let mut page = valid();
        change(&mut page);
        assert_eq!(page.check().expect_err("an error").to_string(), expected);
    }
}

#[test]
fn priorities_are_those_of_chromium() {
    let all = Kind::ALL.map(|kind| {
        let priority = kind.priority();
        (kind.name(), priority.urgency, priority.is_incremental)
    });
    assert_eq!(
        all,
        [
            ("document", 0, true),
            ("stylesheet", 0, false),
            ("script", 1, false),
            ("font", 0, false),
            ("image", 3, true),
            ("media", 3, true),
            ("fetch", 1, true),
            ("other", 4, true),
        ]
    );
}

#[test]
fn on_one_host_all_resources_are_where_the_document_is() {
    let mut page = valid();
    let host = |name: &str, party| Host {
        party,
        ..Host::first_party(name)
    };
    page.hosts = vec![
        host("old.example", Party::First),
        host("cdn.example", Party::Third),
        host("www.example", Party::First),
    ];
    // A redirect to the document.
    let target = Trigger::Complete { of: 0 };
    page.resources = vec![
        Resource::new(0, Kind::Document, 0),
        Resource::new(2, Kind::Document, 9000).triggered(target, Duration::ZERO),
        Resource::new(1, Kind::Script, 9000).triggered(Trigger::Executed { of: 1 }, Duration::ZERO),
    ];
    page.move_to_one_host();
    assert_eq!(page.check(), Ok(()));
    assert_eq!(page.hosts, [host("www.example", Party::First)]);
    assert!(page.resources.iter().all(|resource| resource.host == 0));
}
