"""The array, and lists of objects that it does not support."""

import json

import pytest
from answers import good, names, one, refused
from pypureclient import PureError, flasharray
from pypureclient.configuration import Configuration
from pypureclient.flasharray import VolumePost


def test_versions_and_login(management, client):
    assert client.get_rest_version() == "2.42"
    old = flasharray.Client(
        management.address, version="2.4", api_token=management.token, verify_ssl=False
    )
    assert old.get_rest_version() == "2.4"
    assert one(old.get_arrays()).id == one(client.get_arrays()).id
    with pytest.raises(PureError):
        flasharray.Client(management.address, api_token="0" * 64, verify_ssl=False)


def test_the_certificate_can_be_checked(management):
    def ask(**how):
        client = flasharray.Client(
            management.address, api_token=management.token, verify_ssl=True, retries=0, **how
        )
        return good(client.get_arrays())

    trusting = Configuration(ssl_ca_cert=management.certificate)
    assert len(ask(configuration=trusting)) == 1
    with pytest.raises(Exception, match="(?i)certificate"):
        ask()


def test_roles_are_kept(management):
    management.verb("user", "create", "reader", "--role", "readonly")
    made = management.verb("token", "create", "r", "--user", "reader")
    token = json.loads(made)["token"]
    client = flasharray.Client(management.address, api_token=token, verify_ssl=False)
    good(client.get_volumes())
    refused = client.post_volumes(names=["v"], volume=flasharray.VolumePost(provisioned=1 << 30))
    assert refused.status_code == 403


def test_the_array_and_its_space(client):
    array = one(client.get_arrays())
    assert tuple(int(part) for part in array.version.split(".")) >= (6, 3, 4)
    assert array.eradication_config.eradication_delay == 86_400_000
    space = one(client.get_arrays_space())
    assert space.capacity > 1 << 30
    assert space.space.total_physical < space.capacity
    assert space.space.total_reduction >= 1.0
    assert space.space.total_provisioned >= 0
    assert array.space.data_reduction >= 1.0


def test_the_array_is_renamed(client):
    before = one(client.get_arrays()).name
    renamed = client.patch_arrays(array=flasharray.Arrays(name="array-2"))
    assert one(renamed).name == "array-2"
    refused(
        client.patch_arrays(array=flasharray.Arrays(name="no blanks")),
        "The array name \"no blanks\" must not contain ' '; use A-Z a-z 0-9 -.",
    )
    good(client.patch_arrays(array=flasharray.Arrays(name=before)))


def test_ports_and_controllers(management, client):
    assert names(client.get_controllers(filter="status='ready'")) == ["CT0"]
    assert names(client.get_controllers(filter="status='not ready'")) == []
    port = one(client.get_ports(filter="name='CT0.*'"))
    assert port.iqn == management.array.told["target_name"]
    assert port.portal == management.array.told["portals"][0]
    assert one(client.get_network_interfaces()).services == ["iscsi"]
    assert sorted(names(client.get_hardware())) == ["CH0.BAY0", "CT0"]
    drive = one(client.get_drives(filter="status='healthy'"))
    assert drive.name == "CH0.BAY0" and drive.type == "SSD" and drive.capacity > 0
    refused(client.get_ports(names=["CT9"]), "CT9 does not exist.")


def test_the_certificate_of_management_is_that_in_files_unless_the_pool_has_one(client):
    shown = one(client.get_certificates(names=["management"]))
    assert (shown.common_name, shown.status) == ("Holdfast array", "self-signed")
    assert shown.certificate.startswith("-----BEGIN CERTIFICATE-----")


def test_lists_of_unsupported_objects_are_empty(client):
    for ask in (
        client.get_array_connections,
        client.get_offloads,
        client.get_protection_groups_targets,
        client.get_remote_pods,
        client.get_policies,
        client.get_dns,
        client.get_file_systems,
    ):
        assert good(ask()) == [], ask
    refused(
        client.get_arrays_eula(), "Licence agreements to sign: not supported by this array."
    )
    assert good(client.get_arrays_ntp_test()) == []
    assert names(client.get_alerts(filter="state='open'")) == []
    assert one(client.get_subscriptions()).service == "none"
    assert one(client.get_support()).phonehome_enabled is False
    assert one(client.get_smtp_servers()).relay_host == ""
    assert one(client.get_container_default_protections()).default_protections == []
    assert len(good(client.get_array_connections_connection_key())) == 1
    calls_home = flasharray.Support(phonehome_enabled=True)
    refused(
        client.patch_support(support=calls_home),
        "Remote support: not supported by this array.",
    )
    default = flasharray.ContainerDefaultProtection(default_protections=[])
    refused(
        client.patch_container_default_protections(
            names=["array"], container_default_protection=default
        ),
        "Default protection: not supported by this array.",
    )
    refused(
        client.patch_hardware(names=["CT0"], hardware=flasharray.Hardware(identify_enabled=True)),
        "Settings of hardware: not supported by this array.",
    )


def test_volumes_have_the_device_names_that_clients_derive_from_serials(started):
    management = started('company_id = "24-a9-37"\n')
    client = flasharray.Client(
        management.address, api_token=management.token, verify_ssl=False
    )
    volume = VolumePost(provisioned=1 << 30)
    made = one(client.post_volumes(names=["named"], volume=volume))
    shown = json.loads(management.verb("volume", "show", "named"))
    # The Cinder driver and others look for this name, after a 3, in /dev/disk/by-id.
    assert shown["naa"] == "naa.624a9370" + made.serial.lower()
