use super::*;
use crate::page::{Host, Resource};

mod model;

const ONLOAD_LATER: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn page(resources: Vec<Resource>) -> Page {
    let page = Page {
        name: "test".to_owned(),
        hosts: vec![Host::first_party("www.example")],
        resources,
    };
    page.check().expect("it is there");
    page
}

fn document() -> Resource {
    Resource::new(0, Kind::Document, 10_000)
}

/// A resource that the document's byte `offset` triggers.
fn found_at(offset: u64, kind: Kind, body: u64) -> Resource {
    Resource::new(0, kind, body).triggered(Trigger::Bytes { of: 0, offset }, Duration::ZERO)
}

fn executed_by(of: u16, kind: Kind) -> Resource {
    Resource::new(0, kind, 100).triggered(Trigger::Executed { of }, Duration::ZERO)
}

fn requests(load: &mut Load<'_>) -> Vec<u16> {
    core::iter::from_fn(|| load.next_request()).collect()
}

/// A load whose document has been requested.
fn started(page: &Page, view: View) -> Load<'_> {
    let mut load = Load::new(page, view, at(0));
    assert_eq!(requests(&mut load), [0]);
    load
}

#[test]
fn the_preload_scanner_finds_resources_as_bytes_arrive() {
    let page = page(vec![
        document(),
        found_at(8000, Kind::Image, 10),
        found_at(1000, Kind::Stylesheet, 10),
        found_at(1000, Kind::Script, 10),
    ]);
    let mut load = started(&page, View::First);
    load.on_body(0, 999, at(1));
    assert_eq!(requests(&mut load), [] as [u16; 0]);
    load.on_body(0, 1000, at(2));
    assert_eq!(requests(&mut load), [2, 3]);
    // Fewer bytes than before have no effect.
    load.on_body(0, 500, at(3));
    load.on_complete(0, at(4));
    assert_eq!(requests(&mut load), [1]);
    assert_eq!(load.moment(1).requested, Some(at(4)));
}

#[test]
fn each_resource_is_requested_once_and_events_count_once() {
    let page = page(vec![document(), found_at(10, Kind::Script, 10)]);
    let mut load = started(&page, View::First);
    for now in 1..4 {
        load.on_first_byte(0, at(now));
        load.on_complete(0, at(now));
        load.on_body(0, 10_000, at(now));
    }
    assert_eq!(requests(&mut load), [1]);
    assert_eq!(load.moment(0).complete, Some(at(1)));
    load.on_complete(1, at(5));
    load.on_complete(1, at(6));
    load.on_failed(1, at(7));
    assert_eq!(load.loaded(), Some(at(5)));
    assert_eq!(load.finished(), Some(at(5)));
}

#[test]
fn events_of_resources_that_are_not_being_loaded_have_no_effect() {
    let page = page(vec![document(), found_at(10, Kind::Stylesheet, 10)]);
    let mut load = Load::new(&page, View::First, at(0));
    let is_unchanged = |load: &Load<'_>| {
        (0..2).all(|resource| {
            load.moment(resource)
                == Moment {
                    requested: (resource == 0).then_some(at(0)),
                    ..Moment::default()
                }
        })
    };
    // The driver has not taken the request of 0, 1 is not requested, and there is no 2.
    for resource in [0, 1, 2, u16::MAX] {
        load.on_first_byte(resource, at(1));
        load.on_body(resource, 10, at(1));
        load.on_complete(resource, at(1));
        load.on_failed(resource, at(1));
    }
    assert!(is_unchanged(&load));
    assert_eq!((load.loaded(), load.finished()), (None, None));
}

#[test]
fn a_delay_passes_before_the_request() {
    let mut script = found_at(10, Kind::Script, 10);
    script.delay = millis(7);
    let page = page(vec![document(), script]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(1));
    assert_eq!(load.deadline(), Some(at(8)));
    load.on_deadline(at(7));
    assert_eq!(requests(&mut load), [] as [u16; 0]);
    // A driver that is late does not change the times.
    load.on_deadline(at(20));
    assert_eq!(requests(&mut load), [1]);
    assert_eq!(load.moment(1).requested, Some(at(8)));
}

#[test]
fn the_main_thread_runs_one_resource_after_the_other() {
    let mut first = found_at(10, Kind::Script, 10);
    first.work = millis(50);
    let mut second = first.clone();
    second.work = millis(20);
    let page = page(vec![document(), first, second, executed_by(2, Kind::Image)]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(0));
    requests(&mut load);
    load.on_complete(1, at(10));
    load.on_complete(2, at(15));
    load.on_deadline(at(500));
    assert_eq!(load.moment(1).executed, Some(at(60)));
    assert_eq!(load.moment(2).executed, Some(at(80)));
    assert_eq!(load.moment(3).requested, Some(at(80)));
    assert_eq!(requests(&mut load), [3]);
    load.on_complete(3, at(501));
    assert_eq!(load.loaded(), Some(at(501)));
}

#[test]
fn onload_waits_for_what_browsers_wait_for() {
    for kind in Kind::ALL {
        let page = page(vec![document(), found_at(10, kind, 100)]);
        let mut load = started(&page, View::First);
        load.on_complete(0, at(10));
        requests(&mut load);
        load.on_complete(1, at(10) + ONLOAD_LATER);
        let is_waited_for = !matches!(kind, Kind::Fetch | Kind::Media | Kind::Other);
        let expected = if is_waited_for { 110 } else { 10 };
        assert_eq!(load.loaded(), Some(at(expected)), "{}", kind.name());
        assert_eq!(load.finished(), Some(at(110)), "{}", kind.name());
    }
}

#[test]
fn onload_waits_for_whatever_blocks_rendering() {
    let mut fetch = found_at(10, Kind::Fetch, 100);
    fetch.is_blocking = true;
    let page = page(vec![document(), fetch]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(10));
    requests(&mut load);
    assert_eq!(load.loaded(), None);
    load.on_complete(1, at(20));
    assert_eq!(load.first_render(), Some(at(20)));
    assert_eq!(load.loaded(), Some(at(20)));
}

#[test]
fn onload_does_not_wait_for_what_is_found_after_it() {
    let page = page(vec![
        document(),
        found_at(10, Kind::Fetch, 100),
        executed_by(1, Kind::Image),
    ]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(10));
    assert_eq!(load.loaded(), Some(at(10)));
    assert_eq!(requests(&mut load), [1]);
    load.on_complete(1, at(20));
    assert_eq!(requests(&mut load), [2]);
    assert_eq!(load.finished(), None);
    load.on_complete(2, at(30));
    assert_eq!(load.loaded(), Some(at(10)));
    assert_eq!(load.finished(), Some(at(30)));
}

#[test]
fn onload_waits_for_parsing_and_layout_but_not_for_timers() {
    // A font is wanted at the layout that follows its style sheet; an image at a timer that a script started.
    for (kind, expected) in [(Kind::Stylesheet, 40), (Kind::Script, 10)] {
        let mut late = executed_by(1, Kind::Image);
        late.delay = millis(20);
        let page = page(vec![document(), found_at(10, kind, 100), late]);
        let mut load = started(&page, View::First);
        load.on_complete(0, at(5));
        requests(&mut load);
        load.on_complete(1, at(10));
        load.on_deadline(at(30));
        assert_eq!(requests(&mut load), [2]);
        load.on_complete(2, at(40));
        assert_eq!(load.loaded(), Some(at(expected)), "{}", kind.name());
        assert_eq!(load.finished(), Some(at(40)));
    }
}

#[test]
fn onload_waits_for_frames_and_what_they_contain() {
    let in_frame = Resource::new(0, Kind::Image, 100)
        .triggered(Trigger::Bytes { of: 1, offset: 500 }, Duration::ZERO);
    let page = page(vec![
        document(),
        found_at(10, Kind::Document, 1000),
        in_frame,
    ]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(10));
    requests(&mut load);
    load.on_complete(1, at(20));
    assert_eq!(requests(&mut load), [2]);
    load.on_complete(2, at(30));
    assert_eq!(load.loaded(), Some(at(30)));
}

#[test]
fn first_render_waits_for_blocking_resources_in_the_head() {
    let page = page(vec![document(), found_at(4000, Kind::Stylesheet, 10)]);
    let mut load = started(&page, View::First);
    load.on_first_byte(0, at(1));
    load.on_body(0, 1200, at(1));
    // The style sheet is not known yet, but the body of the document has not begun.
    assert_eq!(load.first_render(), None);
    load.on_body(0, 4000, at(2));
    requests(&mut load);
    load.on_complete(1, at(30));
    assert_eq!(load.first_render(), Some(at(30)));
    assert_eq!(load.loaded(), None);
}

#[test]
fn first_render_waits_for_style_sheets_that_style_sheets_import() {
    let page = page(vec![
        document(),
        found_at(10, Kind::Stylesheet, 10),
        executed_by(1, Kind::Stylesheet),
    ]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(1));
    requests(&mut load);
    load.on_complete(1, at(2));
    assert_eq!(load.first_render(), None);
    requests(&mut load);
    load.on_complete(2, at(3));
    assert_eq!(load.first_render(), Some(at(3)));
}

#[test]
fn first_render_needs_bytes_of_the_document_and_a_free_main_thread() {
    let mut script = found_at(0, Kind::Script, 10);
    script.work = millis(100);
    let page = page(vec![document(), script, found_at(10, Kind::Stylesheet, 10)]);
    let mut load = started(&page, View::First);
    load.on_deadline(at(5));
    assert_eq!(load.first_render(), None);
    load.on_body(0, 10, at(6));
    requests(&mut load);
    load.on_complete(1, at(10));
    load.on_complete(2, at(20));
    // The style sheet waits for the main thread.
    assert_eq!(load.first_render(), None);
    load.on_deadline(at(200));
    assert_eq!(load.first_render(), Some(at(110)));
    // What blocks later does not take it back.
    assert_eq!(load.loaded(), None);
}

#[test]
fn a_page_without_blocking_resources_renders_at_its_first_byte() {
    let page = page(vec![document()]);
    let mut load = started(&page, View::First);
    load.on_first_byte(0, at(3));
    assert_eq!(load.first_render(), Some(at(3)));
}

#[test]
fn a_redirect_is_not_rendered() {
    let redirected = Resource::new(0, Kind::Document, 1000)
        .triggered(Trigger::Complete { of: 0 }, Duration::ZERO);
    let mut style = Resource::new(0, Kind::Stylesheet, 10)
        .triggered(Trigger::Bytes { of: 1, offset: 500 }, Duration::ZERO);
    style.is_hinted = true;
    let page = page(vec![Resource::new(0, Kind::Document, 0), redirected, style]);
    let mut load = started(&page, View::First);
    load.on_early_hints(at(1));
    load.on_complete(0, at(2));
    assert_eq!(requests(&mut load), [1]);
    assert_eq!(load.loaded(), None);
    load.on_body(1, 100, at(3));
    assert_eq!(load.first_render(), None);
    load.on_early_hints(at(4));
    assert_eq!(requests(&mut load), [2]);
    load.on_complete(2, at(5));
    load.on_body(1, 500, at(6));
    assert_eq!(load.first_render(), Some(at(6)));
    load.on_failed(1, at(7));
    assert_eq!((load.loaded(), load.finished()), (None, Some(at(7))));
}

#[test]
fn what_the_completion_of_a_cached_document_triggers_blocks_its_render() {
    let mut cached = document();
    cached.is_cacheable = true;
    let style = Resource::new(0, Kind::Stylesheet, 10)
        .triggered(Trigger::Complete { of: 0 }, Duration::ZERO);
    let page = page(vec![cached, style]);
    let mut load = Load::new(&page, View::Repeat, at(0));
    load.on_deadline(at(10));
    // The document is there after 2 ms, and the style sheet 2 ms later.
    assert_eq!(load.first_render(), Some(at(4)));
}

#[test]
fn a_failed_resource_delays_nothing_and_triggers_no_more() {
    let page = page(vec![
        document(),
        found_at(10, Kind::Stylesheet, 1000),
        Resource::new(0, Kind::Font, 10)
            .triggered(Trigger::Bytes { of: 1, offset: 100 }, Duration::ZERO),
        executed_by(1, Kind::Image),
    ]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(1));
    requests(&mut load);
    load.on_body(1, 200, at(2));
    assert_eq!(requests(&mut load), [2]);
    load.on_failed(1, at(3));
    assert_eq!(load.first_render(), Some(at(3)));
    assert_eq!(load.moment(1).complete, None);
    load.on_complete(2, at(4));
    assert_eq!(load.loaded(), Some(at(4)));
    assert_eq!(load.finished(), Some(at(4)));
    assert_eq!(load.moment(3), Moment::default());
}

#[test]
fn a_page_whose_document_fails_is_finished_but_not_loaded() {
    let page = page(vec![document(), found_at(10, Kind::Script, 10)]);
    let mut load = started(&page, View::First);
    load.on_body(0, 10, at(1));
    assert_eq!(requests(&mut load), [1]);
    load.on_failed(0, at(2));
    load.on_complete(1, at(3));
    assert_eq!(load.loaded(), None);
    assert_eq!(load.byte_index(), None);
    assert_eq!(load.finished(), Some(at(2)));
    assert_eq!(load.deadline(), None);
}

#[test]
fn early_hints_move_requests_but_not_what_waits_for_the_document() {
    let mut style = found_at(10, Kind::Stylesheet, 10);
    style.is_hinted = true;
    let page = page(vec![document(), style, found_at(10, Kind::Image, 10)]);
    let mut load = started(&page, View::First);
    load.on_early_hints(at(1));
    load.on_early_hints(at(2));
    assert_eq!(requests(&mut load), [1]);
    load.on_complete(1, at(5));
    assert_eq!(load.moment(1).executed, None);
    assert_eq!(load.first_render(), None);
    load.on_body(0, 10, at(9));
    assert_eq!(requests(&mut load), [2]);
    assert_eq!(load.moment(1).executed, Some(at(9)));
    assert_eq!(load.moment(1).requested, Some(at(1)));
    assert_eq!(load.first_render(), Some(at(9)));
}

#[test]
fn a_hinted_resource_triggers_nothing_before_the_page_wants_it() {
    let mut style = found_at(10, Kind::Stylesheet, 1000);
    style.is_hinted = true;
    let font = |offset| {
        Resource::new(0, Kind::Font, 10).triggered(Trigger::Bytes { of: 1, offset }, Duration::ZERO)
    };
    let page = page(vec![document(), style, font(100), font(900)]);
    let mut load = started(&page, View::First);
    load.on_early_hints(at(1));
    assert_eq!(requests(&mut load), [1]);
    load.on_body(1, 500, at(2));
    assert_eq!(requests(&mut load), [] as [u16; 0]);
    load.on_body(0, 10, at(3));
    assert_eq!(requests(&mut load), [2]);
    load.on_body(1, 900, at(4));
    assert_eq!(requests(&mut load), [3]);
}

#[test]
fn a_chain_of_hinted_resources_does_not_recurse() {
    let mut resources = vec![document()];
    for index in 1..Page::RESOURCES_MAX as u16 {
        let mut next = Resource::new(0, Kind::Image, 1)
            .triggered(Trigger::Complete { of: index - 1 }, Duration::ZERO);
        next.is_hinted = true;
        resources.push(next);
    }
    let page = page(resources);
    let mut load = started(&page, View::First);
    load.on_early_hints(at(1));
    for resource in requests(&mut load) {
        load.on_complete(resource, at(2));
    }
    load.on_complete(0, at(3));
    assert_eq!(load.finished(), Some(at(3)));
}

#[test]
fn a_hinted_resource_that_failed_does_not_block() {
    let mut style = found_at(10, Kind::Stylesheet, 10);
    style.is_hinted = true;
    let page = page(vec![document(), style]);
    let mut load = started(&page, View::First);
    load.on_early_hints(at(1));
    requests(&mut load);
    load.on_failed(1, at(2));
    load.on_complete(0, at(3));
    assert_eq!(load.loaded(), Some(at(3)));
    assert_eq!(load.first_render(), Some(at(3)));
}

#[test]
fn early_hints_after_the_document_have_no_effect() {
    let mut image = executed_by(1, Kind::Image);
    image.is_hinted = true;
    let page = page(vec![document(), found_at(10, Kind::Script, 10), image]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(1));
    assert_eq!(requests(&mut load), [1]);
    load.on_early_hints(at(2));
    assert_eq!(requests(&mut load), [] as [u16; 0]);
}

#[test]
fn the_repeat_view_takes_cacheable_resources_from_the_cache() {
    let page = page(vec![
        document(),
        found_at(10, Kind::Stylesheet, 1000),
        Resource::new(0, Kind::Font, 10)
            .triggered(Trigger::Bytes { of: 1, offset: 100 }, Duration::ZERO),
        executed_by(2, Kind::Fetch),
    ]);
    let mut load = started(&page, View::Repeat);
    load.on_complete(0, at(10));
    assert_eq!(requests(&mut load), [] as [u16; 0]);
    assert!(load.is_cached(1));
    assert_eq!(load.deadline(), Some(at(10) + Load::CACHE_TIME));
    // Events of the driver have no effect on what comes from the cache.
    load.on_complete(1, at(11));
    assert_eq!(load.moment(1).complete, None);
    load.on_deadline(at(20));
    assert_eq!(load.moment(1).complete, Some(at(12)));
    assert_eq!(load.first_render(), Some(at(12)));
    // A cached style sheet triggers its cached font, which triggers a fetch.
    assert_eq!(load.moment(2).complete, Some(at(14)));
    assert_eq!(load.loaded(), Some(at(14)));
    assert_eq!(requests(&mut load), [3]);
    load.on_complete(3, at(30));
    assert_eq!(load.finished(), Some(at(30)));
}

#[test]
fn a_cached_page_loads_without_a_request() {
    let mut cached = document();
    cached.is_cacheable = true;
    let page = page(vec![cached]);
    let mut load = Load::new(&page, View::Repeat, at(0));
    assert_eq!(load.next_request(), None);
    load.on_deadline(at(2));
    assert_eq!(load.loaded(), Some(at(2)));
    assert_eq!(load.first_render(), Some(at(2)));
    let moment = load.moment(0);
    assert_eq!((moment.first_byte, moment.complete), (None, Some(at(2))));
}

#[test]
fn the_byte_index_is_the_mean_time_of_visible_bytes() {
    let page = page(vec![
        document(),
        found_at(10, Kind::Stylesheet, 10_000),
        found_at(10, Kind::Image, 20_000),
        found_at(10, Kind::Script, 1_000_000),
    ]);
    let mut load = started(&page, View::First);
    load.on_complete(0, at(100));
    requests(&mut load);
    load.on_body(2, 10_000, at(150));
    load.on_complete(1, at(200));
    load.on_complete(3, at(250));
    load.on_complete(2, at(300));
    assert_eq!(load.loaded(), Some(at(300)));
    // 30 000 bytes are shown at 200 ms, 10 000 at 300 ms.
    assert_eq!(load.byte_index(), Some(millis(225)));
}

#[test]
fn a_large_page_costs_time_in_proportion_to_its_size() {
    // A tree in which every resource is triggered, by turns, by the document and by the resource before it.
    let mut resources = vec![document()];
    for index in 1..Page::RESOURCES_MAX as u16 {
        let trigger = if index % 2 == 0 {
            Trigger::Executed { of: index - 1 }
        } else {
            Trigger::Bytes {
                of: 0,
                offset: 10_000,
            }
        };
        resources.push(Resource::new(0, Kind::Image, 1).triggered(trigger, Duration::ZERO));
    }
    let page = page(resources);
    let mut load = started(&page, View::First);
    // A million packets of the document, before which nothing is triggered: a scan at each would be 10^10 steps.
    for now in 0..1_000_000 {
        load.on_body(0, now % 10_000, Time::from_nanos(now));
    }
    load.on_complete(0, at(10));
    while let Some(resource) = load.next_request() {
        load.on_complete(resource, at(11));
    }
    assert_eq!(load.finished(), Some(at(11)));
}

#[test]
fn a_chain_of_cached_resources_does_not_recurse() {
    let mut resources = vec![document()];
    for index in 1..Page::RESOURCES_MAX as u16 {
        resources.push(executed_by(index - 1, Kind::Script));
    }
    let page = page(resources);
    let mut load = started(&page, View::Repeat);
    load.on_complete(0, at(0));
    load.on_deadline(at(1_000_000));
    let cached = page.resources.len() as u32 - 1;
    assert_eq!(load.loaded(), Some(Time::ZERO + Load::CACHE_TIME * cached));
}
