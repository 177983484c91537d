//! Tables with aligned columns.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Paint, Style, shorten};

/// Spaces between columns.
const GAP: usize = 2;
/// A column that must shrink keeps at least this width.
const NARROWEST: usize = 12;

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

#[derive(Clone, Debug)]
struct Column {
    header: Cow<'static, str>,
    align: Align,
    /// Left out where the table is too wide.
    optional: bool,
    paint: Option<Paint>,
}

/// A table, built column by column and row by row.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Emphasis of a row's last cell, by row.
    marks: BTreeMap<usize, Paint>,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column of words.
    #[must_use]
    pub fn left(self, header: impl Into<Cow<'static, str>>) -> Self {
        self.column(header.into(), Align::Left, false)
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn right(self, header: impl Into<Cow<'static, str>>) -> Self {
        self.column(header.into(), Align::Right, false)
    }

    /// Adds a column that is left out where the table is too wide; the last
    /// such column goes first.
    #[must_use]
    pub fn optional(self, header: impl Into<Cow<'static, str>>, align: Align) -> Self {
        self.column(header.into(), align, true)
    }

    /// Paints the cells of the column added last.
    #[must_use]
    pub fn painted(mut self, paint: Paint) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.paint = Some(paint);
        }
        self
    }

    fn column(mut self, header: Cow<'static, str>, align: Align, optional: bool) -> Self {
        self.columns.push(Column {
            header,
            align,
            optional,
            paint: None,
        });
        self
    }

    /// Adds a row with a cell for each column.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.cells(cells.into());
    }

    /// The same, where the number of columns is known only at run time.
    pub fn cells(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Paints the last cell of the row added last.
    pub fn mark(&mut self, paint: Paint) {
        if let Some(last) = self.rows.len().checked_sub(1) {
            self.marks.insert(last, paint);
        }
    }

    /// Whether it has no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, each after `indent` spaces and ended by a newline.
    /// Where it is wider than the style, optional columns are left out, then
    /// the widest column of words is shortened.
    pub fn render(&self, style: Style, indent: usize) -> String {
        let mut shown = self.measured();
        let total = |shown: &[Shown<'_>]| {
            let widths = shown.iter().map(|column| column.width).sum::<usize>();
            indent + widths + GAP * shown.len().saturating_sub(1)
        };
        while total(&shown) > style.width
            && let Some(at) = shown.iter().rposition(|shown| shown.column.optional)
        {
            shown.remove(at);
        }
        let excess = total(&shown).saturating_sub(style.width);
        let words = shown
            .iter_mut()
            .filter(|shown| shown.column.align == Align::Left);
        if let Some(widest) = words.max_by_key(|shown| shown.width) {
            let least = widest.width.min(NARROWEST);
            widest.width = widest.width.saturating_sub(excess).max(least);
        }
        self.lines(style, indent, &shown)
    }

    fn measured(&self) -> Vec<Shown<'_>> {
        let columns = self.columns.iter().enumerate();
        let measured = columns.map(|(at, column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let texts = cells.map(String::as_str).chain([&*column.header]);
            Shown {
                at,
                column,
                width: texts.map(|text| text.chars().count()).max().unwrap_or(0),
            }
        });
        measured.collect()
    }

    fn lines(&self, style: Style, indent: usize, shown: &[Shown<'_>]) -> String {
        let mut out = String::new();
        if shown.iter().any(|shown| !shown.column.header.is_empty()) {
            let header =
                |shown: &Shown<'_>| style.paint(Paint::Dim, &shown.pad(&shown.column.header));
            push_line(&mut out, indent, shown.iter().map(header));
        }
        for (number, row) in self.rows.iter().enumerate() {
            let cell = |shown: &Shown<'_>| {
                let text = shown.pad(row.get(shown.at).map_or("", String::as_str));
                let is_last = shown.at + 1 == self.columns.len();
                let mark = self.marks.get(&number).filter(|_| is_last);
                mark.or(shown.column.paint.as_ref())
                    .map_or_else(|| text.clone(), |paint| style.paint(*paint, &text))
            };
            push_line(&mut out, indent, shown.iter().map(cell));
        }
        out
    }
}

/// A column as it is shown.
#[derive(Debug)]
struct Shown<'a> {
    at: usize,
    column: &'a Column,
    width: usize,
}

impl Shown<'_> {
    fn pad(&self, cell: &str) -> String {
        let width = self.width;
        match self.column.align {
            Align::Left => format!("{:<width$}", shorten(cell, width)),
            Align::Right => format!("{cell:>width$}"),
        }
    }
}

fn push_line(out: &mut String, indent: usize, cells: impl Iterator<Item = String>) {
    let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:indent$}{}", "", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new()
            .left("name")
            .right("count")
            .optional("max", Align::Right);
        table.row(["a".into(), "1,234".into(), "9 ms".into()]);
        table.row(["a-very-long-name-indeed".into(), "1".into(), "10 ms".into()]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let text = table().render(Style::plain(80), 2);
        let expected = "  name                     count    max\n  \
             a                        1,234   9 ms\n  \
             a-very-long-name-indeed      1  10 ms\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_wide_table_loses_optional_columns_then_shortens_words() {
        let text = table().render(Style::plain(23), 0);
        let expected = "name              count\n\
             a                 1,234\n\
             a-very-…e-indeed      1\n";
        assert_eq!(text, expected);
    }
}
