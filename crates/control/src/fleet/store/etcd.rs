//! A store in etcd, for several controllers of which one leads. Elections, leases, watches and transactions are etcd's:
//! each transaction of the leader holds only as long as its key of the election is there.
//!
//! `proto/etcd` has the part of etcd's API that is used. The crate `etcd-client`, which has all of it, needs `protoc` at
//! every build.

mod lease;

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tonic::Status;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use weir_net::RepeatedWarning;
use weir_rollout::{Batch, Entry, State, Stored};

use super::{PolicyStore, StoreError, fleet_name};
use crate::etcd::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::etcd::kv_client::KvClient;
use crate::etcd::range_request::SortOrder;
use crate::etcd::request_op::Request;
use crate::etcd::{Compare, KeyValue, PutRequest, RangeRequest, RequestOp, TxnRequest};
use lease::Leadership;

/// How long a request may take.
const ANSWER: Duration = Duration::from_secs(10);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Records that are read at once.
const PAGE: i64 = 1000;
/// etcd takes 128 operations in a transaction.
const MOST_HOSTS: usize = 100;

/// Keys in an etcd cluster.
#[derive(Debug)]
pub(super) struct EtcdStore {
    channel: Channel,
    prefix: String,
    name: String,
    leadership: Option<Leadership>,
}

impl EtcdStore {
    /// Prepares connections; they open when they are needed.
    pub(super) fn new(
        endpoints: &[String],
        prefix: &str,
        certificates: Option<&Path>,
        name: &str,
    ) -> Result<Self, StoreError> {
        let tls = certificates.map(tls).transpose()?;
        let endpoint = |address: &String| {
            let scheme = if tls.is_some() { "https" } else { "http" };
            let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?;
            let endpoint = endpoint
                .connect_timeout(Duration::from_secs(2))
                .http2_keep_alive_interval(Duration::from_secs(2))
                .keep_alive_timeout(Duration::from_secs(3));
            match &tls {
                Some(tls) => endpoint.tls_config(tls.clone()),
                None => Ok(endpoint),
            }
        };
        let endpoints = endpoints.iter().map(endpoint);
        let endpoints: Vec<_> = { endpoints.collect::<Result<_, _>>() }
            .map_err(|error: tonic::transport::Error| StoreError::Etcd(error.to_string()))?;
        Ok(Self {
            channel: Channel::balance_list(endpoints.into_iter()),
            prefix: prefix.to_owned(),
            name: name.to_owned(),
            leadership: None,
        })
    }

    fn key(&self, rest: &str) -> Vec<u8> {
        format!("/{}/{rest}", self.prefix).into_bytes()
    }

    /// Wins the election, if that is not the case already.
    async fn elect(&mut self) -> Result<(), StoreError> {
        let held = self.leadership.as_ref().map(Leadership::is_held);
        if held.is_some_and(|held| *held.borrow()) {
            return Ok(());
        }
        self.leadership = None;
        let election = self.key("leader");
        let won = Leadership::win(&self.channel, election, &self.name).await;
        self.leadership = Some(won.map_err(|status| of(&status))?);
        Ok(())
    }

    async fn load(&mut self) -> Result<Stored, StoreError> {
        let state = self.one("state").await?;
        let Some(state) = state.first() else {
            let state = State::new(fleet_name()?);
            let batch = Batch {
                state: Some(state.clone()),
                ..Batch::default()
            };
            self.write(&batch).await?;
            return Ok(Stored {
                state,
                versions: Vec::new(),
                hosts: Vec::new(),
                last_entry: 0,
            });
        };
        let last: Vec<Entry> = decoded(&self.last("log/").await?)?;
        Ok(Stored {
            state: decode(state)?,
            versions: decoded(&self.all("versions/").await?)?,
            hosts: decoded(&self.all("hosts/").await?)?,
            last_entry: last.first().map_or(0, |entry| entry.number),
        })
    }

    async fn last(&self, folder: &str) -> Result<Vec<KeyValue>, StoreError> {
        let request = RangeRequest {
            key: self.key(folder),
            range_end: after(&self.key(folder)),
            limit: 1,
            sort_order: SortOrder::Descend.into(),
        };
        self.request_range(request).await
    }

    async fn all(&self, folder: &str) -> Result<Vec<KeyValue>, StoreError> {
        let (mut all, end) = (Vec::new(), after(&self.key(folder)));
        let mut key = self.key(folder);
        loop {
            let page = self.request_range(RangeRequest {
                key,
                range_end: end.clone(),
                limit: PAGE,
                sort_order: SortOrder::None.into(),
            });
            let page = page.await?;
            let is_last = (page.len() as i64) < PAGE;
            all.extend(page);
            match all.last() {
                Some(last) if !is_last => {
                    key = last.key.clone();
                    key.push(0);
                }
                _ => return Ok(all),
            }
        }
    }

    async fn one(&self, key: &str) -> Result<Vec<KeyValue>, StoreError> {
        self.request_range(RangeRequest {
            key: self.key(key),
            range_end: Vec::new(),
            limit: 1,
            sort_order: SortOrder::None.into(),
        })
        .await
    }

    async fn request_range(&self, request: RangeRequest) -> Result<Vec<KeyValue>, StoreError> {
        let mut client = KvClient::new(self.channel.clone()).max_decoding_message_size(64 << 20);
        let answer = timely(client.range(request)).await?;
        Ok(answer.kvs)
    }

    /// Keeps a batch, if this controller still leads.
    async fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let leadership = self.leadership.as_ref().ok_or(StoreError::NotLeader)?;
        let mut puts = Vec::new();
        let mut put = |key: String, value: Result<Vec<u8>, serde_json::Error>| {
            let value = value.map_err(|error| StoreError::Record {
                key: key.clone(),
                problem: error.to_string(),
            })?;
            let request = Request::RequestPut(PutRequest {
                key: format!("/{}/{key}", self.prefix).into_bytes(),
                value,
            });
            puts.push(RequestOp {
                request: Some(request),
            });
            Ok::<_, StoreError>(())
        };
        if let Some(state) = &batch.state {
            put("state".to_owned(), encode(state))?;
        }
        if let Some(version) = &batch.version {
            put(format!("versions/{:020}", version.number), encode(version))?;
        }
        for host in &batch.hosts {
            put(format!("hosts/{}", host.name), encode(host))?;
        }
        for entry in &batch.entries {
            put(format!("log/{:020}", entry.number), encode(entry))?;
        }
        let still_leads = Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Create.into(),
            key: leadership.key().to_vec(),
            target_union: Some(TargetUnion::CreateRevision(leadership.created_at())),
        };
        let request = TxnRequest {
            compare: vec![still_leads],
            success: puts,
        };
        let mut client = KvClient::new(self.channel.clone());
        let answer = timely(client.txn(request)).await?;
        if answer.succeeded {
            Ok(())
        } else {
            leadership.end();
            Err(StoreError::NotLeader)
        }
    }
}

#[tonic::async_trait]
impl PolicyStore for EtcdStore {
    async fn lead(&mut self) -> Result<Stored, StoreError> {
        let mut warning = RepeatedWarning::new(Instant::now());
        loop {
            let led = match self.elect().await {
                Ok(()) => self.load().await,
                Err(error) => Err(error),
            };
            match led {
                Err(error @ (StoreError::Etcd(_) | StoreError::NotLeader)) => {
                    if let Some(left_out) = warning.take(Instant::now(), &error.to_string()) {
                        tracing::warn!(%error, left_out, "the store does not answer; trying again");
                    }
                    sleep(PAUSE).await;
                }
                led => return led,
            }
        }
    }

    fn leadership(&self) -> Option<watch::Receiver<bool>> {
        self.leadership.as_ref().map(Leadership::is_held)
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.write(&batch).await
    }

    async fn log(&mut self, from: u64, count: u32) -> Result<Vec<Entry>, StoreError> {
        let request = RangeRequest {
            key: self.key(&format!("log/{from:020}")),
            range_end: after(&self.key("log/")),
            limit: i64::from(count),
            sort_order: SortOrder::None.into(),
        };
        decoded(&self.request_range(request).await?)
    }

    fn most_hosts(&self) -> usize {
        MOST_HOSTS
    }
}

/// Returns the first key after all that begin with this one.
fn after(folder: &[u8]) -> Vec<u8> {
    let mut end = folder.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

async fn timely<T>(
    request: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, StoreError> {
    match timeout(ANSWER, request).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(of(&status)),
        Err(_) => Err(StoreError::Etcd("no answer".to_owned())),
    }
}

fn of(status: &Status) -> StoreError {
    StoreError::Etcd(crate::controller::with_causes(status))
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(value)
}

fn decode<T: DeserializeOwned>(record: &KeyValue) -> Result<T, StoreError> {
    serde_json::from_slice(&record.value).map_err(|error| StoreError::Record {
        key: String::from_utf8_lossy(&record.key).into_owned(),
        problem: format!("it cannot be read: {error}"),
    })
}

fn decoded<T: DeserializeOwned>(records: &[KeyValue]) -> Result<Vec<T>, StoreError> {
    records.iter().map(decode).collect()
}

fn tls(directory: &Path) -> Result<ClientTlsConfig, StoreError> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read(&path).map_err(|error| StoreError::File {
            path,
            problem: error.to_string(),
        })
    };
    let authority = Certificate::from_pem(read("ca.pem")?);
    let identity = Identity::from_pem(read("client.pem")?, read("client.key")?);
    Ok(ClientTlsConfig::new()
        .ca_certificate(authority)
        .identity(identity))
}
