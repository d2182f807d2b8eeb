"""The Ansible collection: modules that the examples do not use, and refusals."""

from pathlib import Path

MORE = Path(__file__).parent


def test_modules_that_the_examples_do_not_use(management, play):
    play(MORE / "modules.yml")
    assert management.rest("volumes", filter="name='more*'") == []


def test_volumes_in_volume_groups(management, play):
    play(MORE / "groups.yml")
    assert management.rest("volumes", filter="name='team*'") == []
    assert management.rest("volume-groups", filter="name='team*'") == []


def test_volumes_in_pods(management, play):
    play(MORE / "pods.yml")
    assert management.rest("volumes", filter="name='foo*'") == []
    assert management.rest("pods", filter="name='foo*'") == []


def test_unsupported_features_fail_with_a_reason(play):
    play(MORE / "refused.yml")
