import json

import jsonschema
import pytest

from weir import ExportError
from weir.export import Profile, export, linux_tc, openconfig, sonic

PROFILE = Profile("dc", 65_000, 200_000, 400_000, 0.05, buffer=1_800_000, line_rate=25_000_000_000)
DROP_TAIL = Profile("tail", 65_000, 400_000, 400_000)

NUMBER = {"type": "string", "pattern": "^[0-9]+$"}
PERCENT = {"type": "string", "pattern": "^([0-9]|[1-9][0-9]|100)$"}
COLORS = ("green", "yellow", "red")
OLD_KEYS = {
    "ecn": {
        "enum": ["ecn_none", "ecn_all", "ecn_green", "ecn_yellow", "ecn_red", "ecn_green_yellow", "ecn_green_red",
                 "ecn_yellow_red"]
    },
    **{f"wred_{color}_enable": {"enum": ["true", "false"]} for color in COLORS},
    **{f"{color}_{edge}_threshold": NUMBER for color in COLORS for edge in ("min", "max")},
    **{f"{color}_drop_probability": PERCENT for color in COLORS},
}
NEW_KEYS = {
    **OLD_KEYS,
    **{f"ecn_{color}_{edge}_threshold": NUMBER for color in COLORS for edge in ("min", "max")},
    **{f"ecn_{color}_mark_probability": PERCENT for color in COLORS},
}


def sonic_schema(keys):
    profile = {"type": "object", "properties": keys, "additionalProperties": False, "required": list(keys)}
    binding = {
        "type": "object",
        "properties": {"wred_profile": {"type": "string"}},
        "required": ["wred_profile"],
        "additionalProperties": False,
    }
    tables = {
        "WRED_PROFILE": {"type": "object", "additionalProperties": profile},
        "QUEUE": {
            "type": "object",
            "patternProperties": {r"^Ethernet[0-9]+\|[0-9]+(-[0-9]+)?$": binding},
            "additionalProperties": False,
        },
    }
    return {"type": "object", "properties": tables, "additionalProperties": False, "required": ["WRED_PROFILE"]}


OPENCONFIG = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "min-threshold": NUMBER,
        "max-threshold": NUMBER,
        "enable-ecn": {"type": "boolean"},
        "drop": {"type": "boolean"},
        "weight": {"type": "integer"},
        "max-drop-probability-percent": {"type": "integer", "minimum": 0, "maximum": 100},
    },
}


@pytest.mark.parametrize(("dialect", "keys"), [("2026", NEW_KEYS), ("shared", OLD_KEYS)])
def test_sonic_has_the_tables_of_config_db(dialect, keys):
    exported = sonic(PROFILE, queues=["Ethernet0|3", "Ethernet4|3-4"], dialect=dialect)
    config = json.loads(exported.text)
    jsonschema.validate(config, sonic_schema(keys))
    profiles = config["WRED_PROFILE"]
    for bound in config["QUEUE"].values():
        assert bound["wred_profile"] in profiles
    for color in COLORS:
        least, most = (int(profiles["dc"][f"{color}_{edge}_threshold"]) for edge in ("min", "max"))
        assert least <= most


def test_sonic_marks_ecn_packets_and_drops_others():
    new = json.loads(sonic(PROFILE).text)["WRED_PROFILE"]["dc"]
    assert (new["ecn_green_min_threshold"], new["ecn_green_mark_probability"]) == ("65000", "100")
    assert (new["green_min_threshold"], new["green_max_threshold"]) == ("200000", "400000")
    assert new["green_drop_probability"] == "5"
    assert sonic(PROFILE).warnings == ()
    assert json.loads(sonic(DROP_TAIL).text)["WRED_PROFILE"]["tail"]["green_drop_probability"] == "100"


def test_one_pair_of_thresholds_warns():
    old = sonic(PROFILE, dialect="shared")
    profile = json.loads(old.text)["WRED_PROFILE"]["dc"]
    assert (profile["green_min_threshold"], profile["green_max_threshold"]) == ("65000", "65000")
    assert "dropped at the ECN threshold of 65000 bytes and not at 200000 to 400000" in old.warnings[0]
    other = sonic(PROFILE, dialect="shared", prefer="dropping")
    assert json.loads(other.text)["WRED_PROFILE"]["dc"]["green_max_threshold"] == "400000"
    assert "marked from 200000 bytes on" in other.warnings[0]


def test_cells_round_down():
    profile = json.loads(sonic(PROFILE, cell=254).text)["WRED_PROFILE"]["dc"]
    assert all(int(value) % 254 == 0 for key, value in profile.items() if key.endswith("_threshold"))
    assert int(profile["green_max_threshold"]) == 400_000 // 254 * 254


def test_openconfig_has_the_keys_of_the_model():
    exported = openconfig(PROFILE, queues=["Ethernet1/1|3"], prefer="dropping")
    qos = json.loads(exported.text)["openconfig-qos:qos"]
    profile = qos["queue-management-profiles"]["queue-management-profile"][0]
    assert profile["name"] == profile["config"]["name"] == "dc"
    uniform = profile["wred"]["uniform"]["config"]
    jsonschema.validate(uniform, OPENCONFIG)
    assert uniform["min-threshold"] == "200000" and uniform["max-drop-probability-percent"] == 5
    interface = qos["interfaces"]["interface"][0]
    assert interface["interface-id"] == "Ethernet1/1"
    queue = interface["output"]["queues"]["queue"][0]
    assert queue["config"] == {"name": "3", "queue-management-profile": "dc"}


def test_tc_has_the_thresholds_and_rate():
    exported = linux_tc(PROFILE, device="eth1")
    words = exported.text.split()
    value = {key: words[words.index(key) + 1] for key in ("limit", "min", "max", "avpkt", "burst", "probability")}
    assert int(value["min"]) == 65_000 and int(value["max"]) == 65_000
    assert int(value["burst"]) * 1500 >= int(value["min"])
    assert int(value["limit"]) >= int(value["max"]) and value["probability"] == "1"
    assert words[-1] == "ecn" and "bandwidth 25000000000bit" in exported.text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Profile("two words", 1, 1, 1), "name"),
        (lambda: Profile("dc", 65_000, 500_000, 400_000), "above red_max"),
        (lambda: Profile("dc", 65_000, 0, 0), "every packet without ECN"),
        (lambda: Profile("dc", 65_000, 2_000_000, 2_000_000, buffer=1_800_000), "never act"),
        (lambda: sonic(Profile("dc", 65_000, 100_000, 400_000, 0.005)), "whole percents"),
        (lambda: sonic(PROFILE, queues=["3"]), "PORT|QUEUE"),
        (lambda: sonic(PROFILE, cell=100_000), "less than a cell"),
        (lambda: sonic(Profile("dc", 0, 1000, 2000), dialect="shared"), "prefer=dropping"),
        (lambda: linux_tc(Profile("dc", 100, 100, 100)), "one packet"),
        (lambda: linux_tc(Profile("dc", 5 * 2**30, 5 * 2**30, 5 * 2**30)), "4 GiB"),
        (lambda: linux_tc(PROFILE, device="eth0; reboot"), "interface"),
        (lambda: export("junos", PROFILE), "sonic, openconfig, linux-tc"),
        (lambda: export("openconfig", PROFILE, device="eth0"), "device"),
    ],
)
def test_inexpressible_profiles_are_errors(make, says):
    with pytest.raises(ExportError) as caught:
        make()
    assert says in str(caught.value)
