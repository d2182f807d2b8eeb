//! The common parts of `volume-group …` and `pod …`.

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::Client;
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, show, table};
use super::rest::{first, named};
use super::size::human;

/// The kind of container: volume groups or pods.
pub struct Of {
    /// The resource of REST 2.x.
    pub resource: &'static str,
    /// The verb of the command line.
    pub verb: &'static str,
    /// The name of the kind at the beginning of a sentence.
    pub title: &'static str,
    /// The separator between its name and that of a volume.
    pub separator: &'static str,
}

/// A volume group or a pod in the form of REST 2.x.
#[derive(Serialize, Deserialize)]
pub struct Container {
    name: String,
    volume_count: u64,
    destroyed: bool,
    space: Space,
}

/// The stored data of its volumes.
#[derive(Serialize, Deserialize)]
struct Space {
    total_provisioned: u64,
    #[serde(rename = "virtual")]
    written: u64,
}

impl Of {
    /// Runs `create`.
    pub fn create(&self, client: &Client, form: Form, name: &str) -> Result<(), Failure> {
        let query = named("names", name)?;
        let made = client.change(Method::POST, self.resource, &query, &json!({}))?;
        let made: Container = first(made)?;
        show(form, &made, || {
            let Self { title, separator, .. } = self;
            let next = format!("holdfast volume create {}{separator}NAME --size SIZE", made.name);
            format!("{title} {} was created. Create a volume in it: {next}\n", made.name)
        })
    }

    /// Runs `rename`.
    pub fn rename(
        &self,
        client: &Client,
        form: Form,
        name: &str,
        new_name: &str,
    ) -> Result<(), Failure> {
        let renamed = self.patch(client, name, "", &json!({ "name": new_name }))?;
        show(form, &renamed, || {
            let title = self.title;
            format!("{title} {name} was renamed to {}, with its volumes.\n", renamed.name)
        })
    }

    /// Runs `recover`.
    pub fn recover(&self, client: &Client, form: Form, name: &str) -> Result<(), Failure> {
        let back = self.patch(client, name, "", &json!({ "destroyed": false }))?;
        show(form, &back, || {
            format!(
                "{} {name} was recovered, with the volumes that were destroyed with it.\n",
                self.title
            )
        })
    }

    /// Changes a volume group or a pod. `query` contains the parameters of the request in addition
    /// to the name.
    pub fn patch(
        &self,
        client: &Client,
        name: &str,
        query: &str,
        body: &Value,
    ) -> Result<Container, Failure> {
        first(client.change(Method::PATCH, self.resource, &of_name(name, query)?, body)?)
    }

    /// Eradicates a destroyed volume group or pod.
    pub fn eradicate(&self, client: &Client, name: &str, query: &str) -> Result<(), Failure> {
        client.order(Method::DELETE, self.resource, &of_name(name, query)?)
    }

    /// Runs `list`.
    pub fn list(
        &self,
        client: &Client,
        form: Form,
        destroyed: bool,
        listing: &Listing,
    ) -> Result<(), Failure> {
        let all = client.items(self.resource, &format!("destroyed={destroyed}"))?;
        let all: Vec<Container> = listing.of(all)?;
        let columns = [
            ("NAME", Align::Left),
            ("VOLUMES", Align::Right),
            ("SIZE", Align::Right),
            ("WRITTEN", Align::Right),
        ];
        let row = |one: &Container| {
            let Space { total_provisioned, written } = one.space;
            let count = one.volume_count.to_string();
            vec![one.name.clone(), count, human(total_provisioned), human(written)]
        };
        show(form, &all, || {
            let rows: Vec<_> = all.iter().map(row).collect();
            let (title, verb) = (self.title.to_lowercase(), self.verb);
            table(&columns, &rows, &format!("No {title}s. Create one: holdfast {verb} create NAME"))
        })
    }
}

fn of_name(name: &str, query: &str) -> Result<String, Failure> {
    let named = named("names", name)?;
    Ok(if query.is_empty() { named } else { format!("{named}&{query}") })
}
