//! Tables.

use std::borrow::Cow;

use super::Cell;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words.
    Words,
    /// Numbers.
    Number,
    /// Bars.
    Bar,
    /// Figures between limits.
    Interval,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its head, where there is little room.
    pub head: Cow<'static, str>,
    /// Its head, where there is room; empty where that is the same.
    pub title: Cow<'static, str>,
    /// What it holds.
    pub kind: Kind,
    /// What its head means, where that is not plain and there is room to say so.
    pub(crate) help: Option<&'static str>,
    /// Left out where the table is too wide.
    pub(crate) optional: bool,
}

/// A table, built column by column and row by row. The first cell of each row is its head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// What it shows, for writers with room.
    pub(crate) caption: String,
    /// Its columns.
    pub(crate) columns: Vec<Column>,
    /// Its rows, with a cell for each column.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Rows that writers without much room are content with.
    pub(crate) fold: Option<usize>,
}

impl Table {
    /// A table without columns.
    pub fn new(caption: impl Into<String>) -> Self {
        Self {
            caption: caption.into(),
            ..Self::default()
        }
    }

    /// Adds a column of words.
    #[must_use]
    pub fn words(self, head: impl Into<Cow<'static, str>>) -> Self {
        self.column(head.into(), Kind::Words)
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn number(self, head: impl Into<Cow<'static, str>>) -> Self {
        self.column(head.into(), Kind::Number)
    }

    /// Adds columns of numbers.
    #[must_use]
    pub(crate) fn numbers<const N: usize>(self, heads: [&'static str; N]) -> Self {
        heads.into_iter().fold(self, Self::number)
    }

    /// Adds a column of bars. They need no head where there is little room.
    #[must_use]
    pub(crate) fn bar(self, title: impl Into<Cow<'static, str>>) -> Self {
        self.column(Cow::Borrowed(""), Kind::Bar).titled(title)
    }

    /// Adds a column of figures between limits.
    #[must_use]
    pub fn interval(self, head: impl Into<Cow<'static, str>>) -> Self {
        self.column(head.into(), Kind::Interval)
    }

    /// Gives the last column another head where there is room.
    #[must_use]
    pub(crate) fn titled(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.title = title.into();
        }
        self
    }

    /// Says what the head of the last column means.
    #[must_use]
    pub(crate) fn help(mut self, text: &'static str) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.help = Some(text);
        }
        self
    }

    /// Lets the last column go where the table is too wide; the last such column goes first.
    #[must_use]
    pub(crate) fn optional(mut self) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.optional = true;
        }
        self
    }

    /// Lets writers without much room leave out all rows but the first; they say so.
    #[must_use]
    pub(crate) const fn fold(mut self, rows: usize) -> Self {
        self.fold = Some(rows);
        self
    }

    fn column(mut self, head: Cow<'static, str>, kind: Kind) -> Self {
        self.columns.push(Column {
            head,
            title: Cow::Borrowed(""),
            kind,
            help: None,
            optional: false,
        });
        self
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }
}
