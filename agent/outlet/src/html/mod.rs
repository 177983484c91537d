//! What pages for people share: the frame and the style.
//!
//! A page is one file. It asks for nothing: its policy forbids scripts and requests, and
//! allows one style, by its hash. Text is escaped by `maud` wherever it is put.

pub(crate) mod markdown;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

const STYLE: &str = include_str!("style.css");

/// A page with this title and content: `header`, `main` and `footer`.
pub(super) fn page(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="generator" content=(concat!("tlsprof ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                // Without it, browsers ask the server for one.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body { (content) }
        }
    };
    page.into_string() + "\n"
}

/// Nothing but this page's style and its empty icon.
fn policy() -> String {
    let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

#[cfg(test)]
pub(crate) mod check {
    //! What every page must be, checked on its text.

    /// Elements without an end.
    const VOID: [&str; 3] = ["meta", "link", "br"];

    /// Fails if tags do not nest, or if the page could run or fetch anything.
    pub(crate) fn page(text: &str) {
        nests(text);
        for forbidden in [
            "<script",
            "javascript:",
            " onclick",
            " onload",
            " style=\"",
            "http:",
            "src=",
        ] {
            assert!(!text.contains(forbidden), "{forbidden} in the page");
        }
        assert!(text.contains("default-src 'none'"));
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "control characters"
        );
    }

    fn nests(text: &str) {
        let mut open: Vec<&str> = Vec::new();
        let body = text.split_once("<style>").zip(text.split_once("</style>"));
        let parts = body.map_or([text, ""], |((head, _), (_, rest))| [head, rest]);
        for tag in parts.iter().flat_map(|part| part.split('<').skip(1)) {
            let (tag, _) = tag.split_once('>').unwrap_or((tag, ""));
            let name = tag.split([' ', '/']).next().unwrap_or_default();
            if let Some(end) = tag.strip_prefix('/') {
                if end != "style" {
                    assert_eq!(open.pop(), Some(end), "tags do not nest");
                }
            } else if !name.starts_with('!') && !VOID.contains(&name) {
                open.push(name);
            }
        }
        assert!(
            open.is_empty() || open == ["html", "head"],
            "open at the end: {open:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_this_style_and_no_script() {
        let page = page("a < b & \"c\"", &html! { p { "x" } });
        check::page(&page);
        assert!(page.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
        assert!(page.contains(&hash) && page.contains(&format!("<style>{STYLE}</style>")));
    }

    #[test]
    fn the_style_fetches_nothing() {
        for word in ["url(", "@import", "</"] {
            assert!(!STYLE.contains(word), "{word}");
        }
    }
}
