//! Endpoints in one process, and hand-made datagrams.

mod answers;
mod any;
mod limits;
mod many;
mod offload;
mod resume;
mod world;

use core::time::Duration;

use self::world::*;
use super::*;
