//! Prints the types of the interface, for `web/openapi.json`: the page's types are made of them.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&api::types_for_the_page())?);
    Ok(())
}
