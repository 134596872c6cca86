//! `.netrc`: names and passwords by host, in the format of ftp and curl.

/// An entry: what follows `machine` or `default`.
#[derive(Default)]
struct Entry {
    login: Option<String>,
    password: String,
}

/// `NAME:PASSWORD` for a host: from the first of its entries and the default entries that is the user's, or without a user
/// from the first of them. An entry without a login has a password for every user.
pub(super) fn credentials(text: &str, host: &str, user: Option<&str>) -> Option<String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut is_ours = false;
    let mut words = tokens(text).into_iter();
    while let Some(word) = words.next() {
        if word == "machine" || word == "default" {
            let mut name = || words.next().unwrap_or_default();
            is_ours = word == "default" || name().eq_ignore_ascii_case(host);
            if is_ours {
                entries.push(Entry::default());
            }
        } else if matches!(&*word, "login" | "password" | "account") {
            let value = words.next().unwrap_or_default();
            let Some(entry) = entries.last_mut().filter(|_| is_ours) else {
                continue;
            };
            match &*word {
                "login" => entry.login = Some(value),
                "password" => entry.password = value,
                _ => {}
            }
        }
    }
    let is_users = |entry: &Entry| match (user, &entry.login) {
        (Some(user), Some(login)) => user == login,
        _ => true,
    };
    let entry = entries.into_iter().find(is_users)?;
    let login = user.or(entry.login.as_deref()).unwrap_or_default();
    Some(format!("{login}:{}", entry.password))
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
            let found = credentials(text, host, None);
            assert_eq!(found.as_deref(), Some(expected), "{host}");
        }
        let only = "machine a login b password c";
        assert_eq!(credentials(only, "d", None), None);
        assert_eq!(credentials("", "a", None), None);
    }

    #[test]
    fn an_entry_counts_only_for_its_user() {
        let text = "machine a login one password first\nmachine a password second login two\n\
                    machine a login none\nmachine b password all\ndefault login any password last\n";
        for (host, user, expected) in [
            ("a", "one", Some("one:first")),
            ("a", "two", Some("two:second")),
            ("a", "none", Some("none:")),
            ("a", "any", Some("any:last")),
            ("a", "three", None),
            ("a", "One", None),
            ("a", "", None),
            ("b", "three", Some("three:all")),
            ("c", "one", None),
            ("c", "any", Some("any:last")),
        ] {
            let found = credentials(text, host, Some(user));
            assert_eq!(found.as_deref(), expected, "{user}@{host}");
        }
    }
}
