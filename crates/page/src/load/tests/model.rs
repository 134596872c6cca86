//! A naive model of a load, and random pages that must load as it predicts.
//!
//! The model knows no state: it computes the times of all resources from the times of those that trigger them, and then finds
//! the first moments at which the definitions of first render and load event hold.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// When the parts of each response arrive, counted from its request.
#[derive(Clone, Debug)]
struct Response {
    first_byte: u64,
    /// The distance of the four parts of the body.
    gap: u64,
}

const PARTS: u64 = 4;

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    triggered: u64,
    wanted: u64,
    requested: u64,
    complete: u64,
    executed: Option<u64>,
}

struct Model<'a> {
    page: &'a Page,
    view: View,
    responses: &'a [Response],
    hints_at: Option<u64>,
    times: BTreeMap<u16, Times>,
}

impl Model<'_> {
    fn is_cached(&self, index: u16) -> bool {
        self.view == View::Repeat && self.page.resources[usize::from(index)].is_cacheable
    }

    /// When the trigger fires, if that is known.
    fn triggered(&self, trigger: Option<Trigger>) -> Option<u64> {
        let Some(trigger) = trigger else {
            return Some(0);
        };
        let of = trigger.of();
        let times = self.times.get(&of)?;
        match trigger {
            Trigger::Executed { .. } => times.executed,
            Trigger::Complete { .. } => Some(times.complete.max(times.wanted)),
            Trigger::Bytes { offset, .. } => {
                let response = &self.responses[usize::from(of)];
                let body = self.page.resources[usize::from(of)].body;
                if self.is_cached(of) {
                    return Some(times.complete.max(times.wanted));
                }
                let part = (0..=PARTS).find(|part| body * part / PARTS >= offset)?;
                let arrived = times.requested + response.first_byte + response.gap * part;
                Some(arrived.max(times.wanted))
            }
        }
    }

    fn compute(&mut self) {
        let mut main_thread_free = 0;
        loop {
            for (index, resource) in (0_u16..).zip(&self.page.resources) {
                let Some(triggered) = self.triggered(resource.trigger) else {
                    continue;
                };
                if self.times.contains_key(&index) {
                    continue;
                }
                let wanted = triggered + resource.delay.as_nanos() as u64;
                // A redirect has no hints of use.
                let is_hinted = resource.is_hinted && self.page.document() == 0;
                let hinted = self.hints_at.filter(|_| is_hinted);
                let requested = hinted.map_or(wanted, |at| at.min(wanted));
                let response = &self.responses[usize::from(index)];
                let takes = if self.is_cached(index) {
                    Load::CACHE_TIME.as_nanos() as u64
                } else {
                    response.first_byte + response.gap * PARTS
                };
                self.times.insert(
                    index,
                    Times {
                        triggered,
                        wanted,
                        requested,
                        complete: requested + takes,
                        executed: None,
                    },
                );
            }
            let next = self
                .times
                .iter()
                .filter(|(_, times)| times.executed.is_none())
                .min_by_key(|(index, times)| {
                    (
                        times.complete.max(times.wanted),
                        times.wanted,
                        self.page.resources[usize::from(**index)].trigger.map(stage),
                        **index,
                    )
                })
                .map(|(index, _)| *index);
            let Some(next) = next else { break };
            let work = self.page.resources[usize::from(next)].work.as_nanos() as u64;
            let times = self.times.get_mut(&next).expect("it is there");
            let start = main_thread_free.max(times.complete).max(times.wanted);
            main_thread_free = start + work;
            times.executed = Some(main_thread_free);
        }
    }

    /// The first end of work at which no resource for which `since` gives an earlier time is open.
    fn first_without(&self, candidates: &[u64], since: impl Fn(u16) -> Option<u64>) -> u64 {
        *candidates
            .iter()
            .find(|at| {
                self.times.iter().all(|(index, times)| {
                    since(*index).is_none_or(|since| since > **at)
                        || times.executed.expect("it is there") <= **at
                })
            })
            .expect("it is there")
    }

    /// From when on load event and first render wait for a resource, if they do.
    fn counted(&self, index: u16) -> u64 {
        let times = &self.times[&index];
        match self.page.resources[usize::from(index)].trigger {
            Some(Trigger::Executed { of })
                if matches!(
                    self.page.resources[usize::from(of)].kind,
                    Kind::Script | Kind::Fetch
                ) =>
            {
                times.wanted
            }
            _ => times.triggered,
        }
    }

    fn loaded(&self) -> u64 {
        let mut ends: Vec<u64> = self
            .times
            .values()
            .filter_map(|times| times.executed)
            .collect();
        ends.sort_unstable();
        self.first_without(&ends, |index| {
            let resource = &self.page.resources[usize::from(index)];
            (resource.kind.delays_onload() || resource.is_blocking).then(|| self.counted(index))
        })
    }

    fn first_render(&self) -> u64 {
        let document = self.page.document();
        let times = &self.times[&document];
        let first_byte = if self.is_cached(document) {
            times.complete
        } else {
            times.requested + self.responses[usize::from(document)].first_byte
        };
        let mut ends: Vec<u64> = self
            .times
            .values()
            .filter_map(|times| times.executed)
            .collect();
        let is_busy = self.times.iter().any(|(index, times)| {
            let work = self.page.resources[usize::from(*index)].work.as_nanos() as u64;
            times
                .executed
                .is_some_and(|end| end - work < first_byte && first_byte < end)
        });
        if !is_busy {
            ends.push(first_byte);
        }
        ends.sort_unstable();
        ends.retain(|at| *at >= first_byte);
        self.first_without(&ends, |index| {
            let resource = &self.page.resources[usize::from(index)];
            let since = if is_in(self.page.document(), resource.trigger) {
                0
            } else {
                self.counted(index)
            };
            resource.is_blocking.then_some(since)
        })
    }
}

/// Loads the page with the responses.
fn drive<'a>(
    page: &'a Page,
    view: View,
    responses: &[Response],
    hints_at: Option<u64>,
) -> Load<'a> {
    let mut load = Load::new(page, view, Time::ZERO);
    let mut arrivals: BTreeSet<(u64, u16, u64)> = BTreeSet::new();
    let mut now = 0;
    let mut hints_at = hints_at;
    loop {
        while let Some(resource) = load.next_request() {
            let requested = load
                .moment(resource)
                .requested
                .expect("it is there")
                .as_nanos();
            assert_eq!(requested, now, "requests are made at once");
            let response = &responses[usize::from(resource)];
            for part in 0..=PARTS {
                arrivals.insert((
                    now + response.first_byte + response.gap * part,
                    resource,
                    part,
                ));
            }
        }
        let arrival = arrivals.first().copied();
        let deadline = load.deadline().map(Time::as_nanos);
        let next = [arrival.map(|key| key.0), deadline, hints_at]
            .into_iter()
            .flatten()
            .min();
        let Some(next) = next else { break };
        now = next;
        let time = Time::from_nanos(now);
        if hints_at == Some(now) {
            hints_at = None;
            load.on_early_hints(time);
        } else if deadline == Some(now) {
            load.on_deadline(time);
        } else if let Some(key) = arrival {
            arrivals.remove(&key);
            let (_, resource, part) = key;
            let body = page.resources[usize::from(resource)].body;
            match part {
                0 => load.on_first_byte(resource, time),
                PARTS => load.on_complete(resource, time),
                part => load.on_body(resource, body * part / PARTS, time),
            }
        }
    }
    load
}

prop_compose! {
    fn resource(index: usize)(
        kind in 0..Kind::ALL.len(),
        body in 0_u64..5000,
        of in 0..index.max(1),
        stage in 0..4,
        offset in 0_u64..5000,
        delay in prop_oneof![Just(0_u64), 1_000_000_u64..50_000_000],
        // Never zero: what ends at one moment has an order that is a matter of taste.
        work in prop_oneof![1_u64..1000, 1_000_000_u64..30_000_000],
        is_blocking in any::<bool>(),
        is_cacheable in any::<bool>(),
        is_hinted in any::<bool>(),
    ) -> (Resource, i32, u64) {
        let kind = if index == 0 { Kind::Document } else { Kind::ALL[kind] };
        let mut resource = Resource::new(0, kind, body);
        resource.work = Duration::from_nanos(work);
        resource.is_blocking = is_blocking;
        resource.is_cacheable = is_cacheable && index > 0;
        resource.is_hinted = is_hinted && index > 0;
        if index > 0 {
            let of = of as u16;
            let trigger = match stage {
                0 => Trigger::Complete { of },
                1 => Trigger::Executed { of },
                _ => Trigger::Bytes { of, offset },
            };
            // What is there as soon as it is wanted needs a delay of its own, lest many get ready at one moment: their order
            // is a matter of taste.
            let is_at_once = resource.is_hinted || resource.is_cacheable;
            let delay = if is_at_once { delay.max(offset * 7919 + work + 1) } else { delay };
            resource = resource.triggered(trigger, Duration::from_nanos(delay));
        }
        (resource, stage, offset)
    }
}

fn resources(count: usize) -> impl Strategy<Value = Vec<Resource>> {
    (0..count)
        .map(resource)
        .collect::<Vec<_>>()
        .prop_map(|list| {
            let mut resources: Vec<Resource> = list.into_iter().map(|entry| entry.0).collect();
            for index in 1..resources.len() {
                if let Some(Trigger::Bytes { of, offset }) = resources[index].trigger {
                    let body = resources[usize::from(of)].body;
                    resources[index].trigger = Some(Trigger::Bytes {
                        of,
                        offset: offset.min(body),
                    });
                }
            }
            resources
        })
}

prop_compose! {
    fn response()(first_byte in 1_000_000_u64..90_000_000, gap in 1_000_000_u64..20_000_000) -> Response {
        Response { first_byte, gap }
    }
}

proptest! {
    #[test]
    fn pages_load_as_the_model_says(
        resources in (1_usize..14).prop_flat_map(resources),
        responses in proptest::collection::vec(response(), 14),
        is_repeat in any::<bool>(),
        hints_at in proptest::option::of(1_u64..999_999),
    ) {
        let page = page(resources);
        let view = if is_repeat { View::Repeat } else { View::First };
        let mut model = Model { page: &page, view, responses: &responses, hints_at, times: BTreeMap::new() };
        model.compute();
        let load = drive(&page, view, &responses, hints_at);
        for (index, times) in &model.times {
            let moment = load.moment(*index);
            prop_assert_eq!(moment.requested.map(Time::as_nanos), Some(times.requested), "requested {}", index);
            prop_assert_eq!(moment.complete.map(Time::as_nanos), Some(times.complete), "complete {}", index);
            prop_assert_eq!(moment.executed.map(Time::as_nanos), times.executed, "executed {}", index);
        }
        prop_assert_eq!(model.times.len(), page.resources.len());
        prop_assert_eq!(load.loaded().map(Time::as_nanos), Some(model.loaded()));
        prop_assert_eq!(load.first_render().map(Time::as_nanos), Some(model.first_render()));
        prop_assert!(load.first_render() <= load.loaded() && load.loaded() <= load.finished());
        prop_assert!(load.byte_index().expect("it is there") <= load.loaded().expect("it is there").since(Time::ZERO));
    }
}
