//! Options of curl that are refused, by name.

use clap::Args as _;

/// Options of curl that are refused, and what to use in their place.
const HINTS: &[(&str, &str)] = &[
    ("anyauth", "use -u, for Basic authentication"),
    ("basic", "Basic authentication is the default of -u"),
    ("ca-native", "the system's CA certificates are the default"),
    ("capath", "use --cacert FILE"),
    ("cert-type", "certificates are in PEM"),
    ("cookie", "use -H 'cookie: NAME=VALUE'"),
    ("data-ascii", "use -d DATA"),
    ("digest", "use -u, for Basic authentication"),
    ("disable", "there is no file of options"),
    ("doh-url", "use --dns-servers ADDRESSES"),
    ("dump-header", "use -i or -v"),
    ("etag-compare", "use -H 'if-none-match: ETAG'"),
    ("etag-save", "use -w '%header{etag}'"),
    ("fail-with-body", "use -f or -w '%{http_code}'"),
    ("get", "write the query into the URL"),
    ("http1.0", "use --http1.1"),
    ("json", "use -d DATA -H 'content-type: application/json'"),
    ("key-type", "keys are in PEM"),
    ("manual", "use `lastbyte man get`"),
    ("negotiate", "use -u, for Basic authentication"),
    ("next", "run the command once for each group of options"),
    ("no-progress-meter", "use -s"),
    ("ntlm", "use -u, for Basic authentication"),
    ("ntlm-wb", "use -u, for Basic authentication"),
    ("out-null", "use -o /dev/null"),
    ("parallel", "transfers run in parallel"),
    ("parallel-immediate", "transfers run in parallel"),
    ("parallel-max-host", "use --parallel-max N"),
    ("pass", "encrypted keys are not supported"),
    ("pinnedpubkey", "use --pin-sha256 BASE64"),
    ("proto-default", "write `http://` in the URL"),
    ("raw", "responses are not decoded without --compressed"),
    ("referer", "use -H 'referer: URL'"),
    ("remote-name-all", "use -O for each URL"),
    ("ssl-auto-client-cert", "use --cert FILE"),
    ("ssl-sessions", "use --session-store FILE"),
    ("sslv2", "TLS 1.2 or later is required"),
    ("sslv3", "TLS 1.2 or later is required"),
    ("stderr", "use the shell's 2>FILE"),
    ("tcp-nodelay", "TCP_NODELAY is always set"),
    ("time-cond", "use -H 'if-modified-since: DATE'"),
    ("tls-earlydata", "use --0rtt"),
    ("tlsv1", "TLS 1.2 or later is required"),
    ("tlsv1.0", "TLS 1.2 or later is required"),
    ("tlsv1.1", "TLS 1.2 or later is required"),
    ("tlsv1.2", "TLS 1.2 or later is the default"),
    ("tr-encoding", "use --compressed"),
    ("trace", "use -v, --qlog DIR or --keylog FILE"),
    ("trace-ascii", "use -v, --qlog DIR or --keylog FILE"),
    ("trace-config", "use -v"),
    ("trace-ids", "use -v"),
    ("trace-time", "use -v, or --timing"),
    ("url", "write the URL without an option"),
    ("url-query", "write the query into the URL"),
    ("user-agent", "use -H 'user-agent: NAME'"),
    ("version", "use `lastbyte --version`"),
];

/// The other options of curl for HTTP.
const OTHERS: &str = "\
    abstract-unix-socket alt-svc aws-sigv4 buffer cert-status ciphers compressed-ssh config continue-at cookie-jar \
    create-dirs create-file-mode crlf crlfile curves data-raw data-urlencode delegation disallow-username-in-url \
    dns-interface dns-ipv4-addr dns-ipv6-addr doh-cert-status doh-insecure dump-ca-embed ech egd-file engine \
    expect100-timeout fail-early false-start form form-escape form-string globoff happy-eyeballs-timeout-ms \
    haproxy-clientip haproxy-protocol hsts http0.9 http2-prior-knowledge ignore-content-length interface ip-tos \
    ipfs-gateway junk-session-cookies keepalive-cnt keepalive-time libcurl limit-rate local-port location-trusted \
    login-options max-filesize max-redirs metalink mptcp netrc netrc-file netrc-optional no-alpn no-buffer \
    no-clobber no-keepalive no-npn no-sessionid noproxy oauth2-bearer output-dir path-as-is post301 post302 \
    post303 preproxy progress-bar proto proto-redir proxy proxy-anyauth proxy-basic proxy-ca-native proxy-cacert \
    proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-digest proxy-header proxy-http2 \
    proxy-insecure proxy-key proxy-key-type proxy-negotiate proxy-ntlm proxy-pass proxy-pinnedpubkey \
    proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype \
    proxy-tlspassword proxy-tlsuser proxy-tlsv1 proxy-user proxy1.0 proxytunnel random-file rate \
    remote-header-name remote-time remove-on-error request-target retry retry-all-errors retry-connrefused \
    retry-delay retry-max-time sasl-authzid sasl-ir service-name sigalgs skip-existing socks4 socks4a socks5 \
    socks5-basic socks5-gssapi socks5-gssapi-nec socks5-gssapi-service socks5-hostname speed-limit speed-time \
    ssl-allow-beast ssl-no-revoke ssl-revoke-best-effort styled-output suppress-connect-headers tcp-fastopen \
    tls13-ciphers tlsauthtype tlspassword tlsuser tlsv1.3 unix-socket variable vlan-priority xattr";

/// Options of curl for other protocols.
const OTHER_PROTOCOLS: &str = "\
    append disable-eprt disable-epsv ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv \
    ftp-port ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control hostpubmd5 hostpubsha256 krb \
    list-only mail-auth mail-from mail-rcpt mail-rcpt-allowfails pubkey quote ssl ssl-reqd telnet-option \
    tftp-blksize tftp-no-options upload-flags use-ascii";

/// Short forms.
const SHORT: &[(&str, &str)] = &[
    ("-#", "progress-bar"),
    ("-0", "http1.0"),
    ("-1", "tlsv1"),
    ("-2", "sslv2"),
    ("-3", "sslv3"),
    ("-:", "next"),
    ("-A", "user-agent"),
    ("-B", "use-ascii"),
    ("-C", "continue-at"),
    ("-D", "dump-header"),
    ("-F", "form"),
    ("-G", "get"),
    ("-J", "remote-header-name"),
    ("-K", "config"),
    ("-M", "manual"),
    ("-N", "no-buffer"),
    ("-P", "ftp-port"),
    ("-Q", "quote"),
    ("-R", "remote-time"),
    ("-U", "proxy-user"),
    ("-V", "version"),
    ("-Y", "speed-limit"),
    ("-Z", "parallel"),
    ("-a", "append"),
    ("-b", "cookie"),
    ("-c", "cookie-jar"),
    ("-e", "referer"),
    ("-g", "globoff"),
    ("-j", "junk-session-cookies"),
    ("-l", "list-only"),
    ("-n", "netrc"),
    ("-p", "proxytunnel"),
    ("-q", "disable"),
    ("-t", "telnet-option"),
    ("-x", "proxy"),
    ("-y", "speed-time"),
    ("-z", "time-cond"),
];

/// Why an option of curl is refused; `None` if it is not one of curl's. `option` is as given: `--name` or `-n`.
pub(crate) fn refusal(option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or_default();
    let of_short = SHORT.iter().find(|(short, _)| *short == option);
    let name = match of_short {
        Some((_, name)) => name,
        None => option.strip_prefix("--")?,
    };
    let what = format!("curl's `{option}` is not supported");
    let is_in = |list: &str, name: &str| list.split_ascii_whitespace().any(|other| other == name);
    // Every switch of curl has a negative form.
    let positive = name.strip_prefix("no-");
    for name in [Some(name), positive].into_iter().flatten() {
        if let Some((_, hint)) = HINTS.iter().find(|(long, _)| *long == name) {
            return Some(format!("{what}: {hint}"));
        }
        if is_in(OTHERS, name) {
            return Some(format!("{what}: use curl"));
        }
        if is_in(OTHER_PROTOCOLS, name) {
            return Some(format!("{what}: it is not for HTTP"));
        }
    }
    let positive = positive?;
    let command = super::Arguments::augment_args(clap::Command::new("get"));
    let mut switches = command.get_arguments();
    let is_switch = switches.any(|argument| {
        argument.get_long() == Some(positive) && !argument.get_action().takes_values()
    });
    is_switch.then(|| format!("{what}: leave out --{positive}"))
}

#[cfg(test)]
mod tests {
    use super::{super::Arguments, HINTS, OTHERS, SHORT, refusal};
    use clap::Args as _;

    #[test]
    fn removed_options_are_refused_by_name() {
        let command = Arguments::augment_args(clap::Command::new("get"));
        let hints = HINTS.iter().map(|(name, _)| *name);
        let long = hints.chain(OTHERS.split_ascii_whitespace());
        let long = long.map(|name| format!("--{name}"));
        let short = SHORT.iter().map(|(short, _)| (*short).to_owned());
        for option in long.chain(short) {
            let error = command
                .clone()
                .try_get_matches_from(["get", &option, "https://a.example/"])
                .expect_err(&option);
            assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
            let given = error.get(clap::error::ContextKind::InvalidArg);
            let given = given.expect("the option").to_string();
            let refused = refusal(&given).expect(&option);
            let expected = format!("curl's `{option}` is not supported: ");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }

    #[test]
    fn options_of_curl_are_refused_with_what_to_use_instead() {
        for (option, expected) in [
            (
                "--limit-rate",
                Some("curl's `--limit-rate` is not supported: use curl"),
            ),
            (
                "--time-cond=x",
                Some("curl's `--time-cond` is not supported: use -H 'if-modified-since: DATE'"),
            ),
            (
                "-z",
                Some("curl's `-z` is not supported: use -H 'if-modified-since: DATE'"),
            ),
            (
                "--ftp-pasv",
                Some("curl's `--ftp-pasv` is not supported: it is not for HTTP"),
            ),
            (
                "--no-compressed",
                Some("curl's `--no-compressed` is not supported: leave out --compressed"),
            ),
            ("-x", Some("curl's `-x` is not supported: use curl")),
            (
                "--retry=3",
                Some("curl's `--retry` is not supported: use curl"),
            ),
            (
                "-b",
                Some("curl's `-b` is not supported: use -H 'cookie: NAME=VALUE'"),
            ),
            (
                "--no-buffer",
                Some("curl's `--no-buffer` is not supported: use curl"),
            ),
            ("--no-output", None),
            ("--hedaer", None),
            ("-9", None),
        ] {
            assert_eq!(refusal(option).as_deref(), expected, "{option}");
        }
    }
}
