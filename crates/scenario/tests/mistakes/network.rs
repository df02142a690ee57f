//! Networks in the general form.

use weir_scenario::Scenario;

#[test]
fn mistakes_in_the_general_form() {
    const GENERAL: &str = r#"title = "t"
source = "s"
duration = "1s"
[hosts.a]
count = 2
[hosts.b]
[hosts.lonely]
[switches.s]
[switches.t]
[[links]]
from = "a"
to = "s"
rate = "1Gbps"
delay = "1us"
[[links]]
from = "s"
to = "t"
rate = "1Gbps"
delay = "1us"
[[links]]
from = "t"
to = "b"
name = "last"
rate = "1Gbps"
delay = "1us"
[groups.g]
from = "a"
to = "b"
workload = "bulk"
"#;
    Scenario::parse("test.toml", GENERAL, &[]).unwrap_or_else(|error| panic!("{error}"));
    let route = |switch: &str, via: &str| {
        format!("[[routes]]\nswitch = \"{switch}\"\nto = \"b\"\nvia = {via}\n")
    };
    for (text, parts) in [
        (
            GENERAL.replace("to = \"b\"\nworkload", "to = \"lonely\"\nworkload"),
            vec!["test.toml:28: groups.g.to: no route leads from host `a1` to host `lonely`"],
        ),
        (
            GENERAL.replace("to = \"s\"", "to = \"x\""),
            vec!["no host or switch `x`", "a, b, lonely, s, t"],
        ),
        (
            GENERAL.replace("to = \"s\"", "to = \"a1\""),
            vec!["`a1` is at both ends"],
        ),
        (
            GENERAL.replace("to = \"s\"\n", "to = \"s\"\nname = \"up\"\n"),
            vec!["2 links cannot all be called `up`"],
        ),
        (
            GENERAL.replace("\"last\"", "\"a1->s\""),
            vec!["`a1->s` is no name"],
        ),
        (
            GENERAL.replace("from = \"t\"\nto = \"b\"", "from = \"s\"\nto = \"t\""),
            vec!["`s->t` is the name of another port"],
        ),
        (
            GENERAL.replace("[switches.t]", "[switches.b]"),
            vec!["`b` is the name of another host"],
        ),
        (
            GENERAL.replace(
                "[switches.t]",
                "[switches.t]\nshared_buffer = { size = \"1MB\" }",
            ),
            vec!["one of `alpha` and `per_port`"],
        ),
        (
            GENERAL.replace(
                "[switches.t]",
                "[switches.t]\nshared_buffer = { size = \"1MB\", per_port = \"2MB\" }",
            ),
            vec!["more than the whole buffer"],
        ),
        (
            format!("{GENERAL}{}", route("s", "\"b\"")),
            vec!["no neighbour of the switch `b`", "a1, a2, t"],
        ),
        (
            format!("{GENERAL}{}", route("a1", "\"b\"")),
            vec!["routes.0.switch", "the name of a switch"],
        ),
        (
            format!("{GENERAL}{}", route("t", "\"s\"")),
            vec!["from host `a1` to host `b` go round in a loop, s -> t -> s"],
        ),
        (
            format!("{GENERAL}{}", route("s", "[\"t\", \"a1\"]")),
            vec!["no route leads"],
        ),
    ] {
        let message = Scenario::parse("test.toml", &text, &[])
            .expect_err(&text)
            .to_string();
        for part in parts {
            assert!(message.contains(part), "`{part}` is missing in:\n{message}");
        }
    }
}
