//! Tables in columns of a terminal. Ours rather than a crate's: columns give way in an order
//! of their own, and what comes out are spans, for terminals and screens alike.

use std::borrow::Cow;

use super::super::lines::{Line, Span, paint, width};
use super::super::{Cell, Column, Drawn, Kind, Table};
use crate::terminal::{Paint, bar, shorten};
use tlsprof_common::units::printable;

/// Spaces between columns.
const GAP: usize = 2;
/// A column of words that must shrink keeps at least this width.
const NARROWEST: usize = 12;
/// Bars are at most this wide, and at least the second where there is little room.
const BAR: usize = 36;
const SHORTEST_BAR: usize = 8;

/// The first rows of a table as lines. Where it is wider than there is room, optional columns are
/// left out, then bars shrink and go, then the widest column of words shrinks.
pub(super) fn lines(table: &Table, rows: usize, indent: usize, room: usize) -> Vec<Line> {
    let rows = table.rows.get(..rows).unwrap_or(&table.rows);
    let mut shown: Vec<Shown<'_>> = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| Shown::measure(at, column, rows, room))
        .filter(|shown| shown.width > 0)
        .collect();
    fit(&mut shown, room.saturating_sub(indent));
    let mut lines = Vec::new();
    if shown.iter().any(|shown| !shown.column.head.is_empty()) {
        let heads = shown
            .iter()
            .map(|shown| (Some(Paint::Dim), shown.pad(&shown.column.head)));
        lines.push(line(indent, heads));
    }
    for row in rows {
        let cells = shown.iter().map(|shown| {
            let cell = row.get(shown.at).cloned().unwrap_or_default();
            shown.cell(&cell)
        });
        lines.push(line(indent, cells));
    }
    lines
}

fn total(shown: &[Shown<'_>]) -> usize {
    let widths = shown.iter().map(|shown| shown.width).sum::<usize>();
    widths + GAP * shown.len().saturating_sub(1)
}

fn fit(shown: &mut Vec<Shown<'_>>, room: usize) {
    while total(shown) > room
        && let Some(at) = shown.iter().rposition(|shown| shown.column.optional)
    {
        shown.remove(at);
    }
    shrink(shown, room, Kind::Bar, SHORTEST_BAR);
    if total(shown) > room {
        shown.retain(|shown| shown.column.kind != Kind::Bar);
    }
    shrink(shown, room, Kind::Words, NARROWEST);
}

/// Makes the widest column of a kind narrower, as far as it must be and may.
fn shrink(shown: &mut [Shown<'_>], room: usize, kind: Kind, least: usize) {
    let excess = total(shown).saturating_sub(room);
    let those = shown.iter_mut().filter(|shown| shown.column.kind == kind);
    if let Some(widest) = those.max_by_key(|shown| shown.width) {
        let least = widest.width.min(least);
        widest.width = widest.width.saturating_sub(excess).max(least);
    }
}

fn line(indent: usize, cells: impl Iterator<Item = (Option<Paint>, String)>) -> Line {
    let mut line = Line::new();
    let mut before = " ".repeat(indent);
    for (paint, text) in cells {
        line.push(Span {
            paint: None,
            text: before,
        });
        line.push(Span { paint, text });
        before = " ".repeat(GAP);
    }
    line
}

/// What a cell says in words.
fn words(cell: &Cell) -> Cow<'_, str> {
    match (cell.text.as_str(), cell.remark.as_str()) {
        (text, "") => printable(text),
        (text, remark) => printable(&format!("{text}: {remark}")).into_owned().into(),
    }
}

/// A column as it is shown.
struct Shown<'a> {
    at: usize,
    column: &'a Column,
    width: usize,
}

impl<'a> Shown<'a> {
    fn measure(at: usize, column: &'a Column, rows: &[Vec<Cell>], room: usize) -> Self {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let width = match column.kind {
            Kind::Bar => (room / 4).min(BAR),
            _ => cells.map(|cell| width(&words(cell))).max().unwrap_or(0),
        };
        // Intervals that are only drawn have no column here.
        let width = match column.kind {
            Kind::Interval if width == 0 => 0,
            _ => width.max(self::width(&column.head)),
        };
        Self { at, column, width }
    }

    fn cell(&self, cell: &Cell) -> (Option<Paint>, String) {
        match cell.drawn {
            Some(Drawn::Bar(share, ..)) => (Some(Paint::Cyan), bar(share, self.width)),
            _ => (paint(cell.tone), self.pad(&words(cell))),
        }
    }

    fn pad(&self, text: &str) -> String {
        match self.column.kind {
            Kind::Words | Kind::Bar => {
                let text = shorten(text, self.width);
                let blanks = self.width.saturating_sub(width(&text));
                format!("{text}{:blanks$}", "")
            }
            Kind::Number | Kind::Interval => {
                let blanks = self.width.saturating_sub(width(text));
                format!("{:blanks$}{text}", "")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table as render;
    use super::*;
    use crate::terminal::Style;

    fn table() -> Table {
        let mut table = Table::new("")
            .words("name")
            .number("count")
            .number("max")
            .optional();
        table.row(["a", "1,234", "9 ms"].map(Cell::from));
        table.row(["a-very-long-name-indeed", "1", "10 ms"].map(Cell::from));
        table
    }

    #[test]
    fn columns_are_aligned() {
        let text = render(&table(), 2, Style::plain(80));
        let expected = "  name                     count    max\n  \
             a                        1,234   9 ms\n  \
             a-very-long-name-indeed      1  10 ms\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_wide_table_loses_optional_columns_then_shortens_words() {
        let text = render(&table(), 0, Style::plain(23));
        let expected = "name              count\n\
             a                 1,234\n\
             a-very-…e-indeed      1\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn bars_go_before_words_are_cut() {
        let mut table = Table::new("").words("step").bar("drawn").number("share");
        let bar = Cell::default().drawn(Drawn::Bar(0.5, crate::document::Shade::Handshake, None));
        table.row(vec!["key exchange or signing".into(), bar, "50%".into()]);
        let drawn = render(&table, 0, Style::plain(40));
        assert_eq!(
            drawn.lines().nth(1),
            Some("key exchange or signing  ████        50%")
        );
        let words = render(&table, 0, Style::plain(39));
        assert_eq!(
            words,
            "step                     share\nkey exchange or signing    50%\n"
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new("").words("name").number("count");
        table.row(["日本語", "1"].map(Cell::from));
        table.row(["abcdef", "1"].map(Cell::from));
        let text = render(&table, 0, Style::plain(80));
        assert_eq!(text, "name    count\n日本語      1\nabcdef      1\n");
    }
}
