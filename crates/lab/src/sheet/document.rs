//! The content of a document, without its presentation.

use crate::outcome::Chart;

/// A page.
pub struct Document {
    /// What it is called.
    pub title: String,
    /// The blocks before its sections.
    pub intro: Vec<Block>,
    /// Its parts.
    pub sections: Vec<Section>,
}

/// A part of a page, with a heading.
pub struct Section {
    /// What links within the page call it.
    pub anchor: String,
    /// What it is called in the contents.
    pub short: String,
    /// Its heading.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// A part of a section.
pub enum Block {
    /// A paragraph.
    Text(Tone, String),
    /// Several short ones, as a list.
    List(String, Vec<String>),
    /// A table.
    Table(Table),
    /// A chart; where there are none, its numbers are in tables.
    Chart(Chart),
}

/// How a paragraph is meant, or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As any other.
    Plain,
    /// It comes from a paper, not from us.
    Published,
    /// Something was reached.
    Good,
    /// Something was not.
    Bad,
    /// Not worth a look.
    Faint,
}

/// A table. The first column says what each row is of.
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its lines, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
pub struct Column {
    /// What it and its neighbours have in common; empty where nothing.
    pub group: String,
    /// Its heading.
    pub name: String,
    /// Whether it holds numbers, which are read from the right.
    pub is_number: bool,
    /// Whose it is.
    pub tone: Tone,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is in it.
    pub text: String,
    /// How it is meant.
    pub tone: Tone,
    /// The anchor that it leads to.
    pub link: Option<String>,
}

impl Cell {
    /// A cell as any other.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain, link: None }
    }

    /// The same with a tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// The same, leading to an anchor.
    pub fn linked(self, anchor: impl Into<String>) -> Self {
        Self { link: Some(anchor.into()), ..self }
    }
}

impl Column {
    /// A column of words.
    pub fn words(name: &str) -> Self {
        let (group, name) = (String::new(), name.to_owned());
        Self { group, name, is_number: false, tone: Tone::Plain }
    }

    /// A column of numbers.
    pub fn numbers(name: &str) -> Self {
        Self { is_number: true, ..Self::words(name) }
    }

    /// The same in a group.
    pub fn of(self, group: &str) -> Self {
        Self { group: group.to_owned(), ..self }
    }

    /// The same with a tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Block {
    /// A paragraph as any other.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Tone::Plain, text.into())
    }
}

/// The anchor of a scenario's section. Its index keeps it unique, whatever the id is.
pub fn anchor(index: usize, id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("s{}-{}", index + 1, id.chars().map(plain).collect::<String>())
}
