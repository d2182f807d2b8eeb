//! Compares pages with the whole list, sorted and cut independently.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::rest::filter::FILTER_TERMS_MAX;
use crate::rest::filter::tests::LOOKS;

#[derive(Clone, Debug, Serialize)]
struct Thing {
    name: String,
    size: Option<u8>,
    space: Space,
}

#[derive(Clone, Debug, Serialize)]
struct Space {
    used: u64,
    ratio: f64,
}

impl Listed for Thing {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["size", "space"]
    }
}

fn things(sizes: &[Option<u8>]) -> Vec<Thing> {
    let thing = |(n, size): (usize, &Option<u8>)| Thing {
        name: format!("t{n:04}"),
        size: *size,
        space: Space { used: (1 << 40) - n as u64 % 3, ratio: 1.5 },
    };
    sizes.iter().enumerate().map(thing).collect()
}

fn listing(query: &str) -> Result<Listing, Refused> {
    let mut query = Query::parse(query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    Ok(listing)
}

/// A glance shows the name, the size and the used space, but not the ratio. It sums up things of an
/// even size.
impl Glance for Thing {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn field(&self, path: &[&str]) -> Option<Value> {
        match path {
            ["name"] => Some(json!(self.name)),
            ["size"] => Some(json!(self.size)),
            ["space", "used"] => Some(json!(self.space.used)),
            _ => None,
        }
    }

    fn add_to(&self, sum: &mut dyn FnMut(&'static [&'static str], u64)) -> bool {
        if self.size.is_some_and(|size| size % 2 == 1) {
            return false;
        }
        if let Some(size) = self.size {
            sum(&["size"], size.into());
        }
        sum(&["space", "used"], self.space.used);
        true
    }
}

/// Returns a page that is read in pieces, with a glance at each thing first.
fn look(query: &str, things: &[Thing]) -> Items {
    let piece = |after: Option<&str>, limit, is_worth: Worth<'_>| {
        let start = after.map_or(0, |key| things.partition_point(|thing| *thing.name <= *key));
        let looked: Vec<_> = things.iter().skip(start).take(limit).collect();
        let next = looked.last().filter(|_| looked.len() == limit).map(|thing| Listed::key(*thing));
        let items = looked.into_iter().filter(|thing| is_worth(*thing)).cloned().collect();
        Ok(Looked { items, next })
    };
    let one = |key: &str| things.iter().find(|thing| thing.name == key).cloned();
    listing(query).unwrap().glanced(piece, one).unwrap()
}

/// Returns a page that is read in pieces, as the array provides them.
fn ask(query: &str, things: &[Thing]) -> Items {
    let piece = |after: Option<&str>, limit| {
        let start = after.map_or(0, |key| things.partition_point(|thing| *thing.name <= *key));
        Ok(things.iter().skip(start).take(limit).cloned().collect())
    };
    let in_pieces = listing(query).unwrap().pieces(piece).unwrap();
    let at_once = listing(query).unwrap().all(things).unwrap();
    assert_eq!(in_pieces.items, at_once.items);
    assert_eq!(value(&look(query, things)).unwrap(), value(&in_pieces).unwrap(), "{query}");
    in_pieces
}

fn names(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pages_count_skip_and_sum_up() {
    let all = things(&(0..=255).cycle().take(700).map(Some).collect::<Vec<_>>());
    let page = ask("limit=2&offset=3&total_item_count=true&filter=size>250", &all);
    assert_eq!(names(&page.items), ["t0254", "t0255", "t0507"].map(str::to_owned)[..2].to_vec());
    assert_eq!((page.total_item_count, page.more_items_remaining), (Some(10), true));
    let none = ask("limit=0", &all);
    assert_eq!((none.items.len(), none.total_item_count), (0, Some(700)));
    assert!(!none.more_items_remaining);
    let total = ask("total_only=true&filter=name='t000*'", &all);
    assert!(total.items.is_empty());
    assert_eq!(total.total.unwrap(), [json!({"size": 45, "space": {"used": (10_u64 << 40) - 9}})]);
    assert!(ask("limit=5000", &all).items.len() == 700);
    let most = "space.used=1099511627776";
    let both = format!("{most} and size>250 and space.used>1");
    for filter in ["size>250", most, &both, "name='t06*'", "space.ratio>1 and size=7", "never"] {
        for rest in
            ["limit=3", "limit=0", "total_only=true", "sort=size-&limit=4&offset=2", "sort=space"]
        {
            ask(&format!("filter={filter}&total_item_count=true&{rest}"), &all);
        }
    }
}

/// The largest list with the largest filters: each item is checked against a few conditions.
#[test]
fn a_filter_checks_each_item_against_few_conditions() {
    let all = things(&vec![Some(1); 2105]);
    let names: Vec<String> = (0..1000).map(|n| format!("name='t{n:04}'")).collect();
    let stars: Vec<String> = (0..31).map(|n| format!("name='*{n}*x'")).collect();
    for (filter, looks, found) in [
        (names.join(" or "), 1, 1000),
        (stars.join(" or "), 1, 0),
        (format!("({}) and size=1", names.join(" or ")), 2, 1000),
        (vec!["size=1"; 1000].join(" and "), FILTER_TERMS_MAX as u64, 1000),
    ] {
        let query: String = form_urlencoded::byte_serialize(filter.as_bytes()).collect();
        let Ok(listing) = listing(&format!("filter={query}&sort=size")) else {
            // The same condition a thousand times is a thousand conditions.
            assert!(filter.starts_with("size=1"), "{filter}");
            continue;
        };
        LOOKS.set(0);
        let piece = |after: Option<&str>, limit| {
            let start = after.map_or(0, |key| all.partition_point(|thing| *thing.name <= *key));
            Ok(all.iter().skip(start).take(limit).cloned().collect())
        };
        let page = listing.pieces(piece).unwrap();
        assert_eq!(page.items.len(), found, "{filter}");
        assert!(LOOKS.get() <= looks * all.len() as u64, "{} for {filter}", LOOKS.get());
    }
}

#[test]
fn a_list_without_an_end_is_refused() {
    let calls = Cell::new(0);
    let thing = |n: u64| Thing { name: format!("{n:012}"), ..things(&[None]).swap_remove(0) };
    let piece = |after: Option<&str>, limit: usize| {
        calls.set(calls.get() + 1);
        let start = after.map_or(0, |key| key.parse::<u64>().unwrap() + 1);
        Ok((start..start + limit as u64).map(thing).collect())
    };
    for query in ["sort=size", "filter=never", "total_only=true", "limit=0"] {
        calls.set(0);
        assert!(listing(query).unwrap().pieces(piece).is_err(), "{query}");
        assert!(calls.get() <= LOOKED_MAX / PIECE + 3, "{query}: {}", calls.get());
    }
    // In its own order it can be read page by page.
    assert!(listing("limit=1000").unwrap().pieces(piece).unwrap().more_items_remaining);
}

#[test]
fn duplicate_names_are_shown_once() {
    let many = vec![things(&[Some(1)]).swap_remove(0); 3 * PIECE];
    let page = listing("").unwrap().all(&many).unwrap();
    assert_eq!((page.items.len(), page.more_items_remaining), (1, false));
}

#[test]
fn invalid_parameters_are_refused() {
    for bad in [
        "filter=name",
        "limit=x",
        "sort=a b",
        "sort=",
        "offset=100001",
        "continuation_token=zz",
        "continuation_token=7b",
        "sort=name&continuation_token=7b2276616c756573223a5b5d2c226b6579223a2261227d",
        "sort=a,b,c,d,e,f,g,h,i",
        "colour=red",
    ] {
        let refused = listing(bad).is_err();
        assert_eq!(refused, !["filter=name", "sort="].contains(&bad), "{bad}");
    }
    let gone = "continuation_token=7b2276616c756573223a5b5d2c226b6579223a2261227d";
    assert!(listing(gone).unwrap().all(&things(&[None])).is_err());
}

proptest! {
    #[test]
    fn pages_together_are_the_whole_list_in_order(
        sizes in prop::collection::vec(prop::option::of(0_u8..4), 0..40),
        limit in 1_usize..7,
        sort in prop::sample::select(vec![
            "", "name", "name-", "size", "-size", "size-,name-", "space.used",
        ]),
        removed in any::<bool>(),
        by_glance in any::<bool>(),
    ) {
        let all = things(&sizes);
        let mut wanted = all.clone();
        match sort {
            "name-" => wanted.reverse(),
            "size" => wanted.sort_by_key(|thing| (thing.size, thing.name.clone())),
            "space.used" => wanted.sort_by_key(|thing| (thing.space.used, thing.name.clone())),
            "-size" => wanted.sort_by_key(|t| (std::cmp::Reverse(t.size), t.name.clone())),
            "size-,name-" => {
                wanted.sort_by_key(|thing| (thing.size, thing.name.clone()));
                wanted.reverse();
            }
            _ => {}
        }
        let (mut found, mut token, mut left) = (Vec::new(), String::new(), all.clone());
        loop {
            let skipped = if token.is_empty() { 0 } else { 3 };
            let query = format!(
                "limit={limit}&sort={sort}&offset={skipped}&continuation_token='{token}'"
            );
            let piece = |after: Option<&str>, limit| {
                let start = after.map_or(0, |key| left.partition_point(|t| *t.name <= *key));
                Ok(left.iter().skip(start).take(limit).cloned().collect())
            };
            let query = if token.is_empty() { query.replace("''", "") } else { query };
            let page = match by_glance {
                true => look(&query, &left),
                false => listing(&query).unwrap().pieces(piece).unwrap(),
            };
            prop_assert_eq!(page.more_items_remaining, page.continuation_token.is_some());
            found.extend(names(&page.items));
            if removed {
                // The last one is deleted before the next page is read: nothing else is missed.
                left.retain(|thing| Some(&thing.name) != found.last());
            }
            let Some(next) = page.continuation_token else { break };
            token = next;
        }
        let wanted: Vec<String> = wanted.into_iter().map(|thing| thing.name).collect();
        prop_assert_eq!(found, wanted);
    }
}
