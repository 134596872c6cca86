//! Refusals of h2load's options that are not supported.

/// Options of h2load, and what to use in their place, if anything.
const OPTIONS: &[(&str, &str)] = &[
    ("--alpn-list", "use --http 3, 2 or 1.1"),
    ("--base-uri", "write whole URLs"),
    ("-B", "write whole URLs"),
    ("--ciphers", ""),
    ("--connection-inactivity-timeout", "use --timeout"),
    ("-N", "use --timeout"),
    ("--connection-window-bits", ""),
    ("-W", ""),
    ("--groups", ""),
    ("--h1", "use --http 1.1"),
    ("--h3", "use --http 3, the default"),
    ("--ktls", ""),
    ("--log-file", "use --connection-log FILE or --json"),
    ("--max-frame-size", ""),
    ("-f", ""),
    ("--connection-active-timeout", ""),
    ("-T", ""),
    ("--header-table-size", ""),
    ("--encoder-header-table-size", ""),
    ("--max-udp-payload-size", ""),
    ("--no-tls-proto", "use --http 2 or 1.1 with an http:// URL"),
    ("-p", "use --http 2 or 1.1 with an http:// URL"),
    ("--no-udp-gso", ""),
    ("--npn-list", "use --http 3, 2 or 1.1"),
    (
        "--qlog-file-base",
        "`lastbyte get --qlog` and `lastbyte serve --qlog` write qlog files",
    ),
    ("--rate-period", "--rate is a number of requests per second"),
    ("--rps", "use --rate, for all connections together"),
    ("--sni", "use --connect-to"),
    (
        "--timing-script-file",
        "use -i FILE with weights, and --rate",
    ),
    ("--tls13-ciphers", ""),
    ("--verbose", ""),
    ("-v", ""),
    ("--version", "use `lastbyte --version`"),
    ("--window-bits", ""),
    ("-w", ""),
];

/// Options that `bench` does not have, although other commands do.
const REMOVED: &[(&str, &str)] = &[
    ("--csv", "use --json"),
    ("-X", "-d FILE sends POST requests"),
    ("--request", "-d FILE sends POST requests"),
    ("--aead", "the faster library is measured at startup"),
    ("-4", "write the address in --connect-to"),
    ("-6", "write the address in --connect-to"),
    ("--cert", "client certificates are for `lastbyte get`"),
    ("--key", "client certificates are for `lastbyte get`"),
    ("--pin-sha256", "use --cacert FILE"),
    ("--max-p50", "use --max-p99"),
];

/// Why an option is refused; `None` if it is not one of h2load's, or of other commands. `option` is as given: `--name` or `-n`.
pub(crate) fn refusal(option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or_default();
    let is_known = |(known, _): &&(&str, &str)| *known == option;
    if let Some((_, hint)) = REMOVED.iter().find(is_known) {
        return Some(format!("`{option}` is not an option of `bench`: {hint}"));
    }
    let (_, hint) = OPTIONS.iter().find(is_known)?;
    let what = format!("h2load's `{option}` is not supported");
    Some(match *hint {
        "" => what,
        hint => format!("{what}: {hint}"),
    })
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::{OPTIONS, REMOVED, refusal};

    #[test]
    fn options_of_h2load_are_refused_with_what_to_use_instead() {
        for (option, expected) in [
            (
                "--h1",
                Some("h2load's `--h1` is not supported: use --http 1.1"),
            ),
            (
                "--window-bits=16",
                Some("h2load's `--window-bits` is not supported"),
            ),
            (
                "--csv",
                Some("`--csv` is not an option of `bench`: use --json"),
            ),
            ("--windw-bits", None),
        ] {
            assert_eq!(refusal(option).as_deref(), expected, "{option}");
        }
        let command = super::super::Arguments::augment_args(clap::Command::new("bench"));
        for (option, _) in OPTIONS.iter().chain(REMOVED) {
            let name = option.trim_start_matches('-');
            let is_supported = command.get_arguments().any(|argument| {
                argument.get_long() == Some(name)
                    || argument
                        .get_short()
                        .is_some_and(|short| name == short.to_string())
            });
            assert!(!is_supported, "{option} is an option");
        }
    }
}
