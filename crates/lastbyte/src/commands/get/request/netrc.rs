//! `.netrc`: names and passwords by host, in the format of ftp and curl.

/// `NAME:PASSWORD` for a host: from its first entry, or otherwise from the default entry.
pub(super) fn credentials(text: &str, host: &str) -> Option<String> {
    let mut words = tokens(text).into_iter();
    let mut found: Option<(String, String)> = None;
    let mut is_ours = false;
    while let Some(word) = words.next() {
        match &*word {
            "machine" | "default" => {
                if found.is_some() {
                    break;
                }
                is_ours = word == "default"
                    || words
                        .next()
                        .is_some_and(|name| name.eq_ignore_ascii_case(host));
                if is_ours {
                    found = Some((String::new(), String::new()));
                }
            }
            "login" | "password" | "account" => {
                let value = words.next().unwrap_or_default();
                match (&mut found, &*word) {
                    (Some((name, _)), "login") if is_ours => *name = value,
                    (Some((_, password)), "password") if is_ours => *password = value,
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found.map(|(name, password)| format!("{name}:{password}"))
}

/// Tokens, without comments and macros; a quoted string is one token.
fn tokens(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut is_macro = false;
    for line in text.lines() {
        // A macro ends at an empty line.
        is_macro &= !line.trim().is_empty();
        if is_macro {
            continue;
        }
        let mut characters = line.chars().peekable();
        loop {
            while characters.next_if(|c| c.is_whitespace()).is_some() {}
            let Some(first) = characters.peek() else {
                break;
            };
            if *first == '#' {
                break;
            }
            let is_quoted = characters.next_if_eq(&'"').is_some();
            let mut word = String::new();
            while let Some(character) = characters.next() {
                match character {
                    '"' if is_quoted => break,
                    '\\' if is_quoted => match characters.next() {
                        Some('n') => word.push('\n'),
                        Some('r') => word.push('\r'),
                        Some('t') => word.push('\t'),
                        Some(other) => word.push(other),
                        None => {}
                    },
                    character if !is_quoted && character.is_whitespace() => break,
                    character => word.push(character),
                }
            }
            if word == "macdef" && !is_quoted {
                is_macro = true;
                break;
            }
            all.push(word);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::credentials;

    #[test]
    fn each_host_has_its_credentials_and_others_the_default() {
        let text = "# remark\nmachine a.example login me password secret # mine\n\
                    machine b.example\n\tlogin you\n\tpassword \"two words \\\"\"\n\
                    macdef init\nmachine c.example login no password no\n\n\
                    machine d.example login only\nmachine a.example login second password x\n\
                    default login any password one\n";
        for (host, expected) in [
            ("A.example", "me:secret"),
            ("b.example", "you:two words \""),
            ("c.example", "any:one"),
            ("d.example", "only:"),
        ] {
            assert_eq!(credentials(text, host).as_deref(), Some(expected), "{host}");
        }
        assert_eq!(credentials("machine a login b password c", "d"), None);
        assert_eq!(credentials("", "a"), None);
    }
}
