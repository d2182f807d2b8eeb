//! The content of a document, without its presentation.

use crate::outcome::Chart;

/// A page.
pub struct Document {
    /// Its title.
    pub title: String,
    /// The blocks before its sections.
    pub intro: Vec<Block>,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// A part of a page, with a heading.
pub struct Section {
    /// Its anchor for links within the page.
    pub anchor: String,
    /// Its name in the table of contents.
    pub short: String,
    /// Its heading.
    pub title: String,
    /// Its content.
    pub blocks: Vec<Block>,
}

/// A part of a section.
pub enum Block {
    /// A paragraph.
    Text(Tone, String),
    /// A list of short texts.
    List(String, Vec<String>),
    /// A table.
    Table(Table),
    /// A chart; in formats without charts, its numbers are in tables.
    Chart(Chart),
}

/// The tone of a paragraph or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Neutral.
    Plain,
    /// From a paper, not from us.
    Published,
    /// A goal was reached.
    Good,
    /// A goal was missed.
    Bad,
    /// Unimportant.
    Faint,
}

/// A table. The first column says what each row is about.
pub struct Table {
    /// Its caption.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
pub struct Column {
    /// What it has in common with adjacent columns; empty if nothing.
    pub group: String,
    /// Its heading.
    pub name: String,
    /// Whether it contains numbers, which are aligned on the right.
    pub is_number: bool,
    /// Its tone.
    pub tone: Tone,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Its tone.
    pub tone: Tone,
    /// The anchor that it links to.
    pub link: Option<String>,
}

impl Cell {
    /// Returns a neutral cell.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain, link: None }
    }

    /// Sets the tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Sets a link to an anchor.
    pub fn linked(self, anchor: impl Into<String>) -> Self {
        Self { link: Some(anchor.into()), ..self }
    }
}

impl Column {
    /// Returns a column of words.
    pub fn words(name: &str) -> Self {
        let (group, name) = (String::new(), name.to_owned());
        Self { group, name, is_number: false, tone: Tone::Plain }
    }

    /// Returns a column of numbers.
    pub fn numbers(name: &str) -> Self {
        Self { is_number: true, ..Self::words(name) }
    }

    /// Sets the group.
    pub fn of(self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self }
    }

    /// Sets the tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Block {
    /// Returns a neutral paragraph.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Tone::Plain, text.into())
    }
}

/// Returns the anchor of a scenario's section. Its index makes it unique with any id.
pub fn anchor(index: usize, id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("s{}-{}", index + 1, id.chars().map(plain).collect::<String>())
}
