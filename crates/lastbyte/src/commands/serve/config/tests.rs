use std::{path::PathBuf, time::Duration};

use lastbyte_server::server_timing::Asks;

use super::*;

fn merged(text: &str, flags: &[&str]) -> Result<Arguments, String> {
    let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
    merge("serve.toml", text, &flags).map(|(arguments, _)| arguments)
}

fn hashed(text: &str, flags: &[&str]) -> String {
    let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
    let (_, effective) = merge("serve.toml", text, &flags).expect("it is right");
    effective.hashed()
}

/// What a reload cannot change is named, and the hash remains that of the options in effect.
#[test]
fn a_reload_takes_only_what_it_applies() {
    let of = |text: &str| merge("serve.toml", text, &[]).expect("it is right").1;
    let certificate = "cert = \"a\"\nkey = \"b\"\n";
    let self_signed = "self-signed = true\n";
    let tickets = format!("{certificate}ticket-keys = \"c\"\n");
    let tickets = tickets.as_str();
    for (before, after, needs_restart, in_effect) in [
        ("", "congestion = \"bbr\"", &[][..], "congestion = \"bbr\""),
        ("", "header = [\"x: y\"]", &["header"], ""),
        (
            "",
            "listen = \"127.0.0.1:1\"\nlog = \"l\"",
            &["listen", "log"],
            "",
        ),
        (
            "directory = \"a\"",
            "directory = \"b\"",
            &["directory"],
            "directory = \"a\"",
        ),
        ("listing = true", "", &["listing"], "listing = true"),
        (
            "workers = 2",
            "workers = 3\nmtu = 1300",
            &["workers"],
            "workers = 2\nmtu = 1300",
        ),
        (
            "",
            "quic-version = \"1\"",
            &["quic-version"],
            "quic-version = \"1\"",
        ),
        (self_signed, certificate, &[], certificate),
        (
            certificate,
            self_signed,
            &["cert", "key", "self-signed"],
            certificate,
        ),
        (tickets, certificate, &["ticket-keys"], tickets),
        (certificate, tickets, &[], tickets),
    ] {
        let mut running = of(before);
        assert_eq!(
            running.reload(&of(after)),
            needs_restart,
            "{before} {after}"
        );
        assert_eq!(running.hashed(), of(in_effect).hashed(), "{before} {after}");
        // The same file again changes no more.
        let again = running.clone();
        let _ = running.reload(&of(after));
        assert_eq!(running, again, "{before} {after}");
    }
    // What is accepted is that of the start, whatever was read since.
    let mut running = of("quic-version = \"1\"");
    for (version, needs_restart) in [
        ("2", &["quic-version"][..]),
        ("2", &["quic-version"]),
        ("1", &[]),
    ] {
        let read = of(&format!("quic-version = \"{version}\""));
        assert_eq!(running.reload(&read), needs_restart, "{version}");
    }
}

#[test]
fn the_options_that_a_reload_applies_exist() {
    let command = command();
    let keys: Vec<&str> = command.get_arguments().filter_map(key_of).collect();
    for key in RELOADED
        .iter()
        .chain(&NOT_HASHED)
        .chain(&RELOADED_IN_PART)
        .chain(&KEPT)
    {
        assert!(keys.contains(key), "{key}");
    }
}

#[test]
fn servers_with_the_same_options_have_the_same_hash() {
    let first = hashed(FILE, &[]);
    assert!(first.contains("\nworkers=\"3\"\n"), "{first}");
    assert!(first.contains("\ncongestion=\"rapid-no-jump:initial-window=10p\"\n"));
    for names in [
        &["--server-id", "7", "--site", "nrt1"][..],
        &["--listen", "127.0.0.1:1", "--metrics", "1", "--log", "x"],
    ] {
        assert_eq!(hashed(FILE, names), first);
    }
    // The command line and the file are the same to it.
    assert_eq!(hashed(FILE, &["--workers", "3"]), first);
    for other in [["--workers", "4"], ["--congestion", "cubic"]] {
        assert_ne!(hashed(FILE, &other), first);
    }
}

const FILE: &str = "\
directory = \"/srv/www\"
listen = \"127.0.0.1:443\"
cert = \"chain.pem\"
key = \"key.pem\"

# Numbers, switches and lists.
workers = 3
listing = true
hidden = false
http = [\"1.1\", \"3\"]
header = [\"Cache-Control: max-age=60\", \"x: y\"]
drain = \"10s\"
";

#[test]
fn a_file_sets_what_flags_set() {
    let arguments = merged(FILE, &[]).expect("it is right");
    arguments.validate().expect("it fits together");
    assert_eq!(arguments.directory.as_deref(), Some(Path::new("/srv/www")));
    assert_eq!(arguments.listen.port(), 443);
    assert_eq!(arguments.workers.map(std::num::NonZeroUsize::get), Some(3));
    assert!(arguments.listing && !arguments.hidden);
    let versions = arguments.versions();
    assert!(versions.http1 && !versions.http2 && versions.http3);
    assert_eq!(
        arguments.header[0],
        ("cache-control".into(), "max-age=60".into())
    );
    assert_eq!(arguments.header.len(), 2);
    assert_eq!(arguments.drain, Duration::from_secs(10));
}

#[test]
fn flags_override_the_file() {
    let flags = [
        "--listen",
        "127.0.0.1:1",
        "--http",
        "2",
        "--self-signed",
        "other",
    ];
    let arguments = merged(FILE, &flags).expect("it is right");
    arguments
        .validate()
        .expect("the certificate of the file counts no more");
    assert_eq!(arguments.listen.port(), 1);
    assert!(arguments.versions().http2 && !arguments.versions().http3);
    assert_eq!(arguments.directory.as_deref(), Some(Path::new("other")));
    assert!(arguments.cert.is_empty());
    assert_eq!(arguments.drain, Duration::from_secs(10));
}

#[test]
fn errors_name_the_line() {
    for (text, expected) in [
        (
            "\nlisten-on = \"x\"\n",
            "`serve.toml` line 2: unknown key `listen-on`; did you mean `listen`?",
        ),
        ("worker = 1", "did you mean `workers`?"),
        ("quite-something-else = 1", "docs/serve.md lists the keys"),
        ("config = \"x\"", "unknown key `config`"),
        (
            "\n\nmtu = 100\n",
            "`serve.toml` line 3: invalid value '100' for `mtu`",
        ),
        (
            "listing = 1",
            "line 1: invalid value of `listing` (expected true or false)",
        ),
        (
            "mtu = [1200]",
            "line 1: invalid value of `mtu`: a list (expected one value)",
        ),
        (
            "mtu = true",
            "line 1: invalid value of `mtu`: boolean (expected a string or a number)",
        ),
        ("header = \"content-length: 5\"", "set by the server"),
        ("http = [\"4\"]", "`serve.toml` line 1: invalid value '4'"),
        (
            "route = [\"/a=http://a,http://b\", \"/b=http://a,https://b\"]",
            "`serve.toml` line 1: invalid value '/b=http://a,https://b' for `route`: `http://a,https://b` has URLs \
             with different schemes",
        ),
        ("proxy = \"unix:app.sock\"", "has no absolute path"),
        ("listen = ", "TOML parse error at line 1"),
    ] {
        let error = merged(text, &[]).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn conflicting_flags_are_rejected() {
    for (flags, expected) in [
        (&["--cert", "c"][..], "require each other"),
        (&[], "no certificate"),
        (
            &["--self-signed", "--cert", "c", "--key", "k"],
            "--self-signed cannot be combined",
        ),
        (
            &[
                "--self-signed",
                "--experiment",
                "four-arms",
                "--congestion",
                "cubic",
            ],
            "--experiment cannot be combined",
        ),
        (
            &["--self-signed", "--log", "x", "--access-log", "x"],
            "cannot be the same file",
        ),
        (&["--self-signed", "--log-rotate", "1MB"], "requires --log"),
        (
            &["--self-signed", "--pages", "x", "--listen", "[::]:0"],
            "--pages requires a port",
        ),
    ] {
        let arguments = merged("", flags).expect("flags");
        let validated = arguments.validate();
        let validated = validated.and_then(|()| arguments.validate_certificate());
        let error = validated.expect_err(expected);
        let Failure::Usage(error) = error else {
            panic!("{error:?}");
        };
        assert!(error.contains(expected), "{error}");
    }
}

/// Each limit of the endpoint has a flag, which is a key of the file too.
#[test]
fn every_limit_over_quic_can_be_set() {
    use lastbyte_quic::endpoint::{Limits, RateLimit};

    let defaults = merged("", &[]).expect("it is right").quic_limits();
    assert_eq!(defaults, Limits::default());
    let text = "\
max-connections = 1
max-handshakes = 2
max-handshakes-per-prefix = 3
max-unvalidated = 4
max-pending-answers = 5
max-resets = 6
max-version-negotiations = 7
max-refusals = 8
handshake-timeout = \"9s\"
";
    let limits = merged(text, &[]).expect("it is right").quic_limits();
    let expected = Limits {
        connections: 1,
        handshakes: 2,
        handshakes_per_prefix: 3,
        unvalidated: 4,
        answers: 5,
        resets: RateLimit::of(6),
        version_negotiations: RateLimit::of(7),
        refusals: RateLimit::of(8),
        handshake_timeout: Duration::from_secs(9),
    };
    assert_eq!(limits, expected);
    let error = merged("max-handshakes = 0", &[]).expect_err("none could come");
    assert!(error.contains("a whole number from 1 to"), "{error}");
}

#[test]
fn keys_of_the_file_only_are_refused_on_the_command_line() {
    let arguments = merged("max-resets = 7\nhead-size = \"8KiB\"\n", &[]).expect("keys");
    assert_eq!(arguments.quic_limits().resets.per_second, 7);
    assert_eq!(arguments.head_size, 8192);
    let command = command();
    let hidden = command.get_arguments().filter(|arg| arg.is_hide_set());
    let mut count = 0;
    for arg in hidden {
        let key = key_of(arg).expect("a key");
        let mut words = vec![format!("--{key}")];
        if arg.get_action().takes_values() {
            let valid = [
                "5s", "5", "5000", "70000", "2MiB", "gzip", "common", "/path", "all",
            ];
            let fits = valid.into_iter().find(|value| {
                let flag = OsString::from(format!("--{key}={value}"));
                command
                    .clone()
                    .try_get_matches_from(with_name(&[flag]))
                    .is_ok()
            });
            words = vec![format!("--{key}={}", fits.expect(key))];
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let error = merged("", &words).expect_err(key);
        assert!(
            error.starts_with(&format!("`--{key}` is a key of the")),
            "{error}"
        );
        count += 1;
    }
    assert!(count > 20);
}

/// A limit that has passed at once would end every request.
#[test]
fn time_limits_of_nothing_are_refused() {
    for key in [
        "proxy-connect-timeout",
        "proxy-timeout",
        "proxy-health-timeout",
        "handshake-timeout",
        "head-timeout",
        "idle-timeout",
        "stall-timeout",
    ] {
        let error = merged(&format!("{key} = \"0s\"\n"), &[]).expect_err("it is refused");
        assert!(error.contains("0s") && error.contains("100us"), "{error}");
    }
}

/// All that matters is in the one line of an error, and the keys of the file are called keys.
#[test]
fn errors_name_keys_companions_and_possible_values() {
    for (text, flags, expected) in [
        (
            "\nacme = \"example.com\"",
            &[][..],
            "`serve.toml` line 2: `acme` requires `acme-state`",
        ),
        (
            "acme-state = \"x\"",
            &[],
            "`serve.toml` line 1: `acme-state` requires `acme`",
        ),
        (
            "mtu = 1400\nearly-hints = true",
            &[],
            "`serve.toml` line 2: `early-hints` requires `pages`",
        ),
        (
            "retry = \"sometimes\"",
            &[],
            "`serve.toml` line 1: invalid value 'sometimes' for `retry` [possible values: always, load, never]",
        ),
        (
            "access-format = \"apache\"",
            &[],
            "`serve.toml` line 1: invalid value 'apache' for `access-format` [possible values: ndjson, common, combined]",
        ),
        (
            "proxy-http = 3",
            &[],
            "`serve.toml` line 1: invalid value '3' for `proxy-http` [possible values: 1.1, 2]",
        ),
        (
            "max-handshakes = \"20k\"",
            &[],
            "`serve.toml` line 1: invalid value '20k' for `max-handshakes`: expected a whole number from 1 to 1000000000",
        ),
        (
            "directory = \"x\"\npages = \"y\"",
            &[],
            "`serve.toml`: the argument `directory` cannot be used with `pages`",
        ),
        (
            "generated = true\nproxy = \"http://127.0.0.1:1\"\npages = \"x\"",
            &[],
            "`serve.toml` line 1: the argument `generated` cannot be used with: `proxy`, `pages`",
        ),
        // An option of the command line is not a key.
        (
            "pages = \"x\"",
            &["--proxy", "http://127.0.0.1:1"],
            "`serve.toml` line 1: the argument `pages` cannot be used with '--proxy <URL>'",
        ),
    ] {
        let error = merged(text, flags).expect_err(text);
        assert_eq!(error, expected, "{text}");
    }
}

/// As the program's own parser has it, which comes first.
#[test]
fn the_last_value_of_an_option_counts() {
    let arguments = merged("", &["--mtu", "1300", "--mtu", "1400"]).expect("it is right");
    assert_eq!(arguments.mtu, 1400);
    let error = merged("", &["--mtu", "1"]).expect_err("too small");
    assert!(
        error.starts_with("invalid value '1' for '--mtu <BYTES>'"),
        "{error}"
    );
}

#[test]
fn a_directory_is_never_an_option() {
    for name in ["--generated", "--help", "-"] {
        let arguments = merged(&format!("directory = \"{name}\"\n"), &[]).expect("a path");
        let expected = PathBuf::from(format!("./{name}"));
        assert_eq!(arguments.directory, Some(expected), "{name}");
        assert!(!arguments.generated, "{name}");
    }
}

#[test]
fn health_checks_are_those_of_the_route_or_of_all_upstreams() {
    let routes = "route = [\"/api=http://a\", \"/b=http://b\", \"/up=sink\"]\n";
    let with = |health: &str| merged(&format!("{routes}proxy-health = {health}"), &[]);
    let place = |text: &str| text.parse().expect("a place");
    let arguments = with("[\"/healthz?a=b\", \"/api=/status\"]").expect("keys");
    assert!(arguments.validate().is_ok());
    let path = |text: &str| arguments.checks(Some(&place(text))).expect("checks").path;
    assert_eq!(
        (path("/api").as_str(), path("/b").as_str()),
        ("/status", "/healthz?a=b")
    );
    let checks = arguments.checks(None).expect("checks");
    let seconds = Duration::from_secs;
    assert_eq!(
        (checks.interval, checks.timeout, checks.failures_max),
        (seconds(5), seconds(2), 2)
    );
    let alone = with("[\"/api=/status\"]").expect("keys");
    assert_eq!(alone.checks(Some(&place("/b"))), None);
    for (health, expected) in [
        ("[\"/a\", \"/b\"]", "two paths without a place"),
        ("[\"/up=/a\"]", "`/up` is no route to an upstream server"),
        ("[\"/c=/a\"]", "`/c` is no route"),
        ("[\"/b=/a\", \"/b=/c\"]", "given twice"),
    ] {
        let wrong = with(health).expect("keys").validate();
        assert!(
            matches!(&wrong, Err(Failure::Usage(why)) if why.contains(expected)),
            "{health}: {wrong:?}"
        );
    }
    let wrong = merged("proxy-health = [\"/a\"]", &[])
        .expect("keys")
        .validate();
    assert!(matches!(&wrong, Err(Failure::Usage(why)) if why.contains("no upstream server")));
    for (text, expected) in [
        ("proxy-health = [\"healthz\"]", "invalid path `healthz`"),
        ("proxy-health = [\"/a b\"]", "invalid path `/a b`"),
        ("proxy-health-interval = \"10ms\"", "expected at least 1s"),
        ("proxy-health-failures = 0", "proxy-health-failures"),
        ("server-timing = \"x-timing\"", "missing colon"),
        ("server-timing = \"x-timing:\"", "no value"),
    ] {
        let wrong = merged(text, &[]).expect_err("it is wrong");
        assert!(wrong.contains(expected), "{text}: {wrong}");
    }
    let asks = merged("server-timing = \"X-Timing: 4711\"", &[])
        .expect("a key")
        .server_timing;
    assert_eq!(asks, Some(Asks::Field("x-timing".into(), "4711".into())));
}
