//! Tables in pages.

use maud::{Markup, html};

/// A cell.
#[derive(Debug)]
pub(in crate::outlet) enum Cell {
    /// Words.
    Text(String),
    /// A number.
    Number(String),
    /// A drawing.
    Chart(Markup),
    /// Anything else.
    Markup(Markup),
}

/// A column's head.
#[derive(Clone, Copy, Debug)]
pub(in crate::outlet) enum Head<'a> {
    /// Of words or drawings.
    Left(&'a str),
    /// Of numbers.
    Right(&'a str),
}

/// A table that scrolls in itself where it is wider than the page. The first cell of each
/// row is its head.
pub(in crate::outlet) fn table(caption: &str, heads: &[Head<'_>], rows: Vec<Vec<Cell>>) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for head in heads { (head_cell(*head)) } } }
                tbody { @for row in rows { (row_cells(row)) } }
            }
        }
    }
}

fn head_cell(head: Head<'_>) -> Markup {
    match head {
        Head::Left(text) => html! { th scope="col" { (text) } },
        Head::Right(text) => html! { th scope="col" class="number" { (text) } },
    }
}

fn row_cells(row: Vec<Cell>) -> Markup {
    let mut cells = row.into_iter();
    let first = cells.next();
    html! {
        tr {
            @if let Some(first) = first { th scope="row" { (content(&first)) } }
            @for cell in cells {
                @match &cell {
                    Cell::Number(text) => td class="number" { (text) },
                    Cell::Chart(chart) => td class="chart" { (chart) },
                    other => td { (content(other)) },
                }
            }
        }
    }
}

fn content(cell: &Cell) -> Markup {
    match cell {
        Cell::Text(text) | Cell::Number(text) => html! { (text) },
        Cell::Chart(markup) | Cell::Markup(markup) => markup.clone(),
    }
}
