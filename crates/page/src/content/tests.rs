use core::time::Duration;

use super::*;
use crate::page::{Host, Resource};

const NOW: Duration = Duration::ZERO;

fn page(resources: Vec<Resource>) -> Page {
    let page = Page {
        name: "one".to_owned(),
        hosts: vec![
            Host::first_party("www.example"),
            Host::first_party("cdn.example"),
        ],
        resources,
    };
    page.check().expect("it is valid");
    page
}

fn at(offset: u64) -> Trigger {
    Trigger::Bytes { of: 0, offset }
}

fn executed(of: u16) -> Trigger {
    Trigger::Executed { of }
}

fn text(content: &Content) -> String {
    let mut bytes = vec![0; content.len() as usize];
    content.read_at(0, &mut bytes);
    String::from_utf8(bytes).expect("UTF-8")
}

/// Where the document names a resource, by its URL.
fn place(document: &str, url: &str) -> Option<usize> {
    document.find(url)
}

#[test]
fn a_document_names_its_children_at_their_offsets() {
    let mut script = Resource::new(1, Kind::Script, 500).triggered(at(9000), NOW);
    script.priority.urgency = 3;
    let page = page(vec![
        Resource::new(0, Kind::Document, 20_000),
        Resource::new(0, Kind::Stylesheet, 500).triggered(at(2000), NOW),
        Resource::new(1, Kind::Image, 500).triggered(at(15_000), NOW),
        script,
        Resource::new(0, Kind::Image, 500).triggered(at(1500), NOW),
    ]);
    let made = contents(&page, 7, 443);
    assert_eq!((made.unreachable, made.longer), (0, 0));
    let document = text(&made.contents[0]);
    assert_eq!(document.len(), 20_000);
    let near = |url: &str, offset: usize| {
        let found = place(&document, url).expect("it is named");
        assert!((offset..offset + 60).contains(&found), "{url} at {found}");
    };
    near("<link rel=stylesheet href=//www.example/7/1>", 2000);
    near("<img src=//cdn.example/7/2>", 15_000);
    near("<script async src=//cdn.example/7/3>", 9000);
    // Before a blocking resource an image would end the head.
    near("<link rel=preload as=image href=//www.example/7/4>", 1500);
    let body = place(&document, "<body>").expect("a body");
    assert!(body > 2000 && place(&document, "<img src=//www.example/7/4>").expect("a tag") > body);
}

#[test]
fn a_script_works_and_then_requests_after_delays() {
    let script = Resource {
        work: Duration::from_millis(12),
        ..Resource::new(0, Kind::Script, 3000).triggered(at(0), NOW)
    };
    let page = page(vec![
        Resource::new(0, Kind::Document, 3000),
        script,
        Resource::new(1, Kind::Image, 10).triggered(executed(1), Duration::from_millis(40)),
        Resource::new(1, Kind::Fetch, 10).triggered(executed(1), NOW),
        // What is fetched triggers more.
        Resource::new(0, Kind::Document, 800).triggered(executed(3), NOW),
    ]);
    let made = contents(&page, 0, 4433);
    let script = text(&made.contents[1]);
    assert_eq!(
        script.trim_end(),
        "B(12);I('img','//cdn.example:4433/0/2',40);\
         I('fetch','//cdn.example:4433/0/3',0,()=>{I('iframe','//www.example:4433/0/4',0);});"
    );
    assert_eq!(script.len(), 3000);
    assert_eq!(made.unreachable, 0);
    // The pixel needs more than ten bytes.
    assert_eq!(made.longer, 1);
}

#[test]
fn elements_of_the_document_use_what_its_style_sheets_name() {
    let page = page(vec![
        Resource::new(0, Kind::Document, 3000),
        Resource::new(0, Kind::Stylesheet, 900).triggered(at(0), NOW),
        Resource::new(1, Kind::Font, 700).triggered(executed(1), NOW),
        Resource::new(1, Kind::Stylesheet, 700).triggered(executed(1), NOW),
        Resource::new(1, Kind::Image, 700).triggered(executed(3), NOW),
        Resource::new(1, Kind::Fetch, 700).triggered(executed(1), NOW),
    ]);
    let made = contents(&page, 0, 443);
    assert_eq!(made.unreachable, 0);
    let [document, first, second] = [0, 1, 3].map(|index| text(&made.contents[index]));
    assert!(first.starts_with("@import url(//cdn.example/0/3);@font-face{font-family:f2;"));
    assert!(second.starts_with(".r4{background:url(//cdn.example/0/4)}"));
    for class in ["<i class=r2>", "<i class=r4>"] {
        assert!(place(&document, class).is_some(), "{class}");
    }
    // A style sheet cannot fetch.
    assert!(document.contains("onload=\"I('fetch','//cdn.example/0/5',0);\""));
}

#[test]
fn the_document_may_be_behind_redirects() {
    let page = page(vec![
        Resource::new(0, Kind::Document, 0),
        Resource::new(1, Kind::Document, 3000).triggered(Trigger::Complete { of: 0 }, NOW),
    ]);
    let made = contents(&page, 2, 443);
    let location = made.contents[0].location.as_deref();
    assert_eq!(location, Some("https://cdn.example/2/1"));
    assert!(made.contents[0].is_empty());
    assert_eq!(
        (made.contents[1].location.as_deref(), made.unreachable),
        (None, 0)
    );
}

#[test]
fn what_a_name_may_not_have_does_not_reach_the_document() {
    let mut page = page(vec![
        Resource::new(0, Kind::Document, 100),
        Resource::new(1, Kind::Image, 100).triggered(at(0), NOW),
    ]);
    page.hosts[1].name = "a'\"> <script>b".to_owned();
    let document = text(&contents(&page, 0, 443).contents[0]);
    assert!(document.contains("<img src=//ascriptb/0/1>"), "{document}");
}

/// A long chain of fetches ends, instead of the stack.
#[test]
fn deep_chains_are_cut_and_counted() {
    let chain = (1..5000).map(|of| Resource::new(0, Kind::Fetch, 1).triggered(executed(of), NOW));
    let mut resources = vec![
        Resource::new(0, Kind::Document, 100),
        Resource::new(0, Kind::Script, 1).triggered(at(0), NOW),
    ];
    resources.extend(chain);
    let made = contents(&page(resources), 0, 443);
    assert!(made.unreachable > 4900 && made.unreachable < 4999);
}

#[test]
fn any_part_of_a_body_is_that_of_the_whole() {
    let page = &crate::generate(1, 1)[0];
    for content in contents(page, 0, 443).contents {
        let len = content.len() as usize;
        let mut whole = vec![0; len];
        content.read_at(0, &mut whole);
        for (from, until) in [
            (0, 1),
            (0, 1500),
            (1, 700),
            (400, 5000),
            (len.saturating_sub(1), len),
        ] {
            if until <= len {
                let mut part = vec![9; until - from];
                content.read_at(from as u64, &mut part);
                assert_eq!(part, whole[from..until]);
            }
        }
    }
}

/// A browser finds nearly all that the generator describes.
#[test]
fn generated_pages_can_be_replayed() {
    for (index, page) in crate::generate(30, 1).iter().enumerate() {
        let made = contents(page, index, 443);
        assert_eq!(made.unreachable, 0, "{}", page.name);
        let of = |content: &[Content]| content.iter().map(Content::len).sum::<u64>() as f64;
        let described: u64 = page.resources.iter().map(|resource| resource.body).sum();
        let ratio = of(&made.contents) / described as f64;
        assert!((1.0..1.1).contains(&ratio), "{}: {ratio}", page.name);
    }
}

/// RFC 8297 §2.
#[test]
fn hinted_resources_have_links_as_the_document_refers_to_them() {
    let hinted = |host, kind| Resource {
        trigger: Some(at(50)),
        is_hinted: true,
        ..Resource::new(host, kind, 100)
    };
    let image = Resource {
        is_hinted: false,
        ..hinted(0, Kind::Image)
    };
    let page = page(vec![
        Resource::new(0, Kind::Document, 1000),
        hinted(1, Kind::Stylesheet),
        hinted(0, Kind::Font),
        image,
    ]);
    let made = contents(&page, 3, 8443);
    assert_eq!(
        made.hints,
        [
            "<https://cdn.example:8443/3/1>; rel=preload; as=style",
            "<https://www.example:8443/3/2>; rel=preload; as=font; crossorigin",
        ]
    );
    let document = text(&made.contents[0]);
    assert!(document.contains("//cdn.example:8443/3/1"), "{document}");
}
