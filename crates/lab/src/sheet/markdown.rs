//! A document as Markdown.

use super::document::{Block, Cell, Column, Document, Table};

/// Returns the text of a document: its tables, paragraphs and lists.
pub fn text(document: &Document) -> String {
    let mut out = format!("# {}\n", escaped(&document.title));
    document.intro.iter().for_each(|block| add(&mut out, block));
    for section in &document.sections {
        out.push_str(&format!("\n## {}\n", escaped(&section.title)));
        section.blocks.iter().for_each(|block| add(&mut out, block));
    }
    out
}

fn add(out: &mut String, block: &Block) {
    match block {
        Block::Text(_, text) => out.push_str(&format!("\n{}\n", escaped(text))),
        Block::List(title, items) => {
            out.push_str(&format!("\n{}:\n\n", escaped(title)));
            items.iter().for_each(|item| out.push_str(&format!("- {}\n", escaped(item))));
        }
        Block::Table(table) => add_table(out, table),
        // Markdown has none. Their numbers are in the tables, or in the page.
        Block::Chart(_) => {}
    }
}

fn add_table(out: &mut String, table: &Table) {
    out.push_str(&format!("\n{}:\n\n", escaped(&table.caption)));
    add_line(out, table.columns.iter().map(name));
    let rule = |column: &Column| String::from(if column.is_number { "---:" } else { "---" });
    add_line(out, table.columns.iter().map(rule));
    for row in &table.rows {
        add_line(out, row.iter().map(|cell: &Cell| escaped(&cell.text)));
    }
}

fn add_line(out: &mut String, cells: impl Iterator<Item = String>) {
    out.push('|');
    cells.for_each(|cell| out.push_str(&format!(" {cell} |")));
    out.push('\n');
}

fn name(column: &Column) -> String {
    match column.group.as_str() {
        "" => escaped(&column.name),
        group => format!("{}: {}", escaped(group), escaped(&column.name)),
    }
}

/// Returns a text in one line, with Markdown and HTML escaped.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markdown_in_texts_is_escaped() {
        assert_eq!(escaped("a|b\nc"), "a\\|b c");
        assert_eq!(escaped("<b>*x*</b> & `y`"), "&lt;b&gt;\\*x\\*&lt;/b&gt; &amp; \\`y\\`");
        assert_eq!(escaped("[a](b)"), "\\[a\\](b)");
    }
}
