//! Prints the types of the interface, for `web/openapi.json`: the page's types are generated from
//! it.

#![allow(clippy::print_stdout, reason = "printing is the purpose of this program")]

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&api::types_for_the_page())?);
    Ok(())
}
