//! The pages of findings, from Markdown to HTML.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use tlsprof_advise::Kind;

/// Where a page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the document: its headings stay as they are.
    Alone,
    /// Inside a document with headings of two levels: its own are below.
    Within,
}

/// The page as HTML. Links to pages of findings lead where `link` says, by the finding's name;
/// where it says nothing, and to other files of the repository, they are text.
pub(crate) fn markdown(text: &str, place: Place, link: impl Fn(&str) -> Option<String>) -> Markup {
    let mut in_link = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES);
    let events = events.filter_map(|event| match event {
        // Marks between which texts are generated.
        Event::Html(_)
        | Event::InlineHtml(_)
        | Event::Start(Tag::HtmlBlock)
        | Event::End(TagEnd::HtmlBlock) => None,
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => {
            let target = target(&dest_url, &link);
            in_link = target.is_some();
            target.map(|target| {
                Event::Start(Tag::Link {
                    link_type,
                    dest_url: CowStr::from(target),
                    title,
                    id,
                })
            })
        }
        Event::End(TagEnd::Link) => in_link.then_some(event),
        Event::Start(Tag::Heading {
            level,
            id,
            classes,
            attrs,
        }) => Some(Event::Start(Tag::Heading {
            level: lowered(level, place),
            id,
            classes,
            attrs,
        })),
        Event::End(TagEnd::Heading(level)) => {
            Some(Event::End(TagEnd::Heading(lowered(level, place))))
        }
        other => Some(other),
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    PreEscaped(page)
}

/// Where a link leads; None where that is not to be had.
fn target(written: &str, link: &impl Fn(&str) -> Option<String>) -> Option<String> {
    if written.starts_with("https://") {
        return Some(written.to_owned());
    }
    let (file, _) = written.split_once('#').unwrap_or((written, ""));
    let kind = file.strip_suffix(".md").and_then(Kind::named)?;
    link(kind.label)
}

fn lowered(level: HeadingLevel, place: Place) -> HeadingLevel {
    match (place, level) {
        (Place::Alone, level) => level,
        (Place::Within, HeadingLevel::H1) => HeadingLevel::H3,
        (Place::Within, _) => HeadingLevel::H4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, place: Place) -> String {
        markdown(text, place, |name| Some(format!("/findings/{name}"))).into_string()
    }

    #[test]
    fn links_lead_to_pages_that_are_there() {
        let text = "[a](lock-wait.md#x) [b](../journal/c.md) [d](https://d.example/)";
        let expected =
            "<p><a href=\"/findings/lock-wait\">a</a> b <a href=\"https://d.example/\">d</a></p>\n";
        assert_eq!(shown(text, Place::Alone), expected);
    }

    #[test]
    fn headings_are_below_those_of_the_document() {
        let text = "# A\n\n<!-- from -->\n\n## B\n";
        assert_eq!(shown(text, Place::Alone), "<h1>A</h1>\n<h2>B</h2>\n");
        assert_eq!(shown(text, Place::Within), "<h3>A</h3>\n<h4>B</h4>\n");
    }

    #[test]
    fn every_page_is_shown_whole() {
        for kind in Kind::all() {
            let page = shown(kind.page(), Place::Alone);
            assert!(page.contains("<h2>What to change</h2>"), "{kind:?}");
            assert!(
                !page.contains("<!--") && !page.contains(".md\""),
                "{kind:?}"
            );
        }
    }
}
