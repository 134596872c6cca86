use lastbyte_units::mix;

use super::*;
use crate::{Load, View, corpus};

const COUNT: usize = 300;

fn pages() -> Vec<Page> {
    generate(COUNT, 1)
}

/// The value at a percentile.
fn percentile(mut values: Vec<f64>, percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * percent / 100.0) as usize]
}

#[track_caller]
fn assert_near(what: &str, actual: f64, expected: f64, tolerance: f64) {
    let allowed = expected * tolerance;
    assert!(
        (actual - expected).abs() <= allowed,
        "{what}: {actual} (expected {expected} within {allowed})"
    );
}

fn of_kind(page: &Page, kind: Kind) -> impl Iterator<Item = &Resource> {
    page.resources
        .iter()
        .filter(move |resource| resource.kind == kind)
}

#[test]
fn requests_and_bytes_by_kind_follow_the_figures() {
    let pages = pages();
    for (kind, requests, bytes) in KINDS {
        for (position, percent) in [(1, 10.0), (2, 25.0), (3, 50.0), (4, 75.0), (5, 90.0)] {
            let name = format!("{} at {percent} %", kind.name());
            let counts = pages
                .iter()
                .map(|page| of_kind(page, kind).count() as f64)
                .collect();
            let count = percentile(counts, percent);
            assert!(
                (count - requests[position]).abs() <= 1.0,
                "requests of {name}: {count} (expected {})",
                requests[position]
            );
            let sizes: Vec<f64> = pages
                .iter()
                .map(|page| {
                    of_kind(page, kind)
                        .map(|resource| resource.body as f64 / 1000.0)
                        .sum()
                })
                .collect();
            // Of other kinds only the median is published.
            if position != 3 && !matches!(kind, Kind::Script | Kind::Image) {
                continue;
            }
            assert_near(
                &format!("kB of {name}"),
                percentile(sizes, percent),
                bytes[position],
                0.15,
            );
        }
    }
}

#[test]
fn requests_of_a_page_follow_the_figures() {
    let pages = pages();
    for (position, percent) in [(1, 10.0), (2, 25.0), (3, 50.0), (4, 75.0), (5, 90.0)] {
        let counts = pages
            .iter()
            .map(|page| page.resources.len() as f64)
            .collect();
        let count = percentile(counts, percent);
        assert_near(
            &format!("requests at {percent} %"),
            count,
            REQUESTS[position],
            0.15,
        );
    }
}

#[test]
fn bodies_are_spread_as_the_figures_say() {
    // Scripts: 1.2, 4.6 and 21.8 kB at the quartiles; images: 8 and 48 kB at the upper two. Sizes of single responses follow from
    // the sizes of pages and the spread within a page, so they agree roughly only: within a factor of two and a half.
    for (kind, percent, expected) in [
        (Kind::Script, 25.0, 1.2),
        (Kind::Script, 50.0, 4.6),
        (Kind::Script, 75.0, 21.8),
        (Kind::Script, 90.0, 83.5),
        (Kind::Image, 50.0, 8.0),
        (Kind::Image, 75.0, 48.0),
        (Kind::Image, 90.0, 183.0),
    ] {
        let pages = pages();
        let sizes = pages
            .iter()
            .flat_map(|page| of_kind(page, kind))
            .map(|resource| resource.body as f64 / 1000.0)
            .collect();
        let actual = percentile(sizes, percent);
        let ratio = (actual / expected).max(expected / actual);
        assert!(
            ratio <= 2.5,
            "{} at {percent} %: {actual} kB (expected {expected})",
            kind.name()
        );
    }
}

#[test]
fn third_parties_and_http3_follow_the_figures() {
    let pages = pages();
    let party = |page: &Page, resource: &Resource| page.hosts[usize::from(resource.host)].party;
    let all: usize = pages.iter().map(|page| page.resources.len()).sum();
    let third: usize = pages
        .iter()
        .map(|page| {
            let is_third = |resource: &&Resource| party(page, resource) == Party::Third;
            page.resources.iter().filter(is_third).count()
        })
        .sum();
    assert_near(
        "share of third parties",
        third as f64 / all as f64,
        THIRD_PARTY_SHARE,
        0.15,
    );
    let used: Vec<f64> = pages
        .iter()
        .map(|page| {
            let mut hosts: Vec<u16> = page
                .resources
                .iter()
                .filter(|resource| party(page, resource) == Party::Third)
                .map(|resource| resource.host)
                .collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts.len() as f64
        })
        .collect();
    let with = used.iter().filter(|count| **count > 0.0).count() as f64 / COUNT as f64;
    assert_near("pages with third parties", with, 0.9, 0.05);
    assert_near(
        "third-party hosts",
        percentile(used, 50.0),
        THIRD_PARTY_HOSTS[3],
        0.2,
    );
    for (wanted, expected) in [
        (Party::First, HTTP3_SHARES[0]),
        (Party::Third, HTTP3_SHARES[1]),
    ] {
        let hosts: Vec<bool> = pages
            .iter()
            .flat_map(|page| &page.hosts)
            .filter(|host| host.party == wanted)
            .map(|host| host.has_http3)
            .collect();
        let share = hosts.iter().filter(|has| **has).count() as f64 / hosts.len() as f64;
        assert_near("hosts with HTTP/3", share, expected, 0.2);
    }
}

#[test]
fn each_page_is_valid_and_loads_to_its_end() {
    for seed in 0..3 {
        for page in generate(COUNT, seed) {
            page.check().expect("it is there");
            for view in [View::First, View::Repeat] {
                let mut load = Load::new(&page, view, lastbyte_units::Time::ZERO);
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
                let (first_render, loaded) = (
                    load.first_render().expect("it is there"),
                    load.loaded().expect("it is there"),
                );
                assert!(first_render <= loaded && loaded <= load.finished().expect("it is there"));
                let last = page.resources.len() as u16 - 1;
                assert!((0..=last).all(|resource| load.moment(resource).executed.is_some()));
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_corpus_everywhere() {
    let text: String = generate(20, 7).iter().map(corpus::write).collect();
    assert_eq!(
        text,
        generate(20, 7)
            .iter()
            .map(corpus::write)
            .collect::<String>()
    );
    assert_ne!(
        text,
        generate(20, 8)
            .iter()
            .map(corpus::write)
            .collect::<String>()
    );
    let read: Vec<Page> = corpus::read("c", &text)
        .map(|page| page.expect("a valid line"))
        .collect();
    assert_eq!(read.iter().map(corpus::write).collect::<String>(), text);
    // The corpus of the documentation: `lastbyte compare generate --pages 300 --seed 1`.
    let checksum = pages()
        .iter()
        .flat_map(|page| corpus::write(page).into_bytes())
        .fold(0, |sum: u64, byte| mix(sum.wrapping_add(u64::from(byte))));
    assert_eq!(format!("{checksum:016x}"), "52d7145d47e1c07f");
}

#[test]
fn few_and_many_pages_can_be_generated() {
    assert_eq!(generate(0, 1), []);
    assert_eq!(generate(1, 1).len(), 1);
    generate(1, 1)[0].check().expect("it is there");
    assert_eq!(generate(PAGES_MAX + 1, 1).len(), PAGES_MAX);
}
