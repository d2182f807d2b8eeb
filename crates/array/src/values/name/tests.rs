//! Tests of valid and invalid names.

use super::*;

#[test]
fn names_follow_the_rules() {
    for good in
        ["g/a", "G_1/12-3", "p::a", "P_1::12-3", "a", "db-1", "DB_1", "0x", "1-2", &"a".repeat(63)]
    {
        assert!(VolumeName::new(good).is_ok(), "{good}");
    }
    for bad in [
        "/",
        "/a",
        "g/",
        "g/a/b",
        "g//a",
        "g/12",
        "12/a",
        "g-/a",
        "g a/b",
        "",
        "-a",
        "a-",
        "_a",
        "a b",
        "a.b",
        "a:b",
        "::a",
        "p::",
        "p:::a",
        "p::a::b",
        "p::g/a",
        "g/p::a",
        "12::a",
        "ä",
        "12",
        &"a".repeat(64),
    ] {
        let error = VolumeName::new(bad).unwrap_err();
        assert_eq!(error.code(), "invalid_name", "{bad}");
        assert!(!error.to_string().contains('\n'));
    }
    assert!(HostName::new("esx-1").is_ok());
    assert!(HostName::new("esx_1").is_err());
}

#[test]
fn iscsi_names_follow_the_standard() {
    for good in [
        "iqn.1998-01.com.vmware:esx1-3f2a",
        "IQN.1993-08.org.debian:01:ABCDEF",
        "iqn.2026-11.com.example",
        "eui.02004567A425678D",
        "naa.52004567BA64678D",
        "naa.62004567BA64678D0123456789ABCDEF",
    ] {
        let name = InitiatorName::new(good).unwrap();
        assert_eq!(name.as_str(), good.to_lowercase());
    }
    for bad in [
        "",
        "iqn.",
        "iqn.2026-11",
        "iqn.2026-11.",
        "iqn.2026-11.:x",
        "iqn.26-11.com.example:x",
        "iqn.2026-11.com.example:a b",
        "iqn.2026-11.com.example:a\n",
        "eui.123",
        "naa.5200",
        "host1",
    ] {
        assert_eq!(InitiatorName::new(bad).unwrap_err().code(), "invalid_initiator", "{bad}");
    }
    let long = format!("iqn.2026-11.com.example:{}", "x".repeat(200));
    assert!(InitiatorName::new(&long).is_err());
}

#[test]
fn a_volume_is_in_a_group_or_a_pod_or_in_none() {
    let (alone, inside) = (VolumeName::new("db").unwrap(), VolumeName::new("G1/db").unwrap());
    let in_pod = VolumeName::new("P1::db").unwrap();
    assert_eq!((alone.container(), alone.own()), (None, "db"));
    let g1 = Some((ContainerKind::VolumeGroup, "G1"));
    assert_eq!((inside.container(), inside.own()), (g1, "db"));
    assert_eq!((in_pod.container(), in_pod.own()), (Some((ContainerKind::Pod, "P1")), "db"));
    let group = ContainerName::new(ContainerKind::VolumeGroup, "g2").unwrap();
    let pod = ContainerName::new(ContainerKind::Pod, "p2").unwrap();
    assert_eq!(in_pod.within(Some(&group)).as_str(), "g2/db");
    assert_eq!(inside.within(Some(&pod)).as_str(), "p2::db");
    assert_eq!(in_pod.within(None), alone);
    let both = VolumeName::new("p::g/a").unwrap_err().to_string();
    assert!(both.contains("a volume group and a pod"), "{both}");
    assert_eq!(alone.within(Some(&group)).as_str(), "g2/db");
    assert_eq!(inside.within(Some(&group)).as_str(), "g2/db");
    assert_eq!(inside.within(None), alone);
    assert_eq!(VolumeName::new(&format!("{0}/{0}", "a".repeat(63))).unwrap().own().len(), 63);
}
