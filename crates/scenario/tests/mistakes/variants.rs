//! Variants and grids.

use weir_scenario::Scenario;

use crate::FILE;

#[test]
fn variants_are_named_and_checked() {
    let with = |text: &str| Scenario::parse("test.toml", &format!("{FILE}\n{text}"), &[]);
    let loaded = with(
        r#"
        [variants.slow]
        "parameters.rate" = "1Gbps"
        groups.cubic.workload.size = "1MB"
        [variants.grid]
        "parameters.threshold" = ["50KB", "100KB"]
        "groups.dctcp.flows" = [1, 2, 3]
        [variants.short]
        "groups.cubic.workload" = "bulk"
        "#,
    );
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> = loaded
        .variants
        .iter()
        .map(|variant| &variant.name[..])
        .collect();
    assert_eq!(
        names,
        [
            "slow",
            "short",
            "threshold=50KB,flows=1",
            "threshold=50KB,flows=2",
            "threshold=50KB,flows=3",
            "threshold=100KB,flows=1",
            "threshold=100KB,flows=2",
            "threshold=100KB,flows=3",
        ]
    );
    assert_eq!(
        loaded.variants[3].settings[1].to_string(),
        "groups.dctcp.flows=2"
    );
    assert_eq!(loaded.variants[3].scenario.groups[0].flows, 2);
    assert_eq!(loaded.scenario.groups[0].flows, 10);
    let plain = Scenario::parse("test.toml", FILE, &[]).unwrap();
    assert_eq!(
        loaded.scenario, plain.scenario,
        "variants leave the file's own values alone"
    );

    for (text, parts) in [
        (
            "[variants.a]\n\"groups.dctcp.flows\" = 0",
            vec!["test.toml:66: variant `a`: groups.dctcp.flows: 0 is outside"],
        ),
        (
            "[variants.a]\n\"groups.dctpc.flows\" = 1",
            vec!["test.toml:66: ", "did you mean `dctcp`?"],
        ),
        (
            "[variants.grid]\n\"seed\" = 1",
            vec!["variants.grid.seed", "a list of values"],
        ),
        ("[variants]\na = 1", vec!["variants.a", "a table"]),
        (
            "[variants.\"seed=1\"]\n[variants.grid]\nseed = [1]",
            vec!["`seed=1` is the name of another variant"],
        ),
    ] {
        let message = with(text).expect_err(text).to_string();
        for part in parts {
            assert!(
                message.contains(part),
                "{text}: `{part}` is missing in:\n{message}"
            );
        }
    }
    let values: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    let values = values.join(",");
    let huge = format!("[variants.grid]\nseed = [{values}]\n\"groups.dctcp.flows\" = [{values}]");
    let message = with(&huge).expect_err("a huge grid").to_string();
    assert!(message.contains("40000 variants are too many"), "{message}");
}
