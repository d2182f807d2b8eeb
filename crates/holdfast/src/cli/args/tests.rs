//! The verbs, as they are typed.

use clap::CommandFactory;

use super::Cli;

#[test]
fn verbs_that_scripts_depend_on_are_accepted() {
    Cli::command().debug_assert();
    for line in [
        "pool create /dev/sdx --capacity 10G",
        "serve --pool d --iscsi 127.0.0.1:3260,127.0.0.1:3261 --api 127.0.0.1:80 --config f",
        "serve --pool d --iscsi 127.0.0.1:3260@1,[::1]:3260@2",
        "volume create v --size 64T",
        "volume create v --size 10G --block-size 4096 --json",
        "volume list --json",
        "volume show v",
        "volume resize v --size 20G --truncate",
        "volume rename v w",
        "volume set v --offload full-copy=off",
        "volume set v --offload ats=on,reclaim=off --offload odx=off",
        "volume create v --size 1G --deduplication off --compression on --host a,b --host-group g",
        "volume set v --compression off --offload ats=on",
        "volume set v --deduplication on",
        "pool optimize",
        "pool optimize --wait",
        "pool optimize status --json",
        "pool optimize stop",
        "array show",
        "array set --offload all=off",
        "array set --space-thresholds 80%,90 --offload ats=on",
        "array set --space-thresholds none",
        "pool grow --capacity 2T --pool d",
        "pool grow d --capacity 2T",
        "pool space --refresh --json",
        "volume destroy v",
        "array set --eradication-delay 3600",
        "host create h --iqn iqn.a iqn.b --chap-user u --chap-secret-file f",
        "host list",
        "host show h",
        "host delete h",
        "connect v h --lun 7",
        "disconnect v h",
        "status --json --pool d",
        "inspect d --volume v --data",
        "inspect",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert!(Cli::read(words).is_ok(), "{line}");
    }
    for line in [
        "volume create v",
        "volume create v --size 10X",
        "volume create v --size 10G --block-size 520",
        "volume set v",
        "volume set v --compression maybe",
        "volume create v --size 1G --deduplication",
        "pool optimize now",
        "array set --eradication-delay soon",
        "volume set v --offload full-copy",
        "volume set v --offload teleport=off",
        "array set --offload ats=maybe",
        "array set",
        "array set --space-thresholds most",
        "pool grow",
        "host create h",
        "host create h --iqn iqn.a --chap-user u",
        "serve --pool d --iscsi localhost",
        "serve --pool d --iscsi 127.0.0.1:3260@0",
        "serve --pool d --iscsi 127.0.0.1:3260@65536",
        "serve --pool d --iscsi 127.0.0.1:3260@",
        "connect v",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        let error = Cli::read(words).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn verbs_of_users_are_accepted() {
    for line in [
        "serve --pool d --iscsi 127.0.0.1:3260 --api 127.0.0.1:80 --api-http",
        "status --api array.example:3280 --ca ca.pem --token-file f",
        "user create anna --role storage_admin",
        "user set anna --role readonly",
        "user list",
        "user delete anna",
        "token create laptop --user anna --expires 90d",
        "token list --user anna --json",
        "token delete laptop",
        "audit --limit 10",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert!(Cli::read(words).is_ok(), "{line}");
    }
    for line in [
        "user create anna",
        "token create",
        "token create t --expires soon",
        "audit --limit 0",
        "status --api 127.0.0.1",
        "status --api a:1 --fingerprint 12",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert_eq!(Cli::read(words).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn verbs_of_snapshots_are_accepted() {
    for line in [
        "volume destroy v --eradicate",
        "volume recover v",
        "volume eradicate v",
        "volume list --destroyed",
        "volume clone v.1 w",
        "volume restore v v.1",
        "volume overwrite v --from w",
        "snapshot create v w --suffix before",
        "snapshot create --group g",
        "snapshot list v",
        "snapshot list --group g --destroyed",
        "snapshot show v.1",
        "snapshot rename v.1 before",
        "snapshot destroy v.1 v.2 --eradicate",
        "snapshot recover v.1",
        "snapshot eradicate v.1",
        "group create g v w",
        "group add g v",
        "group remove g v",
        "group list",
        "group show g",
        "group destroy g",
        "group destroy g --eradicate",
        "group recover g",
        "group eradicate g",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert!(Cli::read(words).is_ok(), "{line}");
    }
    for line in [
        "volume overwrite v",
        "snapshot create",
        "snapshot create v --group g",
        "snapshot destroy",
        "group add g",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert_eq!(Cli::read(words).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn verbs_of_groups_tags_and_limits_are_accepted() {
    for line in [
        "serve d",
        "serve d --capacity 10G --api 127.0.0.1:80",
        "serve --pool d",
        "provision v --size 10G",
        "provision v --size 10G --host h --iqn iqn.a,iqn.b --lun 3 --json",
        "initiator list --csv",
        "host-group create g",
        "host-group add g h i",
        "host-group remove g h",
        "host-group list --csv",
        "host-group show g",
        "host-group rename g k",
        "host-group delete g",
        "connect v --host-group g --lun 7",
        "disconnect v --host-group g",
        "connection list --volume v --host h",
        "port list",
        "tag set v a=b c= --namespace n --not-copied",
        "tag list v",
        "tag delete v a c",
        "volume limit v --iops 500 --bandwidth none",
        "volume space v w",
        "group add g --host h,i",
        "group remove g --host-group hg",
        "group set g --every 4h --schedule on --keep 1d --keep-per-day 4 --keep-days 7",
        "group set g --at 22:00",
        "group rename g k",
        "group list --destroyed",
        "host rename h i",
        "host set h --add-iqn iqn.a --remove-iqn iqn.b",
        "host set h --no-chap",
        "array set --name n",
        "api GET /v1/status",
        "completion zsh",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert!(Cli::read(words).is_ok(), "{line}");
    }
    for line in [
        "status --csv --json",
        "serve d --pool e",
        "connect v",
        "connect v h --host-group g",
        "group add g v --host h",
        "group set g",
        "group set g --at 24:00",
        "group set g --every off",
        "host set h",
        "host set h --iqn iqn.a --add-iqn iqn.b",
        "volume limit v --iops many",
        "tag set v",
        "tag set v a",
        "api HEAD /v1/status",
        "completion tcsh",
        "salvage d",
        "salvage d --to e --superblock 2",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert_eq!(Cli::read(words).unwrap_err().exit_code(), 2, "{line}");
    }
}

#[test]
fn options_of_lists_and_times_are_accepted() {
    for line in [
        "array set --eradication-delay 7d",
        "volume list --filter size_bytes>=10G --filter name~db --sort -size_bytes --limit 3",
        "host list --sort name",
        "version --json",
        "man target/man",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert!(Cli::read(words).is_ok(), "{line}");
    }
    for line in [
        "array set --eradication-delay off",
        "volume list --filter size",
        "volume list --limit few",
        "man",
    ] {
        let words = std::iter::once("holdfast").chain(line.split(' '));
        assert_eq!(Cli::read(words).unwrap_err().exit_code(), 2, "{line}");
    }
    let help = Cli::read(["holdfast", "help", "volume", "create"]).unwrap_err();
    assert!(help.exit_code() == 0 && help.to_string().contains("--block-size"));
}
