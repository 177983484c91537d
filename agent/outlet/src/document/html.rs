//! Documents as pages.

mod chart;

use maud::{Markup, html};

use super::{Block, Card, Cell, Column, Document, Drawn, Fact, Figure, Kind, Section, Table, Tone};
use crate::html::markdown::{Place, markdown};
use crate::html::page;
use tlsprof_advise::Kind as FindingKind;
use tlsprof_common::units::printable;

/// The document as a page of its own.
pub(crate) fn render(document: &Document) -> String {
    let content = html! {
        header {
            h1 { "tlsprof · " (printable(&document.about)) }
            (blocks(&document.head, 2))
        }
        main { (blocks(&document.main, 2)) }
        footer { (blocks(&document.foot, 2)) }
    };
    page(&printable(&document.title), &content)
}

fn blocks(blocks: &[Block], level: u8) -> Markup {
    html! { @for one in blocks { (block(one, level)) } }
}

fn block(block: &Block, level: u8) -> Markup {
    match block {
        Block::Lead(text) => html! { p class="lead" { (printable(text)) } },
        Block::Text(text) => html! { p { (printable(text)) } },
        Block::Marked(tone, text) => html! { p class=[paragraph(*tone)] { (printable(text)) } },
        Block::List(items) => list(items),
        Block::Facts(lines) => html! {
            p class="soft" {
                @for (at, facts) in lines.iter().enumerate() {
                    @if at > 0 { br; }
                    (joined(facts))
                }
            }
        },
        Block::Code(text) => html! {
            pre tabindex="0" aria-label="What to write into the configuration" {
                @for line in text.lines() { (printable(line)) "\n" }
            }
        },
        Block::Alarm(tone, title, reasons) => html! {
            div class={ "card alarm " (class(*tone)) } role="alert" {
                p { strong { (printable(title)) } }
                (list(reasons))
            }
        },
        Block::Figures(figures) => html! {
            dl class="figures" { @for one in figures { (figure(one)) } }
        },
        Block::Whole(title, parts) => chart::whole(title, parts),
        Block::Table(one) => table(one),
        Block::Card(one) => card(one, level),
        Block::Section(one) => section(one, level),
        // Not on paper, where room is scarce.
        Block::Fold(inner, brief) if brief.is_empty() => html! {
            div class="more" { (blocks(inner, level)) }
        },
        Block::Fold(inner, _) => blocks(inner, level),
        Block::Details(title, inner) => html! {
            details {
                summary { (printable(title)) }
                (blocks(inner, level))
            }
        },
        Block::Pages(kinds) => html! { @for kind in kinds { (page_of(kind, kinds)) } },
    }
}

/// The page of a finding; links lead to those of `others` that are here, too.
fn page_of(kind: &FindingKind, others: &[&FindingKind]) -> Markup {
    let link = |name: &str| {
        let is_here = others.iter().any(|one| one.label == name);
        is_here.then(|| format!("#{}", page_anchor(name)))
    };
    html! {
        details {
            summary { code { (kind.label) } }
            div id=(page_anchor(kind.label)) class="page" {
                (markdown(kind.page(), Place::Within, link))
            }
        }
    }
}

/// The page of a finding opens where a link leads into it.
fn page_anchor(name: &str) -> String {
    format!("about-{name}")
}

fn list(items: &[String]) -> Markup {
    html! { ul { @for item in items { li { (printable(item)) } } } }
}

fn joined(facts: &[Fact]) -> Markup {
    html! {
        @for (at, fact) in facts.iter().enumerate() {
            @if at > 0 { " · " }
            @match fact {
                Fact::Words(text) => { (printable(text)) }
                Fact::Code(text) => { code { (printable(text)) } }
                Fact::Finding(name) => {
                    a href={ "#" (page_anchor(name)) } { "about " (printable(name)) }
                }
            }
        }
    }
}

fn figure(one: &Figure) -> Markup {
    html! {
        div { dt { (one.name) } dd { (one.value) span { (printable(&one.remark)) } } }
    }
}

fn card(card: &Card, level: u8) -> Markup {
    let class = class(card.tone);
    html! {
        article class={ "card finding " (class) } {
            h3 { (printable(&card.title)) }
            p class="small" {
                span class={ "tag " (class) } { (printable(&card.label)) } " " (joined(&card.facts))
            }
            (blocks(&card.blocks, level))
        }
    }
}

fn section(section: &Section, level: u8) -> Markup {
    let inner = blocks(&section.blocks, level + 1);
    match &section.anchor {
        Some(id) => html! {
            section aria-labelledby=(id) {
                h2 id=(id) { (printable(&section.title)) }
                (inner)
            }
        },
        None if level == 2 => html! { h2 { (printable(&section.title)) } (inner) },
        None => html! { h3 { (printable(&section.title)) } (inner) },
    }
}

/// A table that scrolls in itself where it is wider than the page.
fn table(table: &Table) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(printable(&table.caption)) {
            table {
                caption { (printable(&table.caption)) }
                thead { tr { @for (at, column) in table.columns.iter().enumerate() {
                    (head(column, classes(table, at)))
                } } }
                tbody { @for row in &table.rows { tr {
                    @for (at, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
                        @if at == 0 {
                            th scope="row" class=[classes(table, at)] { (content(cell, column.kind)) }
                        } @else {
                            td class=[classes(table, at)] {
                                (content(cell, column.kind))
                            }
                        }
                    }
                } } }
            }
        }
        (meanings(table))
    }
}

/// What the heads of a table mean, for those who cannot point at them, as on a phone.
fn meanings(table: &Table) -> Markup {
    let all = table.columns.iter();
    let mut explained = all
        .filter_map(|column| Some((title(column), column.help?)))
        .peekable();
    html! {
        @if explained.peek().is_some() {
            details class="meanings" {
                summary { "What the columns mean" }
                dl { @for (title, meaning) in explained { dt { (printable(title)) } dd { (meaning) } } }
            }
        }
    }
}

fn head(column: &Column, class: Option<String>) -> Markup {
    html! { th scope="col" class=[class] title=[column.help] { (printable(title(column))) } }
}

/// The head of a column where there is room.
fn title(column: &Column) -> &str {
    match &*column.title {
        "" => &column.head,
        title => title,
    }
}

/// Classes of the cells of a column. What is optional, or only drawn, is left out where there is
/// little room.
fn classes(table: &Table, at: usize) -> Option<String> {
    let column = table.columns.get(at)?;
    let mut cells = table.rows.iter().filter_map(|row| row.get(at));
    let is_drawn = matches!(column.kind, Kind::Bar | Kind::Interval);
    let all = [
        (column.kind == Kind::Number, "number"),
        (is_drawn, "chart"),
        (is_drawn && cells.all(|cell| cell.text.is_empty()), "drawn"),
        (column.optional, "optional"),
    ];
    let all: Vec<&str> = all
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn content(cell: &Cell, kind: Kind) -> Markup {
    let text = printable(&cell.text);
    html! {
        @match &cell.drawn {
            Some(Drawn::Bar(share, shade, limits)) => { (chart::bar(*share, *shade, *limits)) }
            Some(Drawn::Swatch(shade)) => { (chart::swatch(*shade)) (text) }
            Some(Drawn::Interval { ends, span }) => {
                (chart::interval(class(cell.tone), *ends, *span))
                @if !text.is_empty() { span class="soft small" { (text) } }
            }
            None => {
                @if let Some(anchor) = &cell.link {
                    a href={ "#" (anchor) } { (text) }
                } @else if cell.tone == Tone::Plain || kind != Kind::Words {
                    (text)
                } @else {
                    span class={ "tag " (class(cell.tone)) } { (text) }
                }
            }
        }
        @if !cell.remark.is_empty() {
            " " span class="soft small" { (printable(&cell.remark)) }
        }
    }
}

const fn paragraph(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Soft => Some("soft small"),
        Tone::Good | Tone::Look | Tone::Bad | Tone::Strong => Some("strong"),
    }
}

/// Class of a tone in the style.
const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Strong => "accent",
        Tone::Soft => "noise",
        Tone::Good => "good",
        Tone::Look => "look",
        Tone::Bad => "bad",
    }
}
