//! A file's text in a message: short, and nothing that a terminal would obey.

const LONGEST: usize = 40;

/// The text in quotes, escaped, cut where it is long.
pub(crate) fn snippet(text: &str) -> String {
    let mut out = String::from("\"");
    let mut chars = text.chars();
    out.extend(chars.by_ref().take(LONGEST).flat_map(char::escape_debug));
    out.push('"');
    if chars.next().is_some() {
        out.push_str("...");
    }
    out
}

/// The same for bytes of which nothing is known.
pub(crate) fn snippet_bytes(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(LONGEST)];
    let more = if cut.len() < bytes.len() { "..." } else { "" };
    format!("\"{}\"{more}", cut.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_cuts() {
        assert_eq!(snippet("a\u{1b}[0m"), r#""a\u{1b}[0m""#);
        assert_eq!(
            snippet(&"x".repeat(41)),
            format!("\"{}\"...", "x".repeat(40))
        );
        assert_eq!(snippet_bytes(b"\x89PNG"), r#""\x89PNG""#);
        assert_eq!(
            snippet_bytes(&[b'x'; 41]),
            format!("\"{}\"...", "x".repeat(40))
        );
    }
}
