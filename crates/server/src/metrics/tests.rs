use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::AtomicUsize,
};

use lastbyte_origin::{counters::summed, histogram::Histogram};
use lastbyte_quic::endpoint;

use super::{
    text::{name_of, prometheus},
    *,
};
use crate::{budget::Limits, proxy::ServerStatistics};

fn class_times(route: usize) -> ClassTimes {
    let mut whole = Histogram::default();
    whole.add(Duration::from_millis(3));
    ClassTimes {
        route,
        class: 2,
        first_byte: Histogram::default(),
        whole,
    }
}

fn upstream(name: &str) -> UpstreamStatistics {
    let mut connect = Histogram::default();
    connect.add(Duration::from_millis(3));
    UpstreamStatistics {
        name: name.to_owned(),
        connect,
        errors: vec![("connection_refused", 2)],
        kept: 3,
        servers: vec![ServerStatistics {
            name: format!("{name}:8080"),
            is_up: name == "http://a",
            failed_checks: 4,
        }],
        ..UpstreamStatistics::default()
    }
}

fn numbers() -> Numbers {
    let mut histogram = Histogram::default();
    for millis in [1, 2, 40, 70_000] {
        histogram.add(Duration::from_millis(millis));
    }
    let measured = Measured {
        transport: vec![7; summed().len()],
        ttlb: BTreeMap::from([("a \"b\"".to_owned(), histogram)]),
        connections: 3,
        times: vec![class_times(0)],
        endpoint: endpoint::Statistics {
            handshake_timeouts: 5,
            refused: 3,
            refused_tokens: 1,
            ..endpoint::Statistics::default()
        },
        ..Measured::default()
    };
    Numbers {
        workers: vec![Some(measured.clone()), Some(measured)],
        loops: vec![Some(LoopStatistics::default()), None],
        tcp: tcp::Statistics::default(),
        tcp_times: vec![("1.1", class_times(1)), ("1.1", class_times(1))],
        routes: vec!["*".into(), "a.example/api".into()],
        upstreams: vec![
            upstream("http://a"),
            upstream("http://b"),
            upstream("http://a"),
        ],
        buffered: 0,
        logs: Vec::new(),
        certificates: vec![
            ("a.example".to_owned(), 2_000),
            ("a.example".to_owned(), 1_000),
            (String::new(), 3_000),
        ],
        is_reloaded: false,
        reloaded_at: 17,
        ramp: Some(RampStatus {
            experiment: "e".to_owned(),
            shares: vec![("old".to_owned(), 0.95), ("new".to_owned(), 0.05)],
            stage: 2,
            looks: 12,
            action: "ramp".to_owned(),
            is_over: false,
            looked_at: 18,
        }),
        is_draining: false,
        uptime: Duration::from_millis(1500),
    }
}

#[test]
fn every_counter_is_summed_over_workers_under_its_own_name() {
    let text = prometheus(&numbers(), &Process::default());
    let mut names = BTreeSet::new();
    for field in summed() {
        let name = name_of(field);
        let is_timeouts = name == "lastbyte_quic_handshake_timeouts_total";
        let sum = if is_timeouts { 10 } else { 14 };
        assert!(text.contains(&format!("\n{name} {sum}\n")), "{name}");
        assert!(names.insert(name), "{}", field.key);
    }
    assert!(names.len() > 80, "{} names", names.len());
    assert!(names.contains("lastbyte_quic_packets_ack_received_total"));
    assert!(!text.contains("rtt_smoothed"), "a state is no sum");
    assert!(text.contains("lastbyte_connections{transport=\"quic\"} 6\n"));
}

#[test]
fn times_and_upstreams_are_summed_by_name() {
    let text = prometheus(&numbers(), &Process::default());
    for line in [
        "lastbyte_request_duration_seconds_bucket{http=\"1.1\",class=\"2xx\",route=\"a.example/api\",le=\"0.002\"} 0",
        "lastbyte_request_duration_seconds_bucket{http=\"1.1\",class=\"2xx\",route=\"a.example/api\",le=\"0.005\"} 2",
        "lastbyte_request_duration_seconds_count{http=\"3\",class=\"2xx\",route=\"*\"} 2",
        "lastbyte_upstream_errors_total{upstream=\"http://a\",error=\"connection_refused\"} 4",
        "lastbyte_upstream_errors_total{upstream=\"http://b\",error=\"connection_refused\"} 2",
        "lastbyte_upstream_server_up{upstream=\"http://a\",server=\"http://a:8080\"} 1",
        "lastbyte_upstream_server_up{upstream=\"http://b\",server=\"http://b:8080\"} 0",
        "lastbyte_upstream_checks_failed_total{upstream=\"http://a\",server=\"http://a:8080\"} 8",
        "lastbyte_upstream_connect_seconds_count{upstream=\"http://a\"} 2",
        "lastbyte_upstream_connections_kept{upstream=\"http://a\"} 6",
        "lastbyte_experiment_share{experiment=\"e\",arm=\"new\"} 0.05",
        "lastbyte_experiment_stage{experiment=\"e\"} 2",
        "lastbyte_experiment_decision{experiment=\"e\",action=\"ramp\"} 1",
        "lastbyte_experiment_over{experiment=\"e\"} 0",
        "lastbyte_experiment_looks_total{experiment=\"e\"} 12",
        "lastbyte_experiment_last_look_timestamp_seconds{experiment=\"e\"} 18",
        "lastbyte_quic_refused_total{reason=\"limit\"} 4",
        "lastbyte_quic_refused_total{reason=\"invalid_token\"} 2",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    let absent = "lastbyte_request_first_byte_seconds_";
    assert!(!text.contains(absent), "no response has started");
    assert!(!text.contains("process_"), "absent, and not 0");
}

/// The most that a server can have: each worker has responses of all classes in 64 routes, over all versions.
#[test]
fn the_text_of_the_most_routes_is_bounded() {
    let mut numbers = numbers();
    numbers.routes = (0..65)
        .map(|route| format!("host-{route}.example"))
        .collect();
    let all = (0..65).flat_map(|route| {
        (1..=5).map(move |class| ClassTimes {
            class,
            first_byte: class_times(0).whole,
            ..class_times(route)
        })
    });
    numbers.tcp_times = ["1.1", "2", "3"]
        .into_iter()
        .flat_map(|version| all.clone().map(move |times| (version, times)))
        .collect();
    let text = prometheus(&numbers, &Process::read());
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
}

#[test]
fn certificates_are_named_once_with_their_earliest_end() {
    let text = prometheus(&numbers(), &Process::default());
    let name = "lastbyte_certificate_not_after_seconds";
    let ends: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
    let [unnamed, named] = ends[..] else {
        panic!("{ends:?}")
    };
    assert_eq!(unnamed, format!("{name}{{name=\"\"}} 3000"));
    assert_eq!(named, format!("{name}{{name=\"a.example\"}} 1000"));
    assert!(text.contains("\nlastbyte_last_reload_successful 0\n"));
    assert!(text.contains("\nlastbyte_last_reload_success_timestamp_seconds 17\n"));
}

#[test]
fn the_text_has_the_prometheus_format() {
    let text = prometheus(&numbers(), &Process::default());
    let mut typed = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().expect("a name");
            assert!(typed.insert(name.to_owned()), "{name} twice");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
            let name = name.split('{').next().expect("a name");
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .filter(|base| typed.contains(*base))
                .unwrap_or(name);
            assert!(typed.contains(base), "{line}");
        }
    }
    for line in [
        "lastbyte_ttlb_seconds_bucket{arm=\"a \\\"b\\\"\",le=\"0.001\"} 2",
        "lastbyte_ttlb_seconds_bucket{arm=\"a \\\"b\\\"\",le=\"0.05\"} 6",
        "lastbyte_ttlb_seconds_bucket{arm=\"a \\\"b\\\"\",le=\"60\"} 6",
        "lastbyte_ttlb_seconds_bucket{arm=\"a \\\"b\\\"\",le=\"+Inf\"} 8",
        "lastbyte_ttlb_seconds_count{arm=\"a \\\"b\\\"\"} 8",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn clients_that_wait_receive_one_response_and_the_next_comes_after_a_pause() {
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let computed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&computed);
    let sources = Sources {
        workers: Vec::new(),
        tcp: Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            tcp::Statistics::default()
        }),
        tcp_times: Box::new(Vec::new),
        routes: Vec::new(),
        upstreams: Vec::new(),
        budget: Budget::new(Limits::default()),
        logs: Vec::new(),
        certificates: Arc::default(),
        reloads: Arc::new(Reloads::new()),
        is_draining: Arc::default(),
        clock: Clock::new(),
        began: Time::ZERO,
    };
    let responses = Arc::new(Responses {
        sources,
        last: Mutex::new(None),
    });
    runtime.block_on(async {
        for round in 1..=3 {
            let last = responses.last.lock().await;
            let waiting: Vec<_> = (0..10)
                .map(|_| tokio::spawn(Arc::clone(&responses).metrics()))
                .collect();
            // All of them ask now.
            task::yield_now().await;
            let rested = last.as_ref().map(|last| last.rested);
            drop(last);
            let mut texts = BTreeSet::new();
            for waiting in waiting {
                texts.insert(waiting.await.expect("a response"));
            }
            assert_eq!(texts.len(), 1);
            assert_eq!(computed.load(Ordering::Relaxed), round);
            let last = responses.last.lock().await;
            assert!(last.as_ref().map(|last| last.began) >= rested);
        }
    });
}

#[test]
fn a_server_that_drains_or_hangs_is_not_healthy() {
    assert_eq!(health(None, false), (200, "ok\n".into()));
    assert_eq!(
        health(Some(1), false),
        (503, "worker 1 does not respond\n".into())
    );
    for silent in [None, Some(1)] {
        let (status, text) = health(silent, true);
        assert!(status == 503 && text.contains("draining"), "{text}");
    }
}

/// The expressions of a file, each with a metric of ours in it.
fn expressions(text: &str) -> Vec<String> {
    // The folded lines of YAML are joined.
    let mut all: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        let start = line
            .strip_prefix("\"expr\": ")
            .or_else(|| line.strip_prefix("expr: "));
        match start {
            Some(start) => all.push(start.replace("\\\"", "\"")),
            None if is_inside && !line.contains(": ") => {
                let last = all.last_mut().expect("a start");
                last.push(' ');
                last.push_str(line);
            }
            None => {}
        }
        is_inside = start.is_some() || (is_inside && !line.contains(": "));
    }
    all
}

/// The words of an expression, of letters, digits and `_`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The labels that an expression groups by or selects.
fn labels(expression: &str) -> BTreeSet<&str> {
    let groups = expression.split("by (").skip(1);
    let groups = groups.flat_map(|rest| words(rest.split(')').next().unwrap_or_default()));
    let selectors = expression.split('{').skip(1);
    let selectors = selectors.flat_map(|rest| {
        let inside = rest.split('}').next().unwrap_or_default();
        inside
            .split(',')
            .filter_map(|it| it.split(['=', '!']).next())
    });
    groups
        .chain(selectors)
        .filter(|label| !label.is_empty())
        .collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_and_labels_that_exist() {
    let mut numbers = numbers();
    numbers.logs = vec![("connections", super::super::log::LogStatistics::default())];
    for (_, times) in &mut numbers.tcp_times {
        times.first_byte = times.whole.clone();
    }
    let text = prometheus(&numbers, &Process::read());
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a value"));
        known.entry(name).or_default().extend(labels(rest));
    }
    let files = [
        include_str!("../../examples/grafana.json"),
        include_str!("../../examples/alerts.yaml"),
    ];
    for (file, least) in files.into_iter().zip([37, 12]) {
        let expressions = expressions(file);
        assert!(expressions.len() >= least, "{expressions:?}");
        for expression in expressions {
            // Prometheus adds these.
            let mut has: BTreeSet<&str> = BTreeSet::from(["instance", "job"]);
            let names = words(&expression)
                .filter(|word| word.starts_with("lastbyte_") || word.starts_with("process_"));
            for name in names {
                has.extend(
                    known
                        .get(name)
                        .unwrap_or_else(|| panic!("unknown `{name}`")),
                );
            }
            let of_expression = labels(&expression);
            let missing: Vec<_> = of_expression.difference(&has).collect();
            assert!(missing.is_empty(), "{missing:?}: {expression}");
        }
    }
    let dashboard: serde_json::Value = serde_json::from_str(files[0]).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert_eq!(panels.len(), 20);
    let is_documented = |panel: &serde_json::Value| panel["description"].is_string();
    assert!(panels.iter().all(is_documented));
}
