//! CUBIC as in Linux (`tcp_cubic.c`).

use lastbyte_congestion::{
    Config, Controller, ControllerFactory, Environment, IdlePolicy, WindowController, WindowSize,
    avoidance::Cubic, startup::HyStart,
};

/// CUBIC as in Linux: `HyStart`, CUBIC, and an initial window of ten segments (RFC 6928).
#[derive(Clone, Copy, Debug)]
pub struct LinuxCubic {
    /// The initial window, in segments. Default: 10.
    pub initial_window: u32,
}

impl Default for LinuxCubic {
    fn default() -> Self {
        Self { initial_window: 10 }
    }
}

impl ControllerFactory for LinuxCubic {
    fn build(&self, environment: &Environment) -> Box<dyn Controller> {
        let config = Config {
            initial_window: WindowSize::Datagrams(self.initial_window.into()),
            idle: IdlePolicy::Rfc2861,
            ..Config::default()
        };
        let avoidance = Cubic::new(&config);
        let segment_size = environment.max_datagram_size;
        let (startup, avoidance) = (Box::new(HyStart::new()), Box::new(avoidance));
        Box::new(WindowController::new(
            config,
            segment_size,
            startup,
            avoidance,
        ))
    }
}
