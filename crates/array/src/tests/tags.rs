//! Compares tags with a naive list; tags of clones; limits and sources of volumes.

use block::VolumeLimits;

use super::*;
use crate::limits::{BANDWIDTH_LIMIT, IOPS_LIMIT};
use crate::tags::{NAMESPACE_DEFAULT, TAG_KEY_CHARS_MAX, TAG_VALUE_CHARS_MAX, TAGS_PER_OBJECT_MAX};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn tag(key: &str, value: &str, copyable: bool) -> Tag {
    Tag::new(NAMESPACE_DEFAULT, key, value, copyable).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

fn keys(array: &Array, name: &str) -> Vec<String> {
    let tagged = array.tags(name, &TagFilter::default()).unwrap();
    tagged
        .tags
        .into_iter()
        .map(|tag| format!("{}/{}={}", tag.namespace, tag.key, tag.value))
        .collect()
}

fn with_volumes(names: &[&str]) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    for name in names {
        array.create_volume(new_volume(name, 1 << 20)).unwrap();
    }
    (store, array)
}

fn snapshot(array: &Array, volume: &str) {
    let source = SnapshotSource::Volumes(strings(&[volume]));
    let suffix = Some(Suffix::new("s").unwrap());
    array
        .create_snapshots(&NewSnapshots { source, suffix, apply_retention: false, created_ms: 1 })
        .unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<usize>, Vec<(usize, usize, u8, bool)>),
    Remove(Vec<usize>, Option<usize>, Vec<usize>),
    Clone(usize),
    Reload,
    Refuse(bool),
}

const OBJECTS: [&str; 3] = ["a", "b", "a.s"];
const NAMESPACES: [&str; 2] = ["default", "x.example.com"];
const KEYS: [&str; 3] = ["k", "K", "long key"];

fn tag_steps() -> impl Strategy<Value = Step> {
    let objects = || prop::sample::subsequence(vec![0, 1, 2], 1..3);
    let tags = || prop::collection::vec((0..2usize, 0..3usize, 0..4u8, any::<bool>()), 1..4);
    let wanted = || prop::collection::vec(0..3usize, 0..3);
    prop_oneof![
        4 => (objects(), tags()).prop_map(|(o, t)| Step::Set(o, t)),
        2 => (objects(), prop::option::of(0..2usize), wanted())
            .prop_map(|(o, n, k)| Step::Remove(o, n, k)),
        2 => (0..3usize).prop_map(Step::Clone),
        1 => Just(Step::Reload),
        1 => any::<bool>().prop_map(Step::Refuse),
    ]
}

/// Each tag as (object, namespace, key, value, copyable).
#[derive(Clone, Default)]
struct Naive(Vec<(usize, usize, usize, u8, bool)>);

impl Naive {
    fn set(
        &mut self,
        objects: &[usize],
        tags: &[(usize, usize, u8, bool)],
    ) -> Result<(), &'static str> {
        for (at, tag) in tags.iter().enumerate() {
            if tags[..at].iter().any(|of| (of.0, of.1) == (tag.0, tag.1)) {
                return Err("named_twice");
            }
        }
        for object in objects {
            for (namespace, key, value, copyable) in tags {
                self.0.retain(|of| (of.0, of.1, of.2) != (*object, *namespace, *key));
                self.0.push((*object, *namespace, *key, *value, *copyable));
            }
        }
        Ok(())
    }

    fn remove(
        &mut self,
        objects: &[usize],
        namespace: Option<usize>,
        keys: &[usize],
    ) -> Result<(), &'static str> {
        for object in objects {
            let is_of = |of: &(usize, usize, usize, u8, bool)| {
                of.0 == *object && namespace.is_none_or(|namespace| namespace == of.1)
            };
            if !keys.iter().all(|key| self.0.iter().any(|of| is_of(of) && of.2 == *key)) {
                return Err("no_such_tag");
            }
            self.0.retain(|of| !(is_of(of) && (keys.is_empty() || keys.contains(&of.2))));
        }
        Ok(())
    }

    fn of(&self, object: usize, only_copyable: bool) -> Vec<Tag> {
        let tags = self.0.iter().filter(|of| of.0 == object && (of.4 || !only_copyable));
        let tag = |of: &(usize, usize, usize, u8, bool)| {
            Tag::new(NAMESPACES[of.1], KEYS[of.2], &of.3.to_string(), of.4).unwrap()
        };
        let mut tags: Vec<_> = tags.map(tag).collect();
        tags.sort_by(|a, b| (&a.namespace, &a.key).cmp(&(&b.namespace, &b.key)));
        tags
    }
}

fn pick(all: &[&str], which: &[usize]) -> Vec<String> {
    which.iter().map(|at| all[*at].to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tags_match_the_naive_list(steps in prop::collection::vec(tag_steps(), 1..40)) {
        let (store, mut array) = with_volumes(&["a", "b"]);
        snapshot(&array, "a");
        let (mut naive, mut refuses, mut clones) = (Naive::default(), false, 0);
        for step in &steps {
            let mut next = naive.clone();
            let expected = match step {
                Step::Set(objects, tags) => next.set(objects, tags),
                Step::Remove(objects, namespace, keys) => next.remove(objects, *namespace, keys),
                _ => Ok(()),
            };
            let result = match step {
                Step::Set(objects, tags) => {
                    let tags = tags.iter().map(|t| {
                        Tag::new(NAMESPACES[t.0], KEYS[t.1], &t.2.to_string(), t.3).unwrap()
                    });
                    array.set_tags(&pick(&OBJECTS, objects), &tags.collect::<Vec<_>>())
                }
                Step::Remove(objects, namespace, keys) => {
                    let keys: BTreeSet<_> = keys.iter().copied().collect();
                    let keys = pick(&KEYS, &keys.into_iter().collect::<Vec<_>>());
                    let namespaces = namespace.map(|at| NAMESPACES[at].to_owned());
                    let namespaces = namespaces.into_iter().collect();
                    let filter = TagFilter { namespaces, keys: keys.into_iter().collect() };
                    array.remove_tags(&pick(&OBJECTS, objects), &filter)
                }
                Step::Clone(source) if !refuses => {
                    clones += 1;
                    let name = VolumeName::new(&format!("clone-{clones}")).unwrap();
                    let clone = array.clone_volume(OBJECTS[*source], name, 1).unwrap();
                    let tags = array.tags(&clone.name, &TagFilter::default()).unwrap().tags;
                    prop_assert_eq!(tags, naive.of(*source, true));
                    prop_assert_eq!(clone.source.unwrap().name, OBJECTS[*source]);
                    Ok(())
                }
                Step::Clone(_) => Ok(()),
                Step::Reload => {
                    array = Array::open(store.clone(), false).unwrap();
                    Ok(())
                }
                Step::Refuse(on) => {
                    refuses = *on;
                    store.refuses.store(refuses, Ordering::Relaxed);
                    Ok(())
                }
            };
            match result.map_err(|error| error.code()) {
                Err("pool_full") => prop_assert!(refuses && expected.is_ok()),
                result => {
                    prop_assert_eq!(result, expected);
                    naive = if expected.is_ok() { next } else { naive };
                }
            }
            for (at, object) in OBJECTS.iter().enumerate() {
                let found = array.tags(object, &TagFilter::default()).unwrap().tags;
                prop_assert_eq!(found, naive.of(at, false));
            }
        }
    }
}

#[test]
fn tags_are_bounded_and_removed_with_their_object() {
    assert!(Tag::new("", "k", "v", true).is_err());
    assert!(Tag::new("n", "k", "a\nb", true).is_err());
    assert!(Tag::new("n", &"k".repeat(TAG_KEY_CHARS_MAX + 1), "", true).is_err());
    let (store, array) = with_volumes(&["a", "b"]);
    snapshot(&array, "a");
    assert_eq!(code(array.set_tags(&strings(&["a", "A"]), &[])), "named_twice");
    // One invalid object refuses the whole change.
    let some = [tag("k", "v", true)];
    assert_eq!(code(array.set_tags(&strings(&["a", "nobody"]), &some)), "no_such_volume");
    assert!(keys(&array, "a").is_empty());
    // The maximum number of tags, with the maximum lengths, fits a record.
    let long = |n: usize| {
        let key = format!("{n:02}{}", "ß".repeat(TAG_KEY_CHARS_MAX - 2));
        Tag::new(
            &"\"".repeat(TAG_KEY_CHARS_MAX),
            &key,
            &"\u{1F5C4}".repeat(TAG_VALUE_CHARS_MAX),
            true,
        )
    };
    let most: Vec<_> = (0..TAGS_PER_OBJECT_MAX).map(|n| long(n).unwrap()).collect();
    array.set_tags(&strings(&["a", "a.s"]), &most).unwrap();
    assert_eq!(code(array.set_tags(&strings(&["a"]), &some)), "limit_reached");
    let longest = store.kept.lock().0.values().map(Vec::len).max().unwrap();
    assert!(longest < 64 << 10, "{longest} bytes");
    array.create_volume(new_volume("c", 4096)).unwrap();
    array.create_volume(new_volume("d", 4096)).unwrap();
    let names = strings(&["a", "b", "c", "d", "a.s"]);
    let others: Vec<_> = most.iter().map(|tag| Tag { copyable: false, ..tag.clone() }).collect();
    array.set_tags(&strings(&["b", "c", "d"]), &most).unwrap();
    assert_eq!(code(array.set_tags(&names, &others)), "too_many_tags");
    assert_eq!(array.tags("b", &TagFilter::default()).unwrap().tags, most);
    // They are removed with the volume and its snapshots.
    assert_eq!(array.tagged(false, &TagFilter::default(), None, 9).len(), 4);
    assert_eq!(array.tagged(true, &TagFilter::default(), None, 9)[0].name, "a.s");
    array.destroy_volume("a", 0).unwrap();
    assert_eq!(code(array.set_tags(&strings(&["a"]), &some)), "volume_destroyed");
    array.eradicate_volume("a").unwrap();
    assert_eq!(array.tagged(false, &TagFilter::default(), None, 9).len(), 3);
    assert!(array.tagged(true, &TagFilter::default(), None, 9).is_empty());
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.tagged(false, &TagFilter::default(), None, 9).len(), 3);
}

#[test]
fn a_volume_remembers_its_source() {
    let (store, array) = with_volumes(&["a", "b"]);
    snapshot(&array, "a");
    let name = |text: &str| VolumeName::new(text).unwrap();
    let source = |array: &Array, of: &str| {
        let source = array.volume(of).unwrap().source;
        source.map(|source| (source.id, source.name))
    };
    assert_eq!(source(&array, "a"), None);
    array.clone_volume("a.s", name("c"), 1).unwrap();
    array.overwrite_volume("b", "c").unwrap();
    array.overwrite_volume("a", "a.s").unwrap();
    let (a, c) = (array.volume("a").unwrap().id, array.volume("c").unwrap().id);
    let snapshot = array.snapshot("a.s").unwrap();
    assert_eq!(snapshot.volume_id, a);
    array.rename_volume("a", name("new")).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(source(&array, "new"), None, "restored, it is still what it was");
    assert_eq!(source(&array, "c"), Some((snapshot.id, "new.s".into())));
    assert_eq!(source(&array, "b"), Some((c, "c".into())));
    // A deleted source is shown by its last name.
    array.destroy_volume("new", 0).unwrap();
    array.eradicate_volume("new").unwrap();
    assert_eq!(source(&array, "c"), Some((snapshot.id, "a.s".into())));
}

#[test]
fn limits_are_checked_kept_and_shown_with_the_volume() {
    let (store, array) = with_volumes(&["a"]);
    let iqn = "iqn.2026-11.com.example:1";
    array.create_host(new_host("esx1", &[iqn])).unwrap();
    array.connect("a", "esx1", None).unwrap();
    let set = |bandwidth_bytes_per_s, iops| {
        let limits = LimitsChange { bandwidth_bytes_per_s, iops };
        array.update_volume("a", VolumeUpdate { limits, ..Default::default() })
    };
    let before = array.lun_map(iqn);
    assert!(before.luns[&1].limits.is_none());
    for wrong in [BANDWIDTH_LIMIT.start() - 1, BANDWIDTH_LIMIT.end() + 1] {
        assert_eq!(code(set(Some(Some(wrong)), None)), "invalid_limit");
    }
    for wrong in [IOPS_LIMIT.start() - 1, IOPS_LIMIT.end() + 1] {
        assert_eq!(code(set(None, Some(Some(wrong)))), "invalid_limit");
    }
    let both = VolumeLimits { bandwidth_bytes_per_s: Some(1 << 20), iops: Some(100) };
    assert_eq!(set(Some(Some(1 << 20)), Some(Some(100))).unwrap().limits, both);
    let after = array.lun_map(iqn);
    assert!(after.generation > before.generation);
    assert_eq!((after.luns[&1].limits, array.volume_limits(after.luns[&1].id)), (both, both));
    let only_iops = VolumeLimits { iops: Some(100), ..VolumeLimits::NONE };
    assert_eq!(set(Some(None), None).unwrap().limits, only_iops);
    let again = Array::open(store, false).unwrap();
    assert_eq!(again.volume("a").unwrap().limits, only_iops);
    // A clone has no limits unless it is given its own.
    let clone = again.clone_volume("a", VolumeName::new("b").unwrap(), 1).unwrap();
    assert!(clone.limits.is_none());
    let limits = VolumeLimits { iops: Some(1), ..VolumeLimits::NONE };
    assert_eq!(
        code(again.create_volume(NewVolume { limits, ..new_volume("c", 4096) })),
        "invalid_limit"
    );
}
