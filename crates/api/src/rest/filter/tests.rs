//! Compares filters with a naive evaluator, and tests the texts that clients send.

use std::cell::Cell;

use proptest::prelude::*;
use serde_json::json;

use super::*;

thread_local! {
    /// The number of conditions that were checked against items, on this thread.
    pub(in crate::rest) static LOOKS: Cell<u64> = const { Cell::new(0) };
}

fn holds(filter: &str, item: &Value) -> bool {
    Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}")).matches(item)
}

#[test]
fn filters_of_published_clients_are_parsed() {
    let host = json!({
        "name": "esx-1", "is_local": true, "iqns": ["iqn.2026-11.com.example:1", "iqn.x:2"],
        "host_group": {"name": "cluster"}, "connection_count": 3, "wwns": [], "personality": null,
        "note": "it's \\ here",
        "space": {"total_physical": 9_007_199_254_740_993_u64},
    });
    for (filter, wanted) in [
        ("name='esx-1'", true),
        ("name=\"ESX-1\"", true),
        ("name = 'esx-*'", true),
        ("name='*sx*1'", true),
        ("name='sx*'", false),
        ("name=('a','esx-1')", true),
        ("name!=('a','esx-1')", false),
        ("iqns='IQN.x:2' and is_local", true),
        ("iqns[all]='iqn.*'", true),
        ("iqns[all]='iqn.x*'", false),
        ("iqns[any]='iqn.x*'", true),
        ("wwns='*'", false),
        ("wwns[all]='never'", true),
        ("not(is_local)", false),
        ("not is_local or host_group.name='cluster'", true),
        ("is_local='true'", true),
        ("is_local=false", false),
        ("connection_count>2 and connection_count<=3", true),
        ("connection_count='3'", true),
        ("connection_count>=-1.5e1", true),
        ("connection_count<'x'", false),
        ("space.total_physical=9007199254740992", false),
        ("space.total_physical>9007199254740992", true),
        ("personality", false),
        ("personality=null", true),
        ("nothing=null", true),
        ("nothing='a'", false),
        ("nothing!='a'", true),
        ("nothing.at.all", false),
        ("host_group", true),
        ("contains(name, 'SX')", true),
        ("note='it\\'s \\\\ here'", true),
        ("note=\"it's \\\\ *\"", true),
        ("contains(host_group.name,'x')", false),
        ("AND_x or (name='a' OR (name='esx-1'))", true),
    ] {
        assert_eq!(holds(filter, &host), wanted, "{filter}");
    }
}

#[test]
fn an_invalid_filter_is_refused_with_the_position() {
    for (filter, at) in [
        ("", 0),
        ("name=", 5),
        ("name='a", 5),
        ("name='a\\'", 5),
        ("name=a", 5),
        ("name='a' name='b'", 9),
        ("name='a')", 8),
        ("(name='a'", 9),
        ("name<('a','b')", 14),
        ("name!", 4),
        ("1=1", 0),
        ("a..b", 0),
        ("a[some]", 0),
        ("tags('a','b')", 0),
        ("contains('a','b')", 9),
        ("a='b' and", 9),
        ("a = 1x", 4),
        ("ä='b'", 0),
    ] {
        assert_eq!(Filter::parse(filter).unwrap_err().at, at, "{filter}");
    }
    assert!(Filter::parse(&"x".repeat(FILTER_BYTES_MAX)).is_ok());
    assert!(Filter::parse(&"x".repeat(FILTER_BYTES_MAX + 1)).is_err());
    let nested = |depth: usize| format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX - 1)).is_ok());
    assert!(Filter::parse(&nested(FILTER_DEPTH_MAX)).is_err());
    assert!(Filter::parse(&"not ".repeat(FILTER_BYTES_MAX / 5)).is_err());
    // A chain is not nested.
    assert!(Filter::parse(&format!("x{}", " and x".repeat(FILTER_TERMS_MAX - 1))).is_ok());
    assert!(Filter::parse(&format!("x{}", " and x".repeat(FILTER_TERMS_MAX))).is_err());
    assert!(Filter::parse(&["x"; FIELD_STEPS_MAX].join(".")).is_ok());
    assert!(Filter::parse(&["x"; FIELD_STEPS_MAX + 1].join(".")).is_err());
}

#[test]
fn values_of_one_field_are_one_condition_in_any_spelling() {
    let all: Vec<String> = (0..800).map(|n| format!("'v{n}'")).collect();
    let list = format!("name=({})", all.join(","));
    let each: Vec<String> = all.iter().map(|name| format!("name={name}")).collect();
    let chain = each.join(" or ");
    let nested = format!("({}) or ({})", each[..400].join(" or "), each[400..].join(" or "));
    let unlike = format!("not({chain})");
    let none: Vec<String> = all.iter().map(|name| format!("(name!={name})")).collect();
    let none = none.join(" and ");
    for (filter, first, other) in [
        (&list, true, false),
        (&chain, true, false),
        (&nested, true, false),
        (&unlike, false, true),
        (&none, false, true),
    ] {
        let parsed = Filter::parse(filter).unwrap();
        assert_eq!(parsed.terms(), 1);
        LOOKS.set(0);
        assert_eq!(parsed.matches(&json!({"name": "V7"})), first);
        assert_eq!(parsed.matches(&json!({"name": "x"})), other);
        assert_eq!(LOOKS.get(), 2, "a look-up each");
    }
    // Each pattern is compared separately; if all elements count, two conditions are not one.
    let stars = |count: usize| vec!["name='a*b'"; count].join(" or ").replacen("a*b", "a*c", 1);
    assert_eq!(Filter::parse(&stars(40)).unwrap().terms(), 2);
    let stars: Vec<String> = (0..40).map(|n| format!("name='a*{n}'")).collect();
    let reported = Filter::parse(&stars.join(" or ")).unwrap_err().to_string();
    let wanted = "Invalid filter, at character 1: it has more than 32 conditions; values of one \
                  field, without `*`, count once.";
    assert_eq!(reported, wanted);
    let item = json!({"iqns": ["a", "b"]});
    assert!(!holds("iqns[all]='a' or iqns[all]='b'", &item));
    assert!(holds("iqns[all]=('a','b')", &item));
    assert!(holds("iqns='a' and iqns='b'", &item));
    assert!(!holds("iqns!='a' and iqns!='c'", &item));
    assert!(holds("n=(1,'2.5') and n!=3", &json!({"n": 2.5})));
    assert!(holds("n=(1,'2.5') or n=7", &json!({"n": 1.0})));
}

#[test]
fn names_that_an_item_must_have_are_known() {
    let names = |filter: &str| {
        let parsed = Filter::parse(filter).unwrap();
        let mut names: Vec<String> = parsed.texts_of("name")?.iter().cloned().collect();
        names.sort_unstable();
        Some(names.join(","))
    };
    assert_eq!(names("name='A' or name=('b')"), Some("a,b".into()));
    assert_eq!(names("destroyed and (name='a' or name='b')"), Some("a,b".into()));
    for filter in ["name='a*'", "name=('a',1)", "not name='a'", "name='a' or x", "x.name='a'"] {
        assert_eq!(names(filter), None, "{filter}");
    }
}

/// Returns whether a text matches a pattern, by trying every length for every star.
fn naive_wild(text: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => text == pattern,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| naive_wild(&rest[at..], tail))
        }),
    }
}

/// Returns all values at the path of a field, without `[all]`.
fn naive_values(item: &Value, path: &[&str]) -> Vec<Value> {
    let Some((first, rest)) = path.split_first() else { return vec![item.clone()] };
    match item.get(first) {
        None => vec![Value::Null],
        Some(Value::Array(list)) => list.iter().flat_map(|one| naive_values(one, rest)).collect(),
        Some(one) => naive_values(one, rest),
    }
}

/// A condition that the tests generate, and its text.
#[derive(Clone, Debug)]
enum Made {
    Compare(Vec<&'static str>, &'static str, Value),
    Present(Vec<&'static str>),
    Contains(Vec<&'static str>, String),
    Not(Box<Made>),
    And(Vec<Made>),
    Or(Vec<Made>),
}

impl Made {
    fn text(&self) -> String {
        let join = |all: &[Made], word: &str| {
            let texts: Vec<String> = all.iter().map(|one| format!("({})", one.text())).collect();
            texts.join(word)
        };
        match self {
            Self::Compare(path, operator, value) => {
                let value = match value {
                    Value::String(text) => format!("'{text}'"),
                    other => other.to_string(),
                };
                format!("{} {operator} {value}", path.join("."))
            }
            Self::Present(path) => path.join("."),
            Self::Contains(path, text) => format!("contains({},\"{text}\")", path.join(".")),
            Self::Not(inner) => format!("not({})", inner.text()),
            Self::And(all) => join(all, " and "),
            Self::Or(all) => join(all, "or"),
        }
    }

    fn holds(&self, item: &Value) -> bool {
        match self {
            Self::Compare(path, "!=", value) => {
                !Self::Compare(path.clone(), "=", value.clone()).holds(item)
            }
            Self::Compare(path, operator, wanted) => {
                naive_values(item, path).iter().any(|value| match (value, wanted) {
                    (Value::Number(a), Value::Number(b)) => {
                        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                        naive_order(a, b, operator)
                    }
                    (Value::String(a), Value::String(b)) if *operator == "=" => naive_wild(a, b),
                    (Value::String(a), Value::String(b)) => naive_order(a, b, operator),
                    (a, b) => *operator == "=" && a == b,
                })
            }
            Self::Present(path) => naive_values(item, path)
                .iter()
                .any(|value| *value != Value::Null && *value != json!(false)),
            Self::Contains(path, text) => naive_values(item, path)
                .iter()
                .any(|value| value.as_str().is_some_and(|value| value.contains(text.as_str()))),
            Self::Not(inner) => !inner.holds(item),
            Self::And(all) => all.iter().all(|one| one.holds(item)),
            Self::Or(all) => all.iter().any(|one| one.holds(item)),
        }
    }
}

fn naive_order<T: PartialOrd>(a: T, b: T, operator: &str) -> bool {
    match operator {
        "=" => a == b,
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        _ => a >= b,
    }
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(Value::Null),
        (-3_i32..4).prop_map(|n| json!(n)),
        "[ab*]{0,4}".prop_map(Value::String),
    ]
}

fn fields() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c_1"]), 1..4)
}

fn items() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        "[ab]{0,5}".prop_map(Value::String),
        (-3_i32..4).prop_map(|n| json!(n)),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    let names = prop::sample::select(vec!["a", "b", "c_1"]);
    let tree = leaf.prop_recursive(4, 24, 3, move |inner| {
        prop_oneof![
            prop::collection::vec((names.clone(), inner.clone()), 0..3).prop_map(|all| {
                all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
            // No response contains lists of lists.
            prop::collection::vec(inner.prop_filter("no list", |v| !v.is_array()), 0..3)
                .prop_map(Value::Array),
        ]
    });
    let object = |(a, b, c): (Value, Value, Value)| json!({"a": a, "b": b, "c_1": c});
    (tree.clone(), tree.clone(), tree).prop_map(object)
}

fn made() -> impl Strategy<Value = Made> {
    let operators = prop::sample::select(vec!["=", "!=", "<", ">", "<=", ">="]);
    let leaf = prop_oneof![
        (fields(), operators, scalars()).prop_map(|(f, o, v)| Made::Compare(f, o, v)),
        fields().prop_map(Made::Present),
        (fields(), "[ab]{0,2}").prop_map(|(field, text)| Made::Contains(field, text)),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| Made::Not(Box::new(one))),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Made::And),
            prop::collection::vec(inner, 1..4).prop_map(Made::Or),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn filters_agree_with_the_naive_evaluator(made in made(), item in items()) {
        let text = made.text();
        let is_too_much = |error: FilterError| error.why.contains("32 conditions");
        prop_assume!(!Filter::parse(&text).is_err_and(is_too_much));
        prop_assert_eq!(holds(&text, &item), made.holds(&item), "{}", text);
    }

    #[test]
    fn patterns_agree_with_the_naive_matcher(text in "[ab]{0,8}", star in "[ab*]{0,6}") {
        let is_it = if star.contains('*') { Pattern::new(&star).fits(&text) } else { text == star };
        prop_assert_eq!(is_it, naive_wild(&text, &star));
    }

    #[test]
    fn any_text_parses_or_is_refused(text in "\\PC{0,40}|[a-c.()='\"<>!, \\[\\]0-9-]{0,40}") {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.at <= text.len() && !error.to_string().contains('\n'));
        }
    }
}
