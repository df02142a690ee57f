use super::PolicyMisfit;
use crate::{LoadedScenario, Scenario, TcpEcn, Transport, Workload, parse_policy};

const NETWORK: &str = "
title = \"Two groups\"
source = \"a test\"
duration = \"1s\"

[hosts.client]
count = 10

[hosts.server]

[switches.rack]

[[links]]
from = \"client*\"
to = \"rack\"
rate = \"10Gbps\"
delay = \"5us\"

[[links]]
from = \"server\"
to = \"rack\"
rate = \"10Gbps\"
delay = \"5us\"
";

fn scenario(groups: &str) -> LoadedScenario {
    Scenario::parse("scenario.toml", &format!("{NETWORK}{groups}"), &[])
        .unwrap_or_else(|error| panic!("{error}"))
}

fn under(groups: &str, rules: &str) -> Result<(LoadedScenario, Vec<String>), PolicyMisfit> {
    let policy = parse_policy("policy.toml", rules).unwrap_or_else(|error| panic!("{error}"));
    let (scenario, groups) = scenario(groups).under(&policy)?;
    Ok((scenario, groups.iter().map(ToString::to_string).collect()))
}

fn tcp<'s>(scenario: &'s Scenario, group: &str) -> (&'s str, TcpEcn) {
    match &scenario.group(group).unwrap().transport {
        Transport::Tcp {
            congestion,
            options,
        } => (congestion.name(), options.ecn),
        other => panic!("{other:?}"),
    }
}

const WEB: &str = "
[groups.web]
from = \"client*\"
to = \"server\"
workload = \"bulk\"
stands_for = { from_port = 443, from = \"10.1.0.0/16\" }

[groups.other]
from = \"server\"
to = \"client1\"
workload = \"bulk\"
";

#[test]
fn the_first_rule_that_fits_decides() {
    let (loaded, groups) = under(
        WEB,
        "[[rules]]\nfrom_port = 80\ncongestion = \"bbr\"\n\
         [[rules]]\nfrom = \"10.0.0.0/8\"\ncongestion = \"dctcp\"\nmin_rto = \"10ms\"\nset_dscp = \"cs1\"\n\
         [[rules]]\ncongestion = \"newreno\"",
    )
    .unwrap();
    assert_eq!(
        groups,
        [
            "group `web`: dctcp, by the rule on line 4; without effect here: `set_dscp`",
            "group `other`: left alone, as it has no `stands_for`"
        ]
    );
    assert_eq!(tcp(&loaded.scenario, "web"), ("dctcp", TcpEcn::Dctcp));
    assert_eq!(tcp(&loaded.scenario, "other"), ("cubic", TcpEcn::Off));
    let Transport::Tcp { options, .. } = &loaded.scenario.groups[0].transport else {
        panic!();
    };
    assert_eq!(options.min_rto.to_string(), "10ms");
    // The scenario under a policy is a scenario file.
    let text = toml::to_string(&loaded.scenario).unwrap();
    let again = Scenario::parse("written.toml", &text, &[])
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.scenario, loaded.scenario);
}

#[test]
fn a_share_divides_flows_senders_or_arrivals() {
    let rules = "[[rules]]\nfrom_port = 443\nshare = 0.2\ncompare = true\ncongestion = \"dctcp\"";
    let divided = |more: &str| {
        let groups = WEB.replacen("workload = \"bulk\"", more, 1);
        under(&groups, rules).unwrap()
    };
    let (by_senders, groups) = divided("workload = \"bulk\"");
    assert_eq!(
        groups[..2],
        [
            "group `web-rule-1`: dctcp, by the rule on line 1",
            "group `web`: the control group of the rule on line 1"
        ]
    );
    let senders = |name| by_senders.scenario.group(name).unwrap().from.len();
    assert_eq!((senders("web-rule-1"), senders("web")), (2, 8));

    let (by_flows, _) = divided("workload = \"bulk\"\nflows = 5");
    let flows = |name| by_flows.scenario.group(name).unwrap().flow_count();
    assert_eq!((flows("web-rule-1"), flows("web")), (10, 40));

    let (by_arrivals, _) = divided(
        "workload = { kind = \"poisson\", mean_interval = \"1ms\", distribution = \"web-search\" }",
    );
    let interval = |name| match by_arrivals.scenario.group(name).unwrap().workload {
        Workload::Poisson { mean_interval, .. } => mean_interval.to_string(),
        _ => panic!(),
    };
    assert_eq!(
        (interval("web-rule-1"), interval("web")),
        ("5ms".to_owned(), "1.25ms".to_owned())
    );
}

#[test]
fn without_compare_the_next_rules_apply_to_the_rest() {
    let (_, groups) = under(
        WEB,
        "[[rules]]\nshare = 0.5\ncongestion = \"dctcp\"\n[[rules]]\nshare = 0.2\ncongestion = \"bbr\"\n\
         [[rules]]\npass = true",
    )
    .unwrap();
    assert_eq!(
        groups[..3],
        [
            "group `web-rule-1`: dctcp, by the rule on line 1",
            "group `web-rule-4`: bbr, by the rule on line 4",
            "group `web`: left alone by the rule on line 7",
        ]
    );
}

#[test]
fn a_policy_that_cannot_be_decided_is_refused() {
    let misfit = |groups: &str, rules: &str| under(groups, rules).unwrap_err().to_string();
    assert!(
        misfit(WEB, "[[rules]]\ncommand = \"nginx\"\npass = true")
            .ends_with("write `groups.web.stands_for.command`")
    );
    assert!(
        misfit(WEB, "[[rules]]\nfrom = \"10.1.2.0/24\"\npass = true")
            .contains("fits a part of `groups.web.stands_for.from`")
    );
    assert!(misfit(WEB, "[[rules]]\ninterface = \"eth0\"\npass = true").contains("`interface`"));
    assert!(
        misfit(
            &WEB.replacen("client*", "client1", 1),
            "[[rules]]\nshare = 0.1\npass = true"
        )
        .contains("too few flows")
    );
    assert!(
        misfit(
            &WEB.replace("groups.other", "groups.web-rule-1"),
            "[[rules]]\nshare = 0.1\ncongestion = \"bbr\""
        )
        .contains("the name `web-rule-1`")
    );
    let incast = "workload = { kind = \"incast\", response = \"20KB\" }";
    assert!(
        misfit(
            &WEB.replacen("workload = \"bulk\"", incast, 1),
            "[[rules]]\nshare = 0.1\ncongestion = \"bbr\""
        )
        .contains("belong together")
    );
    let said_nothing = WEB.replace(
        "stands_for = { from_port = 443, from = \"10.1.0.0/16\" }",
        "",
    );
    assert!(misfit(&said_nothing, "[[rules]]\npass = true").contains("no group says"));
}

#[test]
fn variants_are_under_the_policy_too() {
    let groups = format!("{WEB}\n[variants.more]\ngroups.web.flows = 4\n");
    let (loaded, _) = under(&groups, "[[rules]]\ncongestion = \"dctcp\"").unwrap();
    assert_eq!(tcp(&loaded.variants[0].scenario, "web").0, "dctcp");
}

#[test]
fn what_is_left_of_a_group_keeps_its_place_in_measurements() {
    let transfers = WEB.replace(
        "workload = \"bulk\"",
        "workload = { kind = \"transfer\", size = \"1MB\" }",
    );
    let groups =
        format!("{transfers}\n[measurements.reduction]\nof = \"other\"\nagainst = \"web\"\n");
    let (loaded, _) = under(
        &groups,
        "[[rules]]\nshare = 0.5\ncompare = true\ncongestion = \"dctcp\"",
    )
    .unwrap();
    let reduction = loaded.scenario.measurements.reduction.unwrap();
    let name = |index: usize| &loaded.scenario.groups[index].name[..];
    assert_eq!(
        (name(reduction.of), name(reduction.against)),
        ("other", "web")
    );
    assert!(matches!(
        under(&groups, "[[rules]]\npass = true").unwrap().1[..],
        [ref web, _] if web.contains("left alone by the rule")
    ));
}
