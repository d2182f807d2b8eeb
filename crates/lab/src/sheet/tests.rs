use std::collections::BTreeSet;

use roxmltree::{Document, Node};

use super::sample::{HOSTILE, about, outcome, report};
use super::{compare_html, compare_markdown, html, markdown};
use crate::figures;
use crate::outcome::{InSoftware, Report, Row, Spread};

/// Returns a page as XML: HTML except for `meta`, which is not closed there.
fn as_xml(page: &str) -> String {
    let body = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let mut out = String::new();
    for (index, part) in body.split("<meta ").enumerate() {
        if index == 0 {
            out.push_str(part);
        } else {
            out.push_str(&format!("<meta {}", part.replacen('>', "/>", 1)));
        }
    }
    out
}

fn elements<'a>(page: &'a Document<'a>, name: &'a str) -> Vec<Node<'a, 'a>> {
    page.descendants().filter(|node| node.has_tag_name(name)).collect()
}

fn all_text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

/// Checks what must hold for every page.
fn check(page: &str) {
    let xml = as_xml(page);
    let document = Document::parse(&xml).unwrap();
    let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "every id occurs once");
    for node in document.descendants().filter(Node::is_element) {
        let refers = ["aria-labelledby", "aria-describedby"].map(|name| node.attribute(name));
        let target = node.attribute("href").map(|href| href.strip_prefix('#').unwrap());
        for id in refers.into_iter().flatten().chain(target) {
            assert!(unique.contains(id), "{id} is nowhere");
        }
        for name in ["src", "srcset", "data", "xlink:href", "action", "onclick", "onload"] {
            assert!(node.attribute(name).is_none(), "nothing is fetched or executed");
        }
    }
    for banned in ["http:", "https:", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(banned), "{banned}");
    }
    for table in elements(&document, "table") {
        check_table(table);
    }
    for svg in elements(&document, "svg") {
        let is_named = svg.children().any(|node| node.has_tag_name("title"));
        assert!(is_named || svg.attribute("aria-hidden") == Some("true"));
    }
}

/// Every line has a cell for each column, and a heading names each.
fn check_table(table: Node<'_, '_>) {
    assert!(table.children().any(|node| node.has_tag_name("caption")));
    let width = |line: Node<'_, '_>| -> usize {
        let cells = line.children().filter(Node::is_element);
        cells.map(|it| it.attribute("colspan").map_or(1, |n| n.parse().unwrap())).sum()
    };
    let lines = |name: &str| -> Vec<usize> {
        let parts = table.children().filter(|node| node.has_tag_name(name));
        parts.flat_map(|part| part.children().filter(Node::is_element).map(width)).collect()
    };
    let body = lines("tbody");
    // One heading above all, or none if the first column is enough.
    let columns = *lines("thead").first().unwrap_or(&2);
    assert!(body.iter().all(|width| *width == columns), "{}", all_text(table));
    for heading in table.descendants().filter(|node| node.has_tag_name("th")) {
        assert!(heading.attribute("scope").is_some());
    }
}

#[test]
fn a_page_is_well_formed_and_self_contained() {
    check(&html(&report("Holdfast", 1.0)));
    check(&html(&Report { about: about("nothing yet"), scenarios: Vec::new() }));
}

#[test]
fn a_page_has_every_scenario_and_every_figure() {
    let report = report("Holdfast", 1.0);
    let xml = as_xml(&html(&report));
    let page = Document::parse(&xml).unwrap();
    let titles: Vec<String> = elements(&page, "h2").into_iter().map(all_text).collect();
    for outcome in &report.scenarios {
        let count = titles.iter().filter(|t| t.starts_with(&format!("{}:", outcome.id))).count();
        assert_eq!(count, 1, "{}", outcome.id);
    }
    let section = page.descendants().find(|node| node.attribute("id") == Some("summary")).unwrap();
    let lines: Vec<String> = section
        .descendants()
        .filter(|node| node.has_tag_name("th") && node.attribute("scope") == Some("row"))
        .map(all_text)
        .collect();
    let ids: Vec<&str> = figures::ALL.iter().map(|figure| figure.id).collect();
    assert_eq!(lines, ids);
    // V-55 is not in the report.
    assert!(all_text(section).contains("not run"));
}

#[test]
fn published_and_measured_values_are_in_separate_cells() {
    let report = Report { about: about("Holdfast"), scenarios: vec![outcome("P-13", 1.0)] };
    let xml = as_xml(&html(&report));
    let page = Document::parse(&xml).unwrap();
    let theirs: Vec<Node<'_, '_>> = elements(&page, "td")
        .into_iter()
        .filter(|it| it.attribute("class") == Some("published"))
        .collect();
    assert!(theirs.iter().any(|cell| all_text(*cell) == "4.5 min"));
    for cell in elements(&page, "td") {
        let text = all_text(cell);
        let is_theirs = cell.attribute("class") == Some("published");
        assert!(is_theirs || !text.contains("4.5 min"));
        assert!(!is_theirs || !text.contains("36.8"));
    }
}

#[test]
fn every_text_is_escaped() {
    let mut report = report(HOSTILE, 1.0);
    report.about.array = HOSTILE.to_owned();
    report.about.portals = vec![HOSTILE.to_owned()];
    report.scenarios.push(outcome(HOSTILE, 1.0));
    report.scenarios.push(outcome(HOSTILE, 1.0));
    report.scenarios[0].rows.push(Row { case: HOSTILE.to_owned(), off: None, on: None });
    let page = html(&report);
    check(&page);
    assert!(page.contains("&lt;script&gt;"));
    check(&compare_html(&report, &report));
    for text in [markdown(&report), compare_markdown(&report, &report)] {
        assert!(!text.contains("<script"));
        check_markdown(&text);
    }
}

/// Every line of a table has as many cells as its heading.
fn check_markdown(text: &str) {
    let mut width = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            width = None;
            continue;
        }
        let bars = line.replace("\\|", "").matches('|').count();
        assert_eq!(*width.get_or_insert(bars), bars, "{line}");
    }
}

#[test]
fn ratios_are_shown_next_to_both_sides() {
    let report = Report { about: about("Holdfast"), scenarios: vec![outcome("P-13", 1.0)] };
    let text = markdown(&report);
    let line = text.lines().find(|line| line.starts_with("| 16 VMs |")).unwrap();
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert_eq!(cells[2..5], ["36.8\u{a0}s", "1.76\u{a0}s", "20.9×"]);
    assert_eq!(cells[5..8], ["32.8\u{a0}GB", "1.66\u{a0}MB", "19,692×"]);
    assert_eq!(cells[11..14], ["32,768", "1,024", "32.0×"]);
}

#[test]
fn a_missing_side_stays_empty() {
    let mut one = outcome("V-51", 1.0);
    one.rows.truncate(1);
    one.rows[0].off = None;
    let text = markdown(&Report { about: about("Holdfast"), scenarios: vec![one] });
    let line = text.lines().find(|line| line.starts_with("| 1 VM |")).unwrap();
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert_eq!(cells[2..5], ["–", "0.110\u{a0}s", "–"]);
}

#[test]
fn a_summary_shows_the_quantity_of_the_figure() {
    let text = markdown(&report("Holdfast", 1.0));
    let line = |id: &str| text.lines().find(|line| line.starts_with(&format!("| {id} |"))).unwrap();
    assert!(line("P-13").contains("| 16 VMs | 36.8\u{a0}s | 1.76\u{a0}s | 20.9× |"));
    assert!(line("P-6").contains("7,200\u{a0}IOPS | 17,600\u{a0}IOPS | on ÷ off 2.44× |"));
    assert!(line("P-6").ends_with("| ✗ 1 of 2 missed |"), "{}", line("P-6"));
    assert!(line("V-34").ends_with("| ✗ failed |"));
    assert!(line("V-52").ends_with("| skipped |"));
    assert!(line("V-55").ends_with("| not run |"));
}

#[test]
fn two_reports_are_compared_case_by_case() {
    let (a, mut b) = (report("Holdfast", 2.0), report("tgt", 1.0));
    b.about.scale = 128;
    b.scenarios.retain(|outcome| outcome.id != "P-9");
    check(&compare_html(&a, &b));
    let text = compare_markdown(&a, &b);
    check_markdown(&text);
    assert!(text.starts_with("# Holdfast against tgt\n"));
    assert!(text.contains("differ in scale"));
    assert!(text.contains("\nB: not run\n"));
    assert!(text.contains("| 16 VMs, on | 0.880\u{a0}s | 1.76\u{a0}s | 0.500× |"));
    assert!(text.contains("| 16 VMs, off | 36.8\u{a0}s | 36.8\u{a0}s | 1.00× |"));
}

#[test]
fn bars_of_both_arrays_are_drawn() {
    let one = |name: &str, speed: f64| Report {
        about: about(name),
        scenarios: vec![outcome("P-13", speed)],
    };
    let xml = as_xml(&compare_html(&one("Holdfast", 2.0), &one("tgt", 1.0)));
    let page = Document::parse(&xml).unwrap();
    let legend: Vec<String> = elements(&page, "figcaption")[0]
        .descendants()
        .filter(|node| node.has_tag_name("li"))
        .map(all_text)
        .collect();
    assert_eq!(legend, ["A off", "B off", "A on", "B on"]);
    let bars = elements(&page, "rect").into_iter().filter(|it| it.attribute("rx").is_none());
    // Four for each of five cases.
    assert_eq!(bars.count(), 20);
}

#[test]
fn lines_of_both_arrays_share_a_chart() {
    let text = compare_html(&report("Holdfast", 1.0), &report("tgt", 1.0));
    let xml = as_xml(&text);
    let page = Document::parse(&xml).unwrap();
    let captions: Vec<String> = elements(&page, "figcaption").into_iter().map(all_text).collect();
    let both = "IOPS of the load while 150 VMs bootA offA onB offB on";
    assert!(captions.iter().any(|caption| caption == both), "{captions:?}");
}

fn refused() -> InSoftware {
    InSoftware {
        offload: String::from("EXTENDED COPY"),
        refused: 3,
        by_host: 40,
        by_host_bytes: 48_000_000,
        by_array: 0,
        by_array_bytes: 0,
    }
}

/// A scenario in whose last case the array has refused to copy.
fn in_software() -> Report {
    let mut one = outcome("P-13", 1.0);
    one.rows[4].on.as_mut().unwrap().in_software.push(refused());
    one.in_software.push(InSoftware { refused: 5, ..refused() });
    Report { about: about("Holdfast"), scenarios: vec![one] }
}

#[test]
fn on_done_in_software_is_marked() {
    let report = in_software();
    let text = markdown(&report);
    check_markdown(&text);
    assert!(
        text.contains("\n| 16 VMs (on in software: EXTENDED COPY) | 36.8\u{a0}s | 1.76\u{a0}s |"),
        "{text}"
    );
    assert!(text.contains("\n| 8 VMs | "), "the other cases are unchanged");
    // The headline too.
    assert!(text.contains(" | 16 VMs (on in software: EXTENDED COPY) | 36.8"));
    assert!(text.contains("| 16 VMs, on | EXTENDED COPY | 3 | 40 | 48.0\u{a0}MB | 0\u{a0}B |"));
    assert!(text.contains("| whole scenario | EXTENDED COPY | 5 |"));
    let page = html(&report);
    check(&page);
    let xml = as_xml(&page);
    let page = Document::parse(&xml).unwrap();
    let marked = |name: &str| {
        let cells = elements(&page, name).into_iter().map(all_text);
        cells.filter(|text| text == "16 VMs (on in software: EXTENDED COPY)").count()
    };
    assert_eq!((marked("th"), marked("td")), (1, 1), "in its section, and in the summary");
    let json = serde_json::to_string(&report).unwrap();
    let back: Report = serde_json::from_str(&json).unwrap();
    assert!(back == report && json.contains("\"offload\":\"EXTENDED COPY\""));
    let compared = compare_markdown(&report, &report);
    assert!(
        compared.contains(
            "| 16 VMs, on (A in software: EXTENDED COPY, B in software: EXTENDED COPY) |"
        ),
        "{compared}"
    );
    check_markdown(&compared);
    let plain = markdown(&Report { scenarios: vec![outcome("P-13", 1.0)], ..report });
    assert!(!plain.contains("in software"));
}

#[test]
fn repeated_measurements_show_their_spread() {
    let mut one = outcome("P-13", 1.0);
    let spread = Spread { runs: 5, least_seconds: 0.1, most_seconds: 0.125 };
    one.rows[0].on.as_mut().unwrap().spread = Some(spread);
    let text = markdown(&Report { about: about("Holdfast"), scenarios: vec![one] });
    check_markdown(&text);
    let line = "| 1 VM, on | 5 | 0.100\u{a0}s | 0.110\u{a0}s | 0.125\u{a0}s |";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("| 2 VMs, on | "));
}

#[test]
fn no_ratio_is_relative_to_an_unmeasurable_time() {
    let mut one = outcome("P-13", 1.0);
    for row in &mut one.rows {
        let on = row.on.as_mut().unwrap();
        (on.seconds, on.host_cpu_s) = (0.000_4, 0.0);
    }
    let report = Report { about: about("Holdfast"), scenarios: vec![one] };
    for text in [markdown(&report), compare_markdown(&report, &report)] {
        assert!(text.contains("too fast to measure"), "{text}");
        for odd in ["NaN", "inf", "\u{221e}"] {
            assert!(!text.contains(&format!(" {odd}")), "{odd} in {text}");
        }
    }
    let text = markdown(&report);
    assert!(
        text.contains("| 16 VMs | 36.8\u{a0}s | 0.000400\u{a0}s | too fast to measure |"),
        "{text}"
    );
}

#[test]
fn a_report_shows_checked_datastores_and_reduced_counts() {
    let mut report = Report { about: about("Holdfast"), scenarios: vec![outcome("P-13", 1.0)] };
    assert!(markdown(&report).contains("3 datastores were checked, and are sound."));
    report.scenarios[0].datastores_checked = 0;
    assert!(markdown(&report).contains("no datastore was checked."));
    assert!(!markdown(&report).contains("not comparable"));
    report.about.count_scale = 16;
    let text = markdown(&report);
    assert!(text.contains("the papers' divided by 16: not comparable"), "{text}");
    assert!(text.contains("There were fewer machines than in the papers"), "{text}");
}
