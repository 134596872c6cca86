use core::time::Duration;
use std::sync::Arc;

use lastbyte_link::{Capacity, Rate};
use lastbyte_page::{Host, Kind, Page, Party, Resource, Trigger};

use super::{HttpVersion, PageLoad, PageOutcome, Upgrade, load_page};
use lastbyte_scenario::{Handshake, Path, network::PathText};

const RTT: Duration = Duration::from_millis(40);

fn path() -> Path {
    let mut path = Path {
        overhead: 28,
        ..Path::default()
    };
    path.down.capacity = Capacity::Constant(Rate::from_bits_per_second(10_000_000));
    path.down.delay = RTT / 2;
    path.up.delay = RTT / 2;
    path
}

/// A document with images in its first bytes, and a script behind them.
fn page(hosts: u16, images: u16) -> Page {
    let host = |number: u16| Host {
        name: format!("host{number}.example"),
        group: number,
        ..Host::first_party("")
    };
    let mut resources = vec![Resource::new(0, Kind::Document, 20_000)];
    let found = Trigger::Bytes { of: 0, offset: 500 };
    for image in 0..images {
        let image = Resource::new(image % hosts, Kind::Image, 60_000);
        resources.push(image.triggered(found, Duration::ZERO));
    }
    let script = Resource::new(0, Kind::Script, 30_000);
    resources.push(script.triggered(Trigger::Bytes { of: 0, offset: 600 }, Duration::ZERO));
    Page {
        name: "test".to_owned(),
        hosts: (0..hosts).map(host).collect(),
        resources,
    }
}

fn load(page: Page, version: HttpVersion) -> PageOutcome {
    load_page(&PageLoad::new(Arc::new(page), version, path())).expect("it can be simulated")
}

fn millis(span: Option<Duration>) -> u128 {
    span.expect("it happened").as_millis()
}

#[test]
fn paths_with_traffic_or_moves_that_page_loads_do_not_have_are_refused() {
    for (text, wanted) in [
        ("cross = [\"cubic\"]", "the path has `cross`"),
        ("moves = [\"2s network\"]", "the path has `moves`"),
    ] {
        let path = PathText::parse(text)
            .expect(text)
            .path(&mut |_| Ok(String::new()));
        let load = PageLoad::new(Arc::new(page(1, 0)), HttpVersion::Http3, path.expect(text));
        let error = load_page(&load).expect_err(text).to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn a_document_takes_a_round_trip_per_handshake_and_one_for_the_request() {
    let document = || page(1, 0);
    for (version, round_trips) in [
        (HttpVersion::Http3, 2),
        (HttpVersion::Http2, 3),
        (HttpVersion::Http1, 3),
    ] {
        let outcome = load(document(), version);
        let first_byte = outcome.resources[0].first_byte.expect("it came");
        let first_byte = first_byte
            .since(lastbyte_congestion::Time::ZERO)
            .as_millis();
        let least = round_trips * RTT.as_millis();
        // A handshake's flight of 3 kB takes 3 ms at 10 Mb/s.
        assert!(
            (least..least + 12).contains(&first_byte),
            "{version}: {first_byte}"
        );
    }
}

#[test]
fn a_resumed_handshake_sends_less_and_0rtt_saves_a_round_trip() {
    for version in HttpVersion::ALL {
        let with = |handshake| {
            let mut input = PageLoad::new(Arc::new(page(1, 2)), version, path());
            input.transport.handshake = handshake;
            let outcome = load_page(&input).expect("it can be simulated");
            (millis(outcome.loaded), outcome.bytes_down)
        };
        let [full, resumed, early] = Handshake::ALL.map(with);
        assert!(resumed.1 + 1500 < full.1, "{version}: {resumed:?} {full:?}");
        let saved = full.0 - early.0;
        // The further connections of HTTP/1.1 begin once the document is there.
        let round_trips = if version == HttpVersion::Http1 { 2 } else { 1 };
        let least = round_trips * 38;
        assert!(
            (least..least + 22).contains(&saved),
            "{version}: {saved} ms"
        );
    }
}

#[test]
fn same_seed_same_outcome_to_the_nanosecond() {
    for version in HttpVersion::ALL {
        let mut input = PageLoad::new(Arc::new(page(3, 12)), version, path());
        let mut file = |file: &str| Err(file.to_owned());
        let lossy = PathText::named("congested").expect("it is there");
        input.path = lossy.path(&mut file).expect("it is valid");
        let [first, again] = [(), ()].map(|()| load_page(&input).expect("it can be simulated"));
        assert_eq!(first, again, "{version}");
        assert!(first.loaded.is_some(), "{version}");
    }
}

#[test]
fn connections_share_the_access_link() {
    // 20 images of 60 kB and the rest are 1.25 MB: a second at 10 Mb/s, however many hosts there are.
    for version in HttpVersion::ALL {
        for hosts in [1, 5] {
            let outcome = load(page(hosts, 20), version);
            let loaded = millis(outcome.loaded);
            assert!(
                (1000..1500).contains(&loaded),
                "{version}, {hosts} hosts: {loaded} ms"
            );
        }
    }
}

#[test]
fn http_1_opens_six_connections_to_a_host_and_2_and_3_one_to_a_group() {
    let two_in_a_group = || {
        let mut page = page(2, 20);
        page.hosts[1].group = 0;
        page
    };
    assert_eq!(load(two_in_a_group(), HttpVersion::Http1).connections, 12);
    assert_eq!(load(two_in_a_group(), HttpVersion::Http2).connections, 1);
    assert_eq!(load(two_in_a_group(), HttpVersion::Http3).connections, 1);
    assert_eq!(load(page(2, 20), HttpVersion::Http3).connections, 2);
}

#[test]
fn hosts_without_http_3_use_http_2() {
    let mut partial = page(2, 10);
    partial.hosts[1].has_http3 = false;
    let partial = load(partial, HttpVersion::Http3);
    let full = load(page(2, 10), HttpVersion::Http3);
    assert_eq!(partial.connections, 2);
    assert_ne!(partial.loaded, full.loaded);
    let of_second = |outcome: &PageOutcome| outcome.resources[2].first_byte;
    assert!(of_second(&partial) > of_second(&full), "a round trip more");
}

#[test]
fn urgent_responses_overtake_images() {
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let outcome = load(page(1, 20), version);
        let complete = |index: usize| outcome.resources[index].complete.expect("it came");
        let script = complete(21);
        let before = (1..=20).filter(|image| complete(*image) < script).count();
        assert!(before <= 2, "{version}: {before} images before the script");
    }
}

#[test]
fn a_host_that_is_farther_away_answers_later() {
    let far = |extra_us| {
        let mut page = page(2, 2);
        page.hosts[1].rtt_extra_us = extra_us;
        let outcome = load(page, HttpVersion::Http3);
        let moment = outcome.resources[2];
        let [from, to] = [moment.requested, moment.first_byte].map(|at| at.expect("it happened"));
        to.since(from).as_millis() as i64
    };
    let near = far(0);
    assert!(
        (38..44).contains(&(far(20_000) - near)),
        "two round trips of 20 ms more: {}",
        far(20_000) - near
    );
    let nearer = near - far(-10_000);
    assert!(
        (18..24).contains(&nearer),
        "two round trips of 10 ms less: {nearer}"
    );
}

#[test]
fn names_take_time_to_resolve_once_for_each_host() {
    let with = |dns| {
        let mut page = page(2, 4);
        for resource in &mut page.resources[1..] {
            resource.body = 100;
        }
        let mut input = PageLoad::new(Arc::new(page), HttpVersion::Http3, path());
        input.dns = dns;
        let outcome = load_page(&input).expect("it can be simulated");
        let first_byte = |index: usize| {
            let at = outcome.resources[index].first_byte.expect("it came");
            at.since(lastbyte_congestion::Time::ZERO).as_millis()
        };
        [first_byte(0), first_byte(2)]
    };
    let [at_once, later] = [Duration::ZERO, Duration::from_millis(25)].map(with);
    assert_eq!(later[0] - at_once[0], 25);
    // The truncated times of both loads differ by a millisecond at most.
    assert!(
        (49..=51).contains(&(later[1] - at_once[1])),
        "{later:?} {at_once:?}"
    );
}

#[test]
fn early_hints_start_requests_while_the_server_works() {
    for version in HttpVersion::ALL {
        let with = |early_hints| {
            let mut page = page(1, 1);
            page.resources[0].wait = Duration::from_millis(200);
            page.resources[2].is_hinted = true;
            let mut input = PageLoad::new(Arc::new(page), version, path());
            input.early_hints = early_hints;
            let outcome = load_page(&input).expect("it can be simulated");
            let [document, script] = [0, 2].map(|index: usize| outcome.resources[index]);
            script.complete.expect("it came") < document.first_byte.expect("it came")
        };
        assert!(with(true), "{version}: the script came before the document");
        assert!(!with(false), "{version}");
    }
}

#[test]
fn a_page_that_takes_too_long_ends_at_the_limit() {
    let mut input = PageLoad::new(Arc::new(page(1, 5)), HttpVersion::Http3, path());
    input.time_limit = Duration::from_millis(100);
    let outcome = load_page(&input).expect("it can be simulated");
    assert_eq!(outcome.loaded, None);
    assert!(outcome.resources[0].first_byte.is_some());
    assert!(outcome.resources[1].complete.is_none());
}

#[test]
fn a_page_that_is_not_valid_is_refused() {
    let mut broken = page(1, 1);
    broken.resources[1].host = 7;
    let error = load_page(&PageLoad::new(Arc::new(broken), HttpVersion::Http3, path()));
    let error = error.expect_err("host 7").to_string();
    assert_eq!(error, "page `test`: resource 1: host 7 (expected 0 to 0)");
}

#[test]
fn third_parties_stay_at_http11_where_only_the_first_party_is_upgraded() {
    let mut page = page(2, 16);
    page.hosts[1].party = Party::Third;
    let connections = |version, upgrade| {
        let mut input = PageLoad::new(Arc::new(page.clone()), version, path());
        input.upgrade = upgrade;
        let outcome = load_page(&input).expect("it can be simulated");
        assert!(outcome.loaded.is_some() && outcome.failed == 0);
        outcome.connections
    };
    let old = connections(HttpVersion::Http1, Upgrade::All);
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        assert_eq!(connections(version, Upgrade::All), 2, "{version}");
        let partial = connections(version, Upgrade::FirstParty);
        // One to the first party, and the third party's pool.
        assert!(
            2 < partial && partial < old,
            "{version}: {partial} of {old}"
        );
    }
    assert_eq!(connections(HttpVersion::Http1, Upgrade::FirstParty), old);
}

#[test]
fn requests_of_low_priority_over_http2_and_3_wait_for_the_first_render_if_they_are_held_back() {
    let mut page = page(3, 12);
    let last = page.resources.len() - 1;
    page.resources[last].is_blocking = true;
    page.resources[last].body = 300_000;
    let page = Arc::new(page);
    for version in [HttpVersion::Http2, HttpVersion::Http3] {
        let [at_once, held_back] = [false, true].map(|holds_back| {
            let mut input = PageLoad::new(Arc::clone(&page), version, path());
            input.holds_back = holds_back;
            load_page(&input).expect("it can be simulated")
        });
        // Images whose first byte, and whose last byte, arrived before the first render.
        let images = |outcome: &PageOutcome| {
            let rendered = lastbyte_congestion::Time::ZERO + outcome.first_render.expect("it was");
            let images = &outcome.resources[1..last];
            let early = |at: Option<lastbyte_congestion::Time>| at.is_some_and(|at| at < rendered);
            let started = images.iter().filter(|image| early(image.first_byte));
            let done = images.iter().filter(|image| early(image.complete));
            (started.count(), done.count())
        };
        let (started, done) = images(&held_back);
        assert!(started <= done + 2, "{version}: {started} {done}");
        assert!(started < images(&at_once).0, "{version}: {started}");
        assert!(held_back.first_render < at_once.first_render, "{version}");
        assert!(
            held_back.loaded.is_some(),
            "{version}: all are requested at last"
        );
    }
}
