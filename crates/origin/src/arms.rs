//! The arms of an experiment: the configuration of each connection.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, PoisonError, RwLock},
};

use aws_lc_rs::digest::{Context, SHA256};
use lastbyte_quic::{connection::Config, endpoint::ChooseConfig};

#[cfg(test)]
mod tests;

/// An arm of an experiment.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its name in logs.
    pub name: String,
    /// Its weight relative to those of the other arms.
    pub share: f64,
    /// The configuration of its connections.
    pub config: Arc<Config>,
}

/// The arms of an experiment: each connection is assigned to one.
#[derive(Clone, Debug)]
pub struct Arms {
    all: Vec<Arm>,
    total: f64,
    /// The salt, if clients are assigned by address.
    sticky: Option<Vec<u8>>,
    /// The name of their experiment, if they are of one.
    experiment: Option<Arc<str>>,
    /// The hash of the server's configuration that they are part of.
    config_hash: Option<Arc<str>>,
}

/// The origin of a connection, on the lines of logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The name of its arm.
    pub arm: Option<String>,
    /// The name of the experiment when it was accepted, if there was one.
    pub experiment: Option<Arc<str>>,
    /// The hash of the server's configuration when it was accepted.
    pub config_hash: Option<Arc<str>>,
}

impl Arms {
    /// These arms. `None` if there are none, or the shares are not numbers above 0.
    pub fn new(arms: Vec<Arm>) -> Option<Self> {
        let total: f64 = arms.iter().map(|arm| arm.share).sum();
        let are_shares = arms
            .iter()
            .all(|arm| arm.share.is_finite() && arm.share > 0.0);
        (!arms.is_empty() && are_shares).then_some(Self {
            all: arms,
            total,
            sticky: None,
            experiment: None,
            config_hash: None,
        })
    }

    /// One arm without a name, whose configuration all connections have.
    #[must_use]
    pub fn one(config: Arc<Config>) -> Self {
        let arm = Arm {
            name: String::new(),
            share: 1.0,
            config,
        };
        Self {
            total: arm.share,
            all: vec![arm],
            sticky: None,
            experiment: None,
            config_hash: None,
        }
    }

    /// The same, but assigned by the client's address instead of at random: all of an IPv4 address, the first 64 bits
    /// of an IPv6 address, which one network shares. Nothing else is known of a client when its first datagram arrives,
    /// neither a name nor a cookie. Another `salt` gives another assignment.
    #[must_use]
    pub fn sticky(self, salt: &str) -> Self {
        Self {
            sticky: Some(salt.as_bytes().to_vec()),
            ..self
        }
    }

    /// The same, as the arms of an experiment with this name.
    #[must_use]
    pub fn of_experiment(self, name: &str) -> Self {
        Self {
            experiment: Some(name.into()),
            ..self
        }
    }

    /// The same, as part of a configuration with this hash.
    #[must_use]
    pub fn with_config_hash(self, hash: &str) -> Self {
        Self {
            config_hash: Some(hash.into()),
            ..self
        }
    }

    /// The hash of the server's configuration that they are part of.
    pub fn config_hash(&self) -> Option<Arc<str>> {
        self.config_hash.clone()
    }

    /// What determines the assignment.
    fn number(&self, remote: SocketAddr, random: u64) -> u64 {
        let Some(salt) = &self.sticky else {
            return random;
        };
        let mut context = Context::new(&SHA256);
        context.update(salt);
        match remote.ip().to_canonical() {
            IpAddr::V4(address) => context.update(&address.octets()),
            IpAddr::V6(address) => context.update(&address.octets()[..8]),
        }
        let hash = context.finish();
        let first = hash.as_ref().first_chunk::<8>();
        first.map_or(random, |first| u64::from_be_bytes(*first))
    }

    /// The arm for a random number.
    fn draw(&self, random: u64) -> &Arm {
        // 53 bits: the precision of a number between 0 and 1.
        let mut at = (random >> 11) as f64 / (1_u64 << 53) as f64 * self.total;
        for arm in &self.all {
            if at < arm.share {
                return arm;
            }
            at -= arm.share;
        }
        // Reached only by rounding.
        &self.all[self.all.len() - 1]
    }

    /// The arm whose configuration this is.
    pub fn of(&self, config: &Arc<Config>) -> Option<&Arm> {
        self.all.iter().find(|arm| Arc::ptr_eq(&arm.config, config))
    }

    /// All arms.
    pub fn all(&self) -> &[Arm] {
        &self.all
    }
}

/// The arms of new connections, which can be replaced, and earlier ones that still have connections.
#[derive(Debug)]
pub struct ArmsInUse(RwLock<Vec<Arc<Arms>>>);

impl ArmsInUse {
    /// These arms.
    #[must_use]
    pub fn new(arms: Arms) -> Self {
        Self(RwLock::new(vec![Arc::new(arms)]))
    }

    /// Replaces the arms of new connections.
    pub fn set(&self, arms: Arms) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // A caller that has a connection also has its configuration.
        all.retain(|old| {
            let mut configs = old.all.iter().map(|arm| &arm.config);
            configs.any(|config| Arc::strong_count(config) > 1)
        });
        all.insert(0, Arc::new(arms));
    }

    /// The arms of new connections.
    pub fn current(&self) -> Arc<Arms> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&all[0])
    }

    /// The name of the arm whose configuration this is.
    pub fn name_of(&self, config: &Arc<Config>) -> Option<String> {
        self.origin_of(config).arm
    }

    /// The arm whose configuration this is, and the server's configuration that has it.
    pub fn origin_of(&self, config: &Arc<Config>) -> Origin {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut arms = all.iter();
        let found = arms.find_map(|arms| Some((arms, arms.of(config)?)));
        found.map_or_else(Origin::default, |(arms, arm)| Origin {
            arm: Some(arm.name.clone()),
            experiment: arms.experiment.clone(),
            config_hash: arms.config_hash(),
        })
    }
}

impl ChooseConfig for ArmsInUse {
    fn choose(&self, remote: SocketAddr, random: u64) -> Arc<Config> {
        let arms = self.current();
        let arm = arms.draw(arms.number(remote, random));
        Arc::clone(&arm.config)
    }
}
