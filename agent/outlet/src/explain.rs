//! `tlsprof explain`: the pages on findings, which are Markdown, as text for a terminal.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use super::document::{Cell, Table, Tone, text};
use super::terminal::{Paint, Style, wrap};

/// Longer lines are hard to read.
const WIDEST: usize = 100;

/// A line for each finding: its name and what is wrong.
pub fn index<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>, style: Style) -> String {
    let mut table = Table::new("").words("").words("");
    for (name, summary) in rows {
        table.row([Cell::from(name).tone(Tone::Strong), summary.into()]);
    }
    // A shortened line would say less than one that the terminal breaks.
    let width = usize::MAX;
    text::table(&table, 0, Style { width, ..style })
}

/// A page.
pub fn page(markdown: &str, style: Style) -> String {
    let mut writer = Writer {
        style: Style {
            width: style.width.min(WIDEST),
            ..style
        },
        out: String::new(),
        line: String::new(),
        first: String::new(),
        cells: 0,
        in_code: false,
    };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        writer.take(event);
    }
    writer.out
}

struct Writer {
    style: Style,
    out: String,
    /// The paragraph, item or row under way.
    line: String,
    /// What it begins with.
    first: String,
    /// Cells of the row under way that are finished.
    cells: usize,
    in_code: bool,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) if self.in_code => {
                for line in text.lines() {
                    let line = self.style.paint(Paint::Cyan, line);
                    self.out.push_str(&format!("    {line}\n"));
                }
            }
            Event::Text(text) => self.line.push_str(&text),
            Event::Code(text) => self.line.push_str(&format!("`{text}`")),
            Event::SoftBreak | Event::HardBreak => self.line.push(' '),
            Event::Start(tag) => self.begin(&tag),
            Event::End(tag) => self.end(tag),
            _ => {}
        }
    }

    fn begin(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } | Tag::Table(_) => self.blank(),
            Tag::Paragraph if self.first.is_empty() => self.blank(),
            Tag::List(_) if self.line.is_empty() => self.blank(),
            Tag::CodeBlock(_) => {
                self.blank();
                self.in_code = true;
            }
            Tag::Item => {
                self.flush(None);
                "- ".clone_into(&mut self.first);
            }
            Tag::TableRow | Tag::TableHead => {
                "- ".clone_into(&mut self.first);
                self.cells = 0;
            }
            // A row reads as "cause: what was seen".
            Tag::TableCell if self.cells > 0 => self.line.push_str(": "),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.flush(Some(Paint::Bold)),
            TagEnd::CodeBlock => self.in_code = false,
            TagEnd::TableCell => self.cells += 1,
            // What the columns are called says little in rows that are read as lines.
            TagEnd::TableHead => {
                self.line.clear();
                self.first.clear();
            }
            TagEnd::Paragraph | TagEnd::Item | TagEnd::TableRow => self.flush(None),
            _ => {}
        }
    }

    /// Writes what is under way as lines.
    fn flush(&mut self, paint: Option<Paint>) {
        let text = std::mem::take(&mut self.line);
        let first = std::mem::take(&mut self.first);
        if text.trim().is_empty() {
            return;
        }
        for line in wrap(text.trim(), &first, first.width(), self.style.width) {
            let line = paint.map_or_else(|| line.clone(), |paint| self.style.paint(paint, &line));
            self.out.push_str(&line);
            self.out.push('\n');
        }
    }

    fn blank(&mut self) {
        self.flush(None);
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_reads_as_text() {
        let markdown = "# A title\n\n`name`\n\nWords of a\n[page](other.md), **bold.**\n\n\
                        <!-- hidden -->\n\n- one\n  more\n- two\n\n```\nkey = 1\n  deep\n```\n\n\
                        ## Next\n\n| a | b |\n| --- | --- |\n| cause | seen |\n";
        let expected = "A title\n\n`name`\n\nWords of a page, bold.\n\n- one more\n- two\n\n    \
                        key = 1\n      deep\n\nNext\n\n- cause: seen\n";
        assert_eq!(page(markdown, Style::plain(80)), expected);
    }

    #[test]
    fn the_index_is_aligned() {
        let rows = [("a", "first"), ("bcd", "second")];
        let text = index(rows.into_iter(), Style::plain(80));
        assert_eq!(text, "a    first\nbcd  second\n");
    }
}
