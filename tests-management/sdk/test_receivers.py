"""Receivers of alerts."""

from answers import good, one, refused
from pypureclient import flasharray


def test_a_relay_is_set_with_its_password_and_cleared(client):
    relay = flasharray.SmtpServer(
        relay_host="192.0.2.1:587",
        sender_domain="example.com",
        user_name="array",
        password="horse battery",
        encryption_mode="starttls",
    )
    for shown in (one(client.patch_smtp_servers(smtp=relay)), one(client.get_smtp_servers())):
        assert (shown.relay_host, shown.user_name) == ("192.0.2.1:587", "array")
        assert not hasattr(shown, "password")
    in_the_clear = flasharray.SmtpServer(encryption_mode="")
    refused(
        client.patch_smtp_servers(smtp=in_the_clear),
        "A password is not sent without encryption: use starttls.",
    )
    cleared = flasharray.SmtpServer(
        sender_domain="None", relay_host="", user_name="", password="", encryption_mode=""
    )
    assert one(client.patch_smtp_servers(smtp=cleared)).sender_domain == ""


def test_receivers_are_made_changed_and_removed(client):
    names = ["sdk@example.com"]
    made = one(client.post_alert_watchers(names=names, alert_watcher={"enabled": False}))
    assert (made.name, made.enabled) == ("sdk@example.com", False)
    again = client.post_alert_watchers(names=names, alert_watcher={"enabled": False})
    refused(again, "Alert watcher already exists: sdk@example.com.")
    patch = flasharray.AlertWatcherPatch(enabled=True)
    assert one(client.patch_alert_watchers(names=names, alert_watcher=patch)).enabled
    (tested,) = good(client.get_alert_watchers_test(names=names))
    assert (tested.success, tested.resource.name) == (False, "sdk@example.com")
    good(client.delete_alert_watchers(names=names))
    assert good(client.get_alert_watchers()) == []

    server = flasharray.SyslogServer(uri="udp://127.0.0.1:9")
    assert one(client.post_syslog_servers(names=["sdk"], syslog_server=server)).uri == server.uri
    (tested,) = good(client.get_syslog_servers_test())
    assert (tested.destination, tested.enabled) == (server.uri, True)
    good(client.delete_syslog_servers(names=["sdk"]))
    refused(client.get_syslog_servers(names=["sdk"]), "sdk does not exist.")
