//! The page together with the interface, with constructed files.

use super::*;

/// Files by path.
struct Made(&'static [(&'static str, &'static str, &'static str)]);

impl Site for Made {
    fn file(&self, path: &str) -> Option<File> {
        let (at, (_, kind, text)) =
            self.0.iter().enumerate().find(|(_, (name, ..))| *name == path)?;
        let hash = [at as u8 + 1; 32];
        Some(File { data: Cow::Borrowed(text.as_bytes()), hash, kind: (*kind).to_owned() })
    }
}

const SITE: Made = Made(&[
    ("index.html", "text/html", "<p>page"),
    ("index.html.gz", "application/gzip", "packed page"),
    ("assets/a-1.js", "text/javascript", "let a"),
    ("assets/a-1.js.gz", "application/gzip", "packed"),
    ("assets/f.woff2", "font/woff2", "font"),
]);
const NOTHING: Made = Made(&[]);

fn get(site: &impl Site, path: &str, headers: &[(HeaderName, &str)]) -> Option<Response> {
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
    answer(site, &Method::GET, path, &headers.collect())
}

fn header(response: &Response, name: HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[test]
fn addresses_of_the_page_return_it_and_others_go_to_the_interface() {
    for path in [
        "/",
        "/volumes",
        "/volumes/vm-1",
        "/hosts/a%2e",
        "/settings/",
        "/volumes/../v1",
        "/audit",
        "/snapshots",
    ] {
        let page = get(&SITE, path, &[]).unwrap();
        assert_eq!((page.status(), header(&page, CONTENT_LENGTH)), (StatusCode::OK, "7"), "{path}");
        assert_eq!(header(&page, CONTENT_TYPE), "text/html; charset=utf-8");
        assert_eq!(header(&page, CACHE_CONTROL), "no-cache");
    }
    for path in [
        "/api",
        "/api/2.26/volumes",
        "/api/volumes",
        "/v1",
        "/v1/volumes",
        "/v1/assets/a-1.js",
        "/metrics",
        "/Volumes",
        "/volumesx",
        "/audits",
        "//volumes",
        "/assets",
        "/assets/",
        "/assets/a-2.js",
        "/assets/../index.html",
        "/assets/a-1.js.gz",
        "/index.html",
        "/index.html.gz",
        "/%2e%2e/Cargo.toml",
        "*",
    ] {
        assert!(get(&SITE, path, &[]).is_none(), "{path}");
    }
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        assert!(answer(&SITE, &method, "/volumes", &HeaderMap::new()).is_none());
    }
}

#[test]
fn files_are_cached_by_hash_and_compressed() {
    let plain = get(&SITE, "/assets/a-1.js", &[]).unwrap();
    assert_eq!(header(&plain, CONTENT_TYPE), "text/javascript; charset=utf-8");
    assert!(header(&plain, CACHE_CONTROL).contains("immutable"));
    assert_eq!((header(&plain, CONTENT_ENCODING), header(&plain, VARY)), ("", "accept-encoding"));
    for (takes, is_packed) in [
        ("gzip", true),
        ("br, GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip;q=x", false),
        ("br", false),
        ("*", false),
    ] {
        let answer = get(&SITE, "/assets/a-1.js", &[(ACCEPT_ENCODING, takes)]).unwrap();
        assert_eq!(header(&answer, CONTENT_ENCODING) == "gzip", is_packed, "{takes}");
        assert_eq!(header(&answer, CONTENT_TYPE), "text/javascript; charset=utf-8");
        assert_eq!(header(&answer, ETAG) != header(&plain, ETAG), is_packed);
    }
    let font = get(&SITE, "/assets/f.woff2", &[(ACCEPT_ENCODING, "gzip")]).unwrap();
    assert_eq!((header(&font, CONTENT_TYPE), header(&font, VARY)), ("font/woff2", ""));
    assert_eq!(header(&font, CONTENT_ENCODING), "");
}

#[test]
fn an_unchanged_file_is_not_sent_again() {
    let tag = header(&get(&SITE, "/", &[]).unwrap(), ETAG).to_owned();
    assert_eq!(tag.len(), 34);
    let weak = format!("\"other\", W/{tag}");
    for known in [tag.as_str(), "*", weak.as_str()] {
        let answer = get(&SITE, "/", &[(IF_NONE_MATCH, known)]).unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!((header(&answer, ETAG), header(&answer, CONTENT_LENGTH)), (tag.as_str(), ""));
    }
    let other = get(&SITE, "/", &[(IF_NONE_MATCH, "\"other\"")]).unwrap();
    assert_eq!(other.status(), StatusCode::OK);
    // The compressed file is another representation.
    let both = [(IF_NONE_MATCH, tag.as_str()), (ACCEPT_ENCODING, "gzip")];
    assert_eq!(get(&SITE, "/", &both).unwrap().status(), StatusCode::OK);
}

#[test]
fn every_response_has_a_strict_security_policy() {
    for (site, path) in [(&SITE, "/"), (&SITE, "/assets/a-1.js"), (&NOTHING, "/volumes")] {
        let answer = get(site, path, &[]).unwrap();
        let policy = header(&answer, CONTENT_SECURITY_POLICY);
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        assert_eq!(header(&answer, X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(header(&answer, REFERRER_POLICY), "no-referrer");
    }
}

#[test]
fn without_the_page_the_response_says_how_to_build_it() {
    let answer = get(&NOTHING, "/volumes/vm-1", &[]).unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(header(&answer, CONTENT_TYPE), "text/html; charset=utf-8");
    assert!(WITHOUT.contains("web/build"));
    assert!(get(&NOTHING, "/assets/a-1.js", &[]).is_none());
}

#[test]
fn heads_have_no_bodies() {
    let head = answer(&SITE, &Method::HEAD, "/", &HeaderMap::new()).unwrap();
    assert_eq!(header(&head, CONTENT_LENGTH), "7");
    let body = http_body_util::BodyExt::collect(head.into_body());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(body).unwrap().to_bytes().is_empty());
}

/// The page itself has the same list of addresses.
#[test]
fn the_list_of_pages_matches_the_web_page() {
    let text = include_str!("../../../../web/src/routes.ts");
    let list = text.split_once("PAGES = [").unwrap().1.split_once(']').unwrap().0;
    let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(names, PAGES);
}
