//! Documents as text for a terminal.

mod layout;

use super::lines::{Line, Span, coloured, paint};
use super::{Block, Card, Document, Fact, Section, Table, Tone, and_more};
use crate::terminal::{Paint, Style, wrap};
use tlsprof_common::units::printable;

/// Columns by which each level stands further to the right.
const STEP: usize = 2;
/// Columns before the text of a card, under its number.
const CARD: usize = 4;

/// The document as text, with a newline at the end; with all details where `verbose`.
pub(crate) fn render(document: &Document, style: Style, verbose: bool) -> String {
    let mut writer = Writer::new(style.width);
    writer.verbose = verbose;
    writer.blocks(&document.head, 0);
    writer.blank();
    writer.paragraph(&document.about, 0, Some(Paint::Dim));
    writer.blank();
    writer.blocks(&document.main, 0);
    writer.blank();
    writer.blocks(&document.foot, 0);
    coloured(&writer.lines, style)
}

/// A table as text.
pub(crate) fn table(table: &Table, indent: usize, style: Style) -> String {
    let mut writer = Writer::new(style.width);
    writer.table(table, indent);
    coloured(&writer.lines, style)
}

/// Blocks of a section as lines.
pub(crate) fn lines(blocks: &[Block], width: usize) -> Vec<Line> {
    let mut writer = Writer::new(width);
    writer.blocks(blocks, STEP);
    writer.lines
}

struct Writer {
    width: usize,
    verbose: bool,
    lines: Vec<Line>,
}

impl Writer {
    const fn new(width: usize) -> Self {
        Self {
            width,
            verbose: false,
            lines: Vec::new(),
        }
    }

    fn blocks(&mut self, blocks: &[Block], indent: usize) {
        let mut after_card = false;
        for block in blocks {
            if after_card {
                self.blank();
            }
            self.block(block, indent);
            after_card = matches!(block, Block::Card(_));
        }
    }

    fn block(&mut self, block: &Block, indent: usize) {
        match block {
            Block::Lead(text) => self.paragraph(text, indent, Some(Paint::Bold)),
            Block::Text(text) => self.paragraph(text, indent, None),
            Block::Marked(tone, text) => self.paragraph(text, indent, paint(*tone)),
            Block::List(items) => self.list(items, indent),
            Block::Facts(lines) => {
                for facts in lines {
                    self.paragraph(&joined(facts), indent, None);
                }
            }
            Block::Code(text) => self.code(text, indent + CARD),
            Block::Alarm(tone, title, reasons) => {
                self.paragraph(title, indent, paint(*tone));
                for reason in reasons {
                    self.paragraph(reason, indent + STEP, paint(*tone));
                }
            }
            Block::Details(title, inner) if self.verbose => {
                self.paragraph(&format!("{title}:"), indent, None);
                self.blocks(inner, indent + STEP);
            }
            Block::Details(title, _) => {
                self.blank();
                self.paragraph(&format!("{title}: see --verbose"), indent, Some(Paint::Dim));
            }
            Block::Figures(_) | Block::Whole(..) | Block::Pages(_) => {}
            Block::Table(table) => self.table(table, indent),
            Block::Card(card) => self.card(card),
            Block::Section(section) => self.section(section, indent),
            Block::Fold(_, brief) => self.blocks(brief, indent),
        }
    }

    fn section(&mut self, section: &Section, indent: usize) {
        self.blank();
        self.paragraph(&section.title, indent, Some(Paint::Bold));
        self.blocks(&section.blocks, indent + STEP);
    }

    fn card(&mut self, card: &Card) {
        let paint = match card.tone {
            Tone::Look | Tone::Bad => paint(card.tone),
            _ => Some(Paint::Bold),
        };
        self.wrapped(&card.title, &format!("{:>2}  ", card.number), CARD, paint);
        let facts = format!("{} · {}", card.label, joined(&card.facts));
        self.paragraph(&facts, CARD, Some(Paint::Dim));
        for block in &card.blocks {
            // Without its details a card says enough.
            if self.verbose || !matches!(block, Block::Details(..)) {
                self.block(block, CARD);
            }
        }
    }

    fn list(&mut self, items: &[String], indent: usize) {
        let first = format!("{:indent$}  - ", "");
        for item in items {
            self.wrapped(item, &first, indent + CARD, None);
        }
    }

    fn code(&mut self, text: &str, indent: usize) {
        for line in text.lines() {
            self.push(None, format!("{:indent$}{}", "", printable(line)));
        }
    }

    fn paragraph(&mut self, text: &str, indent: usize, paint: Option<Paint>) {
        self.wrapped(text, &" ".repeat(indent), indent, paint);
    }

    /// Text broken at spaces. Each line has its own span: an emphasis over a line's end would
    /// colour a pager's next line.
    fn wrapped(&mut self, text: &str, first: &str, indent: usize, paint: Option<Paint>) {
        if text.is_empty() {
            return;
        }
        for line in wrap(&printable(text), first, indent, self.width) {
            self.push(paint, line);
        }
    }

    fn table(&mut self, table: &Table, indent: usize) {
        let shown = table.fold.unwrap_or(usize::MAX).min(table.rows.len());
        self.lines
            .extend(layout::lines(table, shown, indent, self.width));
        if table.rows.len() > shown {
            self.paragraph(&and_more(table.rows.len() - shown), indent, None);
        }
    }

    fn blank(&mut self) {
        if self.lines.last().is_some_and(|last| !last.is_empty()) {
            self.lines.push(Line::new());
        }
    }

    fn push(&mut self, paint: Option<Paint>, text: String) {
        self.lines.push(vec![Span { paint, text }]);
    }
}

fn joined(facts: &[Fact]) -> String {
    let texts: Vec<&str> = facts
        .iter()
        .map(|fact| match fact {
            Fact::Words(text) | Fact::Code(text) | Fact::Finding(text) => text.as_str(),
        })
        .collect();
    texts.join(" · ")
}
