//! What a person reads, as data: [`text`] and [`html`] write it.
//!
//! A document says what something is (a heading, a table, a share of a whole), and writers
//! decide how it looks in their medium. Strings may hold anything that other people's
//! processes wrote: writers make them harmless.

mod cell;
pub(crate) mod html;
pub(crate) mod lines;
mod table;
pub(crate) mod text;

pub(crate) use cell::{Cell, Drawn, Shade, Tone};
pub(crate) use table::{Column, Kind, Table};

/// A text for people.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Its title.
    pub title: String,
    /// What it is about: a line for whoever wants to know where this comes from.
    pub about: String,
    /// The answer.
    pub head: Vec<Block>,
    /// Its evidence.
    pub(crate) main: Vec<Block>,
    /// How the evidence came about.
    pub(crate) foot: Vec<Block>,
}

/// A part of a document.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// The answer in a sentence or two.
    Lead(String),
    /// A paragraph.
    Text(String),
    /// A paragraph in an emphasis.
    Marked(Tone, String),
    /// A list.
    List(Vec<String>),
    /// Lines of facts.
    Facts(Vec<Vec<Fact>>),
    /// Lines to copy.
    Code(String),
    /// What must not be overlooked: a title and its reasons.
    Alarm(Tone, String, Vec<String>),
    /// Figures that most readers came for. Only for writers with room: a sentence has them too.
    Figures(Vec<Figure>),
    /// Parts of a whole, drawn: a title and the parts. Only for writers that draw: a table has
    /// them too.
    Whole(String, Vec<Part>),
    /// A table.
    Table(Table),
    /// A conclusion with its evidence.
    Card(Box<Card>),
    /// Blocks under a heading.
    Section(Section),
    /// Blocks for writers with much room, and those for others.
    Fold(Vec<Self>, Vec<Self>),
    /// Blocks under a title that a reader opens; only for writers that are asked for all, or
    /// can open and close.
    Details(String, Vec<Self>),
    /// The pages of findings, each under its name. Only for pages.
    Pages(Vec<&'static tlsprof_advise::Kind>),
}

/// Blocks under a heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The heading.
    pub title: String,
    /// Name by which cells link to it: see [`anchor`].
    pub(crate) anchor: Option<String>,
    /// What it holds.
    pub(crate) blocks: Vec<Block>,
}

/// A fact in a line of them.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// Words.
    Words(String),
    /// A path, an id or other text of a machine.
    Code(String),
    /// The name of a finding, whose page is in the document.
    Finding(String),
}

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// What it is.
    pub name: &'static str,
    /// The figure with its unit.
    pub value: String,
    /// What belongs to it.
    pub(crate) remark: String,
}

/// A part of a whole.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// What it is.
    pub name: String,
    /// Its share of 1.
    pub share: f64,
    /// Its colour.
    pub(crate) shade: Shade,
}

/// A conclusion with its evidence.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    /// Its place among others, from 1.
    pub number: usize,
    /// The conclusion.
    pub title: String,
    /// How grave it is.
    pub(crate) tone: Tone,
    /// The same in a word.
    pub label: String,
    /// What it is about.
    pub(crate) facts: Vec<Fact>,
    /// Evidence and remedies.
    pub(crate) blocks: Vec<Block>,
}

impl Block {
    /// A section without a link to it.
    pub(crate) fn section(title: impl Into<String>, blocks: Vec<Self>) -> Self {
        Self::Section(Section {
            title: title.into(),
            anchor: None,
            blocks,
        })
    }

    /// Side remarks.
    pub(crate) fn remarks(texts: impl IntoIterator<Item = String>) -> impl Iterator<Item = Self> {
        texts.into_iter().map(|text| Self::Marked(Tone::Soft, text))
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

/// What stands where there is too little room for all.
pub(crate) fn and_more(count: usize) -> String {
    format!("and {count} more (all in the JSON)")
}

/// A name that serves as an anchor: what others may have written is not in it.
pub(crate) fn anchor(kind: &str, number: usize) -> String {
    format!("{kind}-{}", number + 1)
}
