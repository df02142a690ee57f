//! The server of the page, by HTTP.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod support;

use serde_json::{Value, json};
use support::Studio;

const THRESHOLD: &str = "queue/bottleneck/ecn_threshold";

fn is(field: &'static str, wanted: &'static str) -> impl Fn(&Value) -> bool {
    move |value| value[field] == wanted
}

#[tokio::test]
async fn only_who_has_the_token_is_let_in() {
    let studio = Studio::start().await;
    let (host, cookie) = (studio.host(), studio.cookie());
    let wrong = format!("Cookie: weir-studio-{}=0123", studio.socket.port());
    for headers in [vec![&host[..]], vec![&host[..], &wrong]] {
        let answer = studio.get_as("/api/scenario", &headers).await;
        assert_eq!(answer.status, 403);
        assert!(answer.json()["error"].as_str().unwrap().contains("token"));
    }
    let page = studio
        .get_as(&format!("/?token={}", studio.token), &[&host])
        .await;
    assert_eq!(page.status, 200);
    assert!(
        page.head
            .to_lowercase()
            .contains("set-cookie: weir-studio-")
    );
    assert!(page.head.contains("HttpOnly; SameSite=Strict"));
    // Another site's page in the same browser, by its own name and by a name that leads here.
    let foreign = [&host, &cookie, "Origin: http://example.com"];
    let rebound = ["Host: example.com", &cookie];
    for headers in [&foreign[..], &rebound] {
        assert_eq!(studio.get_as("/api/scenario", headers).await.status, 403);
    }
    assert_eq!(studio.get("/api/scenario").await.status, 200);
}

#[tokio::test]
async fn the_scenario_is_described_with_its_knobs() {
    let studio = Studio::start().await;
    let scenario = studio.get("/api/scenario").await.json();
    assert_eq!(scenario["title"], "Two flows");
    assert_eq!(scenario["duration"], 0.06);
    assert_eq!(scenario["groups"][0]["algorithm"], "dctcp");
    let knobs = scenario["knobs"].as_array().unwrap();
    let threshold = knobs.iter().find(|knob| knob["id"] == THRESHOLD).unwrap();
    assert_eq!(threshold["value"], 30_000.0);
    assert_eq!(threshold["unit"], "bytes");
    assert!(knobs.iter().any(|knob| knob["id"] == "congestion/dctcp/g"));
    assert!(
        knobs
            .iter()
            .any(|knob| knob["id"] == "link/bottleneck" && knob["action"] == "fail")
    );
}

#[tokio::test]
async fn a_run_is_played_and_changed_and_saved() {
    let studio = Studio::start().await;
    let mut events = studio.events().await;
    events.next("state", is("status", "paused")).await;
    let step = json!({ "run": "a", "action": "seek", "to": 0.02 });
    assert_eq!(studio.post("/api/control", step).await.status, 204);
    let state = events.next("state", |state| state["now"] == 0.02).await;
    assert_eq!(state["run"], "a");

    let change = json!({ "run": "a", "knob": THRESHOLD, "value": 90_000.0 });
    assert_eq!(studio.post("/api/change", change).await.status, 204);
    let state = events
        .next("state", |state| {
            !state["log"].as_array().unwrap().is_empty()
        })
        .await;
    assert_eq!(
        state["log"][0]["text"],
        "queue bottleneck: ecn_threshold = 90KB"
    );
    assert_eq!(state["knobs"][THRESHOLD], 90_000.0);
    let thresholds = events
        .next("thresholds", |value| {
            value["ports"][0].as_array().unwrap().len() > 2
        })
        .await;
    assert_eq!(thresholds["ports"][0][0]["until"], 0.02);

    let play = json!({ "run": "a", "action": "play" });
    assert_eq!(studio.post("/api/control", play).await.status, 204);
    events.next("state", is("status", "ended")).await;
    let file = studio.get("/api/save?run=a").await.body;
    assert!(file.contains(
        "[[changes]]\nat = \"20ms\"\nports = \"bottleneck\"\nset.queue.ecn_threshold = \"90KB\""
    ));
    let summary = studio.get("/api/summary?run=a").await.json();
    assert!(
        summary["groups"]["dctcp"]["delivered_bytes"]
            .as_u64()
            .unwrap()
            > 1_000_000
    );
    let flows = studio.get("/api/flows?run=a&search=dctcp/1").await.json();
    assert_eq!(flows["total"], 1);
}

#[tokio::test]
async fn a_fork_begins_as_the_first_run_is_and_goes_its_own_way() {
    let studio = Studio::start().await;
    let mut events = studio.events().await;
    studio
        .post(
            "/api/control",
            json!({ "run": "a", "action": "seek", "to": 0.01 }),
        )
        .await;
    events.next("state", |state| state["now"] == 0.01).await;
    assert_eq!(studio.post("/api/fork", json!({})).await.status, 204);
    assert_eq!(studio.post("/api/fork", json!({})).await.status, 409);
    events
        .next("state", |state| state["run"] == "b" && state["now"] == 0.01)
        .await;
    let change = json!({ "run": "b", "knob": THRESHOLD, "value": 60_000.0 });
    assert_eq!(studio.post("/api/change", change).await.status, 204);
    assert!(
        !studio
            .get("/api/save?run=a")
            .await
            .body
            .contains("[[changes]]")
    );
    assert!(
        studio
            .get("/api/save?run=b")
            .await
            .body
            .contains("[[changes]]")
    );
    assert_eq!(
        studio
            .post("/api/close", json!({ "run": "b" }))
            .await
            .status,
        204
    );
    events.next("closed", is("run", "b")).await;
    assert_eq!(studio.get("/api/save?run=b").await.status, 404);
    assert_eq!(
        studio
            .post("/api/close", json!({ "run": "a" }))
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn a_way_back_makes_viewers_forget_what_follows() {
    let studio = Studio::start().await;
    let mut events = studio.events().await;
    studio
        .post(
            "/api/control",
            json!({ "run": "a", "action": "seek", "to": 0.03 }),
        )
        .await;
    events.next("state", |state| state["now"] == 0.03).await;
    studio
        .post(
            "/api/control",
            json!({ "run": "a", "action": "seek", "to": 0.01 }),
        )
        .await;
    let reset = events.next("reset", is("run", "a")).await;
    assert_eq!(reset["from"], 0.01);
    events
        .next("state", |state| {
            state["now"] == 0.01 && state["status"] == "paused"
        })
        .await;
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_the_reason() {
    let studio = Studio::start().await;
    for (path, body, status, reason) in [
        (
            "/api/change",
            json!({ "run": "a", "knob": "queue/none/buffer", "value": 1 }),
            422,
            "no knob",
        ),
        (
            "/api/change",
            json!({ "run": "a", "knob": THRESHOLD, "value": -5 }),
            422,
            "is not between",
        ),
        (
            "/api/change",
            json!({ "run": "a", "knob": "link/bottleneck", "action": "restore" }),
            422,
            "has not failed",
        ),
        (
            "/api/change",
            json!({ "run": "a", "knob": "link/bottleneck", "value": 0 }),
            422,
            "no knob",
        ),
        (
            "/api/control",
            json!({ "run": "c", "action": "play" }),
            404,
            "no run `c`",
        ),
        (
            "/api/control",
            json!({ "run": "a", "action": "dance" }),
            422,
            "dance",
        ),
        (
            "/api/control",
            json!({ "run": "a", "action": "seek", "to": -1 }),
            422,
            "no",
        ),
        (
            "/api/speed",
            json!({ "run": "a", "speed": 0 }),
            422,
            "no speed",
        ),
        ("/api/undo", json!({ "run": "a" }), 422, "nothing to undo"),
        ("/api/nothing", json!({}), 404, "no such page"),
    ] {
        let answer = studio.post(path, body.clone()).await;
        assert_eq!(answer.status, status, "{path} {body}");
        let said = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(said.contains(reason), "{path} {body}: {said}");
    }
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_refused_with_the_reason() {
    let studio = Studio::start().await;
    let answer = studio.get("/api/flows?run=a&limit=many").await;
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"].as_str().unwrap().contains("limit"));
}

#[tokio::test]
async fn watched_flows_are_seen_from_the_start_on() {
    let studio = Studio::start().await;
    let mut events = studio.events().await;
    studio
        .post(
            "/api/control",
            json!({ "run": "a", "action": "seek", "to": 0.02 }),
        )
        .await;
    events.next("state", |state| state["now"] == 0.02).await;
    let watch = json!({ "run": "a", "flows": ["dctcp/1"] });
    assert_eq!(studio.post("/api/watch", watch).await.status, 204);
    events
        .next("watched", |watched| watched["flows"] == json!(["dctcp/1"]))
        .await;
    let probes = events
        .next("probes", |probes| {
            !probes["flows"].as_array().unwrap().is_empty()
        })
        .await;
    assert!(probes["time"][0].as_f64().unwrap() < 0.001);
    assert!(probes["flows"][0]["delivered"].is_array());
    let unknown = json!({ "run": "a", "flows": ["web/1"] });
    assert_eq!(studio.post("/api/watch", unknown).await.status, 422);
}

#[tokio::test]
async fn packets_and_digests_come_from_a_run_that_is_simulated_again() {
    let studio = Studio::start().await;
    let mut events = studio.events().await;
    studio
        .post(
            "/api/control",
            json!({ "run": "a", "action": "seek", "to": 0.02 }),
        )
        .await;
    events.next("state", |state| state["now"] == 0.02).await;
    let packets = studio
        .get("/api/packets?run=a&flow=dctcp/1&until=0.015&limit=40")
        .await
        .json();
    assert_eq!(packets["packets"].as_array().unwrap().len(), 40);
    assert!(packets["until"].as_f64().unwrap() <= 0.015);
    assert_eq!(packets["lanes"][0]["kind"], "host");
    for (query, status) in [("port=none", 422), ("flow=web/1", 422), ("", 422)] {
        let answer = studio.get(&format!("/api/packets?run=a&{query}")).await;
        assert_eq!(answer.status, status, "{query}");
    }
    let digest = || async { studio.get("/api/digest?run=a").await.json() };
    let first = digest().await;
    assert_eq!(first["files"][1]["name"], "samples.parquet");
    assert_eq!(first["files"][1]["sha256"].as_str().unwrap().len(), 64);
    let change = json!({ "run": "a", "knob": THRESHOLD, "value": 90_000.0 });
    assert_eq!(studio.post("/api/change", change).await.status, 204);
    assert_ne!(first["files"][1], digest().await["files"][1]);
}

#[tokio::test]
async fn links_that_have_failed_are_told() {
    let studio = Studio::start().await;
    let mut events = studio.events().await;
    let step = json!({ "run": "a", "action": "seek", "to": 0.01 });
    studio.post("/api/control", step).await;
    events.next("state", |state| state["now"] == 0.01).await;
    let fail = json!({ "run": "a", "knob": "link/bottleneck", "action": "fail" });
    assert_eq!(studio.post("/api/change", fail).await.status, 204);
    events
        .next("state", |state| {
            state["failed"] == json!(["link/bottleneck"])
        })
        .await;
}

#[tokio::test]
async fn a_hundred_pages_are_served_at_once() {
    let studio = Studio::start().await;
    let mut pages = Vec::new();
    for _ in 0..100 {
        pages.push(studio.events().await);
    }
    studio
        .post("/api/control", json!({ "run": "a", "action": "play" }))
        .await;
    for page in &mut pages {
        page.next("state", is("status", "ended")).await;
    }
}
