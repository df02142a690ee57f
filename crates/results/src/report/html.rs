//! Escapes text for HTML.

use std::fmt;

/// External text, with the special characters of HTML and of quoted attributes escaped.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                // Not a valid character in HTML.
                '\0' => out.write_str("\u{FFFD}")?,
                other => write!(out, "{other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Escaped;

    #[test]
    fn external_text_is_escaped() {
        let text = Escaped("<script>alert(\"1 & 'µ'\")</script>\0").to_string();
        assert_eq!(
            text,
            "&lt;script&gt;alert(&quot;1 &amp; &#39;µ&#39;&quot;)&lt;/script&gt;\u{FFFD}"
        );
    }
}
