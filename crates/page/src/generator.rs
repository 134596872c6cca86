//! A corpus of generated pages whose marginals follow published statistics.
//!
//! # Sources
//!
//! | figure | source |
//! |---|---|
//! | requests a page: all, images, style sheets, scripts, fonts, documents (10th to 90th percentile, home pages, desktop) | HTTP Archive, Web Almanac 2025, "Page Weight", figures on request volume; crawl of July 2025 |
//! | bytes a page: images, scripts (10th to 90th percentile); style sheets, fonts, documents (medians) | the same chapter, figures on page weight by content type |
//! | bytes of one response: scripts and images, 10th to 90th percentile (the spread within a page follows them) | the same chapter, "response size distribution" |
//! | pages with a third party (90 %), third-party domains a page (median 16), third-party scripts and images | Web Almanac 2025, "Third Parties" |
//! | requests to third parties (49 %; "nearly half" in later editions) | Web Almanac 2019, "Third Parties" |
//! | first-party HTTP/3 support (26 % of home pages announce it by `Alt-Svc`, desktop) | Web Almanac 2024, "HTTP" |
//! | third-party HTTP/3 (45 % of third-party requests served by CDNs) | Web Almanac 2025, "CDN" |
//! | cacheable responses (90 %) | Web Almanac 2020, "Caching" |
//! | priorities | Chromium, `ResourceFetcher::ComputeLoadPriority`, and "Fetch Priority" on web.dev |
//!
//! Assumed, because no published figure was found: the percentiles of style-sheet, font and document bytes beside the median,
//! of third-party domains beside the median, first-party hosts a page, sizes of headers, times of servers, distances of hosts,
//! correlations between the numbers of a page, positions in documents, delays, times of scripts, and the share
//! of pages with Early Hints (3 %). The percentiles beyond the published 10th and 90th are assumed as well.
//!
//! Sizes of a kind are spread over pages by rank, not drawn: the percentiles of any corpus, of any seed, are those of the
//! figures. Only integer and basic floating-point arithmetic is used, so that a seed gives the same bytes everywhere.

use core::time::Duration;

use lastbyte_units::SplitMix64;

use crate::page::{Host, Kind, Page, Party, Resource, Trigger};

/// Values at the 0th, 10th, 25th, 50th, 75th, 90th and 100th percentile, between which values are interpolated.
type Quantiles = [f64; 7];
const PERCENTS: Quantiles = [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0];

/// All requests of a page.
pub const REQUESTS: Quantiles = [8.0, 26.0, 47.0, 80.0, 127.0, 192.0, 450.0];
/// Requests and bytes (in kB) of a page, by kind.
pub const KINDS: [(Kind, Quantiles, Quantiles); 5] = [
    (
        Kind::Document,
        [1.0, 1.0, 1.0, 2.0, 5.0, 12.0, 25.0],
        [2.0, 6.0, 11.0, 22.0, 43.0, 90.0, 300.0],
    ),
    (
        Kind::Stylesheet,
        [0.0, 1.0, 3.0, 8.0, 16.0, 31.0, 60.0],
        [2.0, 12.0, 35.0, 82.0, 155.0, 280.0, 700.0],
    ),
    (
        Kind::Script,
        [0.0, 4.0, 10.0, 22.0, 38.0, 65.0, 130.0],
        [10.0, 87.0, 275.0, 697.0, 1265.0, 1979.0, 5000.0],
    ),
    (
        Kind::Font,
        [0.0, 0.0, 2.0, 4.0, 7.0, 10.0, 20.0],
        [20.0, 40.0, 75.0, 139.0, 260.0, 420.0, 900.0],
    ),
    (
        Kind::Image,
        [0.0, 5.0, 10.0, 19.0, 35.0, 62.0, 150.0],
        [4.0, 74.0, 333.0, 1058.0, 2896.0, 6856.0, 20_000.0],
    ),
];
/// Third-party hosts of a page.
pub const THIRD_PARTY_HOSTS: Quantiles = [0.0, 0.5, 7.0, 16.0, 28.0, 45.0, 90.0];
/// The share of requests to third parties.
pub const THIRD_PARTY_SHARE: f64 = 0.49;
/// The share of first-party and third-party hosts that serve HTTP/3.
pub const HTTP3_SHARES: [f64; 2] = [0.26, 0.45];
/// The share of responses that may be cached, of those that are neither documents nor fetched by scripts.
pub const CACHEABLE_SHARE: f64 = 0.9;
/// The largest number of pages to generate.
pub const PAGES_MAX: usize = 10_000;

/// Generates `count` pages (at most [`PAGES_MAX`]). The same seed and count give the same pages.
pub fn generate(count: usize, seed: u64) -> Vec<Page> {
    let count = count.min(PAGES_MAX);
    let mut random = Random(SplitMix64::stream(seed, 0));
    // The weight of each page: the common factor of its numbers.
    let weights: Vec<f64> = (0..count).map(|_| random.normal()).collect();
    let requests = KINDS.map(|(_, requests, _)| random.spread(&weights, 0.85, requests));
    // The pages with most requests of these kinds have most requests.
    let known: Vec<f64> = (0..count)
        .map(|page| requests.iter().map(|values| values[page]).sum())
        .collect();
    let total = random.spread(&known, 1.0, REQUESTS);
    let bytes = KINDS.map(|(_, _, bytes)| random.spread(&weights, 0.6, bytes));
    let hosts = random.spread(&weights, 0.6, THIRD_PARTY_HOSTS);
    (0..count)
        .map(|index| {
            let outline = Outline {
                requests: requests.each_ref().map(|values| whole(values[index])),
                bytes: bytes
                    .each_ref()
                    .map(|values| (values[index] * 1000.0) as u64),
                total: whole(total[index]),
                third_parties: whole(hosts[index]),
            };
            let random = Random(SplitMix64::stream(seed, index as u64 + 1));
            Builder::new(index, &outline, random).build(&outline)
        })
        .collect()
}

/// Time of the main thread for a resource (assumed): 10 MB of compressed scripts a second, 50 MB of documents and style
/// sheets. A script takes half a millisecond at least.
pub const fn work(kind: Kind, body: u64) -> Duration {
    Duration::from_micros(match kind {
        Kind::Script => 500 + body / 10,
        Kind::Document | Kind::Stylesheet => body / 50,
        _ => 0,
    })
}

/// The resources of a page before their positions are assigned.
struct Outline {
    requests: [usize; KINDS.len()],
    bytes: [u64; KINDS.len()],
    total: usize,
    third_parties: usize,
}

fn whole(value: f64) -> usize {
    (value + 0.5) as usize
}

struct Random(SplitMix64);

impl Random {
    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        (self.0.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn is(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.share() * count as f64) as usize).min(count.saturating_sub(1))
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// Nearly normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    /// A time with this mean and a long tail.
    fn time(&mut self, mean_us: f64) -> Duration {
        let share = self.share();
        // The mean of 0.25 / (1.05 - x) - 0.2 for x from 0 to 1 is 0.56.
        Duration::from_micros((mean_us / 0.56 * (0.25 / (1.05 - share) - 0.2)) as u64)
    }

    /// The values of all pages, distributed as `quantiles` and correlated with `weights`.
    fn spread(&mut self, weights: &[f64], correlation: f64, quantiles: Quantiles) -> Vec<f64> {
        let rest = libm::sqrt(1.0 - correlation * correlation);
        let scores: Vec<f64> = weights
            .iter()
            .map(|weight| correlation * weight + rest * self.normal())
            .collect();
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|one, other| scores[*one].total_cmp(&scores[*other]));
        let mut values = vec![0.0; weights.len()];
        for (rank, page) in order.into_iter().enumerate() {
            let percent = (rank as f64 + 0.5) / weights.len() as f64 * 100.0;
            values[page] = interpolate(quantiles, percent);
        }
        values
    }

    /// Splits `bytes` among `count` bodies of at least `least` bytes: many small ones and few large ones.
    fn split(&mut self, bytes: u64, count: usize, least: u64) -> Vec<u64> {
        let weights: Vec<f64> = (0..count)
            .map(|_| {
                let root = 1.0 / (0.04 + self.share());
                root * root
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        weights
            .iter()
            .map(|weight| ((bytes as f64 * weight / sum) as u64).max(least))
            .collect()
    }
}

fn interpolate(quantiles: Quantiles, percent: f64) -> f64 {
    let upper = PERCENTS
        .iter()
        .position(|at| percent < *at)
        .unwrap_or(PERCENTS.len() - 1)
        .max(1);
    let (low, high) = (PERCENTS[upper - 1], PERCENTS[upper]);
    let share = (percent - low) / (high - low);
    quantiles[upper - 1] + (quantiles[upper] - quantiles[upper - 1]) * share
}

struct Builder {
    random: Random,
    page: Page,
    /// First-party hosts come first.
    own_hosts: usize,
    /// How likely each resource other than the first document is of a third party.
    third_party: f64,
    images: usize,
}

impl Builder {
    fn new(index: usize, outline: &Outline, mut random: Random) -> Self {
        let own_hosts = 1 + usize::from(random.is(0.6)) + usize::from(random.is(0.3));
        let site = format!("site{index}.example");
        let has_http3 = random.is(HTTP3_SHARES[0]);
        let names = ["www", "static", "images"];
        // The hosts of a site share a certificate and address on half of the pages that have several.
        let is_one_group = random.is(0.5);
        let mut hosts: Vec<Host> = (0..own_hosts)
            .map(|host| Host {
                group: if is_one_group { 0 } else { host as u16 },
                has_http3,
                ..Host::first_party(&format!("{}.{site}", names[host]))
            })
            .collect();
        let third_parties = outline.third_parties.min(outline.total / 2);
        for host in 0..third_parties {
            // Names that many pages share: the smaller the number, the more of them do.
            let number = random.below(40) * random.below(25);
            hosts.push(Host {
                name: format!("h{host}.party{number}.example"),
                party: Party::Third,
                group: (own_hosts + host) as u16,
                has_http3: random.is(HTTP3_SHARES[1]),
                rtt_extra_us: random.between(-5000.0, 25_000.0) as i32,
            });
        }
        let third_party = if third_parties == 0 {
            0.0
        } else {
            // Nine pages of ten have third parties.
            (THIRD_PARTY_SHARE / 0.9 + random.between(-0.3, 0.3)).clamp(0.05, 0.95)
        };
        Self {
            random,
            page: Page {
                name: site,
                hosts,
                resources: Vec::new(),
            },
            own_hosts,
            third_party,
            images: 0,
        }
    }

    fn build(mut self, outline: &Outline) -> Page {
        let [documents, styles, scripts, fonts, images] = outline.requests;
        let mut sizes = outline
            .bytes
            .iter()
            .zip(outline.requests)
            .map(|(bytes, count)| self.random.split(*bytes, count, 43))
            .collect::<Vec<_>>()
            .into_iter();
        let mut next = || sizes.next().unwrap_or_default();
        let (frames, styles_sizes, scripts_sizes) = (next(), next(), next());
        let (fonts_sizes, images_sizes) = (next(), next());

        let first = frames.first().copied().unwrap_or(2000);
        let mut document = self.resource(0, Kind::Document, first);
        document.wait = self.random.time(150_000.0);
        document.response_header = self.random.between(400.0, 1400.0) as u32;
        self.page.resources.push(document);
        let has_hints = self.random.is(0.03);
        for body in styles_sizes.into_iter().take(styles) {
            self.style(body, has_hints);
        }
        for (position, body) in scripts_sizes.into_iter().take(scripts).enumerate() {
            self.script(body, position, has_hints);
        }
        for body in fonts_sizes.into_iter().take(fonts) {
            let trigger = self.executed_by(Kind::Stylesheet);
            let delay = self.random.time(15_000.0);
            self.add(Kind::Font, body, trigger, delay, false);
        }
        for body in images_sizes.into_iter().take(images) {
            self.image(body);
        }
        for body in frames.into_iter().skip(1).take(documents) {
            let is_third = self.random.is(0.8);
            let trigger = if self.random.is(0.5) {
                self.executed_by(Kind::Script)
            } else {
                self.in_document(0.1, 1.0)
            };
            self.add(Kind::Document, body, trigger, Duration::ZERO, is_third);
        }
        let known = documents.max(1) + styles + scripts + fonts + images;
        for _ in known..outline.total {
            self.fetch();
        }
        self.page
    }

    fn style(&mut self, body: u64, has_hints: bool) {
        let is_third = self.is_third() && self.random.is(0.4);
        let in_head = self.random.is(0.9);
        let trigger = if in_head {
            self.in_document(0.0, 0.15)
        } else {
            self.in_document(0.15, 1.0)
        };
        self.add(Kind::Stylesheet, body, trigger, Duration::ZERO, is_third);
        if let Some(style) = self.page.resources.last_mut() {
            style.is_blocking = in_head;
            style.is_hinted = in_head && has_hints;
        }
    }

    fn script(&mut self, body: u64, position: usize, has_hints: bool) {
        let is_third = self.is_third();
        // Third-party scripts come by other scripts, often through chains of them.
        let is_inserted = position > 0 && self.random.is(if is_third { 0.65 } else { 0.2 });
        if is_inserted {
            let trigger = self.executed_by(Kind::Script);
            let delay = if self.random.is(0.3) {
                self.random.time(200_000.0)
            } else {
                Duration::ZERO
            };
            self.add(Kind::Script, body, trigger, delay, is_third);
            // Inserted scripts are asynchronous.
            self.urgency(3);
            return;
        }
        let in_head = self.random.is(0.5);
        let trigger = if in_head {
            self.in_document(0.0, 0.2)
        } else {
            self.in_document(0.2, 1.0)
        };
        self.add(Kind::Script, body, trigger, Duration::ZERO, is_third);
        let is_synchronous = self.random.is(if is_third { 0.2 } else { 0.45 });
        if let Some(script) = self.page.resources.last_mut() {
            script.is_blocking = in_head && is_synchronous;
            script.is_hinted = in_head && is_synchronous && has_hints;
        }
        // High in the head, medium after it, low if asynchronous or deferred.
        self.urgency(match (is_synchronous, in_head) {
            (true, true) => 1,
            (true, false) => 2,
            (false, _) => 3,
        });
    }

    fn image(&mut self, body: u64) {
        let is_third = self.is_third() && self.random.is(0.7);
        let trigger = match self.random.share() {
            share if share < 0.65 => self.in_document(0.2, 1.0),
            share if share < 0.75 => self.executed_by(Kind::Stylesheet),
            _ => self.executed_by(Kind::Script),
        };
        self.add(Kind::Image, body, trigger, Duration::ZERO, is_third);
        // Chromium gives the first five images of a page medium priority, and those in the viewport, once it knows, high.
        self.images += 1;
        let is_in_viewport = self.random.is(0.1);
        self.urgency(if is_in_viewport {
            1
        } else if self.images <= 5 {
            2
        } else {
            3
        });
    }

    fn fetch(&mut self) {
        let is_third = self.is_third();
        let trigger = self.executed_by(Kind::Script);
        let delay = self.random.time(100_000.0);
        let body = self.random.split(8000, 4, 0)[0];
        // Beacons and the like are other; the rest is data.
        let kind = if self.random.is(0.4) {
            Kind::Other
        } else {
            Kind::Fetch
        };
        self.add(kind, body, trigger, delay, is_third);
    }

    fn is_third(&mut self) -> bool {
        let share = self.third_party;
        self.random.is(share)
    }

    fn urgency(&mut self, urgency: u8) {
        if let Some(resource) = self.page.resources.last_mut() {
            resource.priority.urgency = urgency;
        }
    }

    fn resource(&mut self, host: usize, kind: Kind, body: u64) -> Resource {
        let is_third = host >= self.own_hosts;
        let mean_us = if is_third { 30_000.0 } else { 15_000.0 };
        Resource {
            request_header: self.random.between(350.0, 1100.0) as u32,
            response_header: self.random.between(250.0, 900.0) as u32,
            wait: self.random.time(mean_us),
            work: work(kind, body),
            is_blocking: false,
            is_cacheable: !matches!(kind, Kind::Document | Kind::Fetch | Kind::Other)
                && self.random.is(CACHEABLE_SHARE),
            ..Resource::new(host as u16, kind, body)
        }
    }

    fn add(&mut self, kind: Kind, body: u64, trigger: Trigger, delay: Duration, is_third: bool) {
        let third_parties = self.page.hosts.len() - self.own_hosts;
        let host = if is_third && third_parties > 0 {
            // Each third party is used once before any is used more often: their number is what was published.
            let used = self.used_hosts();
            let unused = (self.own_hosts..self.page.hosts.len()).find(|host| !used[*host]);
            unused.unwrap_or_else(|| self.own_hosts + self.random.below(third_parties))
        } else if kind == Kind::Document {
            0
        } else {
            self.random.below(self.own_hosts)
        };
        let resource = self.resource(host, kind, body).triggered(trigger, delay);
        self.page.resources.push(resource);
    }

    fn used_hosts(&self) -> Vec<bool> {
        let mut used = vec![false; self.page.hosts.len()];
        for resource in &self.page.resources {
            used[usize::from(resource.host)] = true;
        }
        used
    }

    /// The preload scanner finds it in this part of the document.
    fn in_document(&mut self, from: f64, to: f64) -> Trigger {
        let body = self.page.resources[0].body as f64;
        let offset = (body * self.random.between(from, to)) as u64;
        Trigger::Bytes { of: 0, offset }
    }

    /// One of the resources of a kind has been executed; the document, if there is none.
    fn executed_by(&mut self, kind: Kind) -> Trigger {
        let resources = &self.page.resources;
        let candidates: Vec<usize> = (0..resources.len())
            .filter(|index| resources[*index].kind == kind)
            .collect();
        let of = match candidates.len() {
            0 => 0,
            count => candidates[self.random.below(count)],
        };
        Trigger::Executed { of: of as u16 }
    }
}

#[cfg(test)]
mod tests;
