//! The servers of a channel, and which of them gets a call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_units::Time;

use super::health::Health;

/// Which server gets a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// The first one that can be reached, in the resolver's order. Only it has a connection.
    PickFirst,
    /// Each in turn.
    RoundRobin,
    /// Of two at random the one with fewer calls under way; the default.
    #[default]
    LeastLoaded,
}

/// A connection, as far as the pool is concerned.
pub(super) trait Link: Clone {
    /// Returns whether new calls may use it.
    fn is_usable(&self) -> bool;
}

/// The state of a server's connection.
#[derive(Clone, Debug)]
pub(super) enum LinkState<L> {
    /// Not wanted yet.
    Idle,
    Connecting,
    Ready(L),
    /// The last attempt failed; the next one waits.
    Failed(String),
}

/// A server.
#[derive(Debug)]
pub(super) struct Member<L> {
    pub(super) address: SocketAddr,
    state: LinkState<L>,
    outstanding: Arc<AtomicUsize>,
    health: Health,
}

/// The servers of a channel.
#[derive(Debug)]
pub(super) struct Pool<L> {
    balancing: Balancing,
    members: Vec<Member<L>>,
    /// The index where round robin goes on.
    next: usize,
}

/// Who gets a call.
#[derive(Debug)]
pub(super) enum Pick<L> {
    Ready {
        link: L,
        address: SocketAddr,
        call: Outstanding,
    },
    /// Nobody yet.
    Wait,
    /// Nobody can be reached, for this reason.
    Failed(String),
}

/// Counts a call of a server while it is under way.
#[derive(Debug)]
pub(super) struct Outstanding(Arc<AtomicUsize>);

impl Outstanding {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<L: Link> Member<L> {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            state: LinkState::Idle,
            outstanding: Arc::default(),
            health: Health::new(),
        }
    }

    fn usable(&self) -> Option<&L> {
        match &self.state {
            LinkState::Ready(link) => Some(link).filter(|link| link.is_usable()),
            _ => None,
        }
    }

    pub(super) fn state(&self) -> &LinkState<L> {
        &self.state
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Relaxed)
    }

    pub(super) fn is_avoided(&self, now: Time) -> bool {
        self.health.is_avoided(now)
    }
}

impl<L: Link> Pool<L> {
    pub(super) fn new(balancing: Balancing) -> Self {
        Self {
            balancing,
            members: Vec::new(),
            next: 0,
        }
    }

    pub(super) fn members(&self) -> &[Member<L>] {
        &self.members
    }

    /// Replaces the servers by these, in this order; those that stay keep their state. Returns the
    /// new ones.
    pub(super) fn set_addresses(&mut self, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let mut old = std::mem::take(&mut self.members);
        let mut added = Vec::new();
        for address in addresses {
            let place = old.iter().position(|member| member.address == *address);
            self.members.push(match place {
                Some(place) => old.swap_remove(place),
                None => {
                    added.push(*address);
                    Member::new(*address)
                }
            });
        }
        added
    }

    pub(super) fn set_state(&mut self, address: SocketAddr, state: LinkState<L>) {
        if let Some(member) = self.member(address) {
            member.state = state;
        }
    }

    pub(super) fn on_answer(&mut self, address: SocketAddr) {
        if let Some(member) = self.member(address) {
            member.health.on_answer();
        }
    }

    pub(super) fn on_failure(&mut self, address: SocketAddr, now: Time, random: u64) {
        if let Some(member) = self.member(address) {
            member.health.on_failure(now, random);
        }
    }

    /// Returns how many servers, from the first on, should have a connection.
    pub(super) fn wanted(&self) -> usize {
        let count = self.members.len();
        if self.balancing != Balancing::PickFirst {
            return count;
        }
        let ready = |member: &Member<L>| member.usable().is_some();
        let not_failed = |member: &Member<L>| !matches!(member.state, LinkState::Failed(_));
        let first = self.members.iter().position(ready);
        let first = first.or_else(|| self.members.iter().position(not_failed));
        first.map_or(count, |index| index + 1)
    }

    /// Returns who gets the next call; one of `tried` only if no other is ready.
    pub(super) fn pick(&mut self, now: Time, tried: &[SocketAddr], random: u64) -> Pick<L> {
        // Untried before tried, healthy before avoided. Connections end at any time: each is asked once.
        let members = self.members.iter().enumerate();
        let ranked: Vec<_> = members
            .filter_map(|(index, member)| {
                let link = member.usable()?;
                let rank = (tried.contains(&member.address), member.is_avoided(now));
                Some((rank, index, link))
            })
            .collect();
        let Some(best) = ranked.iter().map(|(rank, ..)| *rank).min() else {
            return self.none();
        };
        let candidates: Vec<_> = ranked
            .into_iter()
            .filter(|(rank, ..)| *rank == best)
            .map(|(_, index, link)| (index, link.clone()))
            .collect();
        let Some((index, link)) = self.choose(candidates, random) else {
            return Pick::Wait;
        };
        let member = &self.members[index];
        Pick::Ready {
            link,
            address: member.address,
            call: Outstanding::new(&member.outstanding),
        }
    }

    fn none(&self) -> Pick<L> {
        let mut reason = "there is no server".to_owned();
        for member in &self.members {
            match &member.state {
                LinkState::Failed(error) => reason = format!("{}: {error}", member.address),
                _ => return Pick::Wait,
            }
        }
        Pick::Failed(reason)
    }

    /// Chooses one of several members, each with its index; `None` where there are none.
    fn choose(&mut self, mut candidates: Vec<(usize, L)>, random: u64) -> Option<(usize, L)> {
        let count = candidates.len() as u64;
        let place = match self.balancing {
            _ if count <= 1 => 0,
            Balancing::PickFirst => 0,
            Balancing::RoundRobin => {
                let mut candidates = candidates.iter();
                let next = candidates.position(|(index, _)| *index >= self.next);
                next.unwrap_or(0)
            }
            Balancing::LeastLoaded => {
                let one = (random % count) as usize;
                let step = 1 + (random >> 32) % (count - 1);
                let other = ((random % count + step) % count) as usize;
                let load = |place: usize| {
                    let (index, _) = candidates[place];
                    self.members[index].outstanding()
                };
                if load(other) < load(one) { other } else { one }
            }
        };
        let (index, link) = (place < candidates.len()).then(|| candidates.swap_remove(place))?;
        self.next = index + 1;
        Some((index, link))
    }

    fn member(&mut self, address: SocketAddr) -> Option<&mut Member<L>> {
        let mut members = self.members.iter_mut();
        members.find(|member| member.address == address)
    }
}

#[cfg(test)]
mod tests;
