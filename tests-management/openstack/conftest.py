"""OpenStack Cinder's driver with a real Cinder database: neither is mocked.

The backend is that of `contrib/cinder/cinder.conf`, with the array's address filled in.
"""

import itertools
import logging
from pathlib import Path

import pytest
from cinder import context, coordination, objects, version
from cinder.db import api as database
from cinder.db import migration
from cinder.volume import configuration, group_types, volume_types
from oslo_config import cfg
from oslo_db import options
from oslo_utils import importutils

# Modules of Cinder use the classes that this registers.
objects.register_all()

EXAMPLE = Path(__file__).parents[2] / "contrib" / "cinder" / "cinder.conf"


@pytest.fixture(scope="module")
def cinder(management, tmp_path_factory):
    """Cinder with an empty database, and the example's backend."""
    directory = tmp_path_factory.mktemp("cinder")
    example = EXAMPLE.read_text()
    for placeholder, value in (
        ("192.0.2.10:8443", management.address),
        ("= TOKEN", f"= {management.token}"),
        ("192.0.2.0/24", "127.0.0.0/8"),
    ):
        assert placeholder in example
        example = example.replace(placeholder, value)
    settings = directory / "cinder.conf"
    settings.write_text(
        f"{example}\n[database]\nconnection = sqlite:///{directory}/cinder.db\n"
        f"[oslo_concurrency]\nlock_path = {directory}\n"
        f"[coordination]\nbackend_url = file://{directory}\n"
    )
    options.set_defaults(cfg.CONF)
    cfg.CONF([], project="cinder", version=version.version_string(),
             default_config_files=[str(settings)])
    # The driver's client verifies the certificate with the machine's trusted authorities.
    patch = pytest.MonkeyPatch()
    patch.setenv("SSL_CERT_FILE", management.certificate)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    migration.db_sync()
    coordination.COORDINATOR.start()
    yield Cinder()
    coordination.COORDINATOR.stop()
    patch.undo()


class Cinder:
    """The part of the volume service that creates objects and calls the driver."""

    def __init__(self):
        self.context = context.get_admin_context()
        self.context.user_id = "5e7a2c1b8d4f4b6a9c3e1f0d2b7a6c5d"
        self.context.project_id = "0d6a5f2e9d0b4a1f8b1c6a7e5d4c3b2a"
        self.numbers = itertools.count(1)
        self.plain = self.type()

    def driver(self, **other):
        """Returns the example's driver, set up like the volume service does."""
        settings = configuration.Configuration(
            _options(), config_group=cfg.CONF.enabled_backends[0]
        )
        for option, value in other.items():
            cfg.CONF.set_override(option, value, group=settings.config_group)
        driver = importutils.import_object(
            settings.volume_driver,
            configuration=settings,
            db=database,
            host="host@holdfast",
            cluster_name=None,
            is_vol_db_empty=True,
            active_backend_id=None,
        )
        driver.do_setup(self.context)
        driver.check_for_setup_error()
        driver.set_initialized()
        return driver

    def type(self, qos=None, **specs):
        """Creates a volume type, optionally with QoS limits."""
        made = volume_types.create(self.context, f"type-{next(self.numbers)}", extra_specs=specs)
        if qos:
            limits = database.qos_specs_create(
                self.context,
                {"name": f"qos-{next(self.numbers)}", "consumer": "back-end", "specs": qos},
            )
            database.qos_specs_associate(self.context, limits["id"], made.id)
        return objects.VolumeType.get_by_id(self.context, made.id)

    def volume(self, size=1, volume_type=None, **more):
        """Creates a volume in the database only."""
        made = objects.Volume(
            self.context,
            size=size,
            volume_type_id=(volume_type or self.plain).id,
            project_id=self.context.project_id,
            status="creating",
            attach_status="detached",
            host="host@holdfast",
            **more,
        )
        made.create()
        return objects.Volume.get_by_id(self.context, made.id)

    def made(self, volume, update):
        """Records a driver's update of a created volume, like the volume service does."""
        volume.update({key: value for key, value in (update or {}).items() if key != "id"})
        volume.status = "available"
        volume.save()
        return objects.Volume.get_by_id(self.context, volume.id)

    def create(self, driver, **more):
        """Creates a volume in the database and on the array."""
        volume = self.volume(**more)
        return self.made(volume, driver.create_volume(volume))

    def snapshot(self, volume, **more):
        """Creates a snapshot in the database only."""
        made = objects.Snapshot(
            self.context,
            volume_id=volume.id,
            volume_size=volume.size,
            status="creating",
            project_id=self.context.project_id,
            volume_type_id=volume.volume_type_id,
            **more,
        )
        made.create()
        return objects.Snapshot.get_by_id(self.context, made.id)

    def group_type(self):
        """Creates a type of groups with consistent snapshots."""
        return group_types.create(
            self.context,
            f"group-type-{next(self.numbers)}",
            group_specs={"consistent_group_snapshot_enabled": "<is> True"},
        )

    def group(self, group_type):
        """Creates a group in the database only."""
        made = objects.Group(
            self.context,
            name=f"group-{next(self.numbers)}",
            group_type_id=group_type.id,
            volume_type_ids=[self.plain.id],
            user_id=self.context.user_id,
            host="host@holdfast",
            project_id=self.context.project_id,
            status="creating",
        )
        made.create()
        return made

    def create_group(self, driver, group_type):
        """Creates a group in the database and on the array."""
        group = self.group(group_type)
        driver.create_group(self.context, group)
        group.status = "available"
        group.save()
        return group

    def group_snapshot(self, group, volumes):
        """Creates a group snapshot in the database only, and those of its volumes."""
        made = objects.GroupSnapshot(
            self.context,
            group_id=group.id,
            group_type_id=group.group_type_id,
            user_id=self.context.user_id,
            project_id=self.context.project_id,
            status="creating",
        )
        made.create()
        parts = [self.snapshot(volume, group_snapshot_id=made.id) for volume in volumes]
        return objects.GroupSnapshot.get_by_id(self.context, made.id), parts


def _options():
    from cinder.volume import driver, manager

    return manager.volume_backend_opts + driver.volume_opts + driver.iser_opts


@pytest.fixture
def connector():
    """A compute host in os-brick's description."""
    number = next(_hosts)
    return {
        "host": f"compute-{number}.example.org",
        "initiator": f"iqn.2004-10.org.example:compute-{number}",
        "ip": "127.0.0.1",
        "multipath": True,
        "os_type": "linux",
        "platform": "x86_64",
        "system uuid": f"4c4c4544-0035-3010-8053-{number:012x}",
    }


_hosts = itertools.count(1)
