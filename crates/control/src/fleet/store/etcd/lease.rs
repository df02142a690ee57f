//! The election: a key that is there as long as the lease of its holder.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, interval, sleep_until};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::etcd::lease_client::LeaseClient;
use crate::etcd::watch_client::WatchClient;
use crate::etcd::watch_request::RequestUnion;
use crate::etcd::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    WatchCreateRequest, WatchRequest, WatchResponse, event::EventType,
};
use crate::etcd_election::CampaignRequest;
use crate::etcd_election::election_client::ElectionClient;
use crate::stream::Received;

/// How long a leader may be silent: so long after its death another one leads.
const LIFETIME: Duration = Duration::from_secs(5);

/// A key that says who leads. Dropping it gives the leadership up.
#[derive(Debug)]
pub(super) struct Leadership {
    key: Vec<u8>,
    created_at: i64,
    is_held: watch::Sender<bool>,
    _keeps: oneshot::Sender<()>,
}

impl Leadership {
    /// Waits until this controller leads.
    pub(super) async fn win(
        channel: &Channel,
        election: Vec<u8>,
        name: &str,
    ) -> Result<Self, Status> {
        let is_held = watch::Sender::new(true);
        let mut leases = LeaseClient::new(channel.clone());
        let ttl = LIFETIME.as_secs() as i64;
        let granted = leases.lease_grant(LeaseGrantRequest { ttl }).await?;
        let lease = granted.into_inner().id;
        let (keeps, dropped) = oneshot::channel();
        let (alive, mut dead) = oneshot::channel::<()>();
        let kept = keep(channel.clone(), lease, dropped);
        let held = is_held.clone();
        tokio::spawn(async move {
            kept.await;
            held.send_replace(false);
            drop(alive);
        });
        let mut elections = ElectionClient::new(channel.clone());
        let campaign = elections.campaign(CampaignRequest {
            name: election,
            lease,
            value: name.as_bytes().to_vec(),
        });
        let won = tokio::select! {
            won = campaign => won?,
            _ = &mut dead => return Err(Status::unavailable("the lease has ended before the election was won")),
        };
        let leader = won.into_inner().leader.unwrap_or_default();
        let watched = watch_key(channel, &leader.key).await?;
        let held = is_held.clone();
        tokio::spawn(async move {
            until_deleted(watched).await;
            held.send_replace(false);
        });
        Ok(Self {
            key: leader.key,
            created_at: leader.rev,
            is_held,
            _keeps: keeps,
        })
    }

    /// Returns whether the key is there, with notice of the end.
    pub(super) fn is_held(&self) -> watch::Receiver<bool> {
        self.is_held.subscribe()
    }

    /// Notes that the key is gone.
    pub(super) fn end(&self) {
        self.is_held.send_replace(false);
    }

    /// Returns the key.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the key's create revision.
    pub(super) fn created_at(&self) -> i64 {
        self.created_at
    }
}

/// Keeps a lease alive until it ends, or until nobody wants it; then revokes it.
async fn keep(channel: Channel, lease: i64, mut dropped: oneshot::Receiver<()>) {
    let mut leases = LeaseClient::new(channel);
    let mut keeping = leases.clone();
    tokio::select! {
        () = keep_alive(&mut keeping, lease) => {}
        _ = &mut dropped => {
            // Otherwise it ends by itself.
            let _ = leases.lease_revoke(LeaseRevokeRequest { id: lease }).await;
        }
    }
}

async fn keep_alive(leases: &mut LeaseClient<Channel>, lease: i64) {
    let mut until = Instant::now() + LIFETIME;
    // Another stream if one breaks: the lease may live on.
    while Instant::now() < until {
        let (sender, requests) = mpsc::channel(1);
        let opened = async {
            sender
                .send(LeaseKeepAliveRequest { id: lease })
                .await
                .ok()?;
            let answers = leases.lease_keep_alive(Received(requests)).await.ok()?;
            Some(answers.into_inner())
        };
        let opened = tokio::select! {
            opened = opened => opened,
            () = sleep_until(until) => None,
        };
        let Some(answers) = opened else {
            tokio::time::sleep(LIFETIME / 20).await;
            continue;
        };
        until = renew(&sender, answers, lease, until).await;
    }
}

/// Renews a lease over a stream until that breaks. Returns until when the lease lives.
async fn renew(
    sender: &mpsc::Sender<LeaseKeepAliveRequest>,
    mut answers: Streaming<LeaseKeepAliveResponse>,
    lease: i64,
    mut until: Instant,
) -> Instant {
    let mut beats = interval(LIFETIME / 4);
    let mut asked_at = Instant::now();
    loop {
        tokio::select! {
            answer = answers.message() => match answer {
                Ok(Some(answer)) if answer.ttl > 0 => until = asked_at + LIFETIME,
                // It has expired.
                Ok(Some(_)) => return Instant::now(),
                Ok(None) | Err(_) => return until,
            },
            _ = beats.tick() => {
                asked_at = Instant::now();
                if sender.try_send(LeaseKeepAliveRequest { id: lease }).is_err() {
                    return until;
                }
            }
            () = sleep_until(until) => return until,
        }
    }
}

async fn watch_key(channel: &Channel, key: &[u8]) -> Result<Watched, Status> {
    let (sender, requests) = mpsc::channel(1);
    let create = WatchCreateRequest { key: key.to_vec() };
    let request = WatchRequest {
        request_union: Some(RequestUnion::CreateRequest(create)),
    };
    sender
        .send(request)
        .await
        .map_err(|_| Status::unavailable("the watch has ended"))?;
    let answers = WatchClient::new(channel.clone())
        .watch(Received(requests))
        .await?;
    Ok(Watched {
        answers: answers.into_inner(),
        _requests: sender,
    })
}

/// A watch of a key.
struct Watched {
    answers: Streaming<WatchResponse>,
    /// The watch ends with it.
    _requests: mpsc::Sender<WatchRequest>,
}

/// Completes when the key is deleted, or may be.
async fn until_deleted(mut watched: Watched) {
    loop {
        match watched.answers.message().await {
            Ok(Some(answer)) if !answer.canceled => {
                let is_deletion = |event: &crate::etcd::Event| event.r#type() == EventType::Delete;
                if answer.events.iter().any(is_deletion) {
                    return;
                }
            }
            Ok(_) | Err(_) => return,
        }
    }
}
