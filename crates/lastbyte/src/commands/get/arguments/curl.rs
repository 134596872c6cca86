//! Options of curl: those without effect here, and the refusals of those that are not supported.

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

/// Options of curl that are accepted without effect, because what they ask for is the default or does not apply.
const WITHOUT_EFFECT: &[(&str, Option<char>)] = &[
    ("basic", None),
    ("disable", Some('q')),
    ("no-alpn", None),
    ("no-npn", None),
    ("no-sessionid", None),
    ("parallel-immediate", None),
    ("styled-output", None),
    ("tcp-nodelay", None),
    ("tlsv1", Some('1')),
    ("tlsv1.0", None),
    ("tlsv1.1", None),
];

/// The options that are accepted without effect.
#[derive(Debug)]
pub(crate) struct WithoutEffect;

impl Args for WithoutEffect {
    fn augment_args(command: clap::Command) -> clap::Command {
        let options = WITHOUT_EFFECT.iter().map(|(name, short)| {
            let option = Arg::new(*name).long(*name).action(ArgAction::SetTrue);
            let option = match short {
                Some(short) => option.short(*short),
                None => option,
            };
            option.hide(true)
        });
        command.args(options)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WithoutEffect {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

/// Options of curl for HTTP that are not supported, and what to use in their place, if anything.
const HTTP: &[(&str, &str)] = &[
    ("abstract-unix-socket", ""),
    ("anyauth", "use -u, for Basic authentication"),
    ("aws-sigv4", ""),
    ("ca-native", "the system's CA certificates are the default"),
    ("capath", "use --cacert FILE"),
    ("cert-status", ""),
    ("cert-type", "certificates are in PEM"),
    ("ciphers", ""),
    ("compressed-ssh", ""),
    ("create-file-mode", ""),
    ("crlf", ""),
    ("crlfile", ""),
    ("curves", ""),
    ("delegation", ""),
    ("digest", "use -u, for Basic authentication"),
    ("disallow-username-in-url", ""),
    ("dns-interface", ""),
    ("dns-ipv4-addr", ""),
    ("dns-ipv6-addr", ""),
    ("doh-cert-status", ""),
    ("doh-insecure", ""),
    ("doh-url", "use --dns-servers ADDRESSES"),
    ("dump-ca-embed", ""),
    ("ech", ""),
    ("egd-file", ""),
    ("engine", ""),
    ("etag-compare", "use -H 'if-none-match: ETAG'"),
    ("etag-save", "use -w '%header{etag}'"),
    ("expect100-timeout", ""),
    ("fail-early", ""),
    ("false-start", ""),
    ("happy-eyeballs-timeout-ms", ""),
    ("haproxy-clientip", ""),
    ("haproxy-protocol", ""),
    ("hsts", ""),
    ("http0.9", ""),
    ("http1.0", "use --http1.1"),
    ("ignore-content-length", ""),
    ("interface", ""),
    ("ip-tos", ""),
    ("ipfs-gateway", ""),
    ("keepalive-cnt", ""),
    ("keepalive-time", ""),
    ("key-type", "keys are in PEM"),
    ("libcurl", ""),
    ("local-port", ""),
    ("login-options", ""),
    ("manual", "use `lastbyte man get`"),
    ("metalink", ""),
    ("mptcp", ""),
    ("negotiate", "use -u, for Basic authentication"),
    ("next", "run the command once for each group of options"),
    ("no-clobber", ""),
    ("no-keepalive", ""),
    ("ntlm", "use -u, for Basic authentication"),
    ("ntlm-wb", "use -u, for Basic authentication"),
    ("out-null", "use -o /dev/null"),
    ("parallel-max-host", "use --parallel-max N"),
    ("pass", "encrypted keys are not supported"),
    ("preproxy", "use --proxy URL"),
    ("proto", ""),
    ("proto-default", "write `http://` in the URL"),
    ("proto-redir", ""),
    (
        "proxy-anyauth",
        "use --proxy-user, for Basic authentication",
    ),
    ("proxy-basic", "use --proxy-user, for Basic authentication"),
    ("proxy-ca-native", ""),
    ("proxy-cacert", ""),
    ("proxy-capath", ""),
    ("proxy-cert", ""),
    ("proxy-cert-type", ""),
    ("proxy-ciphers", ""),
    ("proxy-crlfile", ""),
    ("proxy-digest", "use --proxy-user, for Basic authentication"),
    ("proxy-header", ""),
    ("proxy-http2", ""),
    ("proxy-insecure", ""),
    ("proxy-key", ""),
    ("proxy-key-type", ""),
    (
        "proxy-negotiate",
        "use --proxy-user, for Basic authentication",
    ),
    ("proxy-ntlm", "use --proxy-user, for Basic authentication"),
    ("proxy-pass", ""),
    ("proxy-pinnedpubkey", ""),
    ("proxy-service-name", ""),
    ("proxy-ssl-allow-beast", ""),
    ("proxy-ssl-auto-client-cert", ""),
    ("proxy-tls13-ciphers", ""),
    ("proxy-tlsauthtype", ""),
    ("proxy-tlspassword", ""),
    ("proxy-tlsuser", ""),
    ("proxy-tlsv1", ""),
    ("proxy1.0", "use --proxy URL"),
    ("random-file", ""),
    ("rate", ""),
    ("raw", "responses are not decoded without --compressed"),
    ("remove-on-error", ""),
    ("request-target", ""),
    ("sasl-authzid", ""),
    ("sasl-ir", ""),
    ("service-name", ""),
    ("sigalgs", ""),
    ("skip-existing", ""),
    ("socks4", "only HTTP proxies are supported: --proxy URL"),
    ("socks4a", "only HTTP proxies are supported: --proxy URL"),
    ("socks5", "only HTTP proxies are supported: --proxy URL"),
    ("socks5-basic", ""),
    ("socks5-gssapi", ""),
    ("socks5-gssapi-nec", ""),
    ("socks5-gssapi-service", ""),
    (
        "socks5-hostname",
        "only HTTP proxies are supported: --proxy URL",
    ),
    ("ssl-allow-beast", ""),
    ("ssl-auto-client-cert", "use --cert FILE"),
    ("ssl-no-revoke", ""),
    ("ssl-revoke-best-effort", ""),
    ("ssl-sessions", "use --session-store FILE"),
    ("sslv2", "TLS 1.2 or later is required"),
    ("sslv3", "TLS 1.2 or later is required"),
    ("stderr", "use the shell's 2>FILE"),
    ("suppress-connect-headers", ""),
    ("tcp-fastopen", ""),
    ("time-cond", "use -H 'if-modified-since: DATE'"),
    ("tls-earlydata", "use --0rtt"),
    ("tls13-ciphers", ""),
    ("tlsauthtype", ""),
    ("tlspassword", ""),
    ("tlsuser", ""),
    ("tr-encoding", "use --compressed"),
    ("trace", "use -v, --qlog DIR or --keylog FILE"),
    ("trace-ascii", "use -v, --qlog DIR or --keylog FILE"),
    ("trace-config", "use -v"),
    ("trace-ids", "use -v"),
    ("trace-time", "use -v, or --timing"),
    ("unix-socket", ""),
    ("url-query", "use -G --data-urlencode DATA"),
    ("variable", ""),
    ("version", "use `lastbyte --version`"),
    ("vlan-priority", ""),
    ("xattr", ""),
];

/// Options of curl for other protocols.
const OTHER_PROTOCOLS: &[&str] = &[
    "append",
    "disable-eprt",
    "disable-epsv",
    "ftp-account",
    "ftp-alternative-to-user",
    "ftp-create-dirs",
    "ftp-method",
    "ftp-pasv",
    "ftp-port",
    "ftp-pret",
    "ftp-skip-pasv-ip",
    "ftp-ssl-ccc",
    "ftp-ssl-ccc-mode",
    "ftp-ssl-control",
    "hostpubmd5",
    "hostpubsha256",
    "krb",
    "list-only",
    "mail-auth",
    "mail-from",
    "mail-rcpt",
    "mail-rcpt-allowfails",
    "pubkey",
    "quote",
    "ssl",
    "ssl-reqd",
    "telnet-option",
    "tftp-blksize",
    "tftp-no-options",
    "upload-flags",
    "use-ascii",
];

/// Options of curl that are left to curl, with their short forms.
const REMOVED: &[(&str, Option<&str>)] = &[
    ("config", Some("-K")),
    ("continue-at", Some("-C")),
    ("cookie-jar", Some("-c")),
    ("form", Some("-F")),
    ("form-escape", None),
    ("form-string", None),
    ("globoff", Some("-g")),
    ("junk-session-cookies", Some("-j")),
    ("limit-rate", None),
    ("netrc", Some("-n")),
    ("netrc-file", None),
    ("netrc-optional", None),
    ("oauth2-bearer", None),
    ("post301", None),
    ("post302", None),
    ("post303", None),
    ("remote-header-name", Some("-J")),
    ("remote-time", Some("-R")),
    ("speed-limit", Some("-Y")),
    ("speed-time", Some("-y")),
];

/// Short forms of options that are not supported.
const SHORT: &[(&str, &str)] = &[
    ("-0", "http1.0"),
    ("-2", "sslv2"),
    ("-3", "sslv3"),
    ("-:", "next"),
    ("-B", "use-ascii"),
    ("-M", "manual"),
    ("-P", "ftp-port"),
    ("-Q", "quote"),
    ("-V", "version"),
    ("-a", "append"),
    ("-l", "list-only"),
    ("-t", "telnet-option"),
    ("-z", "time-cond"),
];

/// Why an option of curl is refused; `None` if it is not one of curl's. `option` is as given: `--name` or `-n`.
pub(crate) fn refusal(option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or_default();
    let of_short = SHORT.iter().find(|(short, _)| *short == option);
    let of_short = of_short.map(|(_, name)| *name).or_else(|| {
        let mut removed = REMOVED.iter();
        removed
            .find(|(_, short)| *short == Some(option))
            .map(|(name, _)| *name)
    });
    let name = match of_short {
        Some(name) => name,
        None => option.strip_prefix("--")?,
    };
    // Every switch of curl has a negative form.
    let positive = name.strip_prefix("no-");
    let what = format!("curl's `{option}` is not supported");
    let is_removed = |(long, _): &(&str, _)| *long == positive.unwrap_or(name);
    if REMOVED.iter().any(is_removed) {
        return Some(format!("{what}: use curl"));
    }
    if OTHER_PROTOCOLS.contains(&name) {
        return Some(format!("{what}: it is not for HTTP"));
    }
    match HTTP.iter().find(|(long, _)| *long == name) {
        Some((_, "")) => Some(what),
        Some((_, hint)) => Some(format!("{what}: {hint}")),
        None => {
            let positive = positive?;
            let command = <super::Arguments as Args>::augment_args(clap::Command::new("get"));
            let mut switches = command.get_arguments();
            let is_switch = switches.any(|argument| {
                argument.get_long() == Some(positive) && !argument.get_action().takes_values()
            });
            is_switch.then(|| format!("{what}: leave out --{positive}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Arguments, Args as _, REMOVED, refusal};

    #[test]
    fn removed_options_are_refused_by_name() {
        let command = Arguments::augment_args(clap::Command::new("get"));
        for (long, short) in REMOVED {
            let long = format!("--{long}");
            let forms = [Some(long.as_str()), *short];
            for option in forms.into_iter().flatten() {
                let error = command
                    .clone()
                    .try_get_matches_from(["get", option, "https://a.example/"])
                    .expect_err(option);
                assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
                let given = error.get(clap::error::ContextKind::InvalidArg);
                let given = given.expect("the option").to_string();
                let expected = format!("curl's `{option}` is not supported: use curl");
                assert_eq!(refusal(&given), Some(expected));
            }
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
            ("--no-output", None),
            ("--hedaer", None),
            ("-9", None),
        ] {
            assert_eq!(refusal(option).as_deref(), expected, "{option}");
        }
    }
}
