//! A document as one self-contained HTML page: its style is in it, nothing is fetched, and it has
//! no script. It is also well-formed XML, except for `meta`, so that tests can read it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::{self, palette};
use super::document::{Block, Cell, Column, Document, Table, Tone};

/// The style sheet, except for the colors of charts in dark mode.
const STYLE: &str = include_str!("style.css");

/// Returns the page of a document.
pub fn page(document: &Document) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (document.title) }
                style { (PreEscaped(STYLE)) (PreEscaped(dark_charts())) }
            }
            body {
                header {
                    h1 { (document.title) }
                    @for block in &document.intro { (shown(block, "intro")) }
                }
                (contents(document))
                main {
                    @for section in &document.sections {
                        section id=(section.anchor) {
                            h2 { (section.title) }
                            @for (index, block) in section.blocks.iter().enumerate() {
                                (shown(block, &format!("{}-{index}", section.anchor)))
                            }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn dark_charts() -> String {
    format!("@media screen and (prefers-color-scheme: dark) {{\n{}}}\n", palette::dark_rules())
}

fn contents(document: &Document) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for section in &document.sections {
                    li {
                        a href=(format!("#{}", section.anchor)) title=(section.title) {
                            (section.short)
                        }
                    }
                }
            }
        }
    }
}

/// Returns a block. `id` is unique in the page.
fn shown(block: &Block, id: &str) -> Markup {
    match block {
        Block::Text(tone, text) => html! { p class=[class(*tone)] { (text) } },
        Block::List(title, items) => html! {
            h3 { (title) }
            ul { @for item in items { li { (item) } } }
        },
        Block::Table(table) => shown_table(table),
        Block::Chart(chart) => chart::figure(chart, id),
    }
}

fn shown_table(table: &Table) -> Markup {
    html! {
        div.wide tabindex="0" role="group" aria-label=(table.caption) {
            table {
                caption { (table.caption) }
                @if table.columns.iter().any(|column| !column.name.is_empty()) {
                    thead { (head(&table.columns)) }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (index, (cell, column)) in
                                row.iter().zip(&table.columns).enumerate()
                            {
                                (shown_cell(cell, column, index == 0))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns one line of headings, or two if columns form groups.
fn head(columns: &[Column]) -> Markup {
    let is_grouped = columns.iter().any(|column| !column.group.is_empty());
    if !is_grouped {
        return html! { tr { @for column in columns { (heading(column, None)) } } };
    }
    html! {
        tr {
            @for group in columns.chunk_by(|a, b| !a.group.is_empty() && a.group == b.group) {
                @if group[0].group.is_empty() {
                    (heading(&group[0], Some("2")))
                } @else {
                    th scope="colgroup" colspan=(group.len()) class=[class(group[0].tone)] {
                        (group[0].group)
                    }
                }
            }
        }
        tr {
            @for column in columns.iter().filter(|column| !column.group.is_empty()) {
                (heading(column, None))
            }
        }
    }
}

fn heading(column: &Column, rowspan: Option<&str>) -> Markup {
    let class = classes(column.tone, column.is_number);
    html! {
        @if column.name.is_empty() {
            td rowspan=[rowspan] {}
        } @else {
            th scope="col" rowspan=[rowspan] class=[class] { (column.name) }
        }
    }
}

fn shown_cell(cell: &Cell, column: &Column, is_first: bool) -> Markup {
    let class = classes(cell.tone, column.is_number);
    let inner = html! {
        @match &cell.link {
            Some(anchor) => a href=(format!("#{anchor}")) { (cell.text) },
            None => (cell.text),
        }
    };
    html! {
        @if is_first {
            th scope="row" class=[class] { (inner) }
        } @else {
            td class=[class] { (inner) }
        }
    }
}

fn classes(tone: Tone, is_number: bool) -> Option<String> {
    let classes = [class(tone), is_number.then_some("number")];
    let classes: Vec<&str> = classes.into_iter().flatten().collect();
    (!classes.is_empty()).then(|| classes.join(" "))
}

fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Published => Some("published"),
        Tone::Good => Some("good"),
        Tone::Bad => Some("bad"),
        Tone::Faint => Some("faint"),
    }
}
